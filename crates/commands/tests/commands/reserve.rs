//! BF.RESERVE.

use crate::keyspace::{Keyspace, Value};
use everbloom_commands::run::IgnoredWord;
use everbloom_commands::{Action, Answers, CommandError, Context, Function, Run, Slot, find};
use everbloom_resp::Reply;

/// The words that say nothing.
#[derive(Default)]
struct Ignored(Vec<String>);

impl Answers for Ignored {
    fn boolean(&mut self, _: bool) {}
    fn integer(&mut self, _: i64) {}
    fn array(&mut self, _: usize) {}
    fn element_error(&mut self, _: CommandError) {}

    fn ignores(&mut self, word: IgnoredWord<'_>) {
        self.0.push(String::from_utf8_lossy(word.word).into_owned());
    }

    fn reply(&mut self, reply: Reply) {
        assert_eq!(reply, Reply::OK);
    }
}

/// RedisBloom takes words that it does not know, and so do scripts with a typing error.
#[test]
fn the_host_is_told_of_a_word_that_says_nothing() {
    for (line, word) in [
        ("BF.RESERVE k 0.01 100", None),
        ("BF.RESERVE k 0.01 100 nonscaling", None),
        ("BF.RESERVE NOSCALING 0.01 100 EXPANSION 2", None),
        (
            "BF.RESERVE k 0.01 100 LAYOUT BLOCKED SEED 4 WINDOW SECONDS 5 GENERATIONS 3 EXPANSION 4",
            None,
        ),
        ("BF.RESERVE k 0.01 100 NOSCALING", Some("NOSCALING")),
        ("BF.RESERVE k 0.01 100 EXPANSION 2 3", Some("3")),
        ("BF.RESERVE k 0.01 100 SEED 4 LAYOUT BLOCKED X Y", Some("X")),
        ("CF.RESERVE k 100 bucketsize 2 EXPANSION 2", None),
        (
            "CF.RESERVE k 100 MAXITERATIONS 2 BUCKETS 2",
            Some("BUCKETS"),
        ),
    ] {
        let words: Vec<&[u8]> = line.split(' ').map(str::as_bytes).collect();
        let (mut run, mut ignored) = (Run::one(&words), Ignored::default());
        let context = Context::default().into();
        match find(words[0]).unwrap().handler {
            Function::Bloom(Action::Write(reserve)) => {
                let slot = &mut Slot::Vacant(&mut None);
                reserve(&context, &mut run, slot, &mut ignored, &mut ());
            }
            Function::Cuckoo(Action::Write(reserve)) => {
                let slot = &mut Slot::Vacant(&mut None);
                reserve(&context, &mut run, slot, &mut ignored, &mut ());
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(ignored.0, Vec::from_iter(word), "{line}");
    }
}

#[test]
fn the_first_wrong_argument_is_named() {
    let mut keys = Keyspace::default();
    let arity = "-ERR wrong number of arguments for 'bf.reserve' command";
    let rate = "-ERR error rate must be in the range (0.000000, 1.000000)";
    let capacity = "-ERR capacity must be in the range [1, 1073741824]";
    let expansion = "-ERR expansion must be in the range [0, 32768]";
    let cases = [
        ("BF.RESERVE k", arity),
        ("BF.RESERVE k x", arity),
        ("BF.RESERVE k x x a b c d", arity),
        ("BF.RESERVE k x x EXPANSION", "-ERR bad error rate"),
        ("BF.RESERVE k 1 x", rate),
        ("BF.RESERVE k 0.1 x", "-ERR bad capacity"),
        ("BF.RESERVE k 0.1 0 EXPANSION x", capacity),
        ("BF.RESERVE k 0.1 1 EXPANSION", "-ERR no expansion"),
        (
            "BF.RESERVE k 0.1 1 NONSCALING EXPANSION",
            "-ERR no expansion",
        ),
        (
            "BF.RESERVE k 0.1 1 NONSCALING EXPANSION x",
            "-ERR bad expansion",
        ),
        (
            "BF.RESERVE k 0.1 1 NONSCALING EXPANSION -1",
            "-Nonscaling filters cannot expand",
        ),
        ("BF.RESERVE k 0.1 1 EXPANSION 32769", expansion),
        ("BF.RESERVE EXPANSION 0.1 1", "-ERR bad expansion"),
    ];
    for (command, reply) in cases {
        assert_eq!(keys.say(command), reply, "{command}");
    }
    assert_eq!((keys.touched, keys.log.len(), keys.keys.len()), (0, 0, 0));
}

#[test]
fn parameters_reach_the_filter() {
    let mut keys = Keyspace::default();
    for command in [
        "BF.RESERVE a 0.01 100",
        "BF.RESERVE b 0.01 100 NONSCALING",
        "BF.RESERVE c 0.01 100 EXPANSION 0",
        "BF.RESERVE d 0.01 100 4 EXPANSION 5",
        "BF.RESERVE e 0.01 100 EXPANSION 2 EXPANSION",
        "BF.RESERVE NONSCALING 0.01 100",
        "BF.RESERVE f 0.9 100",
        "BF.RESERVE g 0.01 100 FOO BAR BAZ",
    ] {
        assert_eq!(keys.say(command), "+OK", "{command}");
    }
    let found = ["a", "b", "c", "d", "e", "NONSCALING", "f", "g"].map(|key| {
        let filter = keys.filter(key);
        (
            filter.layers()[0].error_rate(),
            filter.expansion(),
            filter.is_fixed(),
        )
    });
    let expected = [
        (0.005, 2, false),
        (0.01, 2, true),
        (0.01, 0, true),
        (0.005, 5, false),
        (0.005, 2, false),
        (0.01, 2, true),
        (0.125, 2, false),
        (0.005, 2, false),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_configured_expansion_of_zero_means_non_scaling() {
    let mut keys = Keyspace::with_defaults(0.01, 100, 0);
    assert_eq!(
        keys.say("BF.RESERVE k 0.01 100 EXPANSION 2"),
        "-Nonscaling filters cannot expand"
    );
    assert_eq!(keys.say("BF.RESERVE k 0.01 100 EXPANSION 0"), "+OK");
    assert_eq!(keys.say("BF.RESERVE l 0.01 100"), "+OK");
    assert!(keys.filter("k").is_fixed() && keys.filter("l").is_fixed());
}

#[test]
fn the_key_comes_after_the_arguments_and_counts_as_touched() {
    let mut keys = Keyspace::default();
    keys.keys.insert(b"s".to_vec(), Value::Other);
    assert_eq!(keys.say("BF.RESERVE s x 1"), "-ERR bad error rate");
    assert_eq!(keys.touched, 0);
    let wrong_type = "-WRONGTYPE Operation against a key holding the wrong kind of value";
    assert_eq!(keys.say("BF.RESERVE s 0.1 1"), wrong_type);
    assert_eq!(keys.say("BF.RESERVE k 0.1 1"), "+OK");
    assert_eq!(keys.say("BF.RESERVE k 0.1 1"), "-ERR item exists");
    assert_eq!((keys.touched, keys.log.len()), (3, 1));
}

#[test]
fn what_cannot_be_made_leaves_no_key() {
    let mut keys = Keyspace::with_limit(1000);
    assert_eq!(
        keys.say("BF.RESERVE k 5e-324 1"),
        "-ERR could not create filter"
    );
    assert_eq!(keys.say("BF.RESERVE k 5e-324 1 NONSCALING"), "+OK");
    let memory = "-ERR Insufficient memory to create filter";
    assert_eq!(keys.say("BF.RESERVE m 0.01 10000"), memory);
    assert_eq!(keys.say("BF.RESERVE m 1e-300 1073741824"), memory);
    assert_eq!(keys.say("BF.INSERT m CAPACITY 10000 ITEMS a"), memory);
    assert_eq!(keys.keys.len(), 1);
    assert_eq!(keys.log.len(), 1);
}

#[test]
fn a_new_filter_is_logged_by_its_header() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.1 1");
    assert_eq!(keys.log_text(), ["BF.LOADCHUNK k 1 <73 bytes>"]);
}
