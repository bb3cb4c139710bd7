//! Bytes as text: the standard alphabet of RFC 4648, with padding.

use alloc::string::String;
use alloc::vec::Vec;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0, |bits, at| {
            bits << 8 | u32::from(group.get(at).copied().unwrap_or(0))
        });
        for place in 0..4 {
            let digit = bits >> (18 - 6 * place) & 63;
            let letter = ALPHABET
                .get(digit as usize)
                .filter(|_| place <= group.len());
            text.push(letter.map_or('=', |letter| char::from(*letter)));
        }
    }
    text
}

/// The bytes, if [`encode`] wrote the text.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    let (groups, rest) = text.as_bytes().as_chunks::<4>();
    for group in groups {
        let letters = group.iter().take_while(|letter| **letter != b'=').count();
        let bits = group.iter().take(letters).try_fold(0_u32, |bits, letter| {
            let digit = ALPHABET.iter().position(|known| known == letter)?;
            Some(bits << 6 | u32::try_from(digit).ok()?)
        })?;
        let bits = bits << (6 * (4 - letters));
        let [_, three @ ..] = bits.to_be_bytes();
        bytes.extend(three.iter().take(letters.saturating_sub(1)));
    }
    // One text for each value: whatever is padded or left over in another way is not it.
    Some(bytes).filter(|bytes| rest.is_empty() && encode(bytes) == text)
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use proptest::prelude::*;

    use super::{decode, encode};

    proptest! {
        #[test]
        fn it_is_the_one_that_others_write(bytes in prop::collection::vec(any::<u8>(), 0..70)) {
            let text = encode(&bytes);
            prop_assert_eq!(&text, &STANDARD.encode(&bytes));
            prop_assert_eq!(decode(&text), Some(bytes));
        }

        #[test]
        fn other_texts_are_refused_as_others_do(text in "[A-Za-c0-2=+/ é]{0,12}") {
            prop_assert_eq!(decode(&text), STANDARD.decode(&text).ok());
        }
    }
}
