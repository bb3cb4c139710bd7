//! A filter that must grow, and for which there is no memory.
//!
//! Each case runs in a process of its own, whose memory is limited, because calls without an error
//! end the process.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::env;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Output};

use everbloom::host::{Inserted, LayeredFilter};
use everbloom::{
    CuckooFilter, InsertError, Layout, ScalableBloomFilter, Span, UnionError, WindowedBloomFilter,
};

/// Names the case in the process that runs it.
const CASE: &str = "EVERBLOOM_TEST_CASE";
/// Enough for a test program, and for some layers.
const KILOBYTES: u64 = 300_000;
const SIGABRT: i32 = 6;

/// Runs a case in another process; `test` is the name of the test that calls this.
fn run(test: &str, case: &str) -> Output {
    let program = env::current_exe().unwrap();
    let limited = format!("ulimit -c 0 && ulimit -v {KILOBYTES} && exec \"$@\"");
    let mut command = Command::new("sh");
    command.args(["-c", &limited, "sh"]).arg(program);
    command
        .args([test, "--exact", "--nocapture"])
        .env(CASE, case);
    command.output().expect("a shell")
}

/// Whether this is the process for a case.
fn case() -> Option<String> {
    env::var(CASE).ok()
}

/// Every item is new, as far as a filter can tell.
fn growing(layout: Layout) -> ScalableBloomFilter {
    let builder = ScalableBloomFilter::builder().capacity(50_000);
    let builder = builder.error_rate(1e-4).expansion(4000).layout(layout);
    builder.build().unwrap()
}

/// As `try_insert` refuses it: the filter has what it had.
fn fill(filter: &mut ScalableBloomFilter) -> (u64, u64) {
    for item in 0_u64.. {
        match filter.try_insert(&item) {
            Ok(_) => {}
            Err(InsertError::OutOfMemory { bytes }) => return (item, bytes),
            Err(other) => panic!("{other}"),
        }
    }
    unreachable!("more items than there are")
}

#[test]
fn a_refused_item_changes_nothing_and_the_error_says_how_much_memory_it_takes() {
    let Some(layout) = case() else {
        for layout in ["blocked", "classic"] {
            let ended = run(
                "a_refused_item_changes_nothing_and_the_error_says_how_much_memory_it_takes",
                layout,
            );
            assert!(ended.status.success(), "{layout}: {ended:?}");
        }
        return;
    };
    let layout = match layout.as_str() {
        "classic" => Layout::Classic,
        _ => Layout::Blocked,
    };
    let mut filter = growing(layout);
    let (refused, bytes) = fill(&mut filter);
    assert!(bytes > KILOBYTES << 10, "{bytes}");
    let before = filter.clone();
    for item in 0..refused {
        assert_eq!(filter.try_insert(&item), Ok(false));
    }
    let again = filter.try_insert(&refused);
    assert_eq!(again, Err(InsertError::OutOfMemory { bytes }));
    let text = format!("no memory for the {bytes} bytes by which the filter must grow");
    assert_eq!(again.unwrap_err().to_string(), text);

    // Each of a group is refused or known, however often the filter tries.
    let mut new = Vec::new();
    let ended = filter.try_insert_each(0..refused + 500, |is_new| new.push(is_new));
    assert_eq!(ended, Err(InsertError::OutOfMemory { bytes }));
    assert_eq!(new.len() as u64, refused);
    assert!(!new.contains(&true));
    let mut host = LayeredFilter::from(filter.clone());
    let (mut known, mut refusals) = (0, 0);
    host.try_insert_each(refused - 500..refused + 500, u64::MAX, |reply| {
        match reply {
            Ok(Inserted::Known) => known += 1,
            Err(InsertError::OutOfMemory { .. }) => refusals += 1,
            other => panic!("{other:?}"),
        }
        ControlFlow::Continue(())
    });
    // Some of the others are errors of the filter.
    assert!(known >= 500 && refusals > 490, "{known} {refusals}");
    assert!(filter == before);
}

#[test]
fn calls_without_an_error_end_the_program() {
    let Some(call) = case() else {
        for call in ["insert", "extend", "insert_each", "insert_at", "advance"] {
            let ended = run("calls_without_an_error_end_the_program", call);
            let said = String::from_utf8_lossy(&ended.stderr);
            let expected = if call == "advance" {
                None
            } else {
                Some(SIGABRT)
            };
            assert_eq!(ended.status.signal(), expected, "{call}: {ended:?}");
            assert!(
                call == "advance" || said.contains("memory allocation of"),
                "{call}: {said}"
            );
        }
        return;
    };
    match call.as_str() {
        "insert_at" | "advance" => windowed(&call),
        _ => {
            let mut filter = growing(Layout::Blocked);
            let (refused, _) = fill(&mut filter);
            let more = refused..refused + 100;
            match call.as_str() {
                "insert" => more.for_each(|item| assert!(filter.insert(&item) || item > 0)),
                "extend" => filter.extend(more),
                _ => filter.insert_each(more, drop),
            }
            panic!("{call} had no room, and went on");
        }
    }
}

/// The next generation needs as much memory as the newest.
fn windowed(call: &str) {
    let builder = WindowedBloomFilter::builder().capacity(200_000_000);
    let mut filter = builder.span(Span::Ticks(4)).build().unwrap();
    assert_eq!(filter.try_insert_at("a", 0), Ok(true));
    let before = filter.clone();
    let refused = filter.try_insert_at("b", 1);
    let Err(InsertError::OutOfMemory { bytes }) = refused else {
        panic!("{refused:?}");
    };
    assert!(bytes > 50_000_000, "{bytes}");
    assert_eq!(
        filter.advance(1, 1),
        Err(InsertError::OutOfMemory { bytes })
    );
    let all = filter.insert_each_at(["b"], 1, drop);
    assert_eq!(all, Err(InsertError::OutOfMemory { bytes }));
    assert!(filter == before && filter.contains_at("a", 1));
    if call == "insert_at" {
        filter.insert_at("b", 1);
    }
}

#[test]
fn a_cuckoo_filter_refuses_an_item_that_it_has_no_table_for() {
    if case().is_none() {
        let ended = run(
            "a_cuckoo_filter_refuses_an_item_that_it_has_no_table_for",
            "cuckoo",
        );
        assert!(ended.status.success(), "{ended:?}");
        return;
    }
    let builder = CuckooFilter::builder().slots(1 << 20).expansion(1 << 12);
    let mut filter = builder.build().unwrap();
    // Of one item, as many copies as its two buckets have slots.
    let refused = (0..5).find_map(|_| filter.insert("a").err());
    let bytes = (1 << 32) + CuckooFilter::BYTES_BESIDE_SLOTS;
    assert_eq!(refused, Some(InsertError::OutOfMemory { bytes }));
    let before = filter.clone();
    let mut replies = Vec::new();
    filter.insert_each(["a"; 3], u64::MAX, |reply| {
        replies.push(reply);
        ControlFlow::Continue(())
    });
    assert_eq!(replies, [Err(InsertError::OutOfMemory { bytes }); 3]);
    assert!(filter == before);
}

#[test]
fn a_union_without_memory_is_an_error() {
    if case().is_none() {
        let ended = run("a_union_without_memory_is_an_error", "union");
        assert!(ended.status.success(), "{ended:?}");
        return;
    }
    let of = |capacity| {
        let builder = ScalableBloomFilter::builder().capacity(capacity);
        let mut filter = builder.seed(1).build().unwrap();
        filter.insert("a");
        filter
    };
    let (mut small, large) = (of(1000), of(90_000_000));
    assert_eq!(small.union(&large), Err(UnionError::OutOfMemory));
    assert!(small.contains("a") && !small.contains("b"));
}
