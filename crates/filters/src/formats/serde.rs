//! `Serialize` and `Deserialize` for filters: as the bytes of [`to_bytes`], one byte string.
//!
//! A text format such as JSON has no byte strings and gets an array of numbers.
//!
//! [`to_bytes`]: crate::BloomFilter::to_bytes

use alloc::vec::Vec;
use core::fmt;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::bloom::fixed::BloomFilter;
use crate::bloom::scalable::ScalableBloomFilter;
use crate::formats::bytes::BytesError;

/// The most bytes reserved for a length that only the input claims.
const CAUTIOUS: usize = 1 << 16;

/// Reads a filter with this function.
struct BytesVisitor<T>(fn(&[u8]) -> Result<T, BytesError>);

impl<'de, T> Visitor<'de> for BytesVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a Bloom filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        (self.0)(bytes).map_err(E::custom)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut bytes = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(CAUTIOUS));
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        (self.0)(&bytes).map_err(A::Error::custom)
    }
}

impl Serialize for BloomFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl Serialize for ScalableBloomFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.to_bytes())
    }
}

impl<'de> Deserialize<'de> for BloomFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(BytesVisitor(BloomFilter::from_bytes))
    }
}

impl<'de> Deserialize<'de> for ScalableBloomFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_byte_buf(BytesVisitor(ScalableBloomFilter::from_bytes))
    }
}
