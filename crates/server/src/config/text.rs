//! Text forms of values: numbers, yes and no, amounts of memory, words from a list.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use everbloom_commands::number::{self, NumberError};

/// A decimal integer within bounds.
pub fn number<T: TryFrom<i64>>(text: &str, least: i64, most: i64) -> Result<T, String> {
    let number: i64 =
        number::integer(text.as_bytes()).ok_or("argument couldn't be parsed into an integer")?;
    within(number, least, most)
}

/// Redis's error for what is no amount of memory.
pub const NO_MEMORY_VALUE: &str = "argument must be a memory value";

/// An amount of memory within bounds, with or without a unit.
pub fn memory<T: TryFrom<i64>>(text: &str, least: i64, most: i64) -> Result<T, String> {
    let bytes = number::memory(text.as_bytes()).ok_or(NO_MEMORY_VALUE)?;
    within(i64::try_from(bytes).unwrap_or(i64::MAX), least, most)
}

fn within<T: TryFrom<i64>>(number: i64, least: i64, most: i64) -> Result<T, String> {
    let out = || format!("argument must be between {least} and {most} inclusive");
    if number < least || number > most {
        return Err(out());
    }
    T::try_from(number).map_err(|_| out())
}

/// `yes` or `no`.
pub fn yes_no(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("argument must be 'yes' or 'no'".into()),
    }
}

/// A path as text; none is empty.
pub fn show_path(path: &Option<PathBuf>) -> String {
    let path = path.as_ref();
    path.map_or_else(String::new, |path| path.to_string_lossy().into())
}

/// The text itself.
pub fn string(text: &str) -> Result<String, String> {
    Ok(text.into())
}

/// A path; an empty text is none.
pub fn path(text: &str) -> Result<Option<PathBuf>, String> {
    Ok((!text.is_empty()).then(|| text.into()))
}

/// A truth value as text.
pub fn show_yes_no(value: &bool) -> String {
    if *value { "yes" } else { "no" }.into()
}

/// The word of a value.
pub fn show_word<T: PartialEq>(words: &[(&'static str, T)], value: &T) -> String {
    let known = words.iter().find(|(_, known)| known == value);
    known.map_or("", |(word, _)| word).into()
}

/// The value of a word, in any case.
pub fn read_word<T: Copy>(text: &str, words: &[(&'static str, T)]) -> Result<T, String> {
    let is_named = |(word, _): &&(&str, T)| word.eq_ignore_ascii_case(text);
    let known = words.iter().find(is_named).map(|(_, value)| *value);
    known.ok_or_else(|| unknown_word(words.iter().map(|(word, _)| *word)))
}

fn unknown_word<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let words = words.join(", ");
    format!("argument(s) must be one of the following: {words}")
}

/// One word of a list, in any case.
pub fn one_of(text: &str, words: &[&str]) -> Result<String, String> {
    let known = words.iter().find(|word| word.eq_ignore_ascii_case(text));
    known.map_or_else(
        || Err(unknown_word(words.iter().copied())),
        |word| Ok((*word).into()),
    )
}

/// Splits a line into words as Redis does: `"..."` with escapes, `'...'` with `\'`; `None` when a
/// quote is not closed, or is followed by something other than a space.
pub fn split_words(line: &str) -> Option<Vec<String>> {
    let words = everbloom_resp::split_words(line.as_bytes())?.into_iter();
    words.map(|word| String::from_utf8(word).ok()).collect()
}

/// A word in the form from which [`split_words`] gives it back.
pub fn quote(word: &str) -> String {
    let plain = |c: char| !c.is_whitespace() && !c.is_control() && !"\"'\\#".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.into();
    }
    let mut quoted = String::from("\"");
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// A number within the range of one of RedisBloom's settings.
pub(super) fn ranged<N>(text: &str, name: &str, range: RangeInclusive<N>) -> Result<N, String>
where
    N: TryFrom<i64> + PartialOrd + Display,
{
    number::within(text.as_bytes(), &range).map_err(|error| {
        let range = format!("[{}, {}]", range.start(), range.end());
        refused(error, name, &range)
    })
}

/// RedisBloom's error for a wrong value of its own settings.
pub(super) fn refused(error: NumberError, name: &str, range: &str) -> String {
    match error {
        NumberError::Syntax => format!("Invalid value for `{name}`"),
        NumberError::Range => format!("Value for `{name}` must be in the range {range}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_has_units() {
        let good = [
            ("100", 100u64),
            ("100b", 100),
            ("1k", 1000),
            ("1KB", 1024),
            ("2m", 2_000_000),
            ("2Mb", 2 << 20),
            ("3g", 3_000_000_000),
            ("3gb", 3 << 30),
        ];
        for (text, expected) in good {
            assert_eq!(memory(text, 0, i64::MAX), Ok(expected), "{text}");
        }
        for text in ["", "kb", "-1", "1xb", "1.5gb", "1 gb", "99999999999999gb"] {
            assert_eq!(
                memory::<u64>(text, 0, i64::MAX),
                Err(NO_MEMORY_VALUE.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn bounds_are_inclusive() {
        assert_eq!(number("0", 0, 5), Ok(0u8));
        assert_eq!(number("5", 0, 5), Ok(5u8));
        assert_eq!(
            number::<u8>("6", 0, 5),
            Err("argument must be between 0 and 5 inclusive".into())
        );
        assert!(number::<u8>("0x5", 0, 5).is_err());
    }

    #[test]
    fn words_may_be_quoted() {
        let words = |line| split_words(line).unwrap();
        assert_eq!(words("  a  b\tc "), ["a", "b", "c"]);
        assert_eq!(words(r#"a "b c" 'd "e'"#), ["a", "b c", "d \"e"]);
        assert_eq!(words(r#""\x41\n\"" 'it\'s' """#), ["A\n\"", "it's", ""]);
        assert!(words("").is_empty());
        for open in [r#""a"#, "'a", r#""a"b"#, "'a'b"] {
            assert_eq!(split_words(open), None, "{open}");
        }
    }

    proptest::proptest! {
        #[test]
        fn quoted_words_come_back(words in proptest::collection::vec(".{0,8}", 0..4)) {
            let line = words.iter().map(|w| quote(w)).collect::<Vec<_>>().join(" ");
            proptest::prop_assert_eq!(split_words(&line), Some(words));
        }
    }
}
