//! The log says everything: a host with other defaults that replays it gets the same filters.

use crate::keyspace::{Keyspace, Value, pieces};
use everbloom::Layout;
use everbloom_commands::{Context, Defaults};
use proptest::prelude::*;

/// Commands on a few keys, most of them valid.
pub(crate) fn command() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let key = || prop::sample::select(vec!["a", "b", "NONSCALING", "expansion", "other", ""]);
    let item = || prop_oneof![9 => "[a-f]{1,2}", 1 => Just(String::new())];
    let items = || prop::collection::vec(item(), 1..40);
    let rate = || prop::sample::select(vec!["0.3", "0.1", "0.01", "1e-323", "0.000001", "5e-324"]);
    let capacity = || prop::sample::select(vec!["1", "2", "7", "64", "1000", "0"]);
    let option = || {
        prop_oneof![
            Just(String::new()),
            Just(" NONSCALING".to_owned()),
            prop::sample::select(vec![" EXPANSION 0", " EXPANSION 1", " EXPANSION 4"])
                .prop_map(str::to_owned),
            Just(" EXPANSION 0 NONSCALING".to_owned()),
            prop::sample::select(vec![
                " LAYOUT BLOCKED",
                " LAYOUT BLOCKED SEED 7 NONSCALING",
                " LAYOUT CLASSIC",
                " LAYOUT BLOCKED EXPANSION 1",
                " WINDOW ITEMS",
                " WINDOW ITEMS GENERATIONS 1 SEED 7",
                " WINDOW SECONDS 1",
                " WINDOW SECONDS 3 GENERATIONS 2 NONSCALING",
            ])
            .prop_map(str::to_owned),
        ]
    };
    let insert_option = prop_oneof![
        option(),
        Just(" EXPANSION 5 NONSCALING".to_owned()),
        Just(" NOCREATE".to_owned()),
        (rate(), capacity()).prop_map(|(rate, n)| format!(" ERROR {rate} CAPACITY {n}")),
    ];
    let line = prop_oneof![
        (key(), rate(), capacity(), option())
            .prop_map(|(key, rate, n, option)| format!("BF.RESERVE {key} {rate} {n}{option}")),
        (key(), item()).prop_map(|(key, item)| format!("BF.ADD {key} {item}")),
        (key(), 1..4).prop_map(|(key, count)| format!("BF.ADVANCE {key} {count}")),
        (key(), items()).prop_map(|(key, items)| format!("BF.MADD {key} {}", items.join(" "))),
        (key(), insert_option, items()).prop_map(|(key, option, items)| {
            format!("BF.INSERT {key}{option} ITEMS {}", items.join(" "))
        }),
    ];
    let words = |line: String| {
        line.split(' ')
            .map(|word| word.as_bytes().to_vec())
            .collect()
    };
    let load = (
        key(),
        -1_i64..300,
        prop::collection::vec(any::<u8>(), 0..24),
    )
        .prop_map(|(key, iterator, data)| {
            vec![
                b"BF.LOADCHUNK".to_vec(),
                key.into(),
                iterator.to_string().into_bytes(),
                data,
            ]
        });
    let layout = || prop::sample::select(vec![Layout::Classic, Layout::Blocked]);
    let load_header = (key(), 1_u64..30, layout()).prop_map(|(key, capacity, layout)| {
        let filter = everbloom::host::LayeredFilter::builder()
            .capacity(capacity)
            .layout(layout)
            .build()
            .unwrap();
        let header = pieces(&filter).remove(0).1;
        vec![b"BF.LOADCHUNK".to_vec(), key.into(), b"1".to_vec(), header]
    });
    prop_oneof![8 => line.prop_map(words), 1 => load, 1 => load_header]
}

fn defaults() -> impl Strategy<Value = Defaults> {
    let rates = prop::sample::select(vec![0.01, 0.25, 0.9, 1e-6, 5e-324]);
    (
        rates,
        prop::sample::select(vec![1, 3, 100]),
        prop::sample::select(vec![0, 1, 2, 32768]),
        prop::sample::select(vec![Layout::Classic, Layout::Blocked]),
    )
        .prop_map(|(error_rate, initial_size, expansion, layout)| Defaults {
            error_rate,
            initial_size,
            expansion,
            layout,
        })
}

/// A host with these defaults and random keys for new filters.
fn host(defaults: Defaults) -> Keyspace {
    let context = Context {
        defaults,
        ..Context::default()
    };
    Keyspace {
        context,
        ..Keyspace::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn replayed_under_other_defaults_the_log_gives_the_same_filters(
        here in defaults(),
        there in defaults(),
        limit in prop::sample::select(vec![u64::MAX, 2000, 300]),
        commands in prop::collection::vec((command(), 0..600_u64), 1..40),
    ) {
        let mut keys = host(here);
        keys.context.now_ms = 1 << 40;
        keys.context.max_filter_bytes = limit.min(1 << 22);
        keys.keys.insert(b"other".to_vec(), Value::Other);
        for (command, passed) in &commands {
            keys.context.now_ms += passed;
            let (before, logged) = (keys.dumps(), keys.log.len());
            let args: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
            keys.call(&args);
            // Every change is logged. (A chunk that changes nothing is logged, too.)
            prop_assert!(keys.log.len() > logged || before == keys.dumps());
        }
        let mut replica = host(there);
        replica.replay(&keys.log);
        prop_assert_eq!(replica.dumps(), keys.dumps());
    }
}

#[test]
fn only_items_that_were_added_are_logged() {
    let mut keys = Keyspace::default();
    keys.say("BF.INSERT k CAPACITY 2 NONSCALING ITEMS a a b c");
    keys.say("BF.MADD k a b");
    keys.say("BF.MADD k c");
    assert_eq!(
        keys.log_text(),
        ["BF.LOADCHUNK k 1 <73 bytes>", "BF.MADD k a b"]
    );
}

#[test]
fn a_blocked_filter_is_logged_with_its_key() {
    let mut keys = Keyspace::default();
    keys.say("BF.INSERT k CAPACITY 2 NONSCALING LAYOUT BLOCKED ITEMS a a b c");
    keys.say("BF.ADD k a");
    assert_eq!(
        keys.log_text(),
        ["BF.LOADCHUNK k 1 <88 bytes>", "BF.MADD k a b"]
    );
    let key = keys.filter("k").key().unwrap().to_bytes();
    assert_eq!(keys.log[0][3][36..52], key);
}
