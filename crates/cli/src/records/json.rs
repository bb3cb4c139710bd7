//! One value of a JSON object, without a tree of the others.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The way to a value, as a part of jq's syntax says it: `.meta.url`, `.tags[0]`, `."a b"` or
/// `.["a b"]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Path {
    /// At least one.
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Into the value of this name of an object.
    Name(String),
    /// Into the element of an array, from 0.
    Element(usize),
}

/// However the path was written, equal steps have one text.
impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.steps.iter().enumerate() {
            match step {
                Step::Name(name) if is_plain(name) => write!(f, ".{name}")?,
                Step::Name(name) => write!(f, ".{}", serde_json::Value::from(name.as_str()))?,
                Step::Element(element) if number == 0 => write!(f, ".[{element}]")?,
                Step::Element(element) => write!(f, "[{element}]")?,
            }
        }
        Ok(())
    }
}

/// Whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.starts_with(|first: char| !first.is_ascii_digit()) && name.bytes().all(is_part)
}

impl std::str::FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut steps = Vec::new();
        let mut rest = text;
        while !rest.is_empty() || steps.is_empty() {
            let (step, after) = first_step(rest, steps.is_empty()).ok_or_else(|| {
                let place = match rest {
                    "" => "it is empty".to_owned(),
                    _ => format!("not understood from {rest} on"),
                };
                format!(
                    "{place}; expected a path such as .text, .meta.url or .tags[0]; a name with \
                     other characters than letters, digits and _ is quoted, as in .\"a b\""
                )
            })?;
            steps.push(step);
            rest = after;
        }
        Ok(Path { steps })
    }
}

/// The step with which the text begins, and what follows. Only the first one needs a dot before a
/// bracket.
fn first_step(text: &str, is_first: bool) -> Option<(Step, &str)> {
    let after_dot = text.strip_prefix('.');
    let bracketed = match after_dot {
        Some(after) => after.strip_prefix('['),
        None if is_first => None,
        None => text.strip_prefix('['),
    };
    if let Some(inner) = bracketed {
        let (step, after) = if inner.starts_with('"') {
            quoted(inner)?
        } else {
            let (number, after) = split_while(inner, |byte| byte.is_ascii_digit());
            (Step::Element(number.parse().ok()?), after)
        };
        return Some((step, after.strip_prefix(']')?));
    }
    let name = after_dot?;
    if name.starts_with('"') {
        return quoted(name);
    }
    let (name, after) = split_while(name, |byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_plain(name).then(|| (Step::Name(name.to_owned()), after))
}

/// A name in quotes, which is a string of JSON.
fn quoted(text: &str) -> Option<(Step, &str)> {
    let mut strings = serde_json::Deserializer::from_str(text).into_iter::<String>();
    let name = strings.next()?.ok()?;
    let after = text.get(strings.byte_offset()..)?;
    Some((Step::Name(name), after))
}

fn split_while(text: &str, is_part: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = text.bytes().position(|byte| !is_part(byte));
    text.split_at(end.unwrap_or(text.len()))
}

/// The value at the path. A string is its content, and other values are their text. `None` when the
/// record is not JSON, or has no such value, or that is null.
pub(crate) fn find<'a>(record: &'a [u8], path: &Path) -> Option<Cow<'a, [u8]>> {
    let mut input = serde_json::Deserializer::from_slice(record);
    let found = Walk(&path.steps).deserialize(&mut input).ok()?;
    input.end().ok()?;
    let text = found?.get();
    if !text.starts_with('"') {
        return (text != "null").then_some(Cow::Borrowed(text.as_bytes()));
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_bytes(Content)
        .ok()
}

/// Follows the steps into objects and arrays. As in most readers of JSON, the last of equal names
/// counts.
struct Walk<'p>(&'p [Step]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        match self.0.first() {
            None => serde::Deserialize::deserialize(input).map(Some),
            Some(Step::Name(_)) => input.deserialize_map(self),
            Some(Step::Element(_)) => input.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object or an array")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((Step::Name(name), rest)) = self.0.split_first() else {
            return Err(A::Error::custom("no name"));
        };
        let mut found = None;
        while let Some(is_name) = map.next_key_seed(IsName(name))? {
            if is_name {
                found = map.next_value_seed(Walk(rest))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self::Value, A::Error> {
        let Some((Step::Element(number), rest)) = self.0.split_first() else {
            return Err(A::Error::custom("no number"));
        };
        for _ in 0..*number {
            if elements.next_element::<IgnoredAny>()?.is_none() {
                return Ok(None);
            }
        }
        let found = elements.next_element_seed(Walk(rest))?;
        while elements.next_element::<IgnoredAny>()?.is_some() {}
        Ok(found.flatten())
    }
}

/// Whether a key is this name.
struct IsName<'p>(&'p str);

impl<'de> DeserializeSeed<'de> for IsName<'_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<bool, D::Error> {
        input.deserialize_str(self)
    }
}

impl Visitor<'_> for IsName<'_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<bool, E> {
        Ok(name == self.0)
    }
}

/// The content of a string. As bytes, it may have half of a surrogate pair.
struct Content;

impl<'de> Visitor<'de> for Content {
    type Value = Cow<'de, [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_bytes<E: Error>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(bytes))
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<Self::Value, E> {
        Ok(Cow::Owned(bytes.to_vec()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(record: &str, path: &str) -> Option<Vec<u8>> {
        find(record.as_bytes(), &path.parse().unwrap()).map(Cow::into_owned)
    }

    #[test]
    fn values() {
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(value(r#"{"text": "a"}"#, ".text"), bytes("a"));
        assert_eq!(value(r#" {"id":[{}], "text":"b"} "#, ".text"), bytes("b"));
        assert_eq!(value(r#"{"a":{"b":"c"}}"#, ".a.b"), bytes("c"));
        assert_eq!(
            value(r#"{"te\u0078t":"caf\u00e9\n"}"#, ".text"),
            bytes("café\n")
        );
        assert_eq!(
            value(r#"{"text":"\ud800"}"#, ".text"),
            Some(vec![0xed, 0xa0, 0x80])
        );
        assert_eq!(value(r#"{"text": 1.0 }"#, ".text"), bytes("1.0"));
        assert_eq!(value(r#"{"text":[1, 2]}"#, ".text"), bytes("[1, 2]"));
        assert_eq!(value(r#"{"text":"a","text":"b"}"#, ".text"), bytes("b"));
        let without = [
            r#"{"other":"a"}"#,
            r#"{"text":null}"#,
            r#"{"text":"a"} x"#,
            r#"{"text":"a""#,
            r#"["text"]"#,
            r#"{"text":"\x"}"#,
            "",
            "nonsense",
        ];
        for record in without {
            assert_eq!(value(record, ".text"), None, "{record}");
        }
        assert_eq!(value(r#"{"text":"a"}"#, ".text.more"), None);
        assert_eq!(
            find(b"{\"text\":\"\xff\"}", &".text".parse().unwrap()),
            None
        );
    }

    #[test]
    fn paths() {
        let record = r#"{"a":{"b":[1,{"c":"x"},null]},"a b":2,"a.b":3,"":4,"[0]":5,"a\"":[[6]]}"#;
        for (path, expected) in [
            (".a.b[0]", Some("1")),
            (".a.b[1].c", Some("x")),
            (".a.b.[1].c", Some("x")),
            (".[\"a\"][\"b\"][1][\"c\"]", Some("x")),
            (".a.b[2]", None),
            (".a.b[3]", None),
            (".a.b[3].c", None),
            (".a[0]", None),
            (".a.b.c", None),
            (".\"a b\"", Some("2")),
            (".[\"a b\"]", Some("2")),
            (".\"a.b\"", Some("3")),
            (".\"\"", Some("4")),
            (".\"[0]\"", Some("5")),
            (".\"a\\\"\"[0][0]", Some("6")),
            (".\"\\u0061\".b[0]", Some("1")),
            (".[0]", None),
        ] {
            let expected = expected.map(|text| text.as_bytes().to_vec());
            assert_eq!(value(record, path), expected, "{path}");
        }
        assert_eq!(value("[7, 8]", ".[1]"), Some(b"8".to_vec()));
        assert_eq!(value("[7, 8", ".[1]"), None);
        assert_eq!(value("[7, 8, x]", ".[1]"), None);
        let long = format!(".a{}", "[0]".repeat(100_000));
        assert_eq!(value(&"[".repeat(100_000), &long), None);
    }

    #[test]
    fn equal_paths_have_one_text() {
        for (path, text) in [
            (".a.b", ".a.b"),
            (".[\"a\"][\"b\"]", ".a.b"),
            (".a.[0].\"c d\"", ".a[0].\"c d\""),
            (".[\"\\u0061\\\"\"]", ".\"a\\\"\""),
            (".\"1a\"", ".\"1a\""),
            (".\"\"", ".\"\""),
            (".[0][1]", ".[0][1]"),
        ] {
            let parsed: Path = path.parse().unwrap();
            assert_eq!(parsed.to_string(), text, "{path}");
            assert_eq!(text.parse(), Ok(parsed), "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_named_from_its_place_on() {
        for (wrong, place) in [
            ("", "it is empty"),
            (".", "from . on"),
            ("text", "from text on"),
            ("[0]", "from [0] on"),
            (".a..b", "from ..b on"),
            (".a.", "from . on"),
            (".a,.b", "from ,.b on"),
            (".a[]", "from [] on"),
            (".a[-1]", "from [-1] on"),
            (".a[0", "from [0 on"),
            (".a[1:2]", "from [1:2] on"),
            (".a[99999999999999999999]", "from [9"),
            (".a?", "from ? on"),
            (".a | .b", "from  | .b on"),
            (".a-b", "from -b on"),
            (".1a", "from .1a on"),
            (".caf\u{e9}", "from \u{e9} on"),
            (".\"a", "from .\"a on"),
            (".\"a\"b", "from b on"),
            (".\"\\(1)\"", "from .\"\\(1)\" on"),
            ("..", "from .. on"),
        ] {
            let error = wrong.parse::<Path>().unwrap_err();
            assert!(
                error.contains(place) && error.contains(".meta.url"),
                "{wrong}: {error}"
            );
        }
    }
}
