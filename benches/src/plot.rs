//! Draws the figures of a run as pictures for the documentation.

use std::fs;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};
use plotters::prelude::*;
use serde_json::Value;

use crate::stats::median;

/// The subjects in the libraries' picture, and their names there.
const SUBJECTS: [(&str, &str); 5] = [
    ("everbloom, blocked", "everbloom, blocked"),
    ("everbloom, fixed", "everbloom, classic"),
    ("fastbloom, foldhash", "fastbloom"),
    ("sbbf-rs-safe, foldhash", "sbbf-rs-safe"),
    ("xorf binary fuse, foldhash", "xorf (static)"),
];

/// Reads `library.json` and `server.json` of a folder of results, and draws those that are there.
pub fn run(results: &Path, pictures: &Path) -> Result<()> {
    fs::create_dir_all(pictures)?;
    let read = |name: &str| -> Result<Value> {
        let path = results.join(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(serde_json::from_slice(&text)?)
    };
    libraries(&read("library.json")?, &pictures.join("library.svg"))?;
    servers(&read("server.json")?, &pictures.join("server.svg"))
}

/// Nanoseconds for an absent item, by the number of items, at 0.01 and 16 bytes.
fn libraries(figures: &Value, file: &Path) -> Result<()> {
    let tables = figures["figures"].as_array().context("no tables")?;
    let lines: Vec<(&str, Vec<(f64, f64)>)> = SUBJECTS
        .iter()
        .map(|(name, label)| {
            let point = |table: &Value| {
                let setting = &table["setting"];
                let wanted = setting["rate"] == 0.01 && setting["item_bytes"] == 16;
                let rows = table["rows"].as_array()?;
                let row = rows.iter().find(|row| row["name"] == *name)?;
                let single = row["miss"].as_f64()?;
                let nanos = row["miss_batch"]
                    .as_f64()
                    .map_or(single, |batch| batch.min(single));
                wanted.then_some((setting["items"].as_f64()?, nanos))
            };
            (*label, tables.iter().filter_map(point).collect())
        })
        .collect();
    let area = SVGBackend::new(file, (800, 440)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "Looking up an absent item, error rate 0.01, 16 bytes",
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(42)
        .y_label_area_size(52)
        .build_cartesian_2d((1e4..1e8).log_scale(), (1.0..200.0).log_scale())?;
    chart
        .configure_mesh()
        .x_desc("items in the filter")
        .y_desc("ns an item, one by one or in batches")
        .x_label_formatter(&|items| format!("{items:.0e}"))
        .y_label_formatter(&|nanos| format!("{nanos:.0}"))
        .draw()?;
    for (index, (label, points)) in lines.into_iter().enumerate() {
        let color = Palette99::pick(index).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points, color).point_size(3))?
            .label(label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 18, y)], color));
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK)
        .draw()?;
    area.present()?;
    Ok(())
}

/// Requests a second at pipeline 128, in parts of redis-server's ECHO. Commands with 100 items show
/// items a second.
fn servers(figures: &Value, file: &Path) -> Result<()> {
    let outcomes = figures["figures"]["outcomes"].as_array();
    let mut bars = Vec::new();
    for outcome in outcomes.context("no outcomes")? {
        let rounds = outcome["rounds"].as_array().context("no rounds")?;
        let rate = |name| {
            let values: Vec<f64> = rounds.iter().filter_map(|r| r[name].as_f64()).collect();
            median(&values)
        };
        if outcome["pipeline"] == 128 {
            let best = rate("requests_per_second").max(rate("items_per_second"));
            let label = outcome["label"].as_str().unwrap_or_default();
            let peer = outcome["peer"].as_str().unwrap_or_default();
            bars.push((format!("{peer}: {label}"), best, peer == "redis"));
        }
    }
    let yardstick = bars.first().context("no ECHO")?.1;
    let most = bars.iter().map(|bar| bar.1 / yardstick).fold(1.0, f64::max);
    let rows = i32::try_from(bars.len())?;
    let area = SVGBackend::new(file, (800, 120 + 26 * u32::try_from(rows)?)).into_drawing_area();
    area.fill(&WHITE)?;
    let across: Range<f64> = 0.0..most * 1.1;
    let mut chart = ChartBuilder::on(&area)
        .caption(
            "Pipeline 128, in parts of redis-server's ECHO",
            ("sans-serif", 18),
        )
        .margin(12)
        .x_label_area_size(36)
        .y_label_area_size(290)
        .build_cartesian_2d(across, (0..rows).into_segmented())?;
    let names: Vec<String> = bars.iter().rev().map(|bar| bar.0.clone()).collect();
    chart
        .configure_mesh()
        .disable_y_mesh()
        .y_labels(bars.len())
        .y_label_formatter(&|row| match row {
            SegmentValue::CenterOf(row) => {
                let row = usize::try_from(*row).ok();
                row.and_then(|row| names.get(row))
                    .cloned()
                    .unwrap_or_default()
            }
            SegmentValue::Exact(_) | SegmentValue::Last => String::new(),
        })
        .draw()?;
    for (row, (_, rate, redis)) in (0..rows).zip(bars.iter().rev()) {
        let color = Palette99::pick(if *redis { 7 } else { 0 });
        let low = (0.0, SegmentValue::Exact(row));
        let high = (rate / yardstick, SegmentValue::Exact(row + 1));
        let mut bar = Rectangle::new([low, high], color.filled());
        bar.set_margin(3, 3, 0, 0);
        chart.draw_series([bar])?;
    }
    area.present()?;
    Ok(())
}
