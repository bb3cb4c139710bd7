//! One filter over many keys, on one server.

use std::thread;

use everbloom_client::{Error, SpreadFilter};
use redis::TypedCommands;

use crate::support::{items, with_filters};

#[test]
fn the_typed_commands_of_the_redis_crate() {
    for host in with_filters() {
        let mut connection = host.connect();
        connection.bf_reserve("seen", 0.01, 1000).unwrap();
        assert!(connection.bf_add("seen", "a").unwrap());
        assert_eq!(
            connection.bf_madd("seen", &["a", "b"]).unwrap(),
            [false, true]
        );
        assert!(connection.bf_exists("seen", "b").unwrap());
        assert_eq!(
            connection.bf_mexists("seen", &["b", "c"]).unwrap(),
            [true, false]
        );
        assert_eq!(connection.bf_insert("other", &["x"]).unwrap(), [true]);
        let info = connection.bf_info("seen").unwrap();
        assert_eq!(info["Capacity"], 1000.0);
        assert_eq!(connection.bf_card("seen").unwrap(), 2);
    }
}

#[test]
fn its_error_rate_is_that_of_a_single_filter() {
    const CAPACITY: usize = 20_000;
    for host in with_filters() {
        let mut connection = host.connect();
        let seen = SpreadFilter::create(&mut connection, "seen", CAPACITY as u64, 0.01, 8).unwrap();
        let added = items("in", CAPACITY);
        seen.add_all(&mut connection, &added).unwrap();
        let known = seen.contains_all(&mut connection, &added).unwrap();
        assert!(known.len() == CAPACITY && known.iter().all(|known| *known));
        let others = seen
            .contains_all(&mut connection, &items("out", CAPACITY))
            .unwrap();
        let others = others.iter().filter(|known| **known).count();
        // The first generation has half of the rate: 100 are expected, give or take 10.
        assert!((50..150).contains(&others), "{others}");
        let exists = redis::cmd("EXISTS")
            .arg("{seen:0}:1")
            .query(&mut connection);
        assert_eq!(exists, Ok(false), "no shard had to grow");
    }
}

#[test]
fn it_grows_and_stays_below_its_error_rate() {
    for host in with_filters() {
        let mut connection = host.connect();
        let seen = SpreadFilter::create(&mut connection, "seen", 1000, 0.02, 4).unwrap();
        // Another program that does not hear of any growth.
        let other = SpreadFilter::open(&mut connection, "seen").unwrap();
        assert!(!other.contains(&mut connection, "in0").unwrap());
        let added = items("in", 20_000);
        let mut new = 0;
        for batch in added.chunks(777) {
            let answers = seen.add_all(&mut connection, batch).unwrap();
            new += answers.iter().filter(|new| **new).count();
        }
        assert!(new > 19_600, "{new}");
        assert_eq!(seen.count(&mut connection).unwrap(), new as u64);
        for filter in [&seen, &other] {
            let known = filter.contains_all(&mut connection, &added).unwrap();
            assert!(known.iter().all(|known| *known));
            let again = filter.add_all(&mut connection, &added).unwrap();
            assert!(again.iter().all(|new| !*new));
        }
        let others = other
            .contains_all(&mut connection, &items("out", 20_000))
            .unwrap();
        let others = others.iter().filter(|known| **known).count();
        assert!(others < 400, "{others} of 20000 at a rate of 0.02");
        let fifth = redis::cmd("EXISTS")
            .arg("{seen:0}:5")
            .query(&mut connection);
        assert_eq!(fifth, Ok(false), "generations double");
        seen.delete(&mut connection).unwrap();
        let keys: usize = redis::cmd("DBSIZE").query(&mut connection).unwrap();
        assert_eq!(keys, 0);
    }
}

#[test]
fn programs_that_make_it_grow_at_once_agree_on_what_is_new() {
    for host in with_filters() {
        SpreadFilter::create(&mut host.connect(), "seen", 200, 1e-9, 3).unwrap();
        let all = items("item", 5000);
        let new: usize = thread::scope(|scope| {
            let adders: Vec<_> = (0..4)
                .map(|adder| {
                    let (host, all) = (&host, &all);
                    scope.spawn(move || {
                        let mut connection = host.connect();
                        let seen = SpreadFilter::open(&mut connection, "seen").unwrap();
                        let batches = all.chunks(40 + adder);
                        let new = batches.flat_map(|b| seen.add_all(&mut connection, b).unwrap());
                        new.filter(|new| *new).count()
                    })
                })
                .collect();
            adders.into_iter().map(|adder| adder.join().unwrap()).sum()
        });
        // Few look like others, which small filters cannot tell apart. What a filter took is told
        // exactly once, and nothing is in two generations.
        let mut connection = host.connect();
        let seen = SpreadFilter::open(&mut connection, "seen").unwrap();
        assert_eq!(
            new as u64,
            seen.count(&mut connection).unwrap(),
            "{}",
            host.name
        );
        assert!(
            new <= all.len() && new > all.len() - 25,
            "{}: {new}",
            host.name
        );
    }
}

#[test]
fn items_of_one_batch_are_told_apart() {
    for host in with_filters() {
        let mut connection = host.connect();
        let seen = SpreadFilter::create(&mut connection, "seen", 10, 1e-9, 2).unwrap();
        // With repetitions, over more generations than one call knows of.
        let all: Vec<String> = (0..3000).map(|i| format!("{}", i % 1000)).collect();
        let new = seen.add_all(&mut connection, &all).unwrap();
        let (first, repeated) = new.split_at(1000);
        assert!(repeated.iter().all(|new| !*new));
        // Few look like others, which small filters cannot tell apart.
        assert!(first.iter().filter(|new| **new).count() > 990);
    }
}

#[test]
fn one_that_was_made_otherwise_is_not_opened() {
    for host in with_filters() {
        let mut connection = host.connect();
        SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4).unwrap();
        let error = SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 8).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains("4 shards") && text.contains("8 shards"),
            "{text}"
        );
        for name in ["", "a{b}", "a}"] {
            let error = SpreadFilter::create(&mut connection, name, 1000, 0.01, 4).unwrap_err();
            assert!(matches!(error, Error::Name(_)), "{error}");
        }
        let other = SpreadFilter::create(&mut connection, "other", 1000, 0.01, 1).unwrap();
        let mut set = redis::cmd("SET");
        set.arg("{other:0}")
            .arg("text")
            .exec(&mut connection)
            .unwrap();
        let error = other.add(&mut connection, "a").unwrap_err();
        assert!(matches!(error, Error::WrongType { .. }), "{error:?}");
    }
}

/// The keys that an error names.
fn missing(error: Error) -> Vec<String> {
    match error {
        Error::MissingKeys { name, keys } if name == "seen" => keys,
        error => panic!("{error:?}"),
    }
}

#[test]
fn each_key_that_is_lost_is_named_and_made_again() {
    let all = items("item", 300);
    let keys = [
        "{seen:1}",
        "{seen:1}:1",
        "{seen:1}:2",
        "{seen:1}:generations",
    ];
    // Each alone, and several together: the oldest, the newest, and all of a shard.
    let losses: [&[&str]; 8] = [
        &keys[..1],
        &keys[1..2],
        &keys[2..3],
        &keys[3..],
        &keys[..2],
        &keys[2..],
        &keys,
        &["{seen}:parameters", keys[0]],
    ];
    for host in with_filters() {
        for lost in losses {
            let mut connection = host.connect();
            let seen = SpreadFilter::create(&mut connection, "seen", 40, 1e-6, 2).unwrap();
            // A process that knows of no growth.
            let early = SpreadFilter::open(&mut connection, "seen").unwrap();
            seen.add_all(&mut connection, &all).unwrap();
            let card = redis::cmd("EXISTS").arg(&keys).query(&mut connection);
            assert_eq!(card, Ok(4), "the shard has three generations");
            redis::cmd("DEL").arg(lost).exec(&mut connection).unwrap();

            let mut lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
            for filter in [&seen, &early] {
                let error = filter.add_all(&mut connection, &items("more", 300));
                let error = error.unwrap_err().error;
                assert!(lost.contains(&missing(error)[0]), "{lost:?}");
                let error = filter.contains_all(&mut connection, &items("none", 300));
                let error = error.unwrap_err().error;
                assert!(lost.contains(&missing(error)[0]), "{lost:?}");
                let error = filter.count(&mut connection).unwrap_err();
                assert!(lost.contains(&missing(error)[0]), "{lost:?}");
            }
            match SpreadFilter::open(&mut connection, "seen").unwrap_err() {
                Error::NotFound { key, .. } => assert_eq!(key, lost[0]),
                error => assert!(lost.contains(&missing(error)[0]), "{lost:?}"),
            }
            let error = SpreadFilter::create(&mut connection, "seen", 40, 1e-6, 2).unwrap_err();
            assert!(lost.contains(&missing(error)[0]), "{lost:?}");

            let restored = SpreadFilter::restore(&mut connection, "seen", 40, 1e-6, 2);
            let (restored, mut named) = restored.unwrap();
            // Of a shard that is lost with its record nobody knows how far it had grown.
            if lost.len() == 4 {
                lost = vec![keys[0].into(), keys[3].into()];
            } else if lost.len() == 2 && lost[0] == keys[2] {
                lost = vec![keys[3].into()];
            }
            named.sort();
            lost.sort();
            assert_eq!(named, lost);
            let more = items("more", 500);
            let new = restored.add_all(&mut connection, &more).unwrap();
            assert!(new.iter().filter(|new| **new).count() > 200);
            let again = SpreadFilter::restore(&mut connection, "seen", 40, 1e-6, 2);
            assert!(again.unwrap().1.is_empty());
            let fresh = SpreadFilter::open(&mut connection, "seen").unwrap();
            for filter in [&restored, &fresh] {
                let known = filter.contains_all(&mut connection, &more).unwrap();
                assert!(known.iter().all(|known| *known), "{lost:?}");
            }
            fresh.delete(&mut connection).unwrap();
            let keys: usize = redis::cmd("DBSIZE").query(&mut connection).unwrap();
            assert_eq!(keys, 0);
        }
    }
}

#[test]
fn one_that_was_never_finished_is_finished_by_the_next_program() {
    for host in with_filters() {
        let mut connection = host.connect();
        let seen = SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4).unwrap();
        // As a program leaves it that ends in the middle.
        let unfinished = format!("{}, unfinished", seen.parameters());
        let set = redis::cmd("SET")
            .arg("{seen}:parameters")
            .arg(&unfinished)
            .take();
        set.exec(&mut connection).unwrap();
        redis::cmd("DEL")
            .arg("{seen:3}")
            .arg("{seen:3}:generations")
            .exec(&mut connection)
            .unwrap();
        let open = SpreadFilter::open(&mut connection, "seen");
        assert!(matches!(open, Err(Error::NotFound { .. })), "{open:?}");
        let other = SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 5);
        assert!(matches!(other, Err(Error::OtherParameters { .. })));
        SpreadFilter::create(&mut connection, "seen", 1000, 0.01, 4).unwrap();
        SpreadFilter::open(&mut connection, "seen").unwrap();
    }
}
