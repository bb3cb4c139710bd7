//! Searches for the end of a line. For the tests it counts the bytes that were looked at.

/// The position of the first such byte from `from` on.
pub(crate) fn find(byte: u8, buf: &[u8], from: usize) -> Option<usize> {
    let rest = buf.get(from..).unwrap_or_default();
    let found = memchr::memchr(byte, rest);
    examined(found.map_or(rest.len(), |offset| offset + 1));
    found.map(|offset| from + offset)
}

/// The first byte from `from` on that is below 0x20 and is neither tab nor carriage return, and its
/// position. The line feed that ends an inline line is such a byte.
pub(crate) fn find_control(buf: &[u8], from: usize) -> Option<(usize, u8)> {
    let rest = buf.get(from..).unwrap_or_default();
    let found = rest
        .iter()
        .enumerate()
        .find(|(_, byte)| **byte < 0x20 && !matches!(byte, b'\t' | b'\r'));
    examined(found.map_or(rest.len(), |(offset, _)| offset + 1));
    found.map(|(offset, byte)| (from + offset, *byte))
}

#[cfg(test)]
thread_local! {
    /// The number of bytes looked at in this thread. It shows whether a byte was looked at twice.
    pub(crate) static EXAMINED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

#[cfg(test)]
pub(crate) fn examined(bytes: usize) {
    EXAMINED.set(EXAMINED.get() + bytes);
}

#[cfg(not(test))]
#[inline(always)]
pub(crate) fn examined(_bytes: usize) {}
