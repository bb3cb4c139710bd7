//! Line ends of Windows and byte order marks.

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::support::Server;

fn folder_with(name: &str, files: &[(&str, &[u8])]) -> std::path::PathBuf {
    let here = folder(name);
    for (name, bytes) in files {
        fs::write(here.join(name), bytes).unwrap();
    }
    here
}

#[test]
fn a_carriage_return_at_the_end_of_a_line_is_not_compared() {
    let here = folder("lines-dedup");
    for (input, output) in [
        ("a\r\na\nb\nb\r\n", "a\r\nb\n"),
        // The last line has no end, or a half one.
        ("a\r\nb\r\na", "a\r\nb\r\n"),
        ("a\nb\na\r", "a\nb\n"),
        ("a\r", "a\r\n"),
        ("\r\n\n\r", "\r\n"),
        // Only one, and only there.
        ("a\r\r\na\r\na\rb\nab\n", "a\r\r\na\r\na\rb\nab\n"),
    ] {
        for state in [&[][..], &["--state", "s.bloom"]] {
            let _ = fs::remove_file(here.join("s.bloom"));
            let args = [&["dedup", "-q", "-e", "1e-12"], state].concat();
            assert_eq!(
                with_input(&here, &args, input).success(),
                output,
                "{input:?}"
            );
            if !state.is_empty() {
                assert_eq!(with_input(&here, &args, input).success(), "", "{input:?}");
            }
        }
    }
    let nul = with_input(&here, &["dedup", "-q", "-0"], "a\r\0a\0a\r\0");
    assert_eq!(nul.success(), "a\r\0a\0");
    let repeated = with_input(&here, &["dedup", "-q", "--repeated"], "a\na\r\n");
    assert_eq!(repeated.success(), "a\r\n");
    let count = with_input(&here, &["dedup", "-q", "--count"], "a\na\r\n");
    assert_eq!(count.success(), "1\n");
}

#[test]
fn a_list_with_either_end_of_lines_matches_lines_with_either() {
    let files: [(&str, &[u8]); 2] = [("crlf", b"admin\r\nroot\r\n"), ("lf", b"admin\nroot\n")];
    let here = folder_with("lines-check", &files);
    let formats: [&[&str]; 4] = [
        &[],
        &["-g"],
        &["--layout", "classic"],
        &["--format", "dcso"],
    ];
    for list in ["crlf", "lf"] {
        for format in formats {
            let _ = fs::remove_file(here.join("f.bloom"));
            let args = [&["build", "-q", "-e", "1e-9", "f.bloom", list], format].concat();
            everbloom(&here, &args).success();
            let input = "admin\nguest\nroot\r\nguest\r\nadmin";
            let check = |args: &[&str]| {
                let args = [&["check", "f.bloom"], args].concat();
                with_input(&here, &args, input).success()
            };
            assert_eq!(check(&[]), "admin\nroot\r\nadmin\n");
            assert_eq!(check(&["-v"]), "guest\nguest\r\n");
            assert_eq!(check(&["-c"]), "3\n");
        }
        everbloom(&here, &["build", "-q", "-0", "nul.bloom", list]).success();
        let nul = with_input(&here, &["check", "-0", "nul.bloom"], "admin\nroot\n\0");
        assert_eq!(nul.status.success(), list == "lf", "{nul:?}");
    }
}

#[test]
fn fields_and_values_agree_with_whole_lines() {
    let here = folder_with("lines-fields", &[("list", b"admin\r\n")]);
    everbloom(&here, &["build", "-q", "f.bloom", "list"]).success();
    let input = "1,admin\r\n2,guest\r\n3,admin\n";
    let found = with_input(&here, &["check", "-f", "2", "-d", ",", "f.bloom"], input);
    assert_eq!(found.success(), "1,admin\r\n3,admin\n");
    let first = with_input(&here, &["dedup", "-q", "-f", "2", "-d", ","], input);
    assert_eq!(first.success(), "1,admin\r\n2,guest\r\n");
    // A field of its own is a carriage return that no line feed follows.
    let inner = with_input(
        &here,
        &["dedup", "-q", "-f", "1", "-d", ","],
        "a\r,1\na,2\n",
    );
    assert_eq!(inner.success(), "a\r,1\na,2\n");
    let json = "{\"u\":\"admin\"}\r\n{\"u\":\"guest\"}\n";
    let found = with_input(&here, &["check", "--json", ".u", "f.bloom"], json);
    assert_eq!(found.success(), "{\"u\":\"admin\"}\r\n");
}

#[test]
fn a_server_gets_keys_without_the_carriage_return() {
    let server = Server::start();
    let port = server.port.to_string();
    let here = folder("lines-server");
    let args = ["dedup", "-q", "--key", "k", "-p", &port];
    assert_eq!(
        with_input(&here, &args, "a\r\na\nb\n").success(),
        "a\r\nb\n"
    );
    assert_eq!(
        server.query(&["BF.EXISTS", "k", "a"]).success(),
        "(integer) 1\n"
    );
    assert_eq!(server.query(&["BF.CARD", "k"]).success(), "(integer) 2\n");
}

const MARK: &[u8] = b"\xef\xbb\xbf";

/// It is dropped from the output: in the middle of a file it would be part of a line.
#[test]
fn a_byte_order_mark_is_no_part_of_the_first_line() {
    use std::io::Write;
    let marked = [MARK, b"a\r\nb\r\n"].concat();
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    packed.write_all(&marked).unwrap();
    let packed = packed.finish().unwrap();
    let files: [(&str, &[u8]); 4] = [
        ("one", &marked),
        ("two", &[MARK, b"c\na\n"].concat()),
        ("packed", &packed),
        ("only", MARK),
    ];
    let here = folder_with("lines-mark", &files);
    let both = everbloom(&here, &["dedup", "-q", "one", "two", "packed", "only"]);
    assert_eq!(both.success(), "a\r\nb\r\nc\n");
    let piped = with_input(&here, &["dedup", "-q", "-", "two"], marked.clone());
    assert_eq!(piped.success(), "a\r\nb\r\nc\n");

    everbloom(&here, &["build", "-q", "f.bloom", "one"]).success();
    assert_eq!(
        with_input(&here, &["check", "f.bloom"], "a\nb\n").success(),
        "a\nb\n"
    );
    assert_eq!(
        everbloom(&here, &["check", "f.bloom", "two"]).success(),
        "a\n"
    );
    // As it is in JSON, and by a field.
    let json = [MARK, b"{\"u\":\"a\"}\n"].concat();
    let found = with_input(&here, &["check", "--json", ".u", "f.bloom"], json);
    assert_eq!(found.success(), "{\"u\":\"a\"}\n");
    let field = [MARK, b"a,1\n"].concat();
    let found = with_input(&here, &["check", "-f", "1", "-d", ",", "f.bloom"], field);
    assert_eq!(found.success(), "a,1\n");
    // One mark, at the start only.
    let inner = [b"a\n", MARK, b"a\n"].concat();
    assert_eq!(
        with_input(&here, &["dedup", "-q", "-c", "9"], inner)
            .stdout
            .len(),
        7
    );
    // Records that end with NUL are any bytes.
    let nul = [MARK, b"a\0a\0"].concat();
    assert_eq!(
        with_input(&here, &["dedup", "-q", "-0"], nul).stdout.len(),
        7
    );
}

/// Each reader of inputs has few buffers. One that an input leaves unused serves the next.
#[test]
fn many_inputs_may_be_empty_or_refused() {
    let here = folder_with("lines-many", &[("a", b"id\nx\n"), ("empty", b"")]);
    fs::write(here.join("other"), "name\ny\n").unwrap();
    fs::write(here.join("cut"), "id\n\"y").unwrap();
    let empty = ["empty"; 100];
    let args = [&["dedup", "-q"][..], &empty, &["a"]].concat();
    assert_eq!(everbloom(&here, &args).success(), "id\nx\n");
    for bad in ["other", "cut"] {
        let csv = ["dedup", "-q", "--csv", "--header", "a"];
        let args = [&csv[..], &[bad; 100], &["empty", "a"]].concat();
        let outcome = everbloom(&here, &args);
        assert_eq!(outcome.status.code(), Some(2), "{outcome:?}");
        assert_eq!(outcome.stdout, "id\nx\n", "{outcome:?}");
        assert_eq!(outcome.stderr.matches("cannot read").count(), 100);
    }
}
