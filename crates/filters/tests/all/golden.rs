//! Filters recorded from RedisBloom: rebuilt from nothing, loaded, asked and grown further.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::expect_used,
    clippy::panic
)]

use crate::common::Batches;
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use base64::Engine as _;
use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::redisbloom::{FilterParts, LayerParts};
use serde_json::Value;

/// The layout of the header: little-endian, packed.
fn header(filter: &LayeredFilter) -> Vec<u8> {
    let parts = filter.parts();
    let mut out = Vec::new();
    out.extend(parts.items.to_le_bytes());
    out.extend(u32::try_from(parts.layers.len()).unwrap().to_le_bytes());
    out.extend(parts.options.to_le_bytes());
    out.extend(parts.expansion.to_le_bytes());
    for layer in &parts.layers {
        out.extend(layer.bytes.to_le_bytes());
        out.extend(layer.bits.to_le_bytes());
        out.extend(layer.items.to_le_bytes());
        out.extend(layer.error_rate.to_le_bytes());
        out.extend(layer.bits_per_entry.to_le_bytes());
        out.extend(layer.hashes.to_le_bytes());
        out.extend(layer.capacity.to_le_bytes());
        out.push(layer.log2_bits);
    }
    out
}

fn parse_header(bytes: &[u8]) -> FilterParts {
    let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let count = u32_at(8) as usize;
    assert_eq!(bytes.len(), 20 + 53 * count);
    let layer = |index: usize| {
        let at = 20 + 53 * index;
        LayerParts {
            bytes: u64_at(at),
            bits: u64_at(at + 8),
            items: u64_at(at + 16),
            error_rate: f64::from_bits(u64_at(at + 24)),
            bits_per_entry: f64::from_bits(u64_at(at + 32)),
            hashes: u32_at(at + 40),
            capacity: u64_at(at + 44),
            log2_bits: bytes[at + 52],
        }
    };
    FilterParts {
        items: u64_at(0),
        options: u32_at(12),
        expansion: u32_at(16),
        key: None,
        valkey: None,
        window: None,
        layers: (0..count).map(layer).collect(),
    }
}

fn base64(value: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD
        .decode(value.as_str().unwrap())
        .unwrap()
}

fn items(value: &Value) -> Vec<Vec<u8>> {
    let item = |value: &Value| match value {
        Value::String(text) => text.clone().into_bytes(),
        other => base64(&other["b64"]),
    };
    value.as_array().unwrap().iter().map(item).collect()
}

fn captures() -> Vec<Value> {
    let folder =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance/golden/scandump");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    paths.sort();
    assert_eq!(paths.len(), 11);
    paths
        .iter()
        .map(|path| serde_json::from_slice(&fs::read(path).unwrap()).unwrap())
        .collect()
}

/// The filter before its first item.
fn start(capture: &Value) -> LayeredFilter {
    if let Some(header) = capture.get("start_header") {
        return LayeredFilter::from_parts(&parse_header(&base64(header)), 1 << 20).unwrap();
    }
    let create = &capture["create"];
    let mut builder = LayeredFilter::builder().layout(Layout::Classic);
    if let Some(rate) = create["rate"].as_f64() {
        builder = builder.error_rate(rate);
    }
    if let Some(capacity) = create["capacity"].as_u64() {
        builder = builder.capacity(capacity);
    }
    if let Some(expansion) = create["expansion"].as_u64() {
        builder = builder.expansion(u32::try_from(expansion).unwrap());
    }
    if create["nonscaling"].as_bool() == Some(true) {
        builder = builder.fixed();
    }
    builder.build().unwrap()
}

fn assert_dump(name: &str, filter: &LayeredFilter, capture: &Value) {
    let chunks = capture["chunks"].as_array().unwrap();
    assert_eq!(header(filter), base64(&chunks[0]["data"]), "{name}: header");
    let mut offset = 0;
    for chunk in &chunks[1..] {
        let data = filter.stream_chunk(offset, 16 << 20).unwrap();
        assert_eq!(data, base64(&chunk["data"]), "{name}: chunk at {offset}");
        offset += data.len() as u64;
        assert_eq!(offset + 1, chunk["iter"].as_u64().unwrap(), "{name}");
    }
    assert_eq!(filter.stream_chunk(offset, 16 << 20), None, "{name}");
    assert_eq!(offset, filter.stream_len());
}

fn load(capture: &Value) -> LayeredFilter {
    let chunks = capture["chunks"].as_array().unwrap();
    let parts = parse_header(&base64(&chunks[0]["data"]));
    let mut filter = LayeredFilter::from_parts(&parts, 1 << 20).unwrap();
    // In any order, and again.
    for chunk in chunks[1..].iter().rev().chain(&chunks[1..]) {
        let data = base64(&chunk["data"]);
        filter
            .load_chunk(
                chunk["iter"].as_u64().unwrap() - 1 - data.len() as u64,
                &data,
            )
            .unwrap();
    }
    filter
}

fn assert_answers(name: &str, filter: &LayeredFilter, capture: &Value) {
    let probes = items(&capture["probes"]);
    let expected: Vec<bool> = capture["probes_expected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|v| *v == 1)
        .collect();
    assert_eq!(filter.contains_all(&probes), expected, "{name}");
    let one_by_one: Vec<bool> = probes.iter().map(|probe| filter.contains(probe)).collect();
    assert_eq!(one_by_one, expected, "{name}");
    let added: BTreeSet<_> = items(&capture["added"]).into_iter().collect();
    let errors = probes
        .iter()
        .filter(|p| filter.contains(p) && !added.contains(*p))
        .count();
    assert_eq!(
        errors as u64,
        capture["false_positives"].as_u64().unwrap(),
        "{name}"
    );
    assert!(
        added.iter().all(|item| filter.contains(item)),
        "{name}: false negative"
    );
}

#[test]
fn rebuilt_from_nothing_they_are_byte_equal() {
    for capture in captures() {
        let name = capture["name"].as_str().unwrap();
        let mut filter = start(&capture);
        let replies: Vec<bool> = capture["add_replies"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| *v == 1)
            .collect();
        let got: Vec<bool> = items(&capture["added"])
            .iter()
            .map(|item| filter.try_insert(item).unwrap())
            .collect();
        assert_eq!(got, replies, "{name}");
        assert_dump(name, &filter, &capture);
        assert_answers(name, &filter, &capture);
        let info = &capture["info"];
        assert_eq!(
            filter.capacity(),
            info["Capacity"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(
            filter.len(),
            info["Number of items inserted"].as_u64().unwrap(),
            "{name}"
        );
        assert_eq!(
            filter.is_fixed(),
            info["Expansion rate"].is_null(),
            "{name}"
        );
    }
}

#[test]
fn loaded_they_answer_and_grow_as_the_original() {
    for capture in captures() {
        let name = capture["name"].as_str().unwrap();
        let mut loaded = load(&capture);
        assert_dump(name, &loaded, &capture);
        assert_answers(name, &loaded, &capture);

        let mut original = start(&capture);
        original.insert_all(&items(&capture["added"]));
        assert_eq!(loaded, original, "{name}");
        let layers = loaded.layers().len();
        let more: Vec<String> = (0..3000).map(|i| format!("more:{i}")).collect();
        for item in &more {
            assert_eq!(loaded.try_insert(item), original.try_insert(item), "{name}");
        }
        assert_eq!(loaded, original, "{name}");
        assert_eq!(loaded.layers().len() > layers, !loaded.is_fixed(), "{name}");
        if !loaded.is_fixed() {
            assert!(
                loaded.contains_all(&more).iter().all(|&found| found),
                "{name}"
            );
        }
        assert_answers_positive(name, &loaded, &capture);
    }
}

fn assert_answers_positive(name: &str, filter: &LayeredFilter, capture: &Value) {
    let added = items(&capture["added"]);
    assert!(
        filter.contains_all(&added).iter().all(|&found| found),
        "{name}: false negative"
    );
}
