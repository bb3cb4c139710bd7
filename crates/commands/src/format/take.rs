//! Reading a header number by number.

/// The first bytes of what is left; `None` when fewer are left.
pub(super) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, tail) = rest.split_first_chunk()?;
    *rest = tail;
    Some(*first)
}
