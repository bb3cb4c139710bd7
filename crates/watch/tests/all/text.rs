//! The metrics as Prometheus reads them, and the alerts on them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::process::{Command, Stdio};

use everbloom_dev::{peers, wait_for};
use everbloom_server::{Running, Settings};

use super::{HOSTILE, client, scrape, scrape_after_a_walk, scrape_as, watched};

/// A server after commands of all kinds.
fn busy() -> (Running, u16) {
    let (running, port) = watched(Settings::default());
    let mut client = client(&running);
    for line in [
        "BF.RESERVE classic 0.001 10000",
        "BF.RESERVE blocked 0.01 10000 LAYOUT BLOCKED",
        "BF.MADD blocked a b c",
        "BF.RESERVE window 0.01 1000 WINDOW SECONDS 3600",
        "BF.RESERVE last 0.01 1000 WINDOW ITEMS",
        "CF.ADD cuckoo x",
        "CF.RESERVE keyed 1000 ERROR 0.001",
        "CF.ADD keyed x",
        "SET text x EX 100",
    ] {
        client.ok(line);
    }
    client.call(&[b"BF.ADD", HOSTILE, b"x"]);
    client.error("GET");
    client.error("BF.ADD text x");
    client.line("SELECT 1");
    client.line("SET text x");
    (running, port)
}

/// What follows the name of a family in its lines, for the types that there are.
fn suffixes(kind: &str) -> &[&str] {
    match kind {
        "counter" => &["_total"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_count", "_sum"],
        _ => &[],
    }
}

/// The rules of OpenMetrics that our text can break.
#[test]
fn the_text_keeps_the_rules_of_open_metrics() {
    let (_running, port) = busy();
    let text = scrape_after_a_walk(port);
    assert!(text.ends_with("\n# EOF\n"));
    assert!(!text.contains("\n\n") && !text.contains('\r'), "{text}");
    let (mut families, mut series) = (BTreeMap::new(), BTreeSet::new());
    let (mut family, mut kind) = ("", "");
    for line in text.lines().take_while(|line| *line != "# EOF") {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words[..] {
            ["#", "HELP", name, help] => {
                family = name;
                assert!(help.ends_with('.') && help.len() > 4, "{line}");
                assert!(families.insert(name, 0).is_none(), "twice: {name}");
            }
            ["#", "TYPE", name, of] => {
                assert_eq!(name, family);
                assert!(!suffixes(of).is_empty(), "{line}");
                assert!(!name.ends_with("_total"), "{line}");
                kind = of;
            }
            ["#", "UNIT", name, unit] => {
                assert_eq!(name, family);
                assert!(name.ends_with(&format!("_{unit}")), "{line}");
            }
            ["#", ..] => panic!("{line}"),
            _ => {
                let (labelled, value) = line.rsplit_once(' ').unwrap();
                let name = labelled.split('{').next().unwrap();
                let suffix = name.strip_prefix(family).unwrap();
                assert!(suffixes(kind).contains(&suffix), "{line}");
                let value: f64 = value.parse().unwrap();
                assert!(
                    value.is_finite() && value >= 0.0 && value.is_sign_positive(),
                    "{line}"
                );
                assert!(series.insert(labelled.to_owned()), "twice: {line}");
                *families.get_mut(family).unwrap() += 1;
            }
        }
    }
    assert!(families.len() > 40, "{families:?}");
    for name in [
        "everbloom_command_seconds",
        "everbloom_clients",
        "everbloom_filter_items",
    ] {
        assert!(families[name] > 0, "{name}");
    }
    for sample in [
        r#"everbloom_commands_total{command="bf.madd"}"#,
        r#"everbloom_error_replies_total{code="WRONGTYPE"}"#,
        r#"everbloom_keys{db="1"}"#,
        r#"everbloom_filters_items{layout="blocked"}"#,
        r#"everbloom_filter_room_items{db="0",key="cuckoo",layout="cuckoo"}"#,
        r#"everbloom_filter_error_rate_asked_ratio{db="0",key="classic",layout="classic"}"#,
        r#"everbloom_filter_error_rate_asked_ratio{db="0",key="keyed",layout="keyed-cuckoo"}"#,
        r#"everbloom_filter_window_seconds{db="0",key="window",layout="blocked"}"#,
        r#"everbloom_filter_next_generation_timestamp_seconds{db="0",key="window",layout="blocked"}"#,
        r#"everbloom_filter_generations{db="0",key="last",layout="blocked"}"#,
    ] {
        assert!(series.contains(sample), "{sample} is missing");
    }
    for (command, calls) in [("bf.madd", 1), ("bf.reserve", 4)] {
        let line = format!("\neverbloom_commands_total{{command=\"{command}\"}} {calls}\n");
        assert!(text.contains(&line), "{text}");
    }
    assert!(
        text.contains("\neverbloom_filters_items{layout=\"blocked\"} 3\n"),
        "{text}"
    );
}

/// The buckets of a command's histogram: their bounds, and the commands up to them.
fn buckets(text: &str, command: &str) -> Vec<(f64, u64)> {
    let start = "everbloom_command_duration_seconds_bucket{";
    let lines = text.lines().filter_map(|line| line.strip_prefix(start));
    let of_command = lines.filter(|line| line.contains(&format!("command=\"{command}\"")));
    let buckets = of_command.map(|line| {
        let (labels, count) = line.rsplit_once(' ').unwrap();
        let bound = labels.split("le=\"").nth(1).unwrap().split('"').next();
        let bound = bound.unwrap().replace("+Inf", "inf");
        (bound.parse().unwrap(), count.parse().unwrap())
    });
    buckets.collect()
}

#[test]
fn a_histogram_says_how_long_commands_took() {
    let (running, port) = watched(Settings {
        enable_debug_command: "yes".into(),
        ..Settings::default()
    });
    let mut client = client(&running);
    for _ in 0..10 {
        client.ok("PING");
    }
    client.ok("DEBUG SLEEP 0.02");
    let text = scrape(port);
    for (command, calls) in [("ping", 10), ("debug", 1)] {
        let buckets = buckets(&text, command);
        assert!(
            buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1),
            "{text}"
        );
        assert_eq!(buckets.last(), Some(&(f64::INFINITY, calls)));
        let count = format!("_duration_seconds_count{{command=\"{command}\"}} {calls}\n");
        assert!(text.contains(&count), "{text}");
    }
    // The sleep is in no bucket of less than 20 ms.
    for (bound, count) in buckets(&text, "debug") {
        assert!(bound > 0.02 || count == 0, "{text}");
    }
    // It goes back with the other figures of commands.
    client.ok("CONFIG RESETSTAT");
    assert_eq!(buckets(&scrape(port), "ping"), []);
    client.ok("PING");
    assert_eq!(
        buckets(&scrape(port), "ping").last(),
        Some(&(f64::INFINITY, 1))
    );
}

/// A scrape reads what a walk found before it, and so looks at no key.
#[test]
fn a_filter_is_seen_once_a_walk_has_passed_it() {
    let (running, port) = watched(Settings::default());
    let mut client = client(&running);
    wait_for("the first walk", || {
        scrape(port).contains("everbloom_filters{")
    });
    client.ok("BF.ADD new x");
    let text = scrape(port);
    assert!(text.contains("\neverbloom_keys{db=\"0\"} 1\n"), "{text}");
    assert!(
        text.contains("\neverbloom_filters{layout=\"classic\"} 0\n"),
        "{text}"
    );
    assert!(!text.contains("key=\"new\""), "{text}");
    assert!(scrape_after_a_walk(port).contains("key=\"new\""));
}

#[test]
fn pythons_parser_reads_the_text() {
    let probe = &mut Command::new("python3");
    let module = "import prometheus_client.openmetrics.parser";
    if !peers::is_there(probe.args(["-c", module]), "pip install prometheus_client") {
        return;
    }
    let (_running, port) = busy();
    let text = scrape_after_a_walk(port);
    let program = r"
import sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse
families = list(parse(sys.stdin.buffer.read().decode()))
samples = [sample for family in families for sample in family.samples]
hostile = 'a\x22} 1\\neverbloom_keys{db=\x22\\xff\\\\'
assert [s for s in samples if s.labels.get('key') == hostile], samples
assert [s for s in samples if s.name == 'everbloom_command_seconds_total'], samples
print(len(families))
";
    let mut python = Command::new("python3")
        .args(["-c", program])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    python
        .stdin
        .take()
        .unwrap()
        .write_all(text.as_bytes())
        .unwrap();
    let output = python.wait_with_output().unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}\n{text}");
}

/// Files that name metrics, from the root of the repository.
const NAMING: [&str; 3] = [
    "contrib/grafana/everbloom.json",
    "contrib/prometheus/everbloom.rules.yml",
    "docs/guide/watch.md",
];

fn read(path: &str) -> String {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    std::fs::read_to_string(format!("{root}/{path}")).unwrap()
}

#[test]
fn the_alerts_and_the_guide_name_metrics_that_there_are() {
    let known = include_str!("../../src/metrics.txt");
    let known: BTreeSet<&str> = known
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    for path in NAMING {
        let text = read(path);
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let named: BTreeSet<&str> = words
            .map(|word| word.strip_suffix("_bucket").unwrap_or(word))
            .filter(|word| word.starts_with("everbloom_") && !word.ends_with('_'))
            .collect();
        assert!(named.len() > 5, "{path}");
        let wrong: Vec<&&str> = named.difference(&known).collect();
        assert!(wrong.is_empty(), "{path} names {wrong:?}");
    }
}

/// Readers that do not ask for OpenMetrics get the older format, in which each name has its help.
#[test]
fn promtool_accepts_the_older_format() {
    let mut promtool = Command::new("promtool");
    if !peers::is_there(promtool.arg("--version"), "apt-get install prometheus") {
        return;
    }
    let (_running, port) = busy();
    scrape_after_a_walk(port);
    for accept in ["*/*", "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"] {
        let text = scrape_as(port, accept, "text/plain; version=0.0.4; charset=utf-8");
        let counter = "\n# TYPE everbloom_commands_total counter\neverbloom_commands_total{";
        assert!(text.contains(counter), "{text}");
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = promtool.stdin.take().unwrap();
        stdin.write_all(text.as_bytes()).unwrap();
        drop(stdin);
        let output = promtool.wait_with_output().unwrap();
        let said = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
        assert!(output.status.success(), "{said:?}");
        assert_eq!(said.concat(), "");
    }
}

#[test]
fn promtool_accepts_the_alerts() {
    let mut promtool = Command::new("promtool");
    if !peers::is_there(promtool.arg("--version"), "apt-get install prometheus") {
        return;
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../contrib/prometheus/");
    let rules = ["everbloom", "everbloom-module"].map(|name| format!("{folder}{name}.rules.yml"));
    let output = Command::new("promtool")
        .args(["check", "rules"])
        .args(rules)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}
