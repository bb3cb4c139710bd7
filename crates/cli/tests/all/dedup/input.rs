//! Lines of any kind, JSON, packed files, and what is refused.

use super::*;

#[test]
fn bytes_of_any_kind_pass() {
    let folder = folder("dedup-bytes");
    let bytes: Vec<u8> = (0..=255).chain(0..=255).collect();
    let input = file(
        &folder,
        "bytes",
        [&bytes[..], b"\n\xff\xfe\n", &bytes, b"\n"].concat(),
    );
    let printed = dedup(&[&input]).output().unwrap().stdout;
    // Two parts of the first line repeat each other: 11 to 255 with 0 to 9, and nothing else.
    let mut seen = HashSet::new();
    let whole = fs::read(&input).unwrap();
    let mut expected = Vec::<u8>::new();
    for line in whole.split_inclusive(|byte| *byte == b'\n') {
        if seen.insert(line.to_vec()) {
            expected.extend(line);
        }
    }
    assert_eq!(printed, expected);
}

#[test]
fn a_line_of_100_megabytes_passes() {
    let long = "x".repeat(100 << 20);
    let input = format!("a\n{long}\na\n{long}\nb");
    let outcome = with_input(&[], input);
    assert!(outcome.stdout == format!("a\n{long}\nb\n"));
}

#[test]
fn fields() {
    let text = "1,a\n2,b\n3,a\n4\n4\n5,b,c\n";
    let outcome = with_input(&["--field", "2", "--delimiter", ","], text);
    assert!(
        outcome.stderr.contains("2 had no such field"),
        "{outcome:?}"
    );
    assert_eq!(outcome.success(), "1,a\n2,b\n4\n4\n");
    let tabs = with_input(&["-f", "1"], "a\t1\na\t2\nb\t1\n");
    assert_eq!(tabs.success(), "a\t1\nb\t1\n");

    let strict = with_input(&["-f", "2", "-d", ",", "--strict"], text);
    refused(&strict, &["record 4", "--strict"]);
    assert_eq!(strict.stdout, "1,a\n2,b\n");
}

#[test]
fn json_lines_by_a_value() {
    let text = concat!(
        "{\"id\":1,\"text\":\"caf\\u00e9\"}\n",
        "{\"id\":2,\"text\":\"café\"}\n",
        "no json\n",
        "no json\n",
        "{\"id\":3,\"meta\":{\"text\":\"x\"}}\n",
        "{\"id\":4,\"text\":\"b\"}\n",
    );
    let outcome = with_input(&["--json", ".text"], text);
    assert!(
        outcome.stderr.contains("3 had no such field"),
        "{outcome:?}"
    );
    let kept: Vec<_> = text
        .lines()
        .enumerate()
        .filter(|(line, _)| *line != 1)
        .collect();
    let printed = outcome.success();
    assert_eq!(
        printed.lines().collect::<Vec<_>>(),
        kept.iter().map(|k| k.1).collect::<Vec<_>>()
    );
    let strict = with_input(&["--json", ".text", "--strict"], text);
    refused(&strict, &["record 3"]);
}

#[test]
fn packed_files_are_unpacked() {
    let folder = folder("dedup-packed");
    let text = lines(5, 60_000, 30_000);
    let expected = first_seen(&text, &mut HashSet::new());
    let (first, second) = text.split_at(text.len() / 3);
    for (program, suffix) in [("gzip", "gz"), ("zstd", "zst")] {
        if !everbloom_dev::peers::is_there(Command::new(program).arg("--version"), "install it") {
            continue;
        }
        // Two members: what stands at their border is one line.
        let mut packed = Vec::new();
        for part in [first, second] {
            let part = file(&folder, "part", part);
            packed.extend(
                Command::new(program)
                    .args(["-c", &part])
                    .output()
                    .unwrap()
                    .stdout,
            );
        }
        let whole = file(&folder, &format!("text.{suffix}"), &packed);
        let outcome = run(&mut dedup(&["-e", "1e-12", &whole]));
        assert!(outcome.success() == expected, "{program}");
        let piped = with_input(&["-e", "1e-12"], packed.clone());
        assert!(piped.success() == expected, "{program}");

        // What comes before the damage is printed.
        let cut = file(&folder, "cut", &packed[..packed.len() - 1000]);
        let outcome = run(&mut dedup(&["-e", "1e-12", &cut]));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert!(outcome.stderr.contains("cannot read"), "{}", outcome.stderr);
        assert!(expected.starts_with(&outcome.stdout) && outcome.stdout.len() > 100_000);
    }
}

#[test]
fn files_that_cannot_be_read_are_named_and_passed_over() {
    let folder = folder("dedup-unreadable");
    let good = file(&folder, "good", "a\n");
    let folder = folder.to_str().unwrap();
    let outcome = run(&mut dedup(&["/no/such/file", folder, &good]));
    assert_eq!(outcome.status.code(), Some(2));
    assert_eq!(outcome.stdout, "a\n");
    for name in ["/no/such/file", folder] {
        let line = format!("everbloom: cannot read {name}: ");
        assert!(outcome.stderr.contains(&line), "{}", outcome.stderr);
    }
    // There is nothing to sum up.
    let outcome = run(&mut dedup(&["/no/such/file"]));
    assert_eq!(outcome.stderr.lines().count(), 1, "{}", outcome.stderr);
}

#[test]
fn a_number_and_a_string_of_it_are_one_value() {
    let text = "{\"k\":1}\n{\"k\":\"1\"}\n{\"k\":1.0}\n";
    let outcome = with_input(&["--json", ".k"], text);
    assert_eq!(outcome.success(), "{\"k\":1}\n{\"k\":1.0}\n");
    let help = run(&mut dedup(&["--help"])).success();
    assert!(help.contains("so 1 and \"1\" are one value"), "{help}");
}

/// The decoder's own words for it are many, and none of them says this.
#[test]
fn a_zstd_file_that_was_cut_off_is_named_so() {
    let folder = folder("dedup-cut");
    // One frame of one block, as it is: the lines a, b, c.
    let whole = *b"\x28\xb5\x2f\xfd\x20\x06\x31\0\0a\nb\nc\n";
    let good = file(&folder, "good", whole);
    assert_eq!(run(&mut dedup(&[&good])).success(), "a\nb\nc\n");
    for length in [5, 8, whole.len() - 1] {
        let cut = file(&folder, "cut", &whole[..length]);
        let outcome = run(&mut dedup(&["-q", &cut]));
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert_eq!(
            outcome.stderr,
            format!("everbloom: cannot read {cut}: it is cut off\n")
        );
    }
}

#[test]
fn wrong_arguments_are_refused() {
    for (args, word) in [
        (&["--error-rate", "0"][..], "above 0 and below 1"),
        (&["--error-rate", "1.5"], "above 0 and below 1"),
        (&["--error-rate", "small"], "--error-rate"),
        (&["--capacity", "0"], "--capacity"),
        (&["--field", "0"], "--field"),
        (&["--delimiter", ","], "--field"),
        (&["--url", "redis://localhost"], "--key"),
        (&["redis://localhost"], "--key"),
        (&["-p", "7000"], "--key"),
        (&["--count", "--key", "k"], "--count"),
        (&["--state", "s", "--key", "k"], "--state"),
        (
            &["--key", "k", "--url", "redis://a", "redis://b"],
            "two servers",
        ),
        (&["--json", ".a", "--field", "1"], "--json"),
        (&["--json", "text"], ".meta.url"),
    ] {
        let outcome = with_input(args, "");
        assert_eq!(outcome.status.code(), Some(2), "{args:?}");
        assert!(outcome.stderr.contains(word), "{args:?} {}", outcome.stderr);
    }
    let huge = with_input(&["--capacity", "9e17"], "");
    refused(&huge, &["900 000 000 000 000 000", "smaller --capacity"]);
}
