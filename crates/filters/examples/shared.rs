//! One filter for all cores, and then for all processes: rayon's threads fill it, a file keeps it,
//! and processes map that file, so that it is in memory once.
//!
//! `cargo run --release --example shared`; `-- --items 20000` makes it smaller.

mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use everbloom::{AtomicBloomFilter, BloomFilter, BloomView};
use memmap2::Mmap;
use rayon::ThreadPoolBuilder;
use rayon::prelude::*;
use support::{Outcome, argument, figure, mixed, rate, text_argument};

const ERROR_RATE: f64 = 0.01;
/// How many processes read the file.
const READERS: usize = 2;
/// A core takes this many items at a time, so that their waits for memory overlap.
const TOGETHER: u64 = 4096;

fn main() -> Outcome {
    let items = argument("items", 20_000_000)?;
    match text_argument("open") {
        Some(path) => read(Path::new(&path), items),
        None => fill(items),
    }
}

/// Fills a filter from one core and from all, saves it, and lets processes read it.
fn fill(items: u64) -> Outcome {
    let (_, alone) = filled(items, 1)?;
    let (seen, together) = filled(items, 0)?;
    let path = std::env::temp_dir().join(format!("shared-{}.bloom", std::process::id()));
    fs::write(&path, BloomFilter::from(seen).to_bytes())?;

    let readers = (0..READERS).map(|_| {
        let mut reader = Command::new(std::env::current_exe()?);
        reader.arg("--open").arg(&path);
        reader.args(["--items", &items.to_string()]).spawn()
    });
    let readers: Vec<_> = readers.collect::<Result<_, _>>()?;
    let mut well = 0;
    for mut reader in readers {
        well += usize::from(reader.wait()?.success());
    }
    fs::remove_file(path)?;
    println!("A filter was filled by one core, and by all. {READERS} processes mapped its file.");
    println!("\nFigures");
    figure("items", items);
    figure("seconds to fill, one core", format!("{alone:.2}"));
    figure("seconds to fill, all cores", format!("{together:.2}"));
    figure("processes that read the file", well);
    Ok(())
}

/// A filter of these items, filled by so many threads, 0 for one a core; and the seconds it took.
fn filled(items: u64, threads: usize) -> Outcome<(AtomicBloomFilter, f64)> {
    let pool = ThreadPoolBuilder::new().num_threads(threads).build()?;
    let seen = AtomicBloomFilter::new(items, ERROR_RATE);
    let begun = Instant::now();
    pool.install(|| {
        let parts = (0..items.div_ceil(TOGETHER)).into_par_iter();
        parts.for_each(|part| {
            let numbers = part * TOGETHER..items.min((part + 1) * TOGETHER);
            seen.insert_each(numbers.map(mixed), drop);
        });
    });
    Ok((seen, begun.elapsed().as_secs_f64()))
}

/// Looks up what is in a file, and as much that is not.
#[allow(unsafe_code, reason = "a file is mapped")]
fn read(path: &Path, items: u64) -> Outcome {
    // SAFETY: nobody changes the file meanwhile. Whoever has a newer filter writes another file and
    // renames it.
    let map = unsafe { Mmap::map(&File::open(path)?)? };
    let seen = BloomView::new(&map)?;
    let found = |from: u64| {
        let mut found = 0;
        seen.contains_each((from..from + items).map(mixed), |it| found += u64::from(it));
        found
    };
    if found(0) != items {
        return Err("an item is missing".into());
    }
    let wrong = rate(found(items), items);
    if wrong > 2.0 * ERROR_RATE {
        return Err(format!("the error rate is {wrong}").into());
    }
    Ok(())
}
