//! For the tests and the fuzzer: bytes whose checksums are right, whatever else is wrong.

use everbloom::hash::murmur64a;

/// The blocks between the header and those of the layers.
pub(crate) fn window_blocks(bytes: &[u8]) -> usize {
    let number = |at: usize| {
        Some(u32::from_le_bytes(
            bytes.get(at..at + 4)?.try_into().unwrap(),
        ))
    };
    match (number(12), number(92)) {
        (Some(options), Some(kept)) if options & 16 != 0 => 1 + kept.div_ceil(4) as usize,
        _ => 0,
    }
}

/// The bytes of the note in front, if there is one and it is whole.
fn note_len(bytes: &[u8]) -> usize {
    let number = |at: usize| {
        Some(u16::from_le_bytes(
            bytes.get(at..at + 2)?.try_into().unwrap(),
        ))
    };
    match (number(8), number(12)) {
        (Some(4), Some(text)) => (usize::from(text) + 22).next_multiple_of(64),
        _ => 0,
    }
}

/// Computes all checksums again, as an attacker would.
pub(crate) fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let note = note_len(&bytes);
    if note > bytes.len() {
        return bytes;
    }
    let filter = sealed_filter(bytes.split_off(note));
    if let Some(end) = note.checked_sub(8) {
        let checksum = murmur64a(&bytes[..end], 0);
        bytes[end..].copy_from_slice(&checksum.to_le_bytes());
    }
    bytes.extend(filter);
    bytes
}

/// Those of version 3.
fn sealed_filter(mut bytes: Vec<u8>) -> Vec<u8> {
    let number = |bytes: &[u8], at: usize| {
        let number = bytes.get(at..at + 8)?;
        Some(u64::from_le_bytes(number.try_into().unwrap()) as usize)
    };
    let layers = number(&bytes, 20).unwrap_or(0) & 0xffff_ffff;
    let before = window_blocks(&bytes);
    // A forged number may be larger than any length.
    let blocks = before.saturating_add(layers).saturating_add(1);
    let mut at = blocks.saturating_mul(64);
    for layer in before + 1..blocks {
        let Some(len) = layer.checked_mul(64).and_then(|at| number(&bytes, at)) else {
            break;
        };
        if let Some(bits) = at.checked_add(len).and_then(|end| bytes.get(at..end)) {
            let checksum = murmur64a(bits, 0);
            bytes[64 * layer + 48..][..8].copy_from_slice(&checksum.to_le_bytes());
            at = at.saturating_add(len.next_multiple_of(64));
        }
    }
    let mut seed = 0;
    for block in bytes.chunks_exact_mut(64).take(blocks) {
        seed = murmur64a(&block[..56], seed);
        block[56..].copy_from_slice(&seed.to_le_bytes());
    }
    bytes
}
