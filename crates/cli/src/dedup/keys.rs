//! The part of a record that decides whether it was seen before.

use std::borrow::Cow;

use memchr::memmem::Finder;

use super::json;

/// Where the key of a record is.
#[derive(Clone, Debug)]
pub(super) enum KeyOf {
    /// The record itself.
    Whole,
    /// The field of this number, from 0, between delimiters.
    Field {
        number: usize,
        delimiter: Box<Finder<'static>>,
    },
    /// The value of a JSON object at this path.
    Json(json::Path),
}

impl KeyOf {
    /// The key of a record without its end; `None` when it has none.
    pub(super) fn find<'a>(&self, record: &'a [u8]) -> Option<Cow<'a, [u8]>> {
        match self {
            KeyOf::Whole => Some(Cow::Borrowed(record)),
            KeyOf::Field { number, delimiter } => {
                field(record, *number, delimiter).map(Cow::Borrowed)
            }
            KeyOf::Json(path) => json::find(record, path),
        }
    }
}

fn field<'a>(record: &'a [u8], number: usize, delimiter: &Finder<'_>) -> Option<&'a [u8]> {
    let width = delimiter.needle().len();
    let mut ends = delimiter.find_iter(record);
    let start = match number.checked_sub(1) {
        None => 0,
        Some(before) => ends.nth(before)? + width,
    };
    record.get(start..ends.next().unwrap_or(record.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(record: &[u8], number: usize, delimiter: &str) -> Option<Vec<u8>> {
        let delimiter = Box::new(Finder::new(delimiter).into_owned());
        let key_of = KeyOf::Field { number, delimiter };
        key_of.find(record).map(Cow::into_owned)
    }

    #[test]
    fn fields() {
        let bytes = |text: &str| Some(text.as_bytes().to_vec());
        assert_eq!(find(b"a,b,c", 0, ","), bytes("a"));
        assert_eq!(find(b"a,b,c", 1, ","), bytes("b"));
        assert_eq!(find(b"a,b,c", 2, ","), bytes("c"));
        assert_eq!(find(b"a,b,c", 3, ","), None);
        assert_eq!(find(b"a,,c", 1, ","), bytes(""));
        assert_eq!(find(b"a, b, c", 1, ", "), bytes("b"));
        assert_eq!(find(b"", 0, ","), bytes(""));
        assert_eq!(find(b"\xff,\xfe", 1, ","), Some(vec![0xfe]));
    }
}
