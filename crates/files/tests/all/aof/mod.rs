//! The log's files, against files of Redis, against Redis itself, and against damage.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    missing_docs
)]

mod manifest;
mod peers;
mod reader;

use std::path::PathBuf;

use everbloom_files::aof::Names;

/// The two logs that Redis with RedisBloom wrote.
const GOLDEN: [&str; 2] = ["rdb-base", "command-base"];

fn golden(log: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden/aof")
        .join(log)
}

/// Redis's own names.
fn names() -> Names {
    Names::new("appendonlydir", "appendonly.aof")
}
