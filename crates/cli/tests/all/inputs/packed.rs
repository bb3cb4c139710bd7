//! Packed files: those that are unpacked, and those that are refused.

use std::io::Write;
use std::process::Stdio;

use everbloom_dev::peers;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;

/// What a program makes of these bytes; `None` where it is not installed.
fn packed_by(program: &str, args: &[&str], bytes: &[u8]) -> Option<Vec<u8>> {
    if !peers::is_there(Command::new(program).arg("--help"), "install it") {
        return None;
    }
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = bytes.to_owned();
    let writer = std::thread::spawn(move || stdin.write_all(&bytes).unwrap());
    let packed = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(packed.status.success(), "{program}");
    Some(packed.stdout)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn lines() -> String {
    (0..40_000)
        .map(|number| format!("https://example.org/{number}\n"))
        .collect()
}

#[test]
fn xz_and_bzip2_are_unpacked() {
    let text = lines();
    let (first, second) = text.as_bytes().split_at(text.len() / 3);
    for (program, args) in [
        ("xz", &["-c"][..]),
        ("xz", &["-c", "-9", "--check=sha256"]),
        ("xz", &["-c", "--x86", "--lzma2", "--check=crc32"]),
        ("bzip2", &["-c"]),
    ] {
        let here = folder("inputs-unpacked");
        // Two streams: what stands at their border is one line.
        let parts = [first, second].map(|part| packed_by(program, args, part));
        let [Some(one), Some(two)] = parts else {
            continue;
        };
        let packed = [one, two].concat();
        fs::write(here.join("list"), &packed).unwrap();
        let read = everbloom(&here, &["dedup", "-e", "1e-12", "list"]);
        assert!(read.success() == text, "{program} {args:?}");
        let piped = with_input(&here, &["dedup", "-e", "1e-12"], packed.clone());
        assert!(piped.success() == text, "{program} {args:?}");

        for length in [packed.len() - 1, packed.len() - 1000, packed.len() / 2] {
            fs::write(here.join("cut"), &packed[..length]).unwrap();
            let cut = everbloom(&here, &["dedup", "-q", "-e", "1e-12", "cut"]);
            assert_eq!(cut.status.code(), Some(2), "{program} {length}: {cut:?}");
            assert_eq!(cut.stderr, "everbloom: cannot read cut: it is cut off\n");
            assert!(text.starts_with(&cut.stdout), "{program}");
        }
        let mut damaged = packed.clone();
        damaged[packed.len() / 5] ^= 1;
        fs::write(here.join("damaged"), damaged).unwrap();
        let built = everbloom(&here, &["build", "damaged.bloom", "damaged"]);
        assert_eq!(built.status.code(), Some(2), "{program}: {built:?}");
        assert!(!here.join("damaged.bloom").exists());
    }
}

/// The first bytes of files that are not read as records, and what the error says to do.
const UNREAD: [(&[u8], &str); 25] = [
    (b"\x04\x22\x4d\x18\x64\x40\xa7", "lz4 -dc list | everbloom"),
    (b"\x02\x21\x4c\x18\x05\0\0\0", "lz4 -dc list | everbloom"),
    (b"\x1f\x9d\x90\x61\x14", "gzip -dc list | everbloom"),
    (b"\x1f\x1e\0\0\0\x02\x01", "gzip -dc list | everbloom"),
    (b"\x1f\xa0\x01", "gzip -dc list | everbloom"),
    (b"LZIP\x01\x0c\0", "lzip -dc list | everbloom"),
    (b"LRZI\0\x06", "lrzip -dqo - list | everbloom"),
    (
        b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0",
        "xz -dc list | everbloom",
    ),
    (
        b"\x5d\0\0\x10\0\x07\0\0\0\0\0\0\0\0",
        "xz -dc list | everbloom",
    ),
    (b"\x89LZO\0\r\n\x1a\n", "lzop -dc list | everbloom"),
    (b"\xff\x06\0\0sNaPpY\0", "snzip -dc list | everbloom"),
    (b"PK\x03\x04\x14\0", "unzip -p list | everbloom"),
    (b"PK\x05\x06\0\0", "unzip -p list | everbloom"),
    (b"7z\xbc\xaf\x27\x1c\0\x04", "7z x -so list | everbloom"),
    (b"Rar!\x1a\x07\x01\0", "unrar p -inul list | everbloom"),
    (
        b"\xff\xfea\0\n\0",
        "iconv -f UTF-16 -t UTF-8 list | everbloom",
    ),
    (
        b"\xff\xfe\x0d\x54\n\0",
        "iconv -f UTF-16 -t UTF-8 list | everbloom",
    ),
    (
        b"\xfe\xff\0a\0\n",
        "iconv -f UTF-16 -t UTF-8 list | everbloom",
    ),
    (b"PAR1\x15\x04\x15\x08", "dedup-table.md"),
    (b"PARE\x20\x01\0\0", "dedup-table.md"),
    (b"ARROW1\0\0\xff\xff\xff\xff", "dedup-table.md"),
    (b"\xff\xff\xff\xff\x78\0\0\0\x10\0\0\0", "dedup-table.md"),
    (b"FEA1\0\0\0\0", "dedup-table.md"),
    (b"Obj\x01\x04\x14avro.codec", "dedup-table.md"),
    (b"EVRBLOOM\x03\0\x01\x01", "everbloom merge"),
];

#[test]
fn what_is_not_unpacked_is_an_error_that_says_how() {
    let here = folder("inputs-unread");
    fs::write(here.join("good"), "a\n").unwrap();
    everbloom(&here, &["build", "-q", "good.bloom", "good"]).success();
    everbloom(&here, &["dedup", "-q", "--state", "state.bloom", "good"]).success();
    let state = fs::read(here.join("state.bloom")).unwrap();
    for (magic, advice) in UNREAD {
        // Lines of text behind it, so that they would count.
        let bytes = [magic, b"\nb\nc\n"].concat();
        fs::write(here.join("list"), &bytes).unwrap();
        for args in [
            &["dedup", "-q", "list"][..],
            &["dedup", "-q", "--count", "list"],
            &["dedup", "-q", "--state", "state.bloom", "list"],
            &["build", "new.bloom", "list"],
            &["build", "--append", "good.bloom", "list"],
            &["check", "-v", "good.bloom", "list"],
            &["check", "-0", "-v", "good.bloom", "list"],
        ] {
            let outcome = everbloom(&here, args);
            assert_eq!(
                outcome.status.code(),
                Some(2),
                "{args:?} {magic:?} {outcome:?}"
            );
            assert!(
                outcome.stderr.contains("cannot read list: it is "),
                "{outcome:?}"
            );
            assert!(outcome.stderr.contains(advice), "{advice}: {outcome:?}");
            assert!(
                ["", "0\n"].contains(&&*outcome.stdout),
                "{args:?} {outcome:?}"
            );
        }
        let piped = with_input(&here, &["check", "-v", "good.bloom"], bytes);
        assert_eq!(piped.status.code(), Some(2), "{piped:?}");
        assert!(
            piped.stderr.contains("cannot read standard input: it is "),
            "{piped:?}"
        );
        assert!(
            piped.stderr.contains(&advice.replace(" list", " -")),
            "{piped:?}"
        );
        // In place of a filter, too.
        let filter = everbloom(&here, &["check", "list", "good"]);
        assert_eq!(filter.status.code(), Some(2), "{filter:?}");
    }
    assert!(!here.join("new.bloom").exists());
    assert_eq!(fs::read(here.join("state.bloom")).unwrap(), state);
}

/// The magic numbers above are those that programs write.
#[test]
fn files_of_programs_are_refused() {
    let here = folder("inputs-programs");
    for (program, args) in [
        ("lz4", &["-c"][..]),
        ("lz4", &["-l", "-c"]),
        ("xz", &["--format=lzma", "-c"]),
        ("zip", &["-q", "-", "-"]),
        ("iconv", &["-f", "UTF-8", "-t", "UTF-16"]),
    ] {
        if let Some(packed) = packed_by(program, args, lines().as_bytes()) {
            let outcome = with_input(&here, &["dedup", "-q"], packed);
            assert_eq!(outcome.status.code(), Some(2), "{program} {outcome:?}");
            assert!(outcome.stderr.contains(" | everbloom ..."), "{outcome:?}");
            assert_eq!(outcome.stdout, "");
        }
    }
}

#[test]
fn a_packed_filter_names_its_program() {
    let here = folder("inputs-filter");
    fs::write(here.join("good"), "a\n").unwrap();
    everbloom(&here, &["build", "-q", "-g", "f.bloom", "good"]).success();
    let bytes = fs::read(here.join("f.bloom")).unwrap();
    for (program, args) in [
        ("gzip", "-c"),
        ("zstd", "-c"),
        ("xz", "-c"),
        ("bzip2", "-c"),
        ("lz4", "-c"),
    ] {
        let Some(packed) = packed_by(program, &[args], &bytes) else {
            continue;
        };
        fs::write(here.join("p.bloom"), &packed).unwrap();
        let said = format!("p.bloom is packed; unpack it with {program} -dc, and name");
        for args in [
            &["check", "p.bloom", "good"][..],
            &["info", "p.bloom"],
            &["dedup", "--state", "p.bloom", "good"],
            &["build", "--append", "p.bloom", "good"],
            &["build", "--like", "p.bloom", "new.bloom", "good"],
            &["build", "p.bloom", "good"],
            &["merge", "new.bloom", "p.bloom", "f.bloom"],
            &["shrink", "p.bloom"],
            &["convert", "pieces", "p.bloom"],
        ] {
            let outcome = everbloom(&here, args);
            assert_eq!(outcome.status.code(), Some(2), "{args:?} {outcome:?}");
            assert!(outcome.stderr.contains(&said), "{args:?} {outcome:?}");
        }
        assert_eq!(fs::read(here.join("p.bloom")).unwrap(), packed);
        // Nor is it a list of records, packed or not.
        for name in ["f.bloom", "p.bloom"] {
            let outcome = everbloom(&here, &["dedup", "-q", name]);
            if program == "lz4" && name == "p.bloom" {
                continue;
            }
            assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
            assert!(
                outcome.stderr.contains("a filter of everbloom"),
                "{outcome:?}"
            );
        }
    }
}

/// A shell of Windows makes it of what a program writes.
#[test]
fn text_in_utf_16_is_no_packed_filter() {
    let here = folder("inputs-utf-16");
    fs::write(here.join("good"), "a\n").unwrap();
    for text in [&b"\xff\xfeE\0V\0R\0\n\0"[..], b"\xfe\xff\0E\0V\0R\0\n"] {
        fs::write(here.join("u.bloom"), text).unwrap();
        for args in [
            &["check", "u.bloom", "good"][..],
            &["info", "u.bloom"],
            &["dedup", "--state", "u.bloom", "good"],
        ] {
            let outcome = everbloom(&here, args);
            assert_eq!(outcome.status.code(), Some(2), "{args:?} {outcome:?}");
            let said = "u.bloom is text in UTF-16, and not a filter file; ";
            assert!(outcome.stderr.contains(said), "{args:?} {outcome:?}");
        }
    }
}

#[test]
fn what_is_packed_in_a_packed_file_is_refused() {
    let here = folder("inputs-twice");
    for (inner, said) in [
        (
            gzip(b"a\n"),
            "packed twice: gzip -dc list | gzip -dc | everbloom",
        ),
        (
            b"\x04\x22\x4d\x18\x64".to_vec(),
            "packed with lz4: gzip -dc list | lz4 -dc | everbloom",
        ),
        (b"PAR1\x15\x04".to_vec(), "a Parquet file"),
    ] {
        fs::write(here.join("list"), gzip(&inner)).unwrap();
        let outcome = everbloom(&here, &["dedup", "-q", "list"]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains(said), "{said}: {outcome:?}");
    }
}

/// Its first lines would begin with headers, and those of one file after the other.
#[test]
fn a_tar_archive_is_no_list() {
    let here = folder("inputs-tar");
    fs::write(here.join("list.txt"), lines()).unwrap();
    for (format, packing, suffix) in [
        ("gnu", "-c", "tar"),
        ("ustar", "-cz", "tgz"),
        ("pax", "-cj", "tar.bz2"),
    ] {
        let name = format!("list.{suffix}");
        let mut tar = Command::new("tar");
        tar.args([packing, "--format", format, "-f", &name, "list.txt"]);
        if !peers::is_there(Command::new("tar").arg("--version"), "install tar") {
            return;
        }
        run(tar.current_dir(&here)).success();
        let outcome = everbloom(&here, &["build", "f.bloom", &name]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        let said = format!("cannot read {name}: it is a tar archive: tar -xOf {name} | everbloom");
        assert!(outcome.stderr.contains(&said), "{outcome:?}");
        let piped = with_input(&here, &["dedup", "-q"], fs::read(here.join(&name)).unwrap());
        assert_eq!(piped.status.code(), Some(2), "{piped:?}");
        assert!(piped.stderr.contains("tar -xOf - | everbloom"), "{piped:?}");
        assert_eq!(piped.stdout, "");
        let nul = everbloom(&here, &["dedup", "-q", "-0", &name]);
        assert!(nul.stderr.contains(&said), "{nul:?}");
    }
    // Text that has the same word there.
    let text = format!("{}mustard\n{}", "x".repeat(256), lines());
    assert!(with_input(&here, &["dedup", "-q", "-e", "1e-12"], text.clone()).success() == text);
}

/// Records that end with NUL may have the letters of a magic number, and no format is like them.
#[test]
fn records_are_no_packed_file() {
    let here = folder("inputs-letters");
    let long = "x".repeat(256);
    for text in [
        "FEA1\0list\0",
        "LRZI\0list\0",
        "]\0\0names\0of files\0",
        &format!("{long}\0ustar\0{}\0", "y".repeat(400)),
        &format!("{long}\0ustar  \0{}\0", "7".repeat(400)),
    ] {
        let read = with_input(
            &here,
            &["dedup", "-q", "-0", "-e", "1e-12"],
            text.to_owned(),
        );
        assert_eq!(read.success(), text);
    }
}

/// As in gzip(1). Tapes and some servers fill up blocks.
#[test]
fn zeros_behind_a_gzip_file_are_padding() {
    let here = folder("inputs-padding");
    let member = gzip(b"a\nb\n");
    let zeros = vec![0; 100_000];
    let read = |parts: &[&[u8]]| {
        fs::write(here.join("list.gz"), parts.concat()).unwrap();
        everbloom(&here, &["dedup", "-q", "list.gz"])
    };
    for padding in [&zeros[..1], &zeros[..512], &zeros] {
        assert_eq!(read(&[&member, padding]).success(), "a\nb\n");
        for more in [&member[..], b"c\n"] {
            let outcome = read(&[&member, padding, more]);
            assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
            assert!(
                outcome.stderr.contains("more bytes behind its end"),
                "{outcome:?}"
            );
        }
    }
    assert_eq!(read(&[&member, &gzip(b"c\n")]).success(), "a\nb\nc\n");
    let rest = read(&[&member, b"c\n"]);
    assert_eq!(rest.status.code(), Some(2), "{rest:?}");
    let cut = read(&[&member[..member.len() - 1]]);
    assert_eq!(cut.status.code(), Some(2), "{cut:?}");
    assert!(cut.stderr.contains("it is cut off"), "{cut:?}");
}

#[test]
fn a_window_that_is_too_large_names_the_way_out() {
    let here = folder("inputs-window");
    // A frame with a window of 256 MiB and one empty block.
    fs::write(here.join("list.zst"), b"\x28\xb5\x2f\xfd\0\x90\x01\0\0").unwrap();
    let outcome = everbloom(&here, &["dedup", "-q", "list.zst"]);
    assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
    assert!(outcome.stderr.contains("zstd -dc --long=31"), "{outcome:?}");
    if let Some(packed) = packed_by("xz", &["-c", "--lzma2=dict=1GiB"], b"a\n") {
        fs::write(here.join("list.xz"), packed).unwrap();
        let outcome = everbloom(&here, &["dedup", "-q", "list.xz"]);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(
            outcome.stderr.contains("unpack it with xz -dc"),
            "{outcome:?}"
        );
    }
    // pzstd begins its files with a frame that is skipped.
    let frames = b"\x50\x2a\x4d\x18\x04\0\0\0\x01\0\0\0\x28\xb5\x2f\xfd\x20\x02\x11\0\0a\n";
    fs::write(here.join("list.zst"), frames).unwrap();
    let read = everbloom(&here, &["dedup", "-q", "list.zst"]);
    assert_eq!(read.success(), "a\n");
}
