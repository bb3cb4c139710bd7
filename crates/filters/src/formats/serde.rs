//! `Serialize` and `Deserialize` for filters: as the bytes of [`to_bytes`], one byte string.
//!
//! A format that people read, such as JSON, has no byte strings and gets base64. An array of
//! numbers, as earlier versions wrote there, is read, too.
//!
//! [`to_bytes`]: crate::BloomFilter::to_bytes

use alloc::vec::Vec;
use core::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};

use super::bytes::BytesError;
use crate::bloom::fixed::BloomFilter;
use crate::bloom::scalable::ScalableBloomFilter;
use crate::bloom::windowed::WindowedBloomFilter;
use crate::cuckoo::CuckooFilter;

/// The most bytes reserved for a length that only the input claims.
const CAUTIOUS: usize = 1 << 16;

/// Reads a filter with this function.
struct BytesVisitor<T>(fn(&[u8]) -> Result<T, BytesError>);

impl<'de, T> Visitor<'de> for BytesVisitor<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the bytes of a filter")
    }

    fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<T, E> {
        (self.0)(bytes).map_err(E::custom)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<T, E> {
        let bytes = STANDARD.decode(text);
        let bytes = bytes.map_err(|error| E::custom(format_args!("not base64: {error}")))?;
        self.visit_bytes(&bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<T, A::Error> {
        let mut bytes = Vec::with_capacity(seq.size_hint().unwrap_or(0).min(CAUTIOUS));
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        self.visit_bytes(&bytes)
    }
}

macro_rules! as_bytes {
    ($($filter:ty),*) => {$(
        impl Serialize for $filter {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let bytes = self.to_bytes();
                match serializer.is_human_readable() {
                    true => serializer.serialize_str(&STANDARD.encode(&bytes)),
                    false => serializer.serialize_bytes(&bytes),
                }
            }
        }

        impl<'de> Deserialize<'de> for $filter {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let visitor = BytesVisitor(<$filter>::from_bytes);
                match deserializer.is_human_readable() {
                    true => deserializer.deserialize_any(visitor),
                    false => deserializer.deserialize_byte_buf(visitor),
                }
            }
        }
    )*};
}

as_bytes!(
    BloomFilter,
    ScalableBloomFilter,
    WindowedBloomFilter,
    CuckooFilter
);
