//! BF.INSERT.

use crate::keyspace::{Keyspace, Value};

#[test]
fn options_are_read_in_order_and_checked_where_they_stand() {
    let mut keys = Keyspace::default();
    let arity = "-ERR wrong number of arguments for 'bf.insert' command";
    let cases = [
        ("BF.INSERT k ITEMS", arity),
        ("BF.INSERT k NOCREATE ITEMS", arity),
        ("BF.INSERT k CAPACITY 10", arity),
        ("BF.INSERT k NOCREATE ERROR", arity),
        ("BF.INSERT k NONSCALING NONSCALING", arity),
        ("BF.INSERT k CAPACITY ITEMS a", "-Bad capacity"),
        ("BF.INSERT k CAPACITY 0 ERROR x ITEMS a", "-Bad capacity"),
        ("BF.INSERT k ERROR 1 CAPACITY 0 ITEMS a", "-Bad error rate"),
        ("BF.INSERT k EXPANSION 32769 ITEMS a", "-Bad expansion"),
        ("BF.INSERT k EXPANSION x ITEMS a", "-Bad expansion"),
        ("BF.INSERT k FOO ITEMS a", "-Unknown argument received"),
        ("BF.INSERT k  ITEMS a", "-Unknown argument received"),
    ];
    for (command, reply) in cases {
        assert_eq!(keys.say(command), reply, "{command}");
    }
    assert_eq!((keys.touched, keys.keys.len()), (0, 0));
    assert_eq!(keys.say("BF.INSERT k NOCREATE ITEMS a"), "-ERR not found");
    assert_eq!((keys.touched, keys.keys.len(), keys.log.len()), (1, 0, 0));
}

#[test]
fn only_the_start_of_a_word_counts() {
    let mut keys = Keyspace::default();
    assert_eq!(
        keys.say("BF.INSERT a cherry 10 erm 0.1 eggs 3 Ice a"),
        "*1 :1"
    );
    let filter = keys.filter("a");
    assert_eq!(
        (filter.capacity(), filter.error_rate(), filter.expansion()),
        (10, 0.1, 3)
    );
    assert_eq!(keys.say("BF.INSERT b NXCALING i a"), "-ERR not found");
    assert_eq!(keys.say("BF.INSERT b n i a"), "*1 :1");
    assert!(keys.filter("b").is_fixed());
    assert_eq!(keys.say("BF.INSERT c e 7 i items"), "*1 :1");
    assert_eq!(keys.filter("c").expansion(), 7);
}

#[test]
fn the_last_option_decides() {
    let mut keys = Keyspace::default();
    keys.say("BF.INSERT a EXPANSION 0 EXPANSION 2 CAPACITY 5 CAPACITY 7 ITEMS x");
    assert!(!keys.filter("a").is_fixed());
    assert_eq!(keys.filter("a").capacity(), 7);
    keys.say("BF.INSERT b EXPANSION 4 NONSCALING ITEMS x");
    assert_eq!(
        (keys.filter("b").is_fixed(), keys.filter("b").expansion()),
        (true, 4)
    );
    keys.say("BF.INSERT c EXPANSION 2 EXPANSION 0 ITEMS x");
    assert!(keys.filter("c").is_fixed());
}

#[test]
fn a_configured_expansion_of_zero_wins() {
    let mut keys = Keyspace::with_defaults(0.01, 100, 0);
    assert_eq!(keys.say("BF.INSERT k EXPANSION 3 ITEMS a"), "*1 :1");
    assert_eq!(
        (keys.filter("k").is_fixed(), keys.filter("k").expansion()),
        (true, 3)
    );
}

#[test]
fn options_do_not_change_a_filter_that_exists() {
    let mut keys = Keyspace::default();
    keys.say("BF.RESERVE k 0.01 10");
    assert_eq!(keys.say("BF.INSERT k CAPACITY 0 ITEMS a"), "-Bad capacity");
    assert_eq!(
        keys.say("BF.INSERT k CAPACITY 99 NONSCALING ITEMS a a b"),
        "*3 :1 :0 :1"
    );
    assert_eq!(
        (keys.filter("k").capacity(), keys.filter("k").is_fixed()),
        (10, false)
    );
    assert_eq!(keys.log_text()[1..], ["BF.MADD k a b"]);
    keys.keys.insert(b"s".to_vec(), Value::Other);
    assert!(
        keys.say("BF.INSERT s NOCREATE ITEMS a")
            .starts_with("-WRONGTYPE")
    );
}
