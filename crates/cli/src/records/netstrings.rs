//! Keys of several parts.

use std::borrow::Cow;

use super::case::Case;

/// One part as it is, and several as netstrings. Folding may change the length of a part, so it comes
/// first.
pub(super) fn joined<'a>(
    parts: impl ExactSizeIterator<Item = Option<Cow<'a, [u8]>>>,
    case: Case,
) -> Option<Cow<'a, [u8]>> {
    let mut parts = parts.map(|part| part.map(|part| case.of(part)));
    if parts.len() == 1 {
        return parts.next()?;
    }
    netstrings(parts)
}

/// Netstrings one after the other, as `1:a,2:bc,`: whatever the parts contain, other parts make
/// another key.
pub(super) fn netstrings<'a>(
    parts: impl Iterator<Item = Option<Cow<'a, [u8]>>>,
) -> Option<Cow<'a, [u8]>> {
    let mut key = Vec::new();
    for part in parts {
        let part = part?;
        key.extend(part.len().to_string().bytes());
        key.push(b':');
        key.extend_from_slice(&part);
        key.push(b',');
    }
    Some(Cow::Owned(key))
}
