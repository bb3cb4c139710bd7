//! Changes to record, snapshots and starts for which there is no memory.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::allocator::NONE;
use super::*;

/// A command that frees memory runs without any. So does one that finds many keys expired, whose
/// log is rewritten then.
#[test]
fn many_keys_are_removed_without_memory() {
    const KEYS: i64 = 40_000;
    let _alone = ALONE.lock();
    let (dir, settings, _running, mut client) = on_disk(true);
    let names = || (0..KEYS).map(|key| key.to_string().into_bytes());
    let mut mset = words("MSET");
    mset.extend(names().flat_map(|name| [name, b"v".to_vec()]));
    let mut delete = words("DEL");
    delete.extend(names());
    let mut encoded = Vec::new();
    encode_request(&delete, &mut encoded);
    for expires in [false, true] {
        client.call(&mset);
        client.ok("SET kept v");
        if expires {
            client.ok("DEBUG SET-ACTIVE-EXPIRE 0");
            for name in names() {
                client.call(&[b"PEXPIRE".to_vec(), name, b"1".to_vec()]);
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        NONE.store(true, Ordering::SeqCst);
        let reply = exchange(&mut client, &encoded);
        NONE.store(false, Ordering::SeqCst);
        let deleted = if expires { 0 } else { KEYS };
        assert_eq!(reply, Some(Reply::from(deleted)));
        assert_eq!(client.number("DBSIZE"), 1);
        assert_eq!(loaded(&settings, dir.path()), client.digest());
    }
}

/// Without memory to record a change in the log, the log is rewritten from memory before the reply.
#[test]
fn changes_that_cannot_be_recorded_are_not_lost() {
    let _alone = ALONE.lock();
    let (dir, settings, running, mut client) = on_disk(true);
    for line in ["SET new", "GETSET short", "APPEND k", "SETRANGE short 2"] {
        let mut request = words(line);
        request.push(noise(3 << 20));
        let mut encoded = Vec::new();
        encode_request(&request, &mut encoded);
        for number in 1.. {
            client.ok("FLUSHALL");
            client.ok("SETBIT k 12000000 1");
            client.ok("SET short abc");
            let (reply, failed) = failing(number, || exchange(&mut client, &encoded));
            let what = format!("{line}, allocation {number}: {reply:?}");
            if reply.is_none() {
                client = Client::of(&running);
            }
            assert!(
                failed || reply.is_some_and(|reply| !reply.is_error()),
                "{what}"
            );
            assert_eq!(loaded(&settings, dir.path()), client.digest(), "{what}");
            if !failed {
                assert!(number > 4, "{what}");
                break;
            }
        }
    }
}

/// A value whose compressed form finds no memory is written as it is.
#[test]
fn snapshots_are_written_without_memory_to_compress() {
    let _alone = ALONE.lock();
    let (dir, settings, _running, mut client) = on_disk(false);
    let lines: Vec<String> = (0..400_000).map(|n| format!("item{n}\n")).collect();
    let mut request = words("SET k");
    request.push(lines.concat().into_bytes());
    let mut encoded = Vec::new();
    encode_request(&request, &mut encoded);
    assert!(exchange(&mut client, &encoded).is_some_and(|reply| !reply.is_error()));
    for number in 1.. {
        let (reply, failed) = failing(number, || exchange(&mut client, b"SAVE\r\n"));
        let what = format!("allocation {number}: {reply:?}");
        assert_eq!(reply, Some(Reply::OK), "{what}");
        assert_eq!(loaded(&settings, dir.path()), client.digest(), "{what}");
        if !failed {
            assert!(number > 1, "{what}");
            break;
        }
    }
}

/// What a server finds in a copy of a directory.
fn loaded(settings: &Settings, dir: &Path) -> String {
    let copy = tempfile::tempdir().unwrap();
    for (path, bytes) in files(dir) {
        let to = copy
            .path()
            .join(Path::new(&path).strip_prefix(dir).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    let mut settings = settings.clone();
    settings.data.dir = Some(copy.path().into());
    load(&settings, 0).0.unwrap()
}

/// Starts a server on a directory, with that allocation failing; what the keys are, or why it does
/// not start.
fn load(settings: &Settings, number: i64) -> (Result<String, String>, bool) {
    let (running, failed) = failing(number, || {
        let running = server(settings.clone());
        running.wait_until_loaded();
        running
    });
    let loaded = if running.server().store.health.is_loading() {
        Err(running.wait().unwrap_err())
    } else {
        Ok(Client::of(&running).digest())
    };
    (loaded, failed)
}

/// Every file of a directory with what it holds.
fn files(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = entries
        .flat_map(|path| match path.is_dir() {
            true => files(&path),
            false => vec![(path.display().to_string(), fs::read(&path).unwrap())],
        })
        .collect();
    files.sort();
    files
}

#[test]
fn what_cannot_be_loaded_stays_in_the_files() {
    let _alone = ALONE.lock();
    let noise = noise(3 << 20);
    for appendonly in [false, true] {
        let (dir, settings, running, mut client) = on_disk(appendonly);
        client.call(&[b"SET", &b"noise"[..], &noise]);
        for line in [
            "SETBIT zeros 16000000 1",
            "SETBIT zeros 32000000 1",
            "BF.RESERVE classic 0.01 2000000",
            "BF.RESERVE blocked 0.01 2000000 LAYOUT blocked",
            "CF.RESERVE cuckoo 4000000",
            "BITOP NOT inverted zeros",
            "APPEND zeros x",
        ] {
            client.ok(line);
        }
        if !appendonly {
            client.ok("SAVE");
        }
        let digest = client.digest();
        drop((client, running));
        let stored = files(dir.path());
        for number in 1.. {
            let (loaded, failed) = load(&settings, number);
            let what = format!("appendonly {appendonly}, allocation {number}");
            match loaded {
                Ok(loaded) => assert_eq!(loaded, digest, "{what}"),
                Err(text) => assert!(text.contains("memory"), "{what}: {text}"),
            }
            assert!(files(dir.path()) == stored, "{what}");
            if !failed {
                assert!(number > 5, "{what}");
                break;
            }
        }
        assert_eq!(load(&settings, 0).0, Ok(digest));
    }
}
