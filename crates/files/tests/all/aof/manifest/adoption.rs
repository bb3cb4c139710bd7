//! Old-style logs, and logs that are not there.

use super::*;

#[test]
fn without_a_log_there_is_nothing() {
    let disk = CrashingDisk::new();
    assert_eq!(
        Manifest::load(&disk, &names()).unwrap(),
        Manifest::default()
    );
    assert_eq!(disk.operations(), 0);
}

#[test]
fn an_old_style_log_is_adopted() {
    let disk = CrashingDisk::new();
    disk.put("appendonly.aof", b"the log");
    let manifest = Manifest::load(&disk, &names()).unwrap();
    assert_eq!(manifest, base("appendonly.aof", 1));
    let files = disk.files();
    assert_eq!(files.len(), 2);
    assert_eq!(files["appendonlydir/appendonly.aof"], b"the log");
    assert_eq!(
        files["appendonlydir/appendonly.aof.manifest"],
        manifest.to_text().as_bytes()
    );
    let next = manifest.next_base(&names(), BaseFormat::Rdb);
    assert_eq!(next, info("appendonly.aof.2.base.rdb", 2));
}

#[test]
fn a_log_with_files_of_its_own_adopts_nothing() {
    for text in [
        "file appendonly.aof.1.base.rdb seq 1 type b\n",
        "file appendonly.aof.1.incr.aof seq 1 type i\n",
        "file appendonly.aof seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n",
    ] {
        let disk = CrashingDisk::new();
        disk.put("appendonly.aof", b"stale");
        disk.put(&names().manifest(), text.as_bytes());
        assert_eq!(Manifest::load(&disk, &names()).unwrap().to_text(), text);
        assert_eq!(disk.contents("appendonly.aof").unwrap(), b"stale");
    }
    let disk = CrashingDisk::new();
    disk.put("appendonly.aof", b"stale");
    disk.put("appendonlydir/appendonly.aof", b"the log");
    disk.put(
        &names().manifest(),
        base("appendonly.aof", 1).to_text().as_bytes(),
    );
    Manifest::load(&disk, &names()).unwrap();
    assert_eq!(
        disk.contents("appendonlydir/appendonly.aof").unwrap(),
        b"the log"
    );
}

#[test]
fn an_adoption_cut_at_any_point_goes_on_at_the_next_start() {
    for n in 1.. {
        let disk = CrashingDisk::new();
        disk.put("appendonly.aof", b"the log");
        disk.crash_at(n);
        let done = Manifest::load(&disk, &names()).is_ok();
        for seed in 0..200 {
            let after = disk.survivors(seed);
            let manifest = Manifest::load(&after, &names()).unwrap();
            assert_eq!(manifest, base("appendonly.aof", 1));
            let inside = after.contents("appendonlydir/appendonly.aof");
            assert_eq!(inside.as_deref(), Some(&b"the log"[..]));
        }
        if done {
            assert!(n > 5);
            break;
        }
    }
}
