//! Manifests that do not name what lies beside them, and power that goes.

use super::*;

const WHOLE: &str = "file appendonly.aof.2.base.rdb seq 2 type b\n\
                     file appendonly.aof.5.incr.aof seq 5 type i\n\
                     file appendonly.aof.6.incr.aof seq 6 type i\n";

/// A log with these files, each with data, and this manifest.
fn log(files: &[&str], manifest: &str) -> CrashingDisk {
    let disk = CrashingDisk::new();
    for file in files {
        disk.put(&format!("appendonlydir/{file}"), b"data");
    }
    if !manifest.is_empty() {
        disk.put(&names().manifest(), manifest.as_bytes());
    }
    disk
}

const FILES: [&str; 3] = [
    "appendonly.aof.2.base.rdb",
    "appendonly.aof.5.incr.aof",
    "appendonly.aof.6.incr.aof",
];

fn assert_refused(disk: &CrashingDisk, file: &str) {
    let error = Manifest::load(disk, &names()).unwrap_err().to_string();
    assert!(error.contains(&names().manifest()), "{error}");
    assert!(error.contains(&format!("appendonlydir/{file}")), "{error}");
    assert_eq!(disk.operations(), 0, "nothing is changed");
}

#[test]
fn a_manifest_that_does_not_name_all_files_is_damaged() {
    assert_eq!(
        Manifest::load(&log(&FILES, WHOLE), &names()).unwrap(),
        parse(WHOLE).unwrap()
    );
    let lines: Vec<&str> = WHOLE.split_inclusive('\n').collect();
    // It is missing, or cut off at the end of a line.
    assert_refused(&log(&FILES, ""), FILES[0]);
    for (kept, file) in FILES.iter().enumerate().skip(1) {
        assert_refused(&log(&FILES, &lines[..kept].concat()), file);
    }
    // Its first line is missing.
    assert_refused(&log(&FILES, &lines[1..].concat()), FILES[0]);
}

#[test]
fn history_that_nothing_has_replaced_is_damage() {
    let lines: Vec<&str> = WHOLE.split_inclusive('\n').collect();
    for (changed, file) in FILES.iter().enumerate() {
        let mut lines = lines.clone();
        let history = lines[changed].replace("type b", "type h");
        let history = history.replace("type i", "type h");
        lines[changed] = &history;
        assert_refused(&log(&FILES, &lines.concat()), file);
    }
    // Beside the old base, too.
    let old = "file appendonly.aof.1.base.rdb seq 1 type h\n";
    let newest = "file appendonly.aof.6.incr.aof seq 6 type h\n";
    let text = [lines[0], old, lines[1], newest].concat();
    assert_refused(&log(&FILES, &text), FILES[2]);
}

#[test]
fn files_that_a_crash_leaves_behind_are_no_damage() {
    let rewritten = "file appendonly.aof.3.base.rdb seq 3 type b\n\
                     file appendonly.aof.5.incr.aof seq 5 type h\n\
                     file appendonly.aof.2.base.rdb seq 2 type h\n\
                     file appendonly.aof.6.incr.aof seq 6 type i\n";
    for (more, manifest) in [
        // A new base, before its line is written; and the same after.
        ("appendonly.aof.3.base.rdb", WHOLE),
        ("appendonly.aof.3.base.rdb", rewritten),
        // What Redis removes after it has no line any more.
        ("appendonly.aof.4.incr.aof", WHOLE),
        ("appendonly.aof.1.base.rdb", WHOLE),
        // Files without a part in it.
        ("temp.base.rdb", WHOLE),
        ("temp-rewriteaof-bg-123.aof", WHOLE),
        ("appendonly.aof.6.incr.aof.cut-1", WHOLE),
        ("other.aof.7.incr.aof", WHOLE),
    ] {
        let disk = log(&[&FILES[..], &[more]].concat(), manifest);
        let found = Manifest::load(&disk, &names()).unwrap();
        assert_eq!(found, parse(manifest).unwrap(), "{more}");
    }
    // A new increment, before its line is written.
    let disk = log(&FILES, WHOLE);
    disk.put("appendonlydir/appendonly.aof.7.incr.aof", b"");
    assert_eq!(
        Manifest::load(&disk, &names()).unwrap(),
        parse(WHOLE).unwrap()
    );
}

/// Nothing needs its files before they have a line.
#[test]
fn a_log_whose_beginning_was_interrupted_becomes_history() {
    let names = names();
    let old = parse(WHOLE).unwrap();
    let retired = Manifest {
        history: old.files().cloned().collect(),
        ..Manifest::default()
    };
    for begun in [old, Manifest::default()] {
        let (files, text) = match begun.is_empty() {
            true => (&FILES[..0], ""),
            false => (&FILES[..], WHOLE),
        };
        let disk = log(files, text);
        let retired = match begun.is_empty() {
            true => &begun,
            false => &retired,
        };
        let left = info("appendonly.aof.9.incr.aof", 9);
        disk.create_dir(names.dir()).unwrap();
        retired
            .announce(std::slice::from_ref(&left), &disk, &names)
            .unwrap();
        let base = retired.next_base(&names, BaseFormat::Rdb);
        let increment = retired.next_increment(&names);
        for file in [&base, &increment, &left] {
            disk.put(&names.path(file), b"data");
        }
        let found = Manifest::load(&disk, &names).unwrap();
        assert!(found.files().eq(begun.files()));
        assert_eq!(found.history, [base, increment, left]);
        // Other files are still accounted for.
        disk.put("appendonlydir/appendonly.aof.8.incr.aof", b"data");
        assert!(Manifest::load(&disk, &names).is_err());
    }
}

#[test]
fn the_mark_of_an_end_is_a_comment_for_redis() {
    for (saved, word) in [(false, ""), (true, " saved")] {
        let mut manifest = parse(WHOLE).unwrap();
        let id = 0x0123_4567_89ab_cdef;
        manifest.ended = Some(Ended { id, saved });
        let text = format!("#everbloom ended 0123456789abcdef{word}\n{WHOLE}");
        assert_eq!(manifest.to_text(), text);
        assert_eq!(parse(&text), Ok(manifest.clone()));
        let base = manifest.next_base(&names(), BaseFormat::Rdb);
        assert_eq!(manifest.after_rewrite(base).ended, None);
    }
    for mark in ["", "x", "0123 save", "0123\n#everbloom ended 0123"] {
        let problem = parse(format!("#everbloom ended {mark}\n{WHOLE}")).unwrap_err();
        assert!(matches!(problem, Problem::Mark(_)), "{mark}: {problem}");
    }
}

/// A first start and two rewrites, each file written in full before a manifest names it.
fn rewrites(disk: &CrashingDisk) -> io::Result<()> {
    let names = names();
    let write = |file: &FileInfo| {
        let mut out = disk.create(&names.path(file))?;
        io::Write::write_all(&mut out, file.name.as_bytes())?;
        out.sync()?;
        disk.sync_dir(names.dir())
    };
    disk.create_dir(names.dir())?;
    disk.sync_dir("")?;
    let mut manifest = Manifest::default();
    manifest.announce(&[], disk, &names)?;
    for _ in 0..3 {
        let increment = manifest.next_increment(&names);
        manifest = manifest.with_new_increment(&names);
        let base = manifest.next_base(&names, BaseFormat::Rdb);
        if manifest.base.is_some() {
            // Nothing is written to it before it has a line.
            disk.create(&names.path(&increment))?;
            manifest.store(disk, &names)?;
        }
        write(&increment)?;
        write(&base)?;
        manifest = manifest.after_rewrite(base);
        manifest.store(disk, &names)?;
        for file in &manifest.history {
            disk.remove(&names.path(file))?;
        }
        disk.sync_dir(names.dir())?;
        manifest = manifest.without_history();
        manifest.store(disk, &names)?;
        if disk.exists(&names.beginning())? {
            disk.remove(&names.beginning())?;
        }
    }
    Ok(())
}

#[test]
fn a_manifest_names_whole_files_whenever_the_power_goes() {
    for n in 1.. {
        let disk = CrashingDisk::new();
        disk.crash_at(n);
        let done = rewrites(&disk).is_ok();
        for seed in 0..100 {
            let after = disk.survivors(seed);
            let manifest = Manifest::load(&after, &names()).unwrap();
            for file in manifest.files() {
                let found = after.contents(&names().path(file)).unwrap();
                // The increment that is being written may have less.
                let is_last = manifest.increments.last() == Some(file);
                let torn = is_last && file.name.as_bytes().starts_with(&found);
                assert!(
                    torn || found == file.name.as_bytes(),
                    "point {n}, seed {seed}, {}",
                    file.name
                );
            }
        }
        if done {
            assert!(n > 50);
            break;
        }
    }
}
