//! A disk that stalls: `/ready` and `/metrics` say so, on a thread that does not wait for it.

use std::sync::Arc;

use everbloom_files::storage::Disk;
use everbloom_store::persistence::Persistence;
use serde_json::json;

use super::dashboard::promtool;
use super::held::{Brake, HeldDisk, Operation, ReleaseAtEnd};
use super::*;

/// The gauge of the time that the oldest change waits.
fn wait_seconds(port: u16) -> f64 {
    let text = scrape(port);
    let gauge = text.split("\neverbloom_log_wait_seconds ").nth(1).unwrap();
    gauge.lines().next().unwrap().parse().unwrap()
}

#[test]
fn it_is_not_ready_while_the_disk_stalls() {
    for operation in [Operation::Write, Operation::Sync] {
        let dir = tempfile::tempdir().unwrap();
        let brake = Arc::new(Brake::default());
        let disk = HeldDisk {
            disk: Disk::new(dir.path()),
            hooks: Arc::clone(&brake),
        };
        let mut settings = local(Settings {
            metrics_port: free_port(),
            ..Settings::default()
        });
        settings.data.appendonly = true;
        let port = settings.metrics_port;
        let persistence = Persistence::on(Arc::new(disk), &settings.data);
        let running = everbloom_watch::start_on(settings, persistence).unwrap();
        let _release = ReleaseAtEnd(Arc::clone(&brake));
        running.wait_until_loaded();
        let mut client = client(&running);
        client.ok("SET a 1");
        assert!(ask(port, "GET", "/ready").0.contains(" 200 "));
        assert!(wait_seconds(port) < 2.0);
        brake.hold(operation);
        client.send(&["SET", "a", "2"]);
        let not_ready = || ask(port, "GET", "/ready").0.contains(" 503 ");
        wait_for("the stall", not_ready);
        let (_, why) = ask(port, "GET", "/ready");
        assert!(why.starts_with("the disk stalls: "), "{why}");
        assert!(wait_seconds(port) > 2.0);
        // The process is well, and no write is refused: it waits.
        assert_eq!(ask(port, "GET", "/health").1, "ok\n");
        assert!(scrape(port).contains("\neverbloom_writes_refused 0\n"));
        brake.release();
        wait_for("the end", || !not_ready());
        assert!(!client.reply().is_error());
        wait_for("no wait", || wait_seconds(port) < 2.0);
    }
}

/// A stall of some seconds between two scrapes of a minute, and a server whose AOF fails anyway.
#[test]
fn an_alert_names_the_server_whose_disk_stalls() {
    let series = |name, instance, values| {
        let series = format!("everbloom_{name}{{instance=\"{instance}\",job=\"everbloom\"}}");
        json!({"series": series, "values": values})
    };
    let expect = |at, alerts| json!({"eval_time": at, "alertname": "EverbloomDiskStalls", "exp_alerts": alerts});
    let summary = "The disk of a has not returned from a write or an fsync for 8s";
    let description = "Clients that write wait. GET /ready answers 503 meanwhile, and the log \
                       names the beginning and the end.";
    let alert = json!({
        "exp_labels": {"severity": "critical", "instance": "a", "job": "everbloom"},
        "exp_annotations": {"summary": summary, "description": description},
    });
    let test = json!({
        "interval": "15s",
        "input_series": [
            series("log_wait_seconds", "a", "1.9 0 8 0x20"),
            series("log_wait_seconds", "b", "100x20"),
            series("writes_refused", "a", "0x20"),
            series("writes_refused", "b", "1x20"),
        ],
        "alert_rule_test": [
            expect("15s", json!([])),
            expect("45s", json!([alert])),
            expect("3m", json!([])),
        ],
    });
    let rules = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../contrib/prometheus/everbloom.rules.yml"
    );
    let file = json!({"rule_files": [rules], "evaluation_interval": "15s", "tests": [test]});
    if let Some((passed, said)) = promtool(&["test", "rules"], &file) {
        assert!(passed, "{said}");
    }
}
