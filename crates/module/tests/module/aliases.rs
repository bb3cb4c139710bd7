//! Settings that have valkey-bloom's names beside their own.

use crate::settings::setting;
use crate::support::{Host, from_redis_7, host_program, is_valkey, module, version};
use everbloom_resp::Reply;

/// A host that was started on a file with these lines, in which names with no other prefix are the
/// module's own; nothing where hosts have no settings for modules. Then the prefix.
fn on_lines(lines: &[&str]) -> Option<(Host, &'static str)> {
    if !from_redis_7() {
        return None;
    }
    let program = host_program()?;
    let bare = !is_valkey(&program) && version(&program) >= (8, 0);
    let prefix = if bare { "" } else { "bf." };
    let dir = tempfile::tempdir().unwrap();
    let mut text = format!("loadmodule {}\n", module().display());
    for line in lines {
        let prefix = if line.starts_with("bloom-") {
            "bf."
        } else {
            prefix
        };
        text += &format!("{prefix}{line}\n");
    }
    std::fs::write(dir.path().join("redis.conf"), text).unwrap();
    Some((Host::on_file(dir, &program), prefix))
}

/// The module's settings in the file that the host rewrites.
fn rewritten(host: &Host) -> Vec<String> {
    host.client().ok("CONFIG REWRITE");
    let text = std::fs::read_to_string(host.dir.path().join("redis.conf")).unwrap();
    let lines = text.lines().map(|line| line.replace('"', ""));
    let ours = |line: &String| {
        let line = line.strip_prefix("bf.").unwrap_or(line);
        ["bf-", "cf-", "bloom-"]
            .iter()
            .any(|start| line.starts_with(start))
    };
    let mut lines: Vec<String> = lines.filter(ours).collect();
    lines.sort();
    lines
}

#[test]
fn a_rewrite_writes_each_setting_once() {
    let Some((mut host, prefix)) = on_lines(&[]) else {
        return;
    };
    let settings = [
        ("bf-error-rate", "0.002"),
        ("bf-expansion-factor", "3"),
        ("bf-initial-size", "5000"),
        ("bf-max-filter-bytes", "1mb"),
    ];
    for (name, value) in settings {
        host.client()
            .ok(&format!("CONFIG SET {prefix}{name} {value}"));
    }
    let wanted = settings.map(|(name, value)| format!("{prefix}{name} {value}"));
    for _ in 0..2 {
        assert_eq!(rewritten(&host), wanted);
        let mut client = host.client();
        assert_eq!(setting(&mut client, "bf-initial-size"), "5000");
        // Not the default, and nobody set it by this name.
        assert_eq!(setting(&mut client, "bloom-capacity"), "");
        host.restart("NOSAVE");
    }
    for (name, value) in [("bf-error-rate", "0.01"), ("bf-initial-size", "100")] {
        host.client()
            .ok(&format!("CONFIG SET {prefix}{name} {value}"));
        let alias = name
            .replace("bf-initial-size", "bloom-capacity")
            .replace("bf-error-rate", "bloom-fp-rate");
        assert_eq!(setting(&mut host.client(), &alias), value);
    }
}

#[test]
fn a_rewrite_writes_no_alias_for_another_spelling_of_the_default() {
    let Some((mut host, prefix)) = on_lines(&["bf-error-rate 1e-2"]) else {
        return;
    };
    for _ in 0..2 {
        assert_eq!(rewritten(&host), [format!("{prefix}bf-error-rate 1e-2")]);
        host.restart("NOSAVE");
    }
    assert_eq!(setting(&mut host.client(), "bloom-fp-rate"), "0.01");
}

#[test]
fn a_rewrite_writes_an_alias_that_the_operator_used() {
    let lines = ["bloom-fp-rate 0.002", "bloom-memory-usage-limit 2mb"];
    let Some((mut host, prefix)) = on_lines(&lines) else {
        return;
    };
    let mut client = host.client();
    client.ok("CONFIG SET bf.bloom-capacity 700");
    client.ok(&format!("CONFIG SET {prefix}bf-expansion-factor 4"));
    client.ok("CONFIG SET bf.bloom-memory-usage-limit 3mb");
    let mut wanted = vec![
        "bf.bloom-capacity 700".to_owned(),
        "bf.bloom-fp-rate 0.002".to_owned(),
        "bf.bloom-memory-usage-limit 3145728".to_owned(),
        format!("{prefix}bf-error-rate 0.002"),
        format!("{prefix}bf-expansion-factor 4"),
        format!("{prefix}bf-initial-size 700"),
        format!("{prefix}bf-max-filter-bytes 3mb"),
    ];
    wanted.sort();
    for _ in 0..2 {
        assert_eq!(rewritten(&host), wanted);
        host.restart("NOSAVE");
    }
    // Both names follow a change by either.
    let mut client = host.client();
    client.ok(&format!("CONFIG SET {prefix}bf-initial-size 800"));
    assert_eq!(setting(&mut client, "bloom-capacity"), "800");
    assert!(rewritten(&host).contains(&"bf.bloom-capacity 800".to_owned()));
    // An empty value takes the alias out of the file.
    assert_eq!(
        client.call(&["CONFIG", "SET", "bf.bloom-capacity", ""]),
        Reply::OK
    );
    let lines = rewritten(&host);
    assert!(
        lines.iter().all(|line| !line.contains("capacity")),
        "{lines:?}"
    );
    assert_eq!(setting(&mut client, "bf-initial-size"), "800");
}

#[test]
fn two_names_with_different_values_are_a_warning() {
    let lines = [
        "bloom-capacity 700",
        "bf-initial-size 500",
        "bf-error-rate 1e-3",
        "bloom-fp-rate 0.001",
        "bloom-expansion 3",
    ];
    let Some((mut host, prefix)) = on_lines(&lines) else {
        return;
    };
    let mut client = host.client();
    assert_eq!(setting(&mut client, "bf-initial-size"), "500");
    assert_eq!(setting(&mut client, "bloom-capacity"), "500");
    assert_eq!(setting(&mut client, "bf-expansion-factor"), "3");
    let line = format!(
        "{prefix}bf-initial-size is 500 and bf.bloom-capacity is 700, but they are one setting: \
         500 is used"
    );
    assert_eq!(host.log().matches(&line).count(), 1, "{}", host.log());
    assert_eq!(host.log().matches("one setting").count(), 1);
    assert!(rewritten(&host).contains(&"bf.bloom-capacity 500".to_owned()));
    host.restart("NOSAVE");
    assert_eq!(host.log().matches("one setting").count(), 1);
}

/// An empty text takes the alias back, and brings no refused value.
#[test]
fn an_alias_that_is_taken_back_leaves_the_value_before_it() {
    let Some((host, prefix)) = on_lines(&["bf-initial-size 500"]) else {
        return;
    };
    let mut client = host.client();
    client.ok("CONFIG SET bf.bloom-capacity 700");
    client.error(&format!(
        "CONFIG SET bf.bloom-capacity 900 {prefix}bf-error-rate 2"
    ));
    assert_eq!(setting(&mut client, "bf-initial-size"), "700");
    let empty = ["CONFIG", "SET", "bf.bloom-capacity", ""];
    assert_eq!(client.call(&empty), Reply::OK);
    assert_eq!(setting(&mut client, "bf-initial-size"), "500");
}

#[test]
fn a_refused_change_of_several_settings_leaves_each_as_it_was() {
    let Some((host, prefix)) = on_lines(&["bf-initial-size 500"]) else {
        return;
    };
    let mut client = host.client();
    // 100 is the default.
    for (size, value) in [("500", "9"), ("500", "100"), ("100", "9"), ("700", "600")] {
        client.ok(&format!("CONFIG SET {prefix}bf-initial-size {size}"));
        client.error(&format!(
            "CONFIG SET bf.bloom-capacity {value} {prefix}bf-error-rate 2"
        ));
        assert_eq!(setting(&mut client, "bf-initial-size"), size);
    }
    for (name, value, words) in [
        ("capacity", "0", "must be in the range [1, 1073741824]"),
        ("capacity", "many", "Invalid value for `bloom-capacity`"),
        ("memory-usage-limit", "1xb", "Invalid value"),
        ("fp-rate", "1", "must be in the range"),
    ] {
        let error = client.error(&format!("CONFIG SET bf.bloom-{name} {value}"));
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(rewritten(&host), [format!("{prefix}bf-initial-size 700")]);
}
