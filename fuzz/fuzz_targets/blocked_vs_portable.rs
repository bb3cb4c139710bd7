//! Every set of instructions tests blocks as the definition does, whatever is in them.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    hashes: u8,
    mask: u32,
    /// Bits that are 1 in every byte of the arrays: blocks that are nearly full.
    full: u8,
    arrays: Vec<[u8; 128]>,
    items: Vec<(u64, u64)>,
}

fuzz_target!(|input: Input| {
    let mut arrays = input.arrays;
    for byte in arrays.iter_mut().flatten() {
        *byte |= input.full;
    }
    let hashes = u32::from(input.hashes) % 36;
    assert!(everbloom::kernels_agree(
        &arrays,
        &input.items,
        input.mask,
        hashes
    ));
});
