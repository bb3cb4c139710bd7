//! With `appendfsync always`, a reply leaves when the fsync of its change has returned, not before;
//! otherwise when the change is written. The disk of these tests holds every fsync until it is told
//! to go on.

use std::io::{ErrorKind, Write};
use std::sync::Arc;
use std::time::Duration;

use everbloom_resp::{Reply, encode_request};
use everbloom_server::{Running, Server, Settings};
use everbloom_store::Fsync;
use everbloom_store::persistence::Persistence;

use super::common::{info, logging, run, until, with};
use super::crashing::CrashingDisk;
use super::held::{Brake, HeldDisk, Operation, ReleaseAtEnd};
use crate::support::{Client, OfRunning};

fn start(brake: &Arc<Brake>, appendfsync: Fsync) -> Running {
    start_on(&CrashingDisk::new(), brake, appendfsync)
}

pub(crate) fn start_on(disk: &CrashingDisk, brake: &Arc<Brake>, appendfsync: Fsync) -> Running {
    let settings = Settings {
        bind: vec!["127.0.0.1".into()],
        port: 0,
        // One event loop: what it owes one client has left before it hears another one again.
        io_threads: 1,
        ..logging("unused".as_ref())
    };
    let settings = with(settings, |data| data.appendfsync = appendfsync);
    let storage = Arc::new(HeldDisk {
        disk: disk.clone(),
        hooks: Arc::clone(brake),
    });
    let persistence = Persistence::on(storage, &settings.data);
    let running = Server::start_on(settings, Some(persistence)).unwrap();
    running.wait_until_loaded();
    running
}

/// Whether bytes have come that were not read.
fn is_answered(client: &Client) -> bool {
    client.stream.set_nonblocking(true).unwrap();
    let peeked = client.stream.peek(&mut [0]);
    client.stream.set_nonblocking(false).unwrap();
    match peeked {
        Ok(bytes) => bytes > 0,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
            false
        }
    }
}

fn send(client: &mut Client, lines: &[&str]) {
    let mut out = Vec::new();
    for line in lines {
        encode_request(&line.split(' ').collect::<Vec<_>>(), &mut out);
    }
    client.stream.write_all(&out).unwrap();
}

#[test]
fn replies_wait_for_the_fsync() {
    let brake = Arc::new(Brake::default());
    let running = start(&brake, Fsync::Always);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let mut other = Client::of(&running);
    run(&mut other, &["SET a 1", "BF.RESERVE f 0.0001 1000"]);
    let scenes = [
        &["SET a 2"][..],
        &["BF.ADD f x"],
        &["BF.MADD f m n"],
        &["FLUSHDB", "BF.RESERVE f 0.0001 1000"],
        // A run, a transaction, a read behind a change: nothing of it overtakes the change.
        &["BF.ADD f p", "BF.ADD f q", "BF.ADD f r"],
        &["MULTI", "BF.MADD f s t", "INCR a", "EXEC"],
        &["DEL a", "PING"],
    ];
    for (scene, lines) in scenes.into_iter().enumerate() {
        let mut client = Client::of(&running);
        brake.hold(Operation::Sync);
        send(&mut client, lines);
        brake.wait_until_reached();
        // Who changes nothing is answered, and while that happens the reply could leave, too.
        for _ in 0..10 {
            run(&mut other, &["BF.EXISTS f x", "GET a"]);
        }
        assert!(!is_answered(&client), "{lines:?}");
        // So it is for those that come while the disk is at work.
        let mut late = Client::of(&running);
        send(&mut late, &[&format!("BF.ADD late {scene}")]);
        for _ in 0..10 {
            run(&mut other, &["BF.CARD f"]);
        }
        assert!(!is_answered(&late) && !is_answered(&client), "{lines:?}");
        brake.release();
        for line in lines {
            assert!(!client.reply().is_error(), "{line}");
        }
        assert_eq!(late.reply(), Reply::Integer(1));
    }
}

/// What the file of the log holds.
fn logged(disk: &CrashingDisk) -> String {
    let file = "appendonlydir/appendonly.aof.1.incr.aof";
    String::from_utf8_lossy(&disk.contents(file).unwrap()).into_owned()
}

#[test]
fn what_is_answered_is_written_also_during_an_fsync() {
    for appendfsync in [Fsync::EverySecond, Fsync::No] {
        let (brake, disk) = (Arc::new(Brake::default()), CrashingDisk::new());
        let running = start_on(&disk, &brake, appendfsync);
        let _release = ReleaseAtEnd(Arc::clone(&brake));
        let mut client = Client::of(&running);
        let mut answered = 0;
        let mut write = |client: &mut Client| {
            for _ in 0..50 {
                answered += 1;
                run(client, &[&format!("SET a before:{answered}:after")]);
                let wanted = format!("before:{answered}:after");
                assert!(logged(&disk).contains(&wanted), "{wanted}");
            }
        };
        brake.hold(Operation::Sync);
        write(&mut client);
        if appendfsync == Fsync::EverySecond {
            brake.wait_until_reached();
            write(&mut client);
            assert_eq!(info(&mut client, "aof_pending_bio_fsync"), "1");
        }
    }
}

#[test]
fn an_fsync_that_takes_too_long_is_waited_for() {
    let brake = Arc::new(Brake::default());
    let running = start(&brake, Fsync::EverySecond);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let (mut client, mut other) = (Client::of(&running), Client::of(&running));
    brake.hold(Operation::Sync);
    run(&mut client, &["SET a 1"]);
    brake.wait_until_reached();
    std::thread::sleep(Duration::from_millis(2100));
    send(&mut client, &["SET a 2"]);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(other.line("GET a"), Reply::bulk("2"));
    assert!(!is_answered(&client), "it was written beside a late fsync");
    // Each two seconds count, as in Redis.
    until(&mut other, "aof_delayed_fsync", "1");
    until(&mut other, "aof_delayed_fsync", "2");
    brake.release();
    assert!(!client.reply().is_error());
    run(&mut client, &["SET a 3"]);
    assert_eq!(info(&mut other, "aof_delayed_fsync"), "2");
}
