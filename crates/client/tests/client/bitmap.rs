//! Filters in bitmaps, on every server that has them.

use std::collections::HashSet;
use std::thread;
use std::time::Duration;

use everbloom_client::{BitmapFilter, BitmapParameters, Error};
use everbloom_dev::wait_for;
use proptest::prelude::*;

use crate::support::{items, with_bitmaps};

const CAPACITY: usize = 20_000;

#[test]
fn no_item_is_forgotten_and_few_others_are_known() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        for keys in [1, 5] {
            let name = format!("seen{keys}");
            let parameters = BitmapParameters::new(CAPACITY as u64, 0.01).unwrap();
            let parameters = parameters.in_keys(keys).unwrap();
            let seen = BitmapFilter::create_with(&mut connection, &name, parameters).unwrap();
            let added = items("in", CAPACITY);
            let new = seen.add_all(&mut connection, &added).unwrap();
            let new = new.iter().filter(|new| **new).count();
            assert!(new > CAPACITY * 99 / 100, "{}: {new}", host.name);
            let known = seen.contains_all(&mut connection, &added).unwrap();
            assert!(known.iter().all(|known| *known), "{}", host.name);
            assert_eq!(known.len(), CAPACITY);
            let others = seen
                .contains_all(&mut connection, &items("out", CAPACITY))
                .unwrap();
            let others = others.iter().filter(|known| **known).count();
            // 200 are expected, give or take 14; a filter in five keys is not worse.
            assert!((100..300).contains(&others), "{}: {others}", host.name);
            let count = seen.count(&mut connection).unwrap() as usize;
            assert!(
                count.abs_diff(CAPACITY) < CAPACITY / 50,
                "{}: {count}",
                host.name
            );
        }
    }
}

#[test]
fn of_programs_that_add_an_item_at_once_one_is_told_that_it_is_new() {
    for host in with_bitmaps() {
        let seen = BitmapFilter::create(&mut host.connect(), "seen", 100_000, 1e-9).unwrap();
        let all = items("item", 2000);
        let new: usize = thread::scope(|scope| {
            let adders: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut connection = host.connect();
                        let batches = all.chunks(50);
                        batches
                            .flat_map(|batch| seen.add_all(&mut connection, batch).unwrap())
                            .filter(|new| *new)
                            .count()
                    })
                })
                .collect();
            adders.into_iter().map(|adder| adder.join().unwrap()).sum()
        });
        assert_eq!(new, all.len(), "{}", host.name);
    }
}

#[test]
fn many_programs_make_one_filter() {
    for host in with_bitmaps() {
        thread::scope(|scope| {
            for maker in 0..8 {
                let host = &host;
                scope.spawn(move || {
                    let mut connection = host.connect();
                    let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap();
                    seen.add(&mut connection, format!("{maker}")).unwrap();
                });
            }
        });
        let seen = BitmapFilter::open(&mut host.connect(), "seen").unwrap();
        assert_eq!(seen.count(&mut host.connect()).unwrap(), 8, "{}", host.name);
    }
}

#[test]
fn a_filter_made_otherwise_is_not_opened() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap();
        let error = BitmapFilter::create(&mut connection, "seen", 2000, 0.01).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::OtherParameters { .. }), "{text}");
        assert!(
            text.contains("capacity 1000") && text.contains("capacity 2000"),
            "{text}"
        );
        // Also when only the number of its keys is another.
        let parameters = BitmapParameters::new(1000, 0.01)
            .unwrap()
            .in_keys(3)
            .unwrap();
        let error = BitmapFilter::create_with(&mut connection, "seen", parameters).unwrap_err();
        assert!(matches!(error, Error::OtherParameters { .. }), "{error}");
    }
}

#[test]
fn half_a_filter_is_none() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let mut run = |name: &str, key: &str| {
            redis::cmd(name).arg(key).exec(&mut connection).unwrap();
            [
                BitmapFilter::create(&mut connection, "seen", 1000, 0.01).map(drop),
                BitmapFilter::open(&mut connection, "seen").map(drop),
            ]
        };
        for lost in ["seen", "{seen}:parameters"] {
            run("DEL", "seen")[0].as_ref().ok();
            let mut connection = host.connect();
            redis::cmd("DEL")
                .arg("{seen}:parameters")
                .exec(&mut connection)
                .unwrap();
            redis::cmd("DEL").arg("seen").exec(&mut connection).unwrap();
            BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap();
            for outcome in run("DEL", lost) {
                match outcome {
                    Err(Error::Incomplete { missing, .. }) => assert_eq!(missing, lost),
                    other => panic!("{}: {other:?}", host.name),
                }
            }
        }
    }
}

/// A server that evicts the bits, or lets only them expire, leaves the parameters.
#[test]
fn lost_bits_are_an_error_of_every_call() {
    for host in with_bitmaps() {
        for keys in [1, 3] {
            let mut connection = host.connect();
            let parameters = BitmapParameters::new(100_000, 0.01).unwrap();
            let parameters = parameters.in_keys(keys).unwrap();
            let name = format!("seen{keys}");
            let seen = BitmapFilter::create_with(&mut connection, &name, parameters).unwrap();
            assert!(seen.add(&mut connection, "a").unwrap());
            let bits = &seen.keys()[..keys as usize];
            let mut lose = redis::cmd("DEL");
            lose.arg(bits).exec(&mut connection).unwrap();
            for round in 0..3 {
                for outcome in [
                    seen.contains(&mut connection, "a").map(drop),
                    seen.add(&mut connection, "b").map(drop),
                    seen.contains_all(&mut connection, &["a", "b"])
                        .map(drop)
                        .map_err(Error::from),
                    seen.add_all(&mut connection, &["a", "b"])
                        .map(drop)
                        .map_err(Error::from),
                    seen.count(&mut connection).map(drop),
                    seen.expire(&mut connection, Duration::from_secs(9))
                        .map(drop),
                    seen.persist(&mut connection).map(drop),
                    BitmapFilter::open(&mut connection, &name).map(drop),
                    BitmapFilter::create_with(&mut connection, &name, parameters).map(drop),
                ] {
                    match outcome {
                        Err(Error::Incomplete { missing, .. }) => {
                            assert!(bits.contains(&missing.as_str()));
                        }
                        other => panic!("{} {keys} {round}: {other:?}", host.name),
                    }
                }
            }
            let mut exist = redis::cmd("EXISTS");
            let left: usize = exist.arg(bits).query(&mut connection).unwrap();
            assert_eq!(left, 0, "no addition makes the bits again");
            seen.clear(&mut connection).unwrap();
            assert_eq!(BitmapFilter::open(&mut connection, &name).unwrap(), seen);
            assert!(seen.add(&mut connection, "a").unwrap());
        }
    }
}

/// Bits that another program made again are shorter, unless it has set the last ones.
#[test]
fn bits_that_another_program_made_again_are_not_a_filter() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let seen = BitmapFilter::create(&mut connection, "seen", 100_000, 0.01).unwrap();
        redis::cmd("DEL").arg("seen").exec(&mut connection).unwrap();
        let _: redis::Value = seen.adding("b").query(&mut connection).unwrap();
        for outcome in [
            seen.contains(&mut connection, "a").map(drop),
            seen.expire(&mut connection, Duration::from_secs(9)),
            seen.persist(&mut connection),
        ] {
            let error = outcome.unwrap_err();
            assert!(
                matches!(error, Error::Incomplete { .. }),
                "{}: {error}",
                host.name
            );
        }
    }
}

#[test]
fn lost_parameters_are_an_error_of_what_changes_the_filter() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let seen = BitmapFilter::create(&mut connection, "seen", 100_000, 0.01).unwrap();
        assert!(seen.add(&mut connection, "a").unwrap());
        let lost = "{seen}:parameters";
        redis::cmd("DEL").arg(lost).exec(&mut connection).unwrap();
        assert!(seen.contains(&mut connection, "a").unwrap());
        for outcome in [
            seen.add(&mut connection, "b").map(drop),
            seen.clear(&mut connection),
            seen.expire(&mut connection, Duration::from_secs(9)),
            seen.persist(&mut connection),
        ] {
            match outcome {
                Err(Error::Incomplete { missing, .. }) => assert_eq!(missing, lost),
                other => panic!("{}: {other:?}", host.name),
            }
        }
        assert!(seen.contains(&mut connection, "a").unwrap(), "it is kept");
        seen.delete(&mut connection).unwrap();
        BitmapFilter::create(&mut connection, "seen", 100_000, 0.01).unwrap();
    }
}

/// A connection on which something happens between two commands of a pipeline.
struct Interrupted<'a> {
    connection: redis::Connection,
    /// The bytes of the second command begin so.
    before: &'a [u8],
    event: &'a mut dyn FnMut(),
}

impl redis::ConnectionLike for Interrupted<'_> {
    fn req_packed_command(&mut self, command: &[u8]) -> redis::RedisResult<redis::Value> {
        self.connection.req_packed_command(command)
    }

    fn req_packed_commands(
        &mut self,
        commands: &[u8],
        offset: usize,
        count: usize,
    ) -> redis::RedisResult<Vec<redis::Value>> {
        let mut places = commands.windows(self.before.len());
        let Some(at) = places.position(|bytes| bytes == self.before) else {
            let connection = &mut self.connection;
            return connection.req_packed_commands(commands, offset, count);
        };
        let (first, second) = commands.split_at(at);
        let firsts = first.iter().filter(|byte| **byte == b'*').count();
        let mut replies = self.connection.req_packed_commands(first, 0, firsts)?;
        (self.event)();
        let more = self
            .connection
            .req_packed_commands(second, 0, count - firsts)?;
        replies.extend(more);
        Ok(replies)
    }

    fn get_db(&self) -> i64 {
        self.connection.get_db()
    }

    fn check_connection(&mut self) -> bool {
        self.connection.check_connection()
    }

    fn is_open(&self) -> bool {
        self.connection.is_open()
    }
}

#[test]
fn an_addition_does_not_make_a_filter_again_that_expires_meanwhile() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let seen = BitmapFilter::create(&mut connection, "seen", 100_000, 0.01).unwrap();
        let command = seen.adding("b").get_packed_command();
        let mut expired = 0;
        let mut expire = || {
            let end = Duration::from_millis(1);
            seen.expire(&mut host.connect(), end).unwrap();
            wait_for("the end of the filter", || {
                let mut exists = redis::cmd("EXISTS");
                let left: usize = exists.arg(seen.keys()).query(&mut host.connect()).unwrap();
                left == 0
            });
            expired += 1;
        };
        let mut interrupted = Interrupted {
            connection: host.connect(),
            before: &command,
            event: &mut expire,
        };
        let error = seen.add(&mut interrupted, "b").unwrap_err();
        assert!(
            matches!(error, Error::NotFound { .. }),
            "{}: {error}",
            host.name
        );
        assert_eq!(expired, 1);
        let seen = BitmapFilter::create(&mut connection, "seen", 100_000, 0.01).unwrap();
        assert!(!seen.contains(&mut connection, "b").unwrap());
    }
}

/// Users of a host may have few rights.
#[test]
fn an_addition_needs_no_more_rights_than_its_bits() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let seen = BitmapFilter::create(&mut connection, "seen", 100_000, 0.01).unwrap();
        let mut rights = redis::cmd("ACL");
        rights.arg("SETUSER").arg("default").arg("-exists");
        // everbloom has no users.
        if rights.exec(&mut connection).is_err() {
            continue;
        }
        let mut limited = host.connect();
        assert!(seen.add(&mut limited, "a").unwrap(), "{}", host.name);
        assert_eq!(
            seen.add_all(&mut limited, &["a", "b"]).unwrap(),
            [false, true]
        );
    }
}

#[test]
fn all_keys_expire_together() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let parameters = BitmapParameters::new(1000, 0.01)
            .unwrap()
            .in_keys(3)
            .unwrap();
        let seen = BitmapFilter::create_with(&mut connection, "seen", parameters).unwrap();
        seen.add(&mut connection, "a").unwrap();
        let expiries = |connection: &mut redis::Connection| -> Vec<i64> {
            let keys = seen.keys().into_iter();
            keys.map(|key| redis::cmd("PTTL").arg(key).query(connection).unwrap())
                .collect()
        };
        let hour = 3_600_000;
        seen.expire(&mut connection, Duration::from_secs(3600))
            .unwrap();
        let all = expiries(&mut connection);
        assert!(
            all.iter().all(|left| (hour / 2..=hour).contains(left)),
            "{all:?}"
        );
        // Neither an addition nor the removal of all items changes that.
        seen.add(&mut connection, "b").unwrap();
        seen.clear(&mut connection).unwrap();
        let all = expiries(&mut connection);
        assert!(
            all.iter().all(|left| (hour / 2..=hour).contains(left)),
            "{all:?}"
        );
        seen.persist(&mut connection).unwrap();
        assert_eq!(expiries(&mut connection), [-1; 4]);
        seen.expire(&mut connection, Duration::from_millis(1))
            .unwrap();
        wait_for("the expiry", || expiries(&mut connection) == [-2; 4]);
        let is_gone = |outcome: Result<bool, Error>| {
            let error = outcome.unwrap_err();
            assert!(
                matches!(error, Error::NotFound { .. }),
                "{}: {error}",
                host.name
            );
        };
        is_gone(seen.contains(&mut connection, "a"));
        is_gone(seen.add(&mut connection, "a"));
        is_gone(seen.clear(&mut connection).map(|()| true));
        is_gone(
            seen.expire(&mut connection, Duration::from_secs(1))
                .map(|()| true),
        );
        assert_eq!(expiries(&mut connection), [-2; 4], "nothing makes it again");
        let seen = BitmapFilter::create_with(&mut connection, "seen", parameters).unwrap();
        assert!(!seen.contains(&mut connection, "a").unwrap());
        let error = seen.expire(&mut connection, Duration::MAX).unwrap_err();
        assert!(matches!(error, Error::Shape(_)), "{error}");
    }
}

/// Without parameters nothing says how many keys it has.
#[test]
fn a_filter_in_other_keys_is_noticed_without_its_parameters() {
    let one = BitmapParameters::new(1000, 0.01).unwrap();
    let eight = one.in_keys(8).unwrap();
    for host in with_bitmaps() {
        let mut connection = host.connect();
        for (name, made, wanted) in [("eight", eight, one), ("one", one, eight)] {
            let seen = BitmapFilter::create_with(&mut connection, name, made).unwrap();
            seen.add(&mut connection, "a").unwrap();
            let parameters = format!("{{{name}}}:parameters");
            let mut lose = redis::cmd("DEL");
            lose.arg(&parameters).exec(&mut connection).unwrap();
            for outcome in [
                BitmapFilter::create_with(&mut connection, name, wanted),
                BitmapFilter::create_with(&mut connection, name, made),
                BitmapFilter::open(&mut connection, name),
            ] {
                match outcome {
                    Err(Error::Incomplete { missing, .. }) => assert_eq!(missing, parameters),
                    other => panic!("{}: {name}: {other:?}", host.name),
                }
            }
        }
    }
}

/// The keys of a whole filter are known, so another key is another program's.
#[test]
fn a_key_beside_a_filter_is_not_of_it() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap();
        let mut set = redis::cmd("SET");
        set.arg("{seen}:0").arg("x").exec(&mut connection).unwrap();
        assert_eq!(BitmapFilter::open(&mut connection, "seen").unwrap(), seen);
        assert!(BitmapFilter::create(&mut connection, "seen", 1000, 0.01).is_ok());
    }
}

#[test]
fn parameters_of_a_later_version_are_not_guessed() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let text = "everbloom bitmap 2: something else";
        let mut set = redis::cmd("SET");
        set.arg("{seen}:parameters")
            .arg(text)
            .exec(&mut connection)
            .unwrap();
        let error = BitmapFilter::open(&mut connection, "seen").unwrap_err();
        assert!(
            matches!(&error, Error::Unreadable { found, .. } if found == text),
            "{error}"
        );
        let error = BitmapFilter::create(&mut connection, "seen", 10, 0.1).unwrap_err();
        assert!(matches!(&error, Error::OtherParameters { .. }), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    /// Against a set: what was added is known, what is new is not in it.
    #[test]
    fn answers_are_those_of_a_set(
        batches in prop::collection::vec(
            prop::collection::vec(prop::collection::vec(any::<u8>(), 0..20), 0..40), 1..6),
        keys in 1_u32..4,
    ) {
        for host in with_bitmaps() {
            let mut connection = host.connect();
            let parameters = BitmapParameters::new(100_000, 1e-12).unwrap();
            let parameters = parameters.in_keys(keys).unwrap();
            let seen = BitmapFilter::create_with(&mut connection, "seen", parameters).unwrap();
            let mut model = HashSet::new();
            for batch in &batches {
                let known: Vec<bool> = batch.iter().map(|item| model.contains(item)).collect();
                prop_assert_eq!(seen.contains_all(&mut connection, batch).unwrap(), known);
                let new: Vec<bool> = batch.iter().map(|item| model.insert(item.clone())).collect();
                prop_assert_eq!(seen.add_all(&mut connection, batch).unwrap(), new);
            }
        }
    }
}
