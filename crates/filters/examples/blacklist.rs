//! A blacklist of a million mail addresses, as a file whose bytes serve lookups directly.
//!
//! `cargo run --release --example blacklist`, or with `-- --list FILE`, a text file with an address
//! or a URL on each line. `-- --items 20000` makes it smaller.

mod support;

use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use everbloom::{BloomFilter, BloomView};
use support::{Outcome, argument, figure, mixed, rate, text_argument};

const ERROR_RATE: f64 = 0.0001;

fn main() -> Outcome {
    let folder = std::env::temp_dir().join(format!("blacklist-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let outcome = run(&folder);
    fs::remove_dir_all(&folder)?;
    outcome
}

fn run(folder: &Path) -> Outcome {
    let list = match text_argument("list") {
        Some(list) => PathBuf::from(list),
        None => made_up_list(&folder.join("blacklist.txt"))?,
    };
    println!("The list {} has an address on each line.", list.display());

    let bloom = folder.join("blacklist.bloom");
    let started = Instant::now();
    let items = build(&list, &bloom)?;
    let built = started.elapsed();
    println!(
        "Its {items} addresses are now in the filter {}.",
        bloom.display()
    );

    // A program that only looks up starts here. It may use a memory map instead of the file's
    // bytes.
    let bytes = fs::read(&bloom)?;
    let blacklist = BloomView::new(&bytes)?;
    blacklist.verify()?;
    println!("The bytes of the file are looked up where they are.");

    let mut missed = 0;
    for address in lines(&list)? {
        missed += u64::from(!blacklist.contains(&address?));
    }
    println!("Every address of the list was asked for, and as many that are not on it.");
    let started = Instant::now();
    let mut wrong = 0;
    for n in 0..items {
        wrong += u64::from(blacklist.contains(&format!("friend{n}@example.com")));
    }
    let asked = started.elapsed();

    println!("\nFigures");
    figure("addresses", items);
    figure("missed", missed);
    figure("bytes of the list", fs::metadata(&list)?.len());
    figure("bytes of the filter", bytes.len());
    figure(
        "bits an address",
        format!("{:.1}", 8.0 * rate(bytes.len() as u64, items)),
    );
    figure("seconds to build", format!("{:.2}", built.as_secs_f64()));
    figure(
        "lookups a second",
        format!("{:.0}", items as f64 / asked.as_secs_f64()),
    );
    figure("others that were taken for listed", wrong);
    figure("error rate, expected", format!("{ERROR_RATE:.6}"));
    figure("error rate, measured", format!("{:.6}", rate(wrong, items)));
    Ok(())
}

/// Reads the list once to count its lines and once to add them. Writes the filter's bytes.
fn build(list: &Path, bloom: &Path) -> Outcome<u64> {
    let items = lines(list)?.count() as u64;
    let mut blacklist = BloomFilter::new(items.max(1), ERROR_RATE);
    for address in lines(list)? {
        blacklist.insert(&address?);
    }
    let mut file = BufWriter::new(File::create(bloom)?);
    blacklist.write_to(&mut file)?;
    file.flush()?;
    Ok(items)
}

fn lines(list: &Path) -> Outcome<impl Iterator<Item = std::io::Result<String>>> {
    Ok(BufReader::new(File::open(list)?).lines())
}

fn made_up_list(path: &Path) -> Outcome<PathBuf> {
    let mut file = BufWriter::new(File::create(path)?);
    for n in 0..argument("items", 1_000_000)? {
        writeln!(file, "offer{:x}@host{n}.example", mixed(n) >> 40)?;
    }
    file.flush()?;
    Ok(path.into())
}
