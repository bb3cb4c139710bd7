//! Capital and small letters.

use std::borrow::Cow;

/// Whether capital and small letters differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Case {
    #[default]
    Kept,
    Ignored,
}

impl Case {
    /// What is compared of a text: its simple case folding, when case is ignored. Bytes that are no
    /// UTF-8 stay as they are.
    pub(super) fn of(self, text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
        if self == Case::Kept {
            return text;
        }
        if text.is_ascii() {
            return match text.iter().any(u8::is_ascii_uppercase) {
                true => Cow::Owned(text.to_ascii_lowercase()),
                false => text,
            };
        }
        let mut folded = String::new();
        let mut bytes = Vec::with_capacity(text.len());
        for chunk in text.utf8_chunks() {
            folded.clear();
            folded.extend(chunk.valid().chars().map(fold));
            bytes.extend_from_slice(folded.as_bytes());
            bytes.extend_from_slice(chunk.invalid());
        }
        Cow::Owned(bytes)
    }
}

/// The simple case folding of a character: the statuses C and S of Unicode's CaseFolding.txt.
fn fold(character: char) -> char {
    if character.is_ascii() {
        return character.to_ascii_lowercase();
    }
    let folded = unicode_case_mapping::case_folded(character);
    folded
        .and_then(|folded| char::from_u32(folded.get()))
        .unwrap_or(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded(text: &[u8]) -> Vec<u8> {
        let kept = Case::Kept.of(text.into());
        assert_eq!(kept, text);
        Case::Ignored.of(text.into()).into_owned()
    }

    #[test]
    fn simple_folding() {
        for (text, expected) in [
            ("", ""),
            ("Admin", "admin"),
            ("ADMIN_1", "admin_1"),
            ("\u{c9}T\u{c9}", "\u{e9}t\u{e9}"),
            ("\u{1e9e}\u{df}", "\u{df}\u{df}"),
            ("\u{3a3}\u{3c3}\u{3c2}", "\u{3c3}\u{3c3}\u{3c3}"),
            ("\u{212a}\u{17f}", "ks"),
            ("\u{131}I\u{130}", "\u{131}i\u{130}"),
            ("\u{1f88}", "\u{1f80}"),
            ("\u{13a0}\u{ab70}", "\u{13a0}\u{13a0}"),
            ("\u{10400}", "\u{10428}"),
            ("\u{4e2d}", "\u{4e2d}"),
        ] {
            assert_eq!(folded(text.as_bytes()), expected.as_bytes(), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_stay() {
        assert_eq!(folded(b"A\xff\xc9Z\xc3"), b"a\xff\xc9z\xc3");
        assert_eq!(folded(b"\xc3\x89\xc3"), b"\xc3\xa9\xc3");
        assert_eq!(folded(b"\xed\xa0\x80X"), b"\xed\xa0\x80x");
    }

    /// What is folded once is equal to what is folded twice, and to the other letters of it.
    #[test]
    fn every_character_is_folded_once() {
        for character in '\0'..=char::MAX {
            let once = fold(character);
            assert_eq!(fold(once), once, "{character:?}");
            // That of std may know newer letters than the table.
            let [lower, more] = unicode_case_mapping::to_lowercase(character);
            if lower != 0 && more == 0 {
                let lower = char::from_u32(lower).unwrap();
                assert_eq!(fold(lower), once, "{character:?}");
            }
        }
    }
}
