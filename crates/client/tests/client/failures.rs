//! What a caller learns when a server is not as it should be, or is no more.

use std::thread;
use std::time::{Duration, Instant};

use everbloom_client::{BitmapFilter, Error};
use everbloom_dev::{Redis, wait_for};

use crate::support::{Host, connect, items, replica_of, with_bitmaps};

#[test]
fn another_type_of_value() {
    for host in with_bitmaps() {
        let mut connection = host.connect();
        let mut make = redis::cmd(if host.is_redis() { "RPUSH" } else { "BF.ADD" });
        make.arg("other").arg("x").exec(&mut connection).unwrap();
        let filter = BitmapFilter::python("other", 1000, 3).unwrap();
        let error = filter.add(&mut connection, "x").unwrap_err();
        assert!(
            matches!(&error, Error::WrongType { name, .. } if name == "other"),
            "{error:?}"
        );
        let error = filter.contains(&mut connection, "x").unwrap_err();
        assert!(matches!(error, Error::WrongType { .. }), "{error:?}");
        assert!(!error.is_temporary());
        let batch = filter.add_all(&mut connection, &["x", "y"]).unwrap_err();
        assert_eq!(batch.unknown().collect::<Vec<_>>(), [0, 1]);
    }
}

#[test]
fn a_server_killed_in_the_middle_of_a_batch() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let settings = [
        "--dir",
        dir,
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
    ];
    let Some(mut redis) = Redis::start(&settings) else {
        return;
    };
    let seen = BitmapFilter::create(&mut connect(redis.addr), "seen", 100_000, 1e-6).unwrap();
    let all = items("item", 100_000);
    let mut writer = connect(redis.addr);
    let batch = thread::scope(|scope| {
        let writer = scope.spawn(|| seen.add_all(&mut writer, &all));
        let mut observer = connect(redis.addr);
        wait_for("a part of the batch", || {
            seen.count(&mut observer).unwrap() > 5000
        });
        redis.kill();
        writer.join().unwrap().unwrap_err()
    });
    assert!(matches!(batch.error, Error::Lost(_)), "{batch}");
    assert!(batch.error.is_temporary());
    assert_eq!(batch.answers.len(), all.len());
    let unknown: Vec<usize> = batch.unknown().collect();
    let known = all.len() - unknown.len();
    assert!(
        known >= 1000 && !unknown.is_empty(),
        "{known} of {}",
        all.len()
    );
    assert_eq!(unknown[0], known, "what is known comes first");

    redis.start_again();
    let mut connection = connect(redis.addr);
    // Every answer was true: with the log forced at every write, nothing of it is lost.
    let before = seen.contains_all(&mut connection, &all[..known]).unwrap();
    assert!(before.iter().all(|known| *known));
    // And a retry does no harm.
    seen.add_all(&mut connection, &all[known..]).unwrap();
    let after = seen.contains_all(&mut connection, &all).unwrap();
    assert!(after.iter().all(|known| *known));
}

#[test]
fn no_answer_in_time() {
    for host in with_bitmaps().into_iter().filter(Host::is_redis) {
        let mut connection = host.connect();
        let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap();
        connection
            .set_read_timeout(Some(Duration::from_millis(100)))
            .unwrap();
        let mut other = host.connect();
        let pause = redis::cmd("CLIENT").arg("PAUSE").arg(600).take();
        pause.exec(&mut other).unwrap();
        let start = Instant::now();
        let error = seen.add(&mut connection, "a").unwrap_err();
        assert!(start.elapsed() < Duration::from_millis(500));
        assert!(
            matches!(error, Error::TimedOut(_)) && error.is_temporary(),
            "{error:?}"
        );
        // The answer that comes late is not taken for that to another question.
        thread::sleep(Duration::from_millis(700));
        match seen.contains(&mut connection, "not a") {
            Ok(known) => assert!(!known),
            Err(error) => assert!(error.is_temporary(), "{error:?}"),
        }
        let mut connection = host.connect();
        seen.add(&mut connection, "a").unwrap();
        assert!(seen.contains(&mut connection, "a").unwrap());
    }
}

#[test]
fn a_replica_that_takes_no_writes() {
    let Some(primary) = Redis::start(&["--repl-diskless-sync-delay", "0"]) else {
        return;
    };
    let seen = BitmapFilter::create(&mut connect(primary.addr), "seen", 1000, 0.01).unwrap();
    seen.add(&mut connect(primary.addr), "a").unwrap();
    let (replica, _dir) = replica_of(&primary);
    let mut connection = connect(replica.addr);
    let exists = redis::cmd("EXISTS").arg("seen").take();
    wait_for("the replica", || {
        exists.query(&mut connection).unwrap_or(false)
    });
    // To create what is there is to open it.
    assert_eq!(
        BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap(),
        seen
    );
    assert!(seen.contains(&mut connection, "a").unwrap());
    assert_eq!(seen.count(&mut connection).unwrap(), 1);
    let error = seen.add(&mut connection, "b").unwrap_err();
    assert!(matches!(error, Error::ReadOnly(_)), "{error:?}");
    let error = BitmapFilter::create(&mut connection, "other", 1000, 0.01).unwrap_err();
    assert!(matches!(error, Error::ReadOnly(_)), "{error:?}");
}
