//! Commands whose server is a node of a Cluster, and whose key is on another node.

use std::collections::HashSet;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::support::{EVERBLOOM, folder, run, run_with_input};
use everbloom_dev::Cluster;

/// A key on node 1, and its slot.
fn key_of_second_node(cluster: &Cluster) -> (String, u16) {
    let mut keys = (0..).map(|number| format!("seen{number}"));
    let key = keys.find(|key| cluster.slot(key).1 == 1).unwrap();
    let slot = cluster.slot(&key).0;
    (key, slot)
}

/// A run with a filter of the Cluster, whose first node is asked.
fn dedup(cluster: &Cluster, key: &str) -> Command {
    let url = &cluster.addresses()[0];
    let mut dedup = Command::new(EVERBLOOM);
    dedup.args(["dedup", "-q", "-e", "1e-9", "--key", key, url]);
    dedup.env_remove("REDISCLI_AUTH");
    dedup
}

fn deduped(cluster: &Cluster, key: &str, input: &str) -> String {
    let input = input.to_owned();
    let outcome = run_with_input(&mut dedup(cluster, key), move |stdin| {
        stdin.write_all(input.as_bytes())
    });
    outcome.success()
}

fn numbers(range: std::ops::Range<u32>) -> String {
    range.map(|number| format!("{number}\n")).collect()
}

/// Far more than one batch: 30 of them, in one pipeline or a few.
const LINES: u32 = 30_000;

#[test]
fn dedup_follows_a_key_to_its_node() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let (key, slot) = key_of_second_node(&cluster);
    let first = numbers(0..LINES);
    assert_eq!(deduped(&cluster, &key, &first), first);
    assert_eq!(deduped(&cluster, &key, &first), "");

    // The slot is on its way, and the key has gone ahead: its node answers ASK.
    let keys = cluster.begin_move(slot, 1, 2);
    assert_eq!(keys, [key.as_str()]);
    cluster.move_key(&key, 1, 2);
    let second = numbers(LINES..2 * LINES);
    let both = numbers(0..2 * LINES);
    assert_eq!(deduped(&cluster, &key, &both), second);
    assert_eq!(deduped(&cluster, &key, &both), "");
    cluster.end_move(slot, 1, 2);
    assert_eq!(deduped(&cluster, &key, &second), "");
    // A filter that is made while its slot moves is made where it will be.
    let (other, slot) = (format!("{{{key}}}2"), slot);
    cluster.begin_move(slot, 2, 1);
    assert_eq!(deduped(&cluster, &other, "a\na\n"), "a\n");
    assert_eq!(cluster.nodes[2].client().number("DBSIZE"), 1);
}

/// The lines that a run has printed so far.
fn count_lines(mut output: impl Read, printed: &AtomicUsize) -> String {
    let (mut text, mut piece) = (Vec::new(), vec![0; 1 << 16]);
    loop {
        let count = output.read(&mut piece).unwrap();
        if count == 0 {
            return String::from_utf8(text).unwrap();
        }
        text.extend_from_slice(&piece[..count]);
        let lines = piece[..count].iter().filter(|byte| **byte == b'\n');
        printed.fetch_add(lines.count(), Ordering::Relaxed);
    }
}

#[test]
fn dedup_answers_once_for_each_line_while_a_slot_moves() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let (key, slot) = key_of_second_node(&cluster);
    // Each line comes twice, so an answer that was lost or taken twice shows.
    let blocks = (0..20).map(|block| numbers(block * LINES..(block + 1) * LINES).repeat(2));
    let file = folder("dedup-moves").join("lines");
    fs::write(&file, blocks.collect::<String>()).unwrap();
    let mut dedup = dedup(&cluster, &key);
    let mut child = dedup.arg(&file).stdout(Stdio::piped()).spawn().unwrap();
    let output = child.stdout.take().unwrap();
    let printed = AtomicUsize::new(0);
    let (text, moves) = thread::scope(|scope| {
        let reader = scope.spawn(|| count_lines(output, &printed));
        let mut moves = 0;
        let mut seen = 0;
        while !reader.is_finished() {
            // After two pieces of output no request from before the last move is on its way.
            let now = printed.load(Ordering::Relaxed);
            if now < seen + LINES as usize {
                thread::yield_now();
                continue;
            }
            seen = now;
            let (from, to) = [(1, 2), (2, 1)][moves % 2];
            cluster.move_slot(slot, from, to);
            moves += 1;
        }
        (reader.join().unwrap(), moves)
    });
    assert!(child.wait().unwrap().success());
    assert!(moves > 1, "the run ended before the slot moved");
    let printed: Vec<&str> = text.lines().collect();
    let different: HashSet<&str> = printed.iter().copied().collect();
    assert_eq!(printed.len(), different.len(), "a line came twice");
    assert_eq!(different.len(), 20 * LINES as usize, "a line is lost");
}

#[test]
fn copy_names_a_key_that_is_on_its_way() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let (key, slot) = key_of_second_node(&cluster);
    cluster.nodes[1].client().ok(&format!("BF.ADD {key} a"));
    let from = format!("{}#{key}", cluster.addresses()[0]);
    let folder = folder("copy-moves");
    let copy = || {
        let mut copy = Command::new(EVERBLOOM);
        let words = ["copy", "-q", "--replace", &from, "seen.bloom"];
        run(copy.args(words).current_dir(&folder))
    };
    copy().success();
    cluster.begin_move(slot, 1, 2);
    cluster.move_key(&key, 1, 2);
    let outcome = copy();
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    let words = "its slot moves to another node (ASK";
    assert!(outcome.stderr.contains(words), "{outcome:?}");
    cluster.end_move(slot, 1, 2);
    copy().success();
}

#[test]
fn measure_follows_its_keys() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    // The names of its filters are random: of twelve filters, some are on other nodes.
    for node in cluster.addresses() {
        for family in ["bloom", "cuckoo"] {
            let count = ["measure", "--count", "3000", "--family", family];
            let report = run(Command::new(EVERBLOOM).args(count).arg(&node)).success();
            assert!(report.contains("1 500 random strings"), "{report}");
        }
    }
    let left = cluster
        .nodes
        .iter()
        .map(|node| node.client().number("DBSIZE"));
    assert_eq!(left.sum::<i64>(), 0, "it deletes its filters");
}
