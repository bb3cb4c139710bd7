//! Beside Redis itself: it writes the manifests that we write, and takes the files that we write.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use everbloom_dev::{Client, Redis, peers::output, wait_for};
use everbloom_files::aof::{BaseFormat, CommandReader, Manifest, Names, Unit};
use everbloom_files::storage::{Disk, Storage};
use everbloom_resp::{Reply, encode_request};

use super::names;

/// An empty directory for one test.
fn scratch(test: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("aof")
        .join(test);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).unwrap();
    dir
}

fn redis(dir: &Path, extra: &[&str]) -> Option<(Redis, Client)> {
    let dir = dir.to_str().unwrap();
    let settings = [&["--dir", dir, "--appendonly", "yes"], extra].concat();
    let redis = Redis::start(&settings)?;
    let client = Client::connect(redis.addr);
    Some((redis, client))
}

/// Waits for the manifest to have that text.
fn expect_manifest(dir: &Path, names: &Names, expected: &Manifest) {
    let path = dir.join(names.manifest());
    let text = expected.to_text();
    // It listens before it has written its first.
    let found = || fs::read_to_string(&path).unwrap_or_default();
    wait_for(&format!("the manifest\n{text}"), || found() == text);
}

/// One rewrite with history kept, then as many as asked for; the manifest after each.
fn rewrites(test: &str, format: BaseFormat, extra: &[&str]) {
    let dir = scratch(test);
    let Some((_redis, mut client)) = redis(&dir, extra) else {
        return;
    };
    let names = names();
    let empty = Manifest::default();
    let first = empty.after_rewrite(empty.next_base(&names, format));
    let mut manifest = first.with_new_increment(&names);
    expect_manifest(&dir, &names, &manifest);
    for keep_history in [true, true, false, false] {
        let collect = if keep_history { "yes" } else { "no" };
        client.line(&format!("CONFIG SET aof-disable-auto-gc {collect}"));
        client.line("SET key value");
        client.line("BGREWRITEAOF");
        manifest = manifest.with_new_increment(&names);
        manifest = manifest.after_rewrite(manifest.next_base(&names, format));
        if !keep_history {
            manifest = manifest.without_history();
        }
        expect_manifest(&dir, &names, &manifest);
        client.until("aof_rewrite_in_progress", "0");
    }
    assert_eq!(Manifest::load(&Disk::new(&dir), &names).unwrap(), manifest);
}

#[test]
fn redis_writes_the_manifests_that_we_write() {
    rewrites("rdb", BaseFormat::Rdb, &[]);
}

#[test]
fn redis_writes_the_manifests_that_we_write_with_commands_in_the_base() {
    rewrites(
        "commands",
        BaseFormat::Commands,
        &["--aof-use-rdb-preamble", "no"],
    );
}

#[test]
fn redis_quotes_names_as_we_do() {
    let dir = scratch("quotes");
    let name = "log of mine\u{e9}.aof";
    let Some((_redis, _)) = redis(&dir, &["--appendfilename", name]) else {
        return;
    };
    let names = Names::new("appendonlydir", name);
    let empty = Manifest::default();
    let first = empty.after_rewrite(empty.next_base(&names, BaseFormat::Rdb));
    let first = first.with_new_increment(&names);
    expect_manifest(&dir, &names, &first);
    let quoted = "file \"log of mine\\xc3\\xa9.aof.1.base.rdb\" seq 1 type b\n";
    assert!(first.to_text().starts_with(quoted));
    assert_eq!(Manifest::load(&Disk::new(&dir), &names).unwrap(), first);
}

/// A log as we write it, of strings, with a transaction and an annotation.
fn log_of_ours(dir: &Path) -> Manifest {
    let (disk, names) = (Disk::new(dir), names());
    disk.create_dir(names.dir()).unwrap();
    let empty = Manifest::default();
    let manifest = empty
        .after_rewrite(empty.next_base(&names, BaseFormat::Commands))
        .with_new_increment(&names)
        .with_new_increment(&names);
    let commands = |lines: &[&str]| {
        let mut bytes = Vec::new();
        for line in lines {
            encode_request(&line.split(' ').collect::<Vec<_>>(), &mut bytes);
        }
        bytes
    };
    let files = [
        commands(&["SELECT 0", "SET a 1", "SET b 2"]),
        commands(&["SELECT 0", "SET b 3"]),
        [
            b"#TS:1700000000\r\n".to_vec(),
            commands(&["SELECT 0", "MULTI", "SET c 4", "DEL a", "EXEC"]),
        ]
        .concat(),
    ];
    for (file, bytes) in manifest.files().zip(files) {
        disk.replace(&names.path(file), &bytes).unwrap();
    }
    manifest.store(&disk, &names).unwrap();
    manifest
}

/// Whether `redis-check-aof` finds nothing wrong; `None` when there is none.
fn check(path: &Path, arguments: &[&str]) -> Option<bool> {
    let mut command = Command::new("redis-check-aof");
    let output = output(command.args(arguments).arg(path))?;
    if !output.status.success() {
        eprintln!("{}", String::from_utf8_lossy(&output.stdout));
    }
    Some(output.status.success())
}

#[test]
fn redis_check_aof_accepts_our_files() {
    let dir = scratch("check");
    let manifest = log_of_ours(&dir);
    let path = dir.join(names().manifest());
    let Some(accepted) = check(&path, &[]) else {
        return;
    };
    assert!(accepted);
    // It does look: a file without its last byte it refuses.
    let last = dir.join(names().path(manifest.increments.last().unwrap()));
    let bytes = fs::read(&last).unwrap();
    fs::write(&last, &bytes[..bytes.len() - 1]).unwrap();
    assert_eq!(check(&path, &[]), Some(false));
}

#[test]
fn redis_loads_our_files_and_we_read_what_it_adds() {
    let dir = scratch("load");
    let manifest = log_of_ours(&dir);
    let Some((_redis, mut client)) = redis(&dir, &[]) else {
        return;
    };
    let reply = client.line("MGET a b c");
    let bulk = |text: &str| Reply::Bulk(text.into());
    assert_eq!(reply, Reply::Array(vec![Reply::Null, bulk("3"), bulk("4")]));
    client.line("MULTI");
    client.line("SET d 5");
    client.line("SET e 6");
    client.line("EXEC");
    client.send(&["SHUTDOWN"]);
    assert!(
        client.raw_reply().is_none(),
        "it answers by closing the connection"
    );
    let disk = Disk::new(&dir);
    assert_eq!(Manifest::load(&disk, &names()).unwrap(), manifest);
    let path = names().path(manifest.increments.last().unwrap());
    let (input, _) = disk.read(&path).unwrap();
    let units: Result<Vec<_>, _> = CommandReader::new(input, path, u64::MAX).collect();
    let units = units.unwrap();
    let Some(Unit::Transaction(commands)) = units.last() else {
        panic!("{units:?}")
    };
    let words = |i: usize| commands[i].args.join(&b' ');
    assert_eq!(words(commands.len() - 2), b"SET d 5");
    assert_eq!(words(commands.len() - 1), b"SET e 6");
}

#[test]
fn redis_adopts_an_old_style_log_as_we_do() {
    let (theirs, ours) = (scratch("adopt-theirs"), scratch("adopt-ours"));
    let mut bytes = Vec::new();
    encode_request(&["SET", "key", "value"], &mut bytes);
    for dir in [&theirs, &ours] {
        fs::write(dir.join("appendonly.aof"), &bytes).unwrap();
    }
    let Some((_redis, mut client)) = redis(&theirs, &[]) else {
        return;
    };
    assert_eq!(client.line("GET key"), Reply::Bulk("value".into()));
    let adopted = Manifest::load(&Disk::new(&ours), &names()).unwrap();
    // Redis goes on in an increment at once.
    expect_manifest(&theirs, &names(), &adopted.with_new_increment(&names()));
    for dir in [&theirs, &ours] {
        assert!(!dir.join("appendonly.aof").exists());
        assert_eq!(
            fs::read(dir.join("appendonlydir/appendonly.aof")).unwrap(),
            bytes
        );
    }
}

/// What Redis says of a manifest, as a whole: whether `redis-check-aof` takes it for one.
#[test]
fn redis_takes_and_refuses_the_manifests_that_we_do() {
    let dir = scratch("rules");
    let (disk, path) = (Disk::new(&dir), dir.join(names().manifest()));
    disk.create_dir(names().dir()).unwrap();
    let mut command = Vec::new();
    encode_request(&["DEL", "key"], &mut command);
    disk.replace("appendonlydir/x", &command).unwrap();
    disk.replace("appendonlydir/y z", &command).unwrap();
    let long = |spaces| format!("file x seq 1 type b{}\n", " ".repeat(spaces));
    for text in [
        "file x seq 1 type b\n",
        "file x seq 1 type i\nfile \"y z\" seq 2 type i\n",
        "file x seq 2 type i\nfile \"y z\" seq 1 type i\n",
        "file x seq 2 type i\nfile \"y z\" seq 2 type i\n",
        "file x seq 1 type b\nfile \"y\\x20z\" seq 1 type h\n",
        "file x seq 1 type b\nfile \"y z\" seq 1 type b\n",
        "file x seq 1 type b new key\n",
        "file x seq 1 type b new\n",
        "file x seq 1 new key type b\n# comment",
        "file x seq 1 type b",
        "file x seq 0 type b\n",
        "file x seq 1 type B\n",
        "file ./x seq 1 type b\n",
        "file x seq 1 type b\n\n",
        "file x seq 1 type b\n #\n",
        "file x seq 1 \"type\" 'b'\r\n",
        "file x seq 1 type \"b\n",
        "file x seq 1 type \"b\"b\n",
        &long(1004),
        &long(1005),
    ] {
        fs::write(&path, text).unwrap();
        let Some(accepted) = check(&path, &[]) else {
            return;
        };
        let ours = Manifest::parse(text.as_bytes(), "m");
        assert_eq!(ours.is_ok(), accepted, "{text:?}: {ours:?}");
    }
}
