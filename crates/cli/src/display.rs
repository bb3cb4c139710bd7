//! Writes a reply as text for people, as redis-cli prints it on a terminal; and whether in colours.

use everbloom_resp::encode::format_double;
use everbloom_resp::{Reply, quoted};

/// Whether the user wants no colours anywhere, see <https://no-color.org>.
pub(crate) fn is_plain() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}

/// Appends the reply and a line break. `out` is not a `String`, because replies hold any bytes.
pub(crate) fn write_reply(reply: &Reply, out: &mut Vec<u8>) {
    write_nested(reply, 0, out);
}

/// Appends a text unchanged, for commands that answer several lines of text.
pub(crate) fn write_raw(reply: &Reply, out: &mut Vec<u8>) {
    let text = match reply {
        Reply::Bulk(bytes) => bytes,
        Reply::Verbatim(text) => text.as_bytes(),
        other => return write_reply(other, out),
    };
    write_line(text.strip_suffix(b"\n").unwrap_or(text), out);
}

/// `indent` is the indentation of all lines but the first. The caller has indented the first.
fn write_nested(reply: &Reply, indent: usize, out: &mut Vec<u8>) {
    match reply {
        Reply::Simple(text) | Reply::Verbatim(text) => write_line(text.as_bytes(), out),
        Reply::Error(text) => write_line(format!("(error) {text}").as_bytes(), out),
        Reply::Integer(number) => write_line(format!("(integer) {number}").as_bytes(), out),
        Reply::Bulk(bytes) => write_line(quoted(bytes).as_bytes(), out),
        Reply::Null | Reply::NullArray => write_line(b"(nil)", out),
        Reply::Boolean(value) => write_line(format!("({value})").as_bytes(), out),
        Reply::Double(value) => write_line(
            format!("(double) {}", format_double(*value)).as_bytes(),
            out,
        ),
        Reply::BigNumber(digits) => write_line(digits.as_bytes(), out),
        Reply::Array(items) => write_list(items, (')', "(empty array)"), indent, out, write_nested),
        Reply::Push(items) => write_list(items, (')', "(empty push)"), indent, out, write_nested),
        Reply::Set(items) => write_list(items, ('~', "(empty set)"), indent, out, write_nested),
        Reply::Map(pairs) => write_list(pairs, ('#', "(empty hash)"), indent, out, write_pair),
    }
}

/// Writes numbered items, each with `write`, which gets the indentation of its further lines.
fn write_list<T>(
    items: &[T],
    (mark, empty): (char, &str),
    indent: usize,
    out: &mut Vec<u8>,
    write: impl Fn(&T, usize, &mut Vec<u8>),
) {
    if items.is_empty() {
        return write_line(empty.as_bytes(), out);
    }
    let width = items.len().to_string().len();
    for (index, item) in items.iter().enumerate() {
        write_label(index, width, mark, indent, out);
        write(item, indent + width + 2, out);
    }
}

fn write_pair((key, value): &(Reply, Reply), indent: usize, out: &mut Vec<u8>) {
    write_nested(key, indent, out);
    out.pop(); // the line break after the key
    out.extend(b" => ");
    if spans_lines(value) {
        out.push(b'\n');
        out.resize(out.len() + indent, b' ');
    }
    write_nested(value, indent, out);
}

/// Whether a value takes several lines. Such a value starts on its own line, so that its numbers
/// line up. (Line breaks inside a text do not count.)
fn spans_lines(value: &Reply) -> bool {
    match value {
        Reply::Array(items) | Reply::Set(items) | Reply::Push(items) => {
            items.len() > 1 || items.iter().any(spans_lines)
        }
        Reply::Map(pairs) => {
            pairs.len() > 1
                || pairs
                    .iter()
                    .any(|(key, value)| spans_lines(key) || spans_lines(value))
        }
        _ => false,
    }
}

/// Appends `12) `, right-aligned. The first label of a list gets no indentation.
fn write_label(index: usize, width: usize, mark: char, indent: usize, out: &mut Vec<u8>) {
    let indent = if index == 0 { 0 } else { indent };
    out.resize(out.len() + indent, b' ');
    out.extend(format!("{:>width$}{mark} ", index + 1).as_bytes());
}

fn write_line(text: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(text);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(reply: &Reply) -> String {
        let mut out = Vec::new();
        write_reply(reply, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn bulk(text: &str) -> Reply {
        Reply::Bulk(text.into())
    }

    fn ints(numbers: impl IntoIterator<Item = i64>) -> Vec<Reply> {
        numbers.into_iter().map(Reply::Integer).collect()
    }

    // redis-cli 7.0.15 printed all expected texts below, with --no-raw. Of a double it prints what
    // the server sent.

    #[test]
    fn scalars() {
        assert_eq!(shown(&Reply::Simple("OK".into())), "OK\n");
        assert_eq!(
            shown(&Reply::Error("ERR not found".into())),
            "(error) ERR not found\n"
        );
        assert_eq!(shown(&Reply::Integer(-3)), "(integer) -3\n");
        assert_eq!(shown(&bulk("foo")), "\"foo\"\n");
        assert_eq!(shown(&Reply::Null), "(nil)\n");
        assert_eq!(shown(&Reply::NullArray), "(nil)\n");
        assert_eq!(shown(&Reply::Boolean(true)), "(true)\n");
        assert_eq!(shown(&Reply::Boolean(false)), "(false)\n");
        assert_eq!(shown(&Reply::Verbatim("a\nb".into())), "a\nb\n");
    }

    #[test]
    fn doubles() {
        let cases = [
            (1.5, "1.5"),
            (2.0, "2"),
            (0.0, "0"),
            (1e20, "1e+20"),
            (6.25e-5, "6.25e-5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(&Reply::Double(value)), format!("(double) {text}\n"));
        }
    }

    #[test]
    fn strings_are_escaped() {
        let reply = Reply::Bulk(b"a\"\\\xff\n\r\t\x07\x08".to_vec());
        assert_eq!(shown(&reply), "\"a\\\"\\\\\\xff\\n\\r\\t\\a\\b\"\n");
    }

    #[test]
    fn raw_texts_keep_their_lines() {
        let mut out = Vec::new();
        write_raw(&bulk("# Server\r\nx:1\r\n"), &mut out);
        write_raw(&Reply::Verbatim("no line end".into()), &mut out);
        write_raw(&Reply::Integer(1), &mut out);
        assert_eq!(out, b"# Server\r\nx:1\r\nno line end\n(integer) 1\n");
    }

    #[test]
    fn empty_aggregates_are_named() {
        assert_eq!(shown(&Reply::Array(vec![])), "(empty array)\n");
        assert_eq!(shown(&Reply::Set(vec![])), "(empty set)\n");
        assert_eq!(shown(&Reply::Map(vec![])), "(empty hash)\n");
    }

    #[test]
    fn labels_are_right_aligned_and_nested_lists_indented() {
        let mut items = ints([1; 9]);
        items.push(Reply::Array(ints([1, 2])));
        let expected = (1..=9)
            .map(|n| format!(" {n}) (integer) 1\n"))
            .collect::<String>()
            + "10) 1) (integer) 1\n    2) (integer) 2\n";
        assert_eq!(shown(&Reply::Array(items)), expected);
    }

    #[test]
    fn maps_point_to_their_values() {
        let map = Reply::Map(vec![
            (bulk("a"), Reply::Array(vec![Reply::Integer(1), bulk("x")])),
            (
                Reply::Simple("k".into()),
                Reply::Map(vec![(Reply::Integer(1), Reply::Double(2.5))]),
            ),
        ]);
        let expected = "1# \"a\" => \n   1) (integer) 1\n   2) \"x\"\n\
                        2# k => 1# (integer) 1 => (double) 2.5\n";
        assert_eq!(shown(&map), expected);
    }

    #[test]
    fn maps_within_maps_line_up() {
        let inner = Reply::Map(vec![
            (Reply::Simple("a".into()), Reply::Integer(1)),
            (Reply::Simple("b".into()), Reply::Array(ints([1, 2]))),
        ]);
        let map = Reply::Map(vec![
            (Reply::Simple("s".into()), Reply::Set(ints([1, 2]))),
            (Reply::Simple("m".into()), inner),
        ]);
        let expected = "1# s => \n   1~ (integer) 1\n   2~ (integer) 2\n\
                        2# m => \n   1# a => (integer) 1\n   2# b => \n\
                        \x20     1) (integer) 1\n      2) (integer) 2\n";
        assert_eq!(shown(&map), expected);
    }

    #[test]
    fn a_value_that_branches_deep_inside_gets_lines_of_its_own() {
        let branching = Reply::Map(vec![(
            Reply::Simple("a".into()),
            Reply::Array(ints([1, 2])),
        )]);
        let map = Reply::Map(vec![(
            Reply::Simple("k".into()),
            Reply::Array(vec![branching]),
        )]);
        let expected = "1# k => \n   1) 1# a => \n         1) (integer) 1\n\
                        \x20        2) (integer) 2\n";
        assert_eq!(shown(&map), expected);
        let text = Reply::Verbatim("a\nb".into());
        assert_eq!(
            shown(&Reply::Map(vec![(Reply::Integer(1), text)])),
            "1# (integer) 1 => a\nb\n"
        );
    }

    #[test]
    fn a_single_element_stays_on_its_line() {
        let deep = Reply::Map(vec![(
            Reply::Simple("q".into()),
            Reply::Array(vec![Reply::Array(ints([1]))]),
        )]);
        let reply = Reply::Array(vec![
            Reply::Map(vec![(Reply::Simple("s".into()), Reply::Array(vec![]))]),
            Reply::Map(vec![(Reply::Simple("s".into()), Reply::Array(vec![deep]))]),
        ]);
        let expected = "1) 1# s => (empty array)\n\
                        2) 1# s => 1) 1# q => 1) 1) (integer) 1\n";
        assert_eq!(shown(&reply), expected);
    }
}
