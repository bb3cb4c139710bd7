//! Redis's glob patterns: `*`, `?`, `[a-z]`, `[^a-z]` and `\` before a character that is meant
//! literally.
//!
//! Edge cases follow Redis: a class that is not closed ends with the pattern, a range may be
//! backwards, bytes in a range compare as signed numbers, and an empty text matches only the empty
//! pattern.

/// Whether all of `text` matches `pattern`.
///
/// The search returns only to the last `*`, so the time is at most the product of the two lengths.
/// A pattern of many stars cannot block a worker.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut pattern, mut text) = (pattern, text);
    // Every element except `*` takes one byte, so it is enough to return to the last star.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let [b'*', rest @ ..] = pattern {
            pattern = rest;
            retry = Some((rest, text));
            continue;
        }
        let Some((byte, following)) = text.split_first() else {
            // Stars were skipped above. The rest needs another byte, and a longer match of an
            // earlier star leaves still fewer.
            return pattern.is_empty();
        };
        if let Some(rest) = element(pattern, *byte) {
            (pattern, text) = (rest, following);
            continue;
        }
        let Some((after_star, [_, shorter @ ..])) = retry else {
            return false;
        };
        (pattern, text) = (after_star, shorter);
        retry = Some((after_star, shorter));
    }
}

/// [`matches()`] without regard to the case of ASCII letters.
pub fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

/// The pattern after its first element, if that matches the byte.
fn element(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    match pattern {
        [] => None,
        [b'?', rest @ ..] => Some(rest),
        [b'[', b'^', rest @ ..] => {
            let (found, rest) = class(rest, byte);
            (!found).then_some(rest)
        }
        [b'[', rest @ ..] => {
            let (found, rest) = class(rest, byte);
            found.then_some(rest)
        }
        [b'\\', literal, rest @ ..] | [literal, rest @ ..] => (*literal == byte).then_some(rest),
    }
}

/// Whether the byte is in the class, and the pattern after the class.
fn class(mut pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let mut found = false;
    loop {
        pattern = match pattern {
            [] => return (found, pattern),
            [b'\\', literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
            [b']', rest @ ..] => return (found, rest),
            [from, b'-', to, rest @ ..] => {
                let (from, to) = (from.cast_signed(), to.cast_signed());
                let range = from.min(to)..=from.max(to);
                found |= range.contains(&byte.cast_signed());
                rest
            }
            [literal, rest @ ..] => {
                found |= *literal == byte;
                rest
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The naive way: a star tries every length.
    fn by_definition(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern, text) {
            ([b'*', rest @ ..], _) => {
                (0..=text.len()).any(|taken| by_definition(rest, &text[taken..]))
            }
            (_, [byte, following @ ..]) => {
                element(pattern, *byte).is_some_and(|rest| by_definition(rest, following))
            }
            (_, []) => pattern.is_empty(),
        }
    }

    #[test]
    fn patterns_match_as_in_redis() {
        let cases: [(&str, &str, bool); 30] = [
            ("*", "abc", true),
            ("", "", true),
            ("*", "", false),
            ("a*", "a", true),
            ("a**", "a", true),
            ("a*b", "ab", true),
            ("a*b*c", "a1b2b3c", true),
            ("a*b*c", "a1b2b3d", false),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-c]llo", "hbllo", true),
            ("h[c-a]llo", "hbllo", true),
            ("h[a-]llo", "h-llo", false),
            ("[abc", "b", true),
            ("[a-", "-", true),
            ("[", "[", false),
            ("[^", "x", true),
            ("[]a]", "a", false),
            ("[\\]a]", "]", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a\\", "a\\", true),
            ("abc", "ab", false),
            ("ab", "abc", false),
            ("?", "", false),
            ("*a", "aaab", false),
        ];
        for (pattern, text, expected) in cases {
            let found = matches(pattern.as_bytes(), text.as_bytes());
            assert_eq!(found, expected, "{pattern} {text}");
        }
        assert!(matches(b"[\x80-\x7f]", b"a"));
        assert!(!matches(b"[a-\xff]", b"z"));
        assert!(matches_any_case(b"MAX[M-N]*", b"maxmemory"));
    }

    #[test]
    fn many_stars_take_no_time() {
        let pattern = "a*".repeat(1000) + "b";
        assert!(!matches(pattern.as_bytes(), "a".repeat(50_000).as_bytes()));
    }

    proptest! {
        #[test]
        fn the_fast_way_is_the_obvious_way(
            pattern in "[ab*?\\[\\]^\\\\-]{0,9}",
            text in "[ab\\]-]{1,9}",
        ) {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            prop_assert_eq!(matches(pattern, text), by_definition(pattern, text));
        }
    }
}
