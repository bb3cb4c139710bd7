//! Names for filters that are not whole yet.

use crc::{CRC_16_XMODEM, Crc};

/// What the name of every such filter has in it.
const MARK: &[u8] = b":everbloom-copy:";

/// The hash of Cluster's slots.
const CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The number of slots of a Cluster.
const SLOTS: u16 = 16384;

/// Whether a key is the name of such a filter.
pub(crate) fn is_one(key: &[u8]) -> bool {
    key.windows(MARK.len()).any(|part| part == MARK)
}

/// A name in the slot of the key, since RENAME needs both on the same node. `token` makes it
/// another name than that of another copy.
pub(crate) fn name(key: &[u8], token: &str) -> Vec<u8> {
    let start = if tag(key).is_some() {
        // What is added behind the tag does not move the key.
        key.to_vec()
    } else if !key.is_empty() && !key.contains(&b'}') {
        [b"{", key, b"}"].concat()
    } else {
        // The key has no tag and cannot be one.
        let wanted = slot(key);
        let tags = (0_u32..).map(|number| number.to_string());
        let found = tags.into_iter().find(|tag| slot(tag.as_bytes()) == wanted);
        format!("{{{}}}", found.unwrap_or_default()).into_bytes()
    };
    [&start, MARK, token.as_bytes()].concat()
}

/// The part of a key that decides about its slot: what is between the first `{` and the next `}`,
/// if that is anything.
fn tag(key: &[u8]) -> Option<&[u8]> {
    let start = key.iter().position(|byte| *byte == b'{')?;
    let rest = key.get(start + 1..)?;
    let end = rest.iter().position(|byte| *byte == b'}')?;
    rest.get(..end).filter(|tag| !tag.is_empty())
}

fn slot(key: &[u8]) -> u16 {
    CRC.checksum(tag(key).unwrap_or(key)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_a_cluster() {
        // As CLUSTER KEYSLOT answers.
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12182);
        assert_eq!(slot(b"{foo}bar"), 12182);
        assert_eq!(slot(b""), 0);
    }

    #[test]
    fn a_temporary_name_has_the_slot_of_its_key() {
        let keys: [&[u8]; 12] = [
            b"seen",
            b"",
            b"{user}:seen",
            b"a{user}b{c}",
            b"a}b",
            b"{}",
            b"a{}b{c}",
            b"{",
            b"}",
            b"{a",
            b"}{a}",
            b"\xff\x00{",
        ];
        for key in keys {
            let name = name(key, "1");
            assert_eq!(slot(&name), slot(key), "{}", key.escape_ascii());
            assert!(is_one(&name) && !is_one(key));
        }
    }
}
