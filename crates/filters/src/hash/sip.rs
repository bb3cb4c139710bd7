//! SipHash-1-3, by Jean-Philippe Aumasson and Daniel J. Bernstein.

/// The hash of a number and the bytes behind it.
pub(crate) fn sip13(key: [u64; 2], number: u64, bytes: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut take = |word: u64| {
        state[3] ^= word;
        round(&mut state);
        state[0] ^= word;
    };
    take(number);
    let (words, rest) = bytes.as_chunks::<8>();
    words
        .iter()
        .for_each(|word| take(u64::from_le_bytes(*word)));
    let mut last = [0; 8];
    last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
    // The length of all, modulo 256, is in the highest byte.
    take(u64::from_le_bytes(last) | (bytes.len() as u64 + 8) << 56);
    state[2] ^= 0xff;
    (0..3).for_each(|_| round(&mut state));
    state.iter().fold(0, |hash, part| hash ^ part)
}

#[inline]
fn round(state: &mut [u64; 4]) {
    let [a, b, c, d] = state;
    *a = a.wrapping_add(*b);
    *b = b.rotate_left(13) ^ *a;
    *a = a.rotate_left(32);
    *c = c.wrapping_add(*d);
    *d = d.rotate_left(16) ^ *c;
    *a = a.wrapping_add(*d);
    *d = d.rotate_left(21) ^ *a;
    *c = c.wrapping_add(*b);
    *b = b.rotate_left(17) ^ *c;
    *c = c.rotate_left(32);
}

#[cfg(test)]
mod tests {
    /// As the standard library hashes a number and bytes with its keys, which are 0.
    #[test]
    fn it_is_the_hash_of_the_standard_library() {
        use core::hash::Hasher;
        let bytes: alloc::vec::Vec<u8> = (0..100).collect();
        for len in 0..100 {
            let mut hasher = std::hash::DefaultHasher::new();
            hasher.write_u64(7);
            hasher.write(&bytes[..len]);
            assert_eq!(super::sip13([0, 0], 7, &bytes[..len]), hasher.finish());
        }
    }
}
