//! The crashing disk of the other tests bites: what forgets a sync is caught by it.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, missing_docs)]

use std::collections::BTreeSet;
use std::io::{self, Read, Write};

use crate::crashing::CrashingDisk;
use everbloom_files::storage::Storage;

const SEEDS: u64 = 400;

/// Everything that can be under `name` when the run is cut at any operation, and whether the run
/// had come to its end.
fn outcomes(
    name: &str,
    setup: impl Fn(&CrashingDisk),
    run: impl Fn(&CrashingDisk) -> io::Result<()>,
) -> BTreeSet<(bool, Option<Vec<u8>>)> {
    let mut outcomes = BTreeSet::new();
    for n in 1.. {
        let disk = CrashingDisk::new();
        setup(&disk);
        disk.crash_at(n);
        let done = run(&disk).is_ok();
        assert_ne!(done, disk.crashed(), "a crash is noticed");
        for seed in 0..SEEDS {
            outcomes.insert((done, disk.survivors(seed).contents(name)));
        }
        if done {
            break;
        }
    }
    outcomes
}

fn old(disk: &CrashingDisk) {
    disk.put("d/name", b"old");
}

fn bytes(outcome: &str) -> Option<Vec<u8>> {
    Some(outcome.as_bytes().to_vec())
}

#[test]
fn replace_leaves_the_old_file_or_the_new_one() {
    let outcomes = outcomes("d/name", old, |disk| disk.replace("d/name", b"newer"));
    let wanted = [
        (false, bytes("newer")),
        (false, bytes("old")),
        (true, bytes("newer")),
    ];
    assert_eq!(outcomes, BTreeSet::from(wanted));
}

#[test]
fn replace_without_the_sync_of_the_file_is_caught() {
    let outcomes = outcomes("d/name", old, |disk| {
        disk.create("d/name.tmp")?.write_all(b"newer")?;
        disk.rename("d/name.tmp", "d/name")?;
        disk.sync_dir("d")
    });
    // The name is there, and of the bytes anything from none to all.
    for len in 0..=5 {
        assert!(outcomes.contains(&(true, bytes(&"newer"[..len]))), "{len}");
    }
}

#[test]
fn replace_without_the_sync_of_the_directory_is_caught() {
    let outcomes = outcomes("d/name", old, |disk| {
        let mut file = disk.create("d/name.tmp")?;
        file.write_all(b"newer")?;
        file.sync()?;
        disk.rename("d/name.tmp", "d/name")
    });
    assert!(outcomes.contains(&(true, bytes("old"))));
    assert!(outcomes.contains(&(true, bytes("newer"))));
}

#[test]
fn writing_over_a_file_in_place_is_caught() {
    let outcomes = outcomes("d/name", old, |disk| {
        let mut file = disk.create("d/name")?;
        file.write_all(b"newer")?;
        file.sync()
    });
    assert!(outcomes.contains(&(false, bytes(""))));
    assert!(outcomes.contains(&(false, bytes("new"))));
    assert!(
        outcomes
            .iter()
            .all(|(done, found)| !done || *found == bytes("newer"))
    );
}

#[test]
fn a_new_file_needs_the_sync_of_its_directory_and_of_the_one_above() {
    let made = |disk: &CrashingDisk, dirs: &[&str]| {
        disk.create_dir("d")?;
        let mut file = disk.create("d/name")?;
        file.write_all(b"new")?;
        file.sync()?;
        dirs.iter().try_for_each(|dir| disk.sync_dir(dir))
    };
    for (dirs, safe) in [
        (&["d", ""][..], true),
        (&["d"], false),
        (&[""], false),
        (&[], false),
    ] {
        let outcomes = outcomes("d/name", |_| (), |disk| made(disk, dirs));
        assert_eq!(outcomes.contains(&(true, None)), !safe, "{dirs:?}");
        assert!(outcomes.contains(&(true, bytes("new"))));
    }
}

#[test]
fn an_appended_file_is_a_prefix_that_holds_what_was_synced() {
    let all = b"one two three four five six seven";
    let cuts = [4, 8, 14, 19, 24, 28, 33];
    for n in 1.. {
        let disk = CrashingDisk::new();
        disk.put("log", b"");
        disk.crash_at(n);
        let (mut start, mut synced) = (0, 0);
        let done = (|| {
            let mut file = disk.append("log")?;
            for end in cuts {
                file.write_all(&all[start..end])?;
                start = end;
                if end % 2 == 0 {
                    file.sync()?;
                    synced = end;
                }
            }
            io::Result::Ok(())
        })()
        .is_ok();
        let found = |seed| disk.survivors(seed).contents("log").unwrap();
        for seed in 0..SEEDS {
            assert!(all.starts_with(&found(seed)));
            assert!(found(seed).len() >= synced);
        }
        assert_eq!(found(0).len(), synced);
        if done {
            assert_eq!(found(1), all);
            break;
        }
    }
}

#[test]
fn a_file_moved_between_directories_is_never_lost() {
    let mut both = false;
    for dirs in [&["a", "b"][..], &["b", "a"], &["a"], &["b"], &[]] {
        for n in 1..=4 {
            let disk = CrashingDisk::new();
            disk.put("a/name", b"x");
            disk.put("b/other", b"y");
            disk.crash_at(n);
            let _ = disk
                .rename("a/name", "b/name")
                .and_then(|()| dirs.iter().try_for_each(|dir| disk.sync_dir(dir)));
            for seed in 0..SEEDS {
                let files = disk.survivors(seed).files();
                let names: Vec<_> = files.keys().map(String::as_str).collect();
                match names[..] {
                    ["a/name", "b/name", "b/other"] => both = true,
                    ["a/name" | "b/name", "b/other"] => {}
                    _ => panic!("{names:?}"),
                }
            }
        }
    }
    assert!(both, "a file can have two names for a while");
}

#[test]
fn directory_changes_survive_in_order() {
    for seed in 0..SEEDS {
        let disk = CrashingDisk::new();
        for name in ["a", "b", "c"] {
            disk.create(name).unwrap();
        }
        disk.remove("a").unwrap();
        let files = disk.survivors(seed).files();
        let names: Vec<_> = files.keys().map(String::as_str).collect();
        let legal = [&[][..], &["a"], &["a", "b"], &["a", "b", "c"], &["b", "c"]];
        assert!(legal.contains(&&names[..]), "{names:?}");
    }
}

#[test]
fn a_removed_file_can_come_back() {
    let outcomes = outcomes("d/name", old, |disk| disk.remove("d/name"));
    assert!(outcomes.contains(&(true, None)));
    assert!(outcomes.contains(&(true, bytes("old"))));
}

#[test]
fn a_full_disk_takes_the_first_bytes_and_heals() {
    let disk = CrashingDisk::new();
    let mut file = disk.create("log").unwrap();
    disk.fail_writes_after(6);
    file.write_all(b"four").unwrap();
    assert_eq!(file.write(b"five").unwrap(), 2);
    let error = file.write(b"ve").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    file.truncate(4).unwrap();
    disk.heal();
    file.write_all(b"five").unwrap();
    assert_eq!(disk.contents("log"), bytes("fourfive"));
}

#[test]
fn a_failed_sync_makes_nothing_last_and_heals() {
    let disk = CrashingDisk::new();
    disk.put("log", b"");
    let mut file = disk.append("log").unwrap();
    file.write_all(b"x").unwrap();
    disk.fail_syncs();
    file.sync().unwrap_err();
    assert_eq!(disk.survivors(0).contents("log"), bytes(""));
    disk.heal();
    file.sync().unwrap();
    assert_eq!(disk.survivors(0).contents("log"), bytes("x"));
}

#[test]
fn after_the_crash_nothing_works_and_nothing_changes() {
    let disk = CrashingDisk::new();
    disk.put("d/name", b"old");
    let mut file = disk.append("d/name").unwrap();
    disk.crash_now();
    file.write_all(b"x").unwrap_err();
    file.sync().unwrap_err();
    file.truncate(0).unwrap_err();
    assert!(disk.create("d/new").is_err());
    assert!(disk.append("d/new").is_err());
    assert!(disk.read("d/name").is_err());
    assert!(disk.exists("d/name").is_err());
    disk.rename("d/name", "d/new").unwrap_err();
    disk.remove("d/name").unwrap_err();
    disk.create_dir("e").unwrap_err();
    disk.sync_dir("d").unwrap_err();
    disk.list("d").unwrap_err();
    assert_eq!(disk.files().into_keys().collect::<Vec<_>>(), ["d/name"]);
    assert_eq!(disk.contents("d/name"), bytes("old"));
    let after = disk.survivors(1);
    assert!(!after.crashed());
    assert_eq!(after.list("d").unwrap(), ["name"]);
}

#[test]
fn it_is_a_storage_like_a_disk() {
    let disk = CrashingDisk::new();
    assert_eq!(
        disk.create("d/name").unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    disk.create_dir("d").unwrap();
    disk.create_dir("d").unwrap();
    disk.append("d/name").unwrap().write_all(b"one").unwrap();
    disk.append("d/name").unwrap().write_all(b"two").unwrap();
    let (mut input, len) = disk.read("d/name").unwrap();
    let mut text = String::new();
    input.read_to_string(&mut text).unwrap();
    assert_eq!((text.as_str(), len), ("onetwo", 6));
    assert!(disk.exists("d/name").unwrap());
    assert!(!disk.exists("name").unwrap());
    disk.create("other").unwrap().write_all(b"x").unwrap();
    disk.rename("other", "d/name").unwrap();
    assert_eq!(disk.contents("d/name"), bytes("x"));
    assert_eq!(disk.list("").unwrap(), ["d"]);
    disk.create("d/name").unwrap();
    assert_eq!(disk.contents("d/name"), bytes(""));
    disk.remove("d/name").unwrap();
    assert_eq!(
        disk.remove("d/name").unwrap_err().kind(),
        io::ErrorKind::NotFound
    );
    assert_eq!(disk.operations(), 12);
}
