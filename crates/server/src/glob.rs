//! Redis's glob patterns: `*`, `?`, `[abc]`, `[^a-z]` and `\` before a character.

/// Whether `text` matches `pattern` as a whole.
///
/// Only the last `*` is ever returned to, so that the time is at most the product of the two
/// lengths: a pattern of many stars cannot stop a worker.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut rest, mut left) = (pattern, text);
    // The pattern behind the last star, and the text from where it is to be tried next.
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        if let Some(behind) = rest.strip_prefix(b"*") {
            rest = behind;
            retry = Some((behind, left));
            continue;
        }
        let step = match (rest.is_empty(), left.split_first()) {
            (true, None) => return true,
            (false, Some((byte, after))) => one(rest, *byte).map(|behind| (behind, after)),
            (true, Some(_)) => None,
            (false, None) => return false,
        };
        (rest, left) = match (step, retry) {
            (Some(next), _) => next,
            (None, Some((behind, from))) => {
                let Some((_, from)) = from.split_first() else {
                    return false;
                };
                retry = Some((behind, from));
                (behind, from)
            }
            (None, None) => return false,
        };
    }
}

/// Matches one byte against the first element of a pattern that is neither empty nor a star;
/// returns the pattern behind it.
fn one(pattern: &[u8], byte: u8) -> Option<&[u8]> {
    let (first, behind) = pattern.split_first()?;
    let (matched, behind) = match (first, behind) {
        (b'?', _) => (true, behind),
        (b'[', _) => class(behind, byte),
        (b'\\', [escaped, behind @ ..]) => (*escaped == byte, behind),
        _ => (*first == byte, behind),
    };
    matched.then_some(behind)
}

/// Matches one byte against a class, given from behind its `[`; a class that is not closed ends
/// with the pattern.
fn class(pattern: &[u8], byte: u8) -> (bool, &[u8]) {
    let (negated, mut rest) = match pattern {
        [b'^', rest @ ..] => (true, rest),
        _ => (false, pattern),
    };
    let mut found = false;
    loop {
        rest = match rest {
            [] => break,
            [b']', behind @ ..] => {
                rest = behind;
                break;
            }
            [b'\\', escaped, behind @ ..] => {
                found |= *escaped == byte;
                behind
            }
            [from, b'-', to, behind @ ..] => {
                // Signed, as `char` is where Redis is built.
                let (from, to) = (from.cast_signed(), to.cast_signed());
                found |= (from.min(to)..=from.max(to)).contains(&byte.cast_signed());
                behind
            }
            [only, behind @ ..] => {
                found |= *only == byte;
                behind
            }
        };
    }
    (found != negated, rest)
}

/// [`matches`] without regard to the case of ASCII letters.
pub fn matches_any_case(pattern: &[u8], text: &[u8]) -> bool {
    matches(&pattern.to_ascii_lowercase(), &text.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The definition, read off the manual, in exponential time.
    fn oracle(pattern: &[u8], text: &[u8]) -> bool {
        match pattern {
            [] => text.is_empty(),
            [b'*', behind @ ..] => (0..=text.len()).any(|n| oracle(behind, &text[n..])),
            _ => text.split_first().is_some_and(|(byte, after)| {
                one(pattern, *byte).is_some_and(|behind| oracle(behind, after))
            }),
        }
    }

    #[test]
    fn patterns_of_the_manual() {
        let cases: [(&str, &str, bool); 21] = [
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "hllo", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hallo", true),
            ("h[a-b]llo", "hcllo", false),
            (r"a\*b", "a*b", true),
            (r"a\*b", "axb", false),
            (r"[\]]", "]", true),
            ("[abc", "c", true),
            ("", "", true),
            ("*", "", true),
            ("**a**", "a", true),
            ("a*b*c", "abbbc", true),
            ("a*b*c", "abbb", false),
            ("Abc", "abc", false),
        ];
        for (pattern, text, expected) in cases {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            assert_eq!(matches(pattern, text), expected, "{pattern:?} {text:?}");
        }
        assert!(matches(b"[\x80-\x7f]", b"a"));
        assert!(!matches(b"[a-\xff]", b"z"));
        assert!(matches_any_case(b"MAX[M-N]*", b"maxmemory"));
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = [b"a*".repeat(1000), b"b".to_vec()].concat();
        assert!(!matches(&pattern, &[b'a'; 10_000]));
    }

    proptest::proptest! {
        #[test]
        fn agrees_with_the_definition(pattern in "[ab*?\\[\\]^\\\\-]{0,8}", text in "[ab*\\-]{0,8}") {
            let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
            proptest::prop_assert_eq!(matches(pattern, text), oracle(pattern, text));
        }
    }
}
