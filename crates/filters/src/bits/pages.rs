//! Small and huge pages for the memory of large bit arrays.
//!
//! The system gives an array memory by small pages, each when it is first written. So a large
//! filter of few items takes little. But with small pages nearly every lookup in a large filter
//! also misses the processor's table of pages. When nearly every small page is in use anyway, they
//! are collapsed into huge ones, a few at a time, so that no insert takes long.

/// Bytes of a small page; where they are larger, what is done by this size is right, too.
const SMALL: usize = 4096;

/// Bytes of a huge page.
pub(crate) const HUGE: usize = 2 << 20;

/// One huge page is collapsed at every so many items. A collapse takes as long as a thousand
/// inserts, and even so all are collapsed long before a layer is full.
pub(crate) const STEP: u64 = 1024;

/// How many huge pages of an array are to be collapsed: none while its items leave small pages
/// untouched, then one more at every multiple of [`STEP`]. It may be more than there are.
///
/// An item touches a number of small pages at random. The part of the pages that is still untouched
/// is exp(-items * `touched` / pages), and 2 % when the exponent is 4.
pub(crate) fn due(bytes: u64, items: u64, touched: u32) -> u64 {
    let pages = bytes.div_ceil(SMALL as u64);
    let start = pages.saturating_mul(4) / u64::from(touched.max(1));
    let steps = (items / STEP).checked_sub(start.div_ceil(STEP));
    steps.map_or(0, |more| 1 + more)
}

/// Copies bytes to an equally long slice. Zeros are not written over zeros where that would make a
/// small page resident.
pub(crate) fn copy(to: &mut [u8], from: &[u8]) {
    for (to, from) in pairs(to, from) {
        if !is_zero(from) || !is_zero(to) {
            to.copy_from_slice(from);
        }
    }
}

/// Makes every bit 1 that is 1 in the other bytes, which are as many. Returns whether one was 0.
pub(crate) fn unite(to: &mut [u8], from: &[u8]) -> bool {
    let mut new = 0;
    for (to, from) in pairs(to, from).filter(|(_, from)| !is_zero(from)) {
        for (byte, more) in to.iter_mut().zip(from) {
            new |= more & !*byte;
            *byte |= more;
        }
    }
    new != 0
}

/// Whether most pieces of a small page's length hold zeros only.
pub(crate) fn is_sparse(bytes: &[u8]) -> bool {
    let pages = bytes.chunks(SMALL);
    let zeros = pages.clone().filter(|page| is_zero(page)).count();
    zeros > pages.len() / 2
}

/// Two arrays of equal length, piece by piece: each piece lies in one small page of the first.
fn pairs<'a>(to: &'a mut [u8], from: &'a [u8]) -> impl Iterator<Item = (&'a mut [u8], &'a [u8])> {
    assert_eq!(to.len(), from.len(), "two arrays of equal length");
    let lead = to.as_ptr().align_offset(SMALL).min(to.len());
    let (to_head, to_rest) = to.split_at_mut(lead);
    let (from_head, from_rest) = from.split_at(lead);
    let rest = to_rest.chunks_mut(SMALL).zip(from_rest.chunks(SMALL));
    core::iter::once((to_head, from_head)).chain(rest)
}

fn is_zero(bytes: &[u8]) -> bool {
    let (lines, rest) = bytes.as_chunks::<64>();
    // Without a branch within a line, so that it is tested by a few vector instructions.
    let is_zero = |line: &[u8]| line.iter().fold(0, |all, byte| all | byte) == 0;
    lines.iter().all(|line| is_zero(line)) && is_zero(rest)
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use proptest::prelude::*;

    use super::{HUGE, SMALL, STEP, copy, due, is_sparse, unite};

    #[test]
    fn one_huge_page_is_due_at_a_time() {
        let bytes = 60 * HUGE as u64;
        for touched in [1, 7, 30] {
            let enough = 4 * (bytes / SMALL as u64) / u64::from(touched);
            let start = enough.next_multiple_of(STEP);
            assert_eq!(due(bytes, start - 1, touched), 0);
            // Checks at the multiples alone miss none.
            let next = |items| due(bytes, items, touched) - due(bytes, items - 1, touched);
            let expected = |items: u64| u64::from(items.is_multiple_of(STEP));
            assert!((start..start + 9 * STEP).all(|items| next(items) == expected(items)));
            // At a tenth of a capacity at 1 % all of them are.
            assert!(due(bytes, bytes * 8 / 100, touched) > 60);
        }
        assert_eq!(due(bytes, 0, 0), 0);
        assert!(due(u64::MAX, u64::MAX, u32::MAX) > 0);
    }

    proptest! {
        /// For any zero bytes, and arrays that begin and end anywhere in a page.
        #[test]
        fn pieces_are_the_whole(
            zero in prop::collection::vec(any::<[bool; 2]>(), 1..6),
            first in 0..SMALL, less in 0..SMALL,
        ) {
            let bytes = |which: usize, value: u8| {
                let page = |zero: &[bool; 2]| [if zero[which] { 0 } else { value }; SMALL];
                zero.iter().flat_map(page).collect::<Vec<u8>>()
            };
            let (mut to, from) = (bytes(0, 0b0011), bytes(1, 0b0110));
            let end = to.len() - less;
            let first = first.min(end);
            let mut united: Vec<u8> = to.iter().zip(&from).map(|(to, from)| to | from).collect();
            united.truncate(end);
            let mut sum = to.clone();
            unite(&mut sum[first..end], &from[first..end]);
            prop_assert!(sum[first..end] == united[first..]);
            prop_assert!(sum[..first] == to[..first] && sum[end..] == to[end..]);
            copy(&mut to[first..end], &from[first..end]);
            prop_assert!(to[first..end] == from[first..end]);
            let zeros = zero.iter().filter(|zero| zero[1]).count();
            prop_assert_eq!(is_sparse(&from), zeros > zero.len() / 2);
        }
    }

    #[test]
    fn one_byte_is_not_zero() {
        for at in [0, 63, 64, SMALL - 1, SMALL, SMALL + 69] {
            let mut from = vec![0; SMALL + 70];
            from[at] = 1;
            let mut to = vec![0; from.len()];
            copy(&mut to, &from);
            assert!(to == from, "byte {at}");
        }
    }
}
