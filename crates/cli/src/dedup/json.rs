//! One value of a JSON object, without a tree of the others.

use std::borrow::Cow;
use std::fmt;

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The names that lead to a value, as `.meta.url` says them; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Path(Vec<String>);

impl std::str::FromStr for Path {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = text.strip_prefix('.').unwrap_or_default().split('.');
        let names: Vec<_> = names.map(str::to_owned).collect();
        if names.iter().any(String::is_empty) || text.contains(['[', ']']) {
            return Err("expected names with a dot before each, such as .text or .meta.url".into());
        }
        Ok(Path(names))
    }
}

/// The value at the path. A string is its content, and other values are their text. `None` when the
/// record is not a JSON object, or has no such value, or that is null.
pub(super) fn find<'a>(record: &'a [u8], Path(names): &Path) -> Option<Cow<'a, [u8]>> {
    let mut input = serde_json::Deserializer::from_slice(record);
    let found = Walk(names).deserialize(&mut input).ok()?;
    input.end().ok()?;
    let text = found?.get();
    if !text.starts_with('"') {
        return (text != "null").then_some(Cow::Borrowed(text.as_bytes()));
    }
    serde_json::Deserializer::from_str(text)
        .deserialize_bytes(Content)
        .ok()
}

/// Follows the names into an object. As in most readers of JSON, the last of equal names counts.
struct Walk<'p>(&'p [String]);

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<Self::Value, D::Error> {
        if self.0.is_empty() {
            return serde::Deserialize::deserialize(input).map(Some);
        }
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let Some((name, rest)) = self.0.split_first() else {
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
        for wrong in ["", ".", "text", ".a..b", ".a.", ".[0]", ".a[0]"] {
            assert!(wrong.parse::<Path>().is_err(), "{wrong}");
        }
    }
}
