//! Grafana's dashboard in `contrib`: its expressions, as Prometheus reads them.

use std::fs;
use std::process::Command;

use everbloom_dev::peers;
use serde_json::{Value, json};
use tempfile::TempDir;

fn dashboard() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../contrib/grafana/everbloom.json"
    );
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What Grafana puts into an expression for its variables.
fn filled(expression: &Value) -> String {
    let filled = expression.as_str().unwrap();
    let filled = filled.replace("$__rate_interval", "1m");
    let filled = filled.replace("$job", ".*").replace("$instance", ".*");
    assert!(!filled.contains('$'), "{filled}");
    filled
}

/// The expressions of a panel.
fn expressions(panel: &Value) -> impl Iterator<Item = String> {
    let targets = panel["targets"].as_array();
    targets.into_iter().flatten().map(|it| filled(&it["expr"]))
}

/// Those of the panel of this title.
fn expression_of(title: &str) -> String {
    let dashboard = dashboard();
    let mut panels = dashboard["panels"].as_array().unwrap().iter();
    let panel = panels.find(|panel| panel["title"] == title).unwrap();
    expressions(panel).next().unwrap()
}

/// What promtool says of a file, which is JSON, and so YAML; nothing without promtool.
pub(super) fn promtool(words: &[&str], file: &Value) -> Option<(bool, String)> {
    let mut version = Command::new("promtool");
    if !peers::is_there(version.arg("--version"), "apt-get install prometheus") {
        return None;
    }
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file.yml");
    fs::write(&path, file.to_string()).unwrap();
    let mut promtool = Command::new("promtool");
    let output = promtool.args(words).arg(path).output().unwrap();
    let said = [output.stdout, output.stderr].map(|it| String::from_utf8(it).unwrap());
    Some((output.status.success(), said.concat()))
}

#[test]
fn promtool_accepts_the_expressions_of_the_dashboard() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let annotations = dashboard["annotations"]["list"].as_array().unwrap();
    let annotations = annotations.iter().map(|it| filled(&it["expr"]));
    let rules: Vec<Value> = panels
        .iter()
        .flat_map(expressions)
        .chain(annotations)
        .zip(0..)
        .map(|(expression, number)| json!({"record": format!("r{number}"), "expr": expression}))
        .collect();
    assert!(rules.len() > 30, "{rules:?}");
    let check = |rules: &[Value]| {
        let file = json!({"groups": [{"name": "dashboard", "rules": rules}]});
        promtool(&["check", "rules"], &file)
    };
    let Some((accepted, said)) = check(&rules) else {
        return;
    };
    assert!(accepted, "{said}");
    let mistake = json!({"record": "mistake", "expr": "sum(rate(everbloom_clients))"});
    assert_eq!(check(&[mistake]).map(|(accepted, _)| accepted), Some(false));
}

/// One filter errs twice as often as asked and has room for 100 minutes, the others are well.
#[test]
fn the_tables_name_the_filters_that_need_someone() {
    let labels =
        |key| format!("{{instance=\"a\",db=\"0\",job=\"j\",key=\"{key}\",layout=\"classic\"}}");
    let series = |name, key, values| {
        let series = format!("everbloom_filter_{name}{}", labels(key));
        json!({"series": series, "values": values})
    };
    let expect = |title, value| {
        let sample = json!({"labels": labels("bad"), "value": value});
        // Prometheus computes a slope, in floating point.
        let expression = format!("round({})", expression_of(title));
        json!({"expr": expression, "eval_time": "6h", "exp_samples": [sample]})
    };
    let test = json!({
        "interval": "1m",
        "input_series": [
            series("error_rate_expected_ratio", "bad", "0.02x400"),
            series("error_rate_asked_ratio", "bad", "0.01x400"),
            series("room_items", "bad", "6000x400"),
            series("items", "bad", "0+60x400"),
            series("error_rate_expected_ratio", "good", "0.012x400"),
            series("error_rate_asked_ratio", "good", "0.01x400"),
            series("room_items", "good", "1000000x400"),
            series("items", "good", "0+60x400"),
            series("room_items", "idle", "1x400"),
            series("items", "idle", "7x400"),
        ],
        "promql_expr_test": [
            expect("Above their error rate", 2),
            expect("Will grow or be full within a day", 6000),
        ],
    });
    let file = json!({"rule_files": [], "evaluation_interval": "1m", "tests": [test]});
    if let Some((passed, said)) = promtool(&["test", "rules"], &file) {
        assert!(passed, "{said}");
    }
}
