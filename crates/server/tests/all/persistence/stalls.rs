//! A disk whose writes or fsyncs do not return: the server notices, and says so until it is over.

use std::sync::Arc;
use std::time::Duration;

use everbloom_dev::wait_for;
use everbloom_store::Fsync;

use super::always::start_on;
use super::common::run;
use super::crashing::CrashingDisk;
use super::held::{Brake, Operation, ReleaseAtEnd};
use crate::support::{Client, OfRunning};

/// Holds one kind of operation while a client writes, until the stall is noticed.
fn stall(fsync: Fsync, operation: Operation) {
    let (disk, brake) = (CrashingDisk::new(), Arc::new(Brake::default()));
    let running = start_on(&disk, &brake, fsync);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let store = &running.server().store;
    let mut client = Client::of(&running);
    run(&mut client, &["SET a 1"]);
    assert_eq!(store.disk_stall(), None);
    brake.hold(operation);
    client.send(&["SET", "a", "2"]);
    brake.wait_until_reached();
    let what = format!("{fsync:?}, {operation:?}");
    wait_for(&what, || store.disk_stall().is_some());
    assert!(store.disk_stall() > Some(Duration::from_secs(2)), "{what}");
    // Nothing is refused: the disk may go on at any moment.
    assert!(store.can_log());
    brake.release();
    wait_for(&what, || store.disk_stall().is_none());
    assert!(!client.reply().is_error());
    run(&mut client, &["SET a 3"]);
    assert!(store.log_wait() < Duration::from_secs(2), "{what}");
}

#[test]
fn a_disk_that_stalls_is_noticed() {
    let scenes = [
        (Fsync::EverySecond, Operation::Write),
        (Fsync::EverySecond, Operation::Sync),
        (Fsync::Always, Operation::Write),
        (Fsync::Always, Operation::Sync),
        (Fsync::No, Operation::Write),
    ];
    std::thread::scope(|scope| {
        for (fsync, operation) in scenes {
            scope.spawn(move || stall(fsync, operation));
        }
    });
}

/// Before that, a stop looks whether the AOF's files are as they were written.
#[test]
fn a_server_may_stop_while_its_disk_hangs() {
    let (disk, brake) = (CrashingDisk::new(), Arc::new(Brake::default()));
    let running = start_on(&disk, &brake, Fsync::EverySecond);
    let _release = ReleaseAtEnd(Arc::clone(&brake));
    let mut client = Client::of(&running);
    run(&mut client, &["SET a 1"]);
    brake.hold(Operation::Write);
    client.send(&["SET", "a", "2"]);
    brake.wait_until_reached();
    let server = Arc::clone(running.server());
    let stop = std::thread::spawn(move || server.save_before_stop());
    wait_for("the permission to stop", || stop.is_finished());
    assert_eq!(stop.join().unwrap(), Ok(()));
    brake.release();
    assert!(!client.reply().is_error());
}

#[test]
fn a_disk_at_work_does_not_stall() {
    let (disk, brake) = (CrashingDisk::new(), Arc::new(Brake::default()));
    let running = start_on(&disk, &brake, Fsync::EverySecond);
    let store = &running.server().store;
    let mut client = Client::of(&running);
    for round in 0..60 {
        run(&mut client, &[&format!("SET a {round}")]);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(store.disk_stall(), None);
    }
    // A full disk is no stall: it is said by its own reason, for as long as it lasts.
    disk.fail_writes_after(0);
    client.send(&["SET", "a", "1"]);
    wait_for("the failure", || !store.can_log());
    wait_for("the wait", || store.log_wait() > Duration::from_secs(3));
    assert_eq!(store.disk_stall(), None);
    disk.heal();
    wait_for("the end", || store.log_wait() == Duration::ZERO);
}
