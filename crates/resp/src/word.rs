//! Compares words of requests.

/// Whether two words are the same. Names of commands and keys are mostly short: to compare those
/// takes a few instructions here, and some twenty in the C library.
#[must_use]
#[inline]
pub fn is_same_word(a: &[u8], b: &[u8]) -> bool {
    if a.len() != b.len() {
        return false;
    }
    match a.len() {
        4..=7 => ends::<4>(a) == ends::<4>(b),
        8..=16 => ends::<8>(a) == ends::<8>(b),
        _ => a == b,
    }
}

/// The first and the last bytes of a word, which overlap if it is shorter than both.
#[inline]
fn ends<const N: usize>(word: &[u8]) -> (Option<&[u8; N]>, Option<&[u8; N]>) {
    (word.first_chunk(), word.last_chunk())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_differ_by_length_and_by_every_byte() {
        for len in 0..40 {
            let word: Vec<u8> = (0..len).collect();
            assert!(is_same_word(&word, &word.clone()));
            assert!(!is_same_word(&word, &[&word[..], b"x"].concat()));
            for at in 0..word.len() {
                let mut other = word.clone();
                other[at] ^= 0x80;
                assert!(!is_same_word(&word, &other), "{len} {at}");
            }
        }
    }
}
