//! Draws pictures for the documentation: the figures of a run, and how a Bloom filter works.

mod bars;
mod grid;
mod lesson;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use everbloom_plot::{Axis, Chart, Line, label};
use serde_json::Value;

use crate::stats::median;
use bars::{Bar, Bars, Group};

/// The subjects in the libraries' picture, their names there, and their colours: those of everbloom
/// are the same in all pictures.
const SUBJECTS: [(&str, &str, usize); 5] = [
    ("everbloom, fixed", "everbloom, classic", CLASSIC),
    ("everbloom, blocked", "everbloom, blocked", BLOCKED),
    ("fastbloom, foldhash", "fastbloom", 2),
    ("sbbf-rs-safe, foldhash", "sbbf-rs-safe", 3),
    ("xorf binary fuse, foldhash", "xorf (static)", 4),
];

const CLASSIC: usize = 0;
const BLOCKED: usize = 1;
const REDIS: usize = 2;

/// What redis-server does for the same purpose as a command on filters.
const INSTEAD: [(&str, &str); 3] = [
    ("10 GETBIT an item, present", "BF.EXISTS, present"),
    ("10 GETBIT an item, absent", "BF.EXISTS, absent"),
    ("10 SETBIT an item", "BF.ADD, new"),
];

/// Settings of the libraries that were measured in a run of their own.
const LARGEST: &str = "library-50000000-0_01-16.json";

/// Reads `library.json`, the run of the largest filters if it is there, and `server.json` of a
/// folder of results, and draws them.
pub fn run(results: &Path, pictures: &Path) -> Result<()> {
    fs::create_dir_all(pictures)?;
    let read = |name: &str| -> Result<Value> {
        let path = results.join(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    };
    let mut library = read("library.json")?;
    if results.join(LARGEST).exists() {
        let tables = library["figures"].as_array_mut().context("no tables")?;
        let largest = read(LARGEST)?["figures"].take();
        tables.extend(largest.as_array().into_iter().flatten().cloned());
    }
    let library = libraries(&library)?.picture();
    fs::write(pictures.join("library.svg"), library.svg())?;
    let server = servers(&read("server.json")?)?.picture();
    fs::write(pictures.join("server.svg"), server.svg())?;
    Ok(())
}

/// Draws the pictures of docs/guide/how-it-works.md.
pub fn lessons(guide: &Path) -> Result<()> {
    fs::write(
        guide.join("principle.svg"),
        lesson::principle().picture().svg(),
    )?;
    fs::write(guide.join("table.svg"), lesson::table().picture().svg())?;
    Ok(())
}

/// The machine, the date and the revision, in one line.
fn conditions(document: &Value) -> String {
    let field = |name: &str| document["machine"][name].as_str().unwrap_or_default();
    let (cpu, date, revision) = (field("cpu"), field("date"), field("revision"));
    format!("{cpu}, {date}, everbloom at {revision}")
}

/// Nanoseconds for an absent item, by the number of items, at 0.01 and 16 bytes.
fn libraries(document: &Value) -> Result<Chart> {
    let tables = document["figures"].as_array().context("no tables")?;
    let lines = SUBJECTS.map(|(name, label, colour)| {
        let point = |table: &Value| {
            let setting = &table["setting"];
            let wanted = setting["rate"] == 0.01 && setting["item_bytes"] == 16;
            let rows = table["rows"].as_array()?;
            let row = rows.iter().find(|row| row["name"] == name)?;
            let single = row["miss"].as_f64()?;
            let batch = row["miss_batch"].as_f64();
            let nanos = batch.map_or(single, |batch| batch.min(single));
            wanted.then_some((setting["items"].as_f64()?, nanos))
        };
        let points = tables.iter().filter_map(point).collect();
        Line::curve(label, colour, points).dotted()
    });
    Ok(Chart {
        title: "Looking up an absent item".into(),
        subtitle: format!(
            "Error rate 1 %, items of 16 bytes, one by one or in batches, whichever is faster\n{}",
            conditions(document)
        ),
        x: Axis::logarithmic("items in the filter", label::count),
        y: Axis::logarithmic("ns an item (less is better)", label::short).within(1.0, 100.0),
        lines: lines.into(),
    })
}

/// Requests a second at pipeline 128, divided by redis-server's ECHO. Commands with 100 items show
/// items a second.
fn servers(document: &Value) -> Result<Bars> {
    let outcomes = document["figures"]["outcomes"].as_array();
    let mut groups: Vec<Group> = Vec::new();
    let mut yardstick = None;
    for outcome in outcomes.context("no outcomes")? {
        if outcome["pipeline"] != 128 {
            continue;
        }
        let rounds = outcome["rounds"].as_array().context("no rounds")?;
        let rate = |name| {
            let values: Vec<f64> = rounds.iter().filter_map(|r| r[name].as_f64()).collect();
            median(&values)
        };
        let best = rate("requests_per_second").max(rate("items_per_second"));
        // The first one is redis-server's ECHO.
        let ratio = best / *yardstick.get_or_insert(best);
        let label = outcome["label"].as_str().unwrap_or_default();
        let redis = outcome["peer"] == "redis";
        let (command, bar) = bar(label, redis, ratio);
        match groups.iter_mut().find(|group| group.label == command) {
            Some(group) => group.bars.push(bar),
            None => groups.push(Group {
                label: command.to_owned(),
                bars: vec![bar],
            }),
        }
    }
    Ok(Bars {
        title: "Requests a second, divided by those of redis-server's ECHO".into(),
        subtitle: format!(
            "Pipeline 128; commands of 100 items: items a second. {}",
            conditions(document)
        ),
        groups,
        format: label::short,
    })
}

/// The command that an outcome belongs to, and its bar there.
fn bar(label: &str, redis: bool, ratio: f64) -> (&str, Bar) {
    if redis {
        let instead = INSTEAD.iter().find(|(name, _)| *name == label);
        return match instead {
            Some((name, command)) => {
                let name = format!(
                    "redis-server, {}",
                    name.split(" an item").next().unwrap_or(name)
                );
                (command, Bar::new(name, REDIS, ratio))
            }
            None => (label, Bar::new("redis-server", REDIS, ratio)),
        };
    }
    match label.strip_prefix("blocked: ") {
        Some(command) => (command, Bar::new("everbloom, blocked", BLOCKED, ratio)),
        None if label.starts_with("BF.") => (label, Bar::new("everbloom, classic", CLASSIC, ratio)),
        None => (label, Bar::new("everbloom", CLASSIC, ratio)),
    }
}
