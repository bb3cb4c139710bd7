//! Large filters take as much memory as they use, and full ones lie on huge pages.
//!
//! The whole process is measured, so the tests take turns.
#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss
)]

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::Check;
use everbloom::{BloomFilter, Layout, Span};

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const SMALL_PAGE: u64 = 4 * KIB;

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes in one line of this process's sum of mappings. Unlike the counters of `status`, it is
/// exact.
fn measured(line: &str) -> u64 {
    let lines = fs::read_to_string("/proc/self/smaps_rollup").expect("the kernel tells");
    let rest = lines.lines().find_map(|each| each.strip_prefix(line));
    let number = rest.and_then(|rest| rest.trim_start_matches(':').split_whitespace().next());
    number.expect("a line").parse::<u64>().expect("a number") * KIB
}

/// Whether the first write into a huge page makes all of it resident, whatever a program asks for.
fn always_huge() -> bool {
    let setting = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    let always = setting.is_ok_and(|setting| setting.contains("[always]"));
    if always {
        eprintln!("SKIPPED: this system makes every large page huge");
    }
    always
}

/// Whether a program can put memory on huge pages here.
fn can_collapse() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split('.')
        .map(|part| part.parse::<u32>().unwrap_or(0));
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let can = version >= (6, 1) && status.contains("THP_enabled:\t1");
    if !can {
        eprintln!("SKIPPED: kernel {release} has no huge pages for this process");
    }
    can
}

fn filter(layout: Layout, bytes: u64) -> BloomFilter {
    let hashes = if layout == Layout::Classic { 7 } else { 6 };
    let builder = BloomFilter::builder().layout(layout);
    builder
        .bits(bytes * 8)
        .hashes(hashes)
        .build()
        .expect("there is memory")
}

fn touched_pages(layout: Layout) -> u64 {
    if layout == Layout::Classic { 7 } else { 1 }
}

/// The bytes of small pages that so many items touch.
fn expected(layout: Layout, bytes: u64, items: u64) -> u64 {
    let pages = bytes as f64 / SMALL_PAGE as f64;
    let touches = (items * touched_pages(layout)) as f64;
    (-f64::exp_m1(-touches / pages) * bytes as f64) as u64
}

fn fill(filter: &mut BloomFilter, from: u64, to: u64) {
    for item in from..to {
        filter.insert(&item.to_le_bytes());
    }
}

/// Memory goes up by what items touch, give or take.
fn assert_about(what: &str, grown: u64, expected: u64) {
    let most = expected * 6 / 5 + 3 * MIB;
    assert!(grown <= most, "{what}: {grown} bytes, expected {expected}");
    assert!(
        grown + MIB >= expected * 4 / 5,
        "{what}: {grown} bytes, expected {expected}"
    );
}

/// What becomes resident while `make` makes a value.
fn grown<T>(make: impl FnOnce() -> T) -> (T, u64) {
    let before = measured("Rss");
    let value = make();
    (value, measured("Rss").saturating_sub(before))
}

#[test]
fn a_sparse_filter_takes_the_pages_that_its_items_touch() {
    let _turn = turn();
    if always_huge() {
        return;
    }
    let bytes = 400 * MIB;
    for layout in [Layout::Classic, Layout::Blocked] {
        let (mut first, empty) = grown(|| filter(layout, bytes));
        assert_about("empty", empty, 0);
        let (_, filled) = grown(|| fill(&mut first, 0, 1000));
        assert_about("filled", filled, expected(layout, bytes, 1000));
        let (copy, copied) = grown(|| first.clone());
        assert_about("copied", copied, expected(layout, bytes, 1000));
        assert!(copy == first);
        let mut other = filter(layout, bytes);
        if layout == Layout::Blocked {
            let builder = BloomFilter::builder()
                .layout(layout)
                .key(first.key().unwrap());
            other = builder.bits(bytes * 8).hashes(6).build().unwrap();
        }
        let (_, united) = grown(|| other.union(&first));
        assert_about("united", united, expected(layout, bytes, 1000));
        assert!(other.contains(&7_u64.to_le_bytes()));
    }
}

#[test]
fn a_loaded_sparse_filter_is_sparse() {
    let _turn = turn();
    if always_huge() {
        return;
    }
    let bytes = 100 * MIB;
    for layout in [Layout::Classic, Layout::Blocked] {
        let mut sparse = filter(layout, bytes);
        fill(&mut sparse, 0, 1000);
        let sparse = LayeredFilter::from(sparse);
        let expected = expected(layout, bytes, 1000);
        let (parts, whole) = (sparse.parts(), sparse.to_bytes());

        let (loaded, by_bytes) = grown(|| LayeredFilter::from_bytes(&whole).unwrap());
        assert_about("from_bytes", by_bytes, expected);
        assert!(loaded == sparse);
        drop(loaded);

        let vector = sparse.layers()[0].as_bytes().into_owned();
        let before = measured("Rss") - vector.len() as u64;
        let load = LayeredFilter::from_parts_and_bits;
        let loaded = load(&parts, vec![vector], u64::MAX, Check::RdbValue).unwrap();
        assert_about("from_parts_and_bits", measured("Rss") - before, expected);
        assert!(loaded == sparse);
        drop(loaded);

        let (loaded, by_chunks) = grown(|| {
            let mut loaded = LayeredFilter::from_parts(&parts, u64::MAX).unwrap();
            load_chunks(&mut loaded, &sparse);
            loaded
        });
        assert_about("load_chunk", by_chunks, expected);
        assert!(loaded == sparse);
    }
}

fn load_chunks(to: &mut LayeredFilter, from: &LayeredFilter) {
    let mut at = 0;
    while let Some(chunk) = from.stream_chunk(at, 5_000_001) {
        to.load_chunk(at, &chunk).unwrap();
        at += chunk.len() as u64;
    }
}

/// From the first item to all on huge pages, memory is never more than small pages would take, and
/// no item is lost.
#[test]
fn memory_follows_the_items_until_all_is_on_huge_pages() {
    let _turn = turn();
    if always_huge() {
        return;
    }
    let bytes = 64 * MIB;
    for layout in [Layout::Classic, Layout::Blocked] {
        let (before, huge_before) = (measured("Rss"), measured("AnonHugePages"));
        let mut filter = filter(layout, bytes);
        let mut items = 0;
        while items < 400_000 {
            let more = items + (items / 8).max(500);
            fill(&mut filter, items, more);
            items = more;
            let grown = measured("Rss") - before;
            assert_about(
                &format!("{items} items"),
                grown,
                expected(layout, bytes, items),
            );
            let exponent = items * touched_pages(layout) / (bytes / SMALL_PAGE);
            if exponent < 4 {
                assert_eq!(measured("AnonHugePages"), huge_before, "{items} items");
            }
        }
        assert!((0..items).all(|item| filter.contains(&item.to_le_bytes())));
        if !can_collapse() {
            continue;
        }
        assert_huge("filled", huge_before, bytes);
        let filter = LayeredFilter::from(filter);
        let with = measured("AnonHugePages");
        let copy = filter.clone();
        assert_huge("copied", with, bytes);
        assert!(copy == filter);
        drop(copy);

        let parts = filter.parts();
        let with = measured("AnonHugePages");
        let mut loaded = LayeredFilter::from_parts(&parts, u64::MAX).unwrap();
        load_chunks(&mut loaded, &filter);
        assert_huge("load_chunk", with, bytes);
        assert!(loaded == filter);
        drop(loaded);

        let whole = filter.to_bytes();
        let with = measured("AnonHugePages");
        let loaded = LayeredFilter::from_bytes(&whole).unwrap();
        assert_huge("from_bytes", with, bytes);
        assert!(loaded == filter);
        drop((loaded, whole));

        let vector = filter.layers()[0].as_bytes().into_owned();
        let with = measured("AnonHugePages");
        let load = LayeredFilter::from_parts_and_bits;
        let loaded = load(&parts, vec![vector], u64::MAX, Check::RdbValue).unwrap();
        assert_huge("from_parts_and_bits", with, bytes);
        assert!(loaded == filter);
    }
}

/// A generation that a window drops is handed to the readers of the filter. A copy would keep others
/// waiting, and there may be no memory for it.
#[test]
fn a_dropped_generation_is_not_copied_for_its_readers() {
    let _turn = turn();
    if always_huge() {
        return;
    }
    let builder = LayeredFilter::builder().capacity(100_000_000);
    let mut filter = builder.window(Span::Items, 1, 0).build().unwrap();
    filter.insert(&0_u64);
    filter.advance(1, 0).unwrap();
    let bytes = filter.layers()[0].bytes();
    assert!(bytes > 100 * MIB);
    let then = filter.clone();
    filter.begin_capture(1, 0..filter.stream_len());
    let ((), dropped) = grown(|| filter.advance(1, 0).unwrap());
    assert_about("dropped", dropped, 0);
    assert!(!filter.contains(&0_u64));
    // The reader sees what was there, piece by piece.
    let (mut at, mut piece) = (0, Vec::new());
    while filter.capture_next(1, &mut piece) {
        let expected = then.stream_chunk(at, piece.len()).unwrap();
        assert!(*expected == piece[..], "byte {at}");
        at += piece.len() as u64;
        piece.clear();
    }
    assert_eq!(at, then.stream_len());
}

/// Some of the bytes came onto huge pages. How many depends on what the system has in one piece.
fn assert_huge(what: &str, before: u64, bytes: u64) {
    let huge = measured("AnonHugePages").saturating_sub(before);
    assert!(huge > 0, "{what}: none of {bytes} bytes");
}
