//! The manifest: Redis's rules, what is written, and what becomes of it when the power goes.

use std::fs;
use std::io;

use everbloom_files::aof::line::Problem;
use everbloom_files::aof::{BaseFormat, Ended, FileInfo, Manifest, ReadManifestError};
use everbloom_files::storage::{Disk, Storage};
use proptest::prelude::*;

use super::{GOLDEN, golden, names};
use crate::crashing::CrashingDisk;

mod adoption;
mod damage;

fn parse(text: impl AsRef<[u8]>) -> Result<Manifest, Problem> {
    Manifest::parse(text.as_ref(), "m").map_err(|error| error.problem)
}

fn info(name: &str, seq: u64) -> FileInfo {
    FileInfo {
        name: name.into(),
        seq,
    }
}

fn base(name: &str, seq: u64) -> Manifest {
    Manifest {
        base: Some(info(name, seq)),
        ..Manifest::default()
    }
}

#[test]
fn manifests_of_redis_are_written_again_as_they_were() {
    for log in GOLDEN {
        let disk = Disk::new(golden(log));
        let manifest = Manifest::load(&disk, &names()).unwrap();
        let bytes = fs::read(golden(log).join(names().manifest())).unwrap();
        assert_eq!(manifest.to_text().as_bytes(), bytes);
        assert_eq!(manifest.files().count(), 2);
        for file in manifest.files() {
            assert!(disk.exists(&names().path(file)).unwrap());
        }
    }
}

#[test]
fn what_redis_takes_is_taken() {
    let one = base("x.aof", 1);
    let spaces = format!("file x.aof seq 1 type b{}\n", " ".repeat(1000));
    for text in [
        "file x.aof seq 1 type b\n",
        "seq 1 type b file x.aof\n",
        "FILE x.aof Seq 1 tYpe b\n",
        "file x.aof seq 1 type b startoffset 7\n",
        "# a comment\nfile x.aof seq 1 type b\n#its line feed is missing",
        "file \"x.aof\" seq 1 type b\r\n",
        "  file 'x.aof'\tseq \"1\" type b  \n",
        "file \"\\x78.aof\" seq 1 type b\n",
        "file x.aof seq 001 type b\n",
        &spaces,
    ] {
        assert_eq!(parse(text).as_ref(), Ok(&one), "{text}");
    }
    assert_eq!(parse("#\n"), Ok(Manifest::default()));
    let text =
        "file a seq 3 type i\nfile b seq 9 type h\nfile c seq 7 type b\nfile d seq 5 type i\n";
    let manifest = Manifest {
        base: Some(info("c", 7)),
        history: vec![info("b", 9)],
        increments: vec![info("a", 3), info("d", 5)],
        ended: None,
    };
    assert_eq!(parse(text), Ok(manifest));
}

#[test]
fn what_redis_refuses_is_refused() {
    let line = "file x seq 1 type b\n";
    let malformed = |text: &str| Problem::Malformed(text.trim_end_matches('\n').into());
    let long = format!("file x.aof seq 1 type b{}\n", " ".repeat(1001));
    let cases = [
        ("", Problem::Empty),
        (line.trim_end(), Problem::Unended),
        (&long, Problem::TooLong),
        ("\n", malformed("")),
        (" # no comment\n", malformed(" # no comment")),
        (
            "file x seq 1 type b odd\n",
            malformed("file x seq 1 type b odd"),
        ),
        ("file x seq 1\n", malformed("file x seq 1")),
        (
            "file \"x seq 1 type b\n",
            malformed("file \"x seq 1 type b"),
        ),
        (
            "file x seq 1 type b\0 y z\n",
            malformed("file x seq 1 type b\0 y z"),
        ),
        ("file x seq 1 tipe b\n", Problem::Missing("type")),
        ("fill x seq 1 type b\n", Problem::Missing("file")),
        ("file x sec 1 type b\n", Problem::Missing("seq")),
        ("file ../x seq 1 type b\n", Problem::Path("../x".into())),
        ("file a\\b seq 1 type b\n", Problem::Path("a\\b".into())),
        ("file \"\\x2fx\" seq 1 type b\n", Problem::Path("/x".into())),
        ("file x seq 0 type b\n", Problem::Number("0".into())),
        ("file x seq b type b\n", Problem::Number("b".into())),
        ("file x seq 1 type B\n", Problem::Type("B".into())),
        (
            "file x seq 1 type b\nfile y seq 2 type b\n",
            Problem::SecondBase("y".into()),
        ),
        (
            "file x seq 1 type i\nfile y seq 1 type i\n",
            Problem::NotRising { after: 1, found: 1 },
        ),
    ];
    for (text, problem) in cases {
        assert_eq!(parse(text), Err(problem), "{text:?}");
    }
}

#[test]
fn what_nobody_writes_is_refused_though_redis_takes_it() {
    for (text, problem) in [
        ("file x seq -3 type b\n", Problem::Number("-3".into())),
        ("file x seq +3 type b\n", Problem::Number("+3".into())),
        ("file x seq 1x type b\n", Problem::Number("1x".into())),
        (
            "file x seq 4611686018427387905 type b\n",
            Problem::Number("4611686018427387905".into()),
        ),
        ("file x seq 1 type base\n", Problem::Type("base".into())),
        ("file x file y seq 1 type b\n", Problem::Repeated("file")),
        ("file x seq 1 type b seq 1 a b\n", Problem::Repeated("seq")),
        ("file x seq 1 type b type b\n", Problem::Repeated("type")),
        (
            "file x seq 1 type b\nfile x seq 1 type h\n",
            Problem::SecondLine("x".into()),
        ),
        ("file .. seq 1 type b\n", Problem::Path("..".into())),
        ("file \"\" seq 1 type b\n", Problem::Path(String::new())),
        ("file \"\\x00\" seq 1 type b\n", Problem::Path("\0".into())),
        (
            "file \"\\xff\" seq 1 type b\n",
            Problem::Path("\u{fffd}".into()),
        ),
    ] {
        assert_eq!(parse(text), Err(problem), "{text:?}");
    }
}

#[test]
fn errors_name_the_file_and_the_line() {
    let text = b"#\nfile x seq 2 type i\nfile y seq 1 type i\n";
    let error = Manifest::parse(text, "appendonlydir/appendonly.aof.manifest").unwrap_err();
    assert_eq!(
        error.to_string(),
        "appendonlydir/appendonly.aof.manifest, line 3: \
         expected an increment with a number above 2, found 1"
    );
    let disk = CrashingDisk::new();
    disk.put(&names().manifest(), b"file\n");
    let error = Manifest::load(&disk, &names()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "appendonlydir/appendonly.aof.manifest, line 1: \
         expected \"file NAME seq NUMBER type b|h|i\", found \"file\""
    );
    disk.put(&names().manifest(), &vec![b'#'; (16 << 20) + 1]);
    let error = Manifest::load(&disk, &names()).unwrap_err();
    assert!(
        matches!(error, ReadManifestError::Storage { .. }),
        "{error}"
    );
}

#[test]
fn names_are_quoted_as_redis_quotes_them() {
    let manifest = base("a b\"\t\u{7}\u{8}\u{1}ü", 1);
    assert_eq!(
        manifest.to_text(),
        "file \"a b\\\"\\t\\a\\b\\x01\\xc3\\xbc\" seq 1 type b\n"
    );
    assert_eq!(parse(manifest.to_text()), Ok(manifest));
    // Redis writes this one plainly, and then cannot read its own manifest.
    assert_eq!(base("it's", 1).to_text(), "file \"it's\" seq 1 type b\n");
}

#[test]
fn what_would_not_read_back_is_not_stored() {
    let disk = CrashingDisk::new();
    let text = "file x seq 1 type b\n";
    disk.put(&names().manifest(), text.as_bytes());
    for manifest in [Manifest::default(), base(&"\u{fc}".repeat(130), 1)] {
        let error = manifest.store(&disk, &names()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
    }
    assert_eq!(disk.files().len(), 1);
    assert_eq!(Manifest::load(&disk, &names()).unwrap().to_text(), text);
    base("y", 1).store(&disk, &names()).unwrap();
    assert_eq!(Manifest::load(&disk, &names()).unwrap(), base("y", 1));
}

#[test]
fn a_rewrite_moves_what_it_replaces_to_history() {
    let names = names();
    let rdb = BaseFormat::Rdb;
    let first = Manifest::default();
    let first = first
        .after_rewrite(first.next_base(&names, rdb))
        .with_new_increment(&names);
    assert_eq!(
        first.to_text(),
        "file appendonly.aof.1.base.rdb seq 1 type b\nfile appendonly.aof.1.incr.aof seq 1 type i\n"
    );
    // A rewrite that failed leaves its increment behind.
    let third = first.with_new_increment(&names).with_new_increment(&names);
    let base = third.next_base(&names, BaseFormat::Commands);
    let rewritten = third.after_rewrite(base);
    assert_eq!(
        rewritten.to_text(),
        "file appendonly.aof.2.base.aof seq 2 type b\n\
         file appendonly.aof.1.incr.aof seq 1 type h\n\
         file appendonly.aof.2.incr.aof seq 2 type h\n\
         file appendonly.aof.1.base.rdb seq 1 type h\n\
         file appendonly.aof.3.incr.aof seq 3 type i\n"
    );
    let clean = rewritten.without_history();
    assert_eq!(
        clean.to_text(),
        "file appendonly.aof.2.base.aof seq 2 type b\nfile appendonly.aof.3.incr.aof seq 3 type i\n"
    );
    assert_eq!(
        clean.next_increment(&names),
        info("appendonly.aof.4.incr.aof", 4)
    );
}

#[test]
fn a_name_that_history_still_has_is_not_given_again() {
    let text = "file appendonly.aof.1.incr.aof seq 1 type h\nfile x seq 1 type b\n";
    let manifest = parse(text).unwrap();
    assert_eq!(
        manifest.next_increment(&names()),
        info("appendonly.aof.2.incr.aof", 2)
    );
}

fn any_name() -> impl Strategy<Value = String> {
    let plain = "[a-z.0-9]{1,12}";
    let any = "[^/\\\\\\x00]{1,12}";
    let name = prop_oneof![plain, any];
    name.prop_filter("not a directory", |name| {
        !matches!(name.as_str(), "." | "..")
    })
}

prop_compose! {
    fn any_manifest()(
        names in prop::collection::btree_set(any_name(), 0..8),
        kinds in prop::collection::vec((0..3, 1..1u64 << 61), 8),
    ) -> Manifest {
        let mut manifest = Manifest::default();
        for (name, (kind, seq)) in names.into_iter().zip(kinds) {
            let info = FileInfo { name, seq };
            match kind {
                0 if manifest.base.is_none() => manifest.base = Some(info),
                0 | 1 => manifest.history.push(info),
                _ => manifest.increments.push(info),
            }
        }
        manifest.increments.sort_by_key(|info| info.seq);
        manifest.increments.dedup_by_key(|info| info.seq);
        manifest
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back(manifest in any_manifest()) {
        let text = manifest.to_text();
        // No line at all is what Redis, too, takes for damage.
        if text.is_empty() {
            prop_assert_eq!(parse(text), Err(Problem::Empty));
        } else {
            prop_assert_eq!(parse(text), Ok(manifest));
        }
    }

    #[test]
    fn operations_keep_it_readable(manifest in any_manifest()) {
        let names = names();
        let grown = manifest.with_new_increment(&names);
        prop_assert_eq!(parse(grown.to_text()), Ok(grown.clone()));
        let base = grown.next_base(&names, BaseFormat::Rdb);
        let rewritten = grown.after_rewrite(base);
        prop_assert_eq!(parse(rewritten.to_text()), Ok(rewritten.clone()));
        prop_assert_eq!(rewritten.increments.last(), grown.increments.last());
        let (files, history) = (grown.files().count(), rewritten.history.len());
        prop_assert_eq!(history, manifest.history.len() + files - 1);
        prop_assert_eq!(rewritten.without_history().files().count(), 2);
    }

    #[test]
    fn any_bytes_end_in_a_manifest_or_an_error(bytes: Vec<u8>) {
        let _ = parse(bytes);
    }

    #[test]
    fn any_words_end_in_a_manifest_or_an_error(
        text in r#"((file|seq|type|x|b|i|h|[0-9]|["'\\/# ])[ \n]?){0,40}"#
    ) {
        if let Ok(manifest) = parse(&text) && manifest != Manifest::default() {
            prop_assert_eq!(parse(manifest.to_text()), Ok(manifest));
        }
    }
}
