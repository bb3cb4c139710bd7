//! Long strings of bytes, which come piece by piece and are compressed when that helps.
//!
//! The compressed length stands before the bytes, and the bytes come only once. So they are
//! compressed into a buffer of limited size. When the buffer is too small, the plain length is
//! written, then what the buffer stands for, then the rest as it comes.
//!
//! Bits in use do not compress, and their writer must not wait for an attempt. The bits of a
//! filter are alike everywhere, so the first few KiB show how all of them compress. For a string
//! that a client has set they show nothing.

use std::io::{self, Write};

use super::error::WriteError;
use super::length::{COMPRESS_SAVES, Strings, put_length, put_packed};
use crate::limits;

/// The compressed form must be so many times shorter. Where it is longer, there are many short
/// references, and compressing takes ten times as long as writing.
const WORTH: u64 = 4;
/// The bytes whose compressed length tells whether compressing is worth its time.
const SAMPLE: usize = 16 << 10;

/// A string in the making.
#[derive(Debug)]
pub(super) struct Pieces {
    len: u64,
    /// The most bytes of the compressed form.
    most: usize,
    /// Whether its beginning shows how all of it compresses.
    alike: bool,
    /// While it is being compressed, how many bytes have come. The compressor of the [`Strings`]
    /// has them.
    packing: Option<usize>,
}

impl Pieces {
    /// Begins a string of `len` bytes, which are `alike` everywhere or not.
    pub(super) fn begin(
        out: &mut impl Write,
        strings: &mut Strings,
        len: u64,
        alike: bool,
    ) -> io::Result<Pieces> {
        let worth = match alike {
            true => len / WORTH,
            false => len.saturating_sub(COMPRESS_SAVES as u64),
        };
        let worth = usize::try_from(worth).unwrap_or(usize::MAX);
        let most = worth.min(strings.max_packed_bytes);
        let compressor = strings.compressor.as_mut();
        let packing = compressor.is_some_and(|compressor| compressor.begin(len, most));
        if !packing {
            put_length(out, len)?;
        }
        Ok(Pieces {
            len,
            most,
            alike,
            packing: packing.then_some(0),
        })
    }

    /// Takes the next bytes.
    pub(super) fn put(
        &mut self,
        out: &mut impl Write,
        strings: &mut Strings,
        bytes: &[u8],
    ) -> io::Result<()> {
        let mut rest = bytes;
        while let (Some(came), Some(compressor)) = (self.packing, &mut strings.compressor)
            && !rest.is_empty()
        {
            // No piece goes beyond a multiple of a sample, however the bytes are cut.
            let piece = rest.len().min(SAMPLE - came % SAMPLE);
            let (piece, later) = rest.split_at(piece);
            rest = later;
            let came = came + piece.len();
            self.packing = Some(came);
            let fits = compressor.push(piece);
            if !fits || self.alike && came == SAMPLE && !self.promises(compressor.packed_len()) {
                self.packing = None;
                put_length(out, self.len)?;
                compressor.take_back(out)?;
            }
        }
        out.write_all(rest)
    }

    /// Ends the string; all of it has come.
    pub(super) fn end(&self, out: &mut impl Write, strings: &mut Strings) -> io::Result<()> {
        let (Some(_), Some(compressor)) = (self.packing, &mut strings.compressor) else {
            return Ok(());
        };
        match compressor.finish() {
            Some(packed) => put_packed(out, &packed, self.len),
            None => {
                put_length(out, self.len)?;
                compressor.take_back(out)
            }
        }
    }

    /// Whether the compressed form will be short enough when that of a sample is so long.
    fn promises(&self, packed_sample: usize) -> bool {
        let samples = self.len.div_ceil(SAMPLE as u64);
        (packed_sample as u64).saturating_mul(samples) <= self.most as u64
    }
}

/// Writes a string: a long one, which is alike everywhere or not, as if it came in pieces.
pub(super) fn put_whole(
    out: &mut impl Write,
    strings: &mut Strings,
    bytes: &[u8],
    alike: bool,
) -> io::Result<()> {
    let len = bytes.len() as u64;
    if len <= limits::WHOLE_BYTES.get_u64() {
        return strings.put(out, bytes);
    }
    let mut pieces = Pieces::begin(out, strings, len, alike)?;
    pieces.put(out, strings, bytes)?;
    pieces.end(out, strings)
}

/// Writes a string of so many bytes, which are alike everywhere or not. They come piece by piece:
/// `next` puts some in place of those that it put there before.
pub(super) fn put_pieces(
    out: &mut impl Write,
    strings: &mut Strings,
    (len, alike): (u64, bool),
    next: &mut impl FnMut(&mut Vec<u8>) -> Result<(), WriteError>,
) -> Result<(), WriteError> {
    let mut pieces = Pieces::begin(out, strings, len, alike)?;
    each_piece(len, next, |piece| pieces.put(out, strings, piece))?;
    Ok(pieces.end(out, strings)?)
}

/// Passes `len` bytes, which `next` gives piece by piece, to `put`.
pub(super) fn each_piece(
    len: u64,
    next: &mut impl FnMut(&mut Vec<u8>) -> Result<(), WriteError>,
    mut put: impl FnMut(&[u8]) -> io::Result<()>,
) -> Result<(), WriteError> {
    let (mut piece, mut left) = (Vec::new(), len);
    while left > 0 {
        next(&mut piece)?;
        let came = piece.len() as u64;
        if came == 0 || came > left {
            return Err(WriteError::Length {
                announced: len,
                left: left.abs_diff(came),
            });
        }
        left -= came;
        put(&piece)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::PACKED_BYTES;
    use crate::rdb::lzf::Compressor;
    use proptest::prelude::*;

    fn written(max_packed_bytes: usize, bytes: &[u8], cuts: &[usize]) -> Vec<u8> {
        let mut strings = Strings::new(true);
        strings.max_packed_bytes = max_packed_bytes;
        let mut out = Vec::new();
        let mut pieces = Pieces::begin(&mut out, &mut strings, bytes.len() as u64, true).unwrap();
        let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
        while !rest.is_empty() {
            let cut = cuts.next().map_or(rest.len(), |cut| rest.len().min(*cut));
            let (piece, later) = rest.split_at(cut);
            pieces.put(&mut out, &mut strings, piece).unwrap();
            rest = later;
        }
        pieces.end(&mut out, &mut strings).unwrap();
        out
    }

    fn plain(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put_length(&mut out, bytes.len() as u64).unwrap();
        out.extend_from_slice(bytes);
        out
    }

    fn compressed(bytes: &[u8]) -> Vec<u8> {
        let packed = Compressor::default().compress(bytes, usize::MAX).unwrap();
        let mut out = Vec::new();
        put_packed(&mut out, &packed, bytes.len() as u64).unwrap();
        out
    }

    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let mut next = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    /// Zeros with a byte of noise after every `gap`.
    fn sparse(len: usize, gap: usize) -> Vec<u8> {
        let noise = noise(len);
        let bytes = noise.iter().enumerate();
        bytes
            .map(|(at, byte)| if at % gap == 0 { *byte } else { 0 })
            .collect()
    }

    fn contents() -> impl Strategy<Value = Vec<u8>> {
        let lens = prop_oneof![1..300_usize, 1..400_000_usize];
        (lens, prop_oneof![Just(1), 2..30_usize, 30..30_000_usize])
            .prop_map(|(len, gap)| sparse(len, gap))
    }

    fn cuts() -> impl Strategy<Value = Vec<usize>> {
        proptest::collection::vec(prop_oneof![1..300_usize, 1..300_000_usize], 1..20)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        #[test]
        fn cuts_change_nothing(bytes in contents(), cuts in cuts(), most in 0..100_000_usize) {
            for most in [most, PACKED_BYTES.ordinary()] {
                let whole = written(most, &bytes, &[usize::MAX]);
                prop_assert_eq!(&written(most, &bytes, &cuts), &whole);
                prop_assert!(whole == plain(&bytes) || whole == compressed(&bytes));
            }
        }
    }

    #[test]
    fn the_limit_decides_to_a_byte() {
        // A sample that promises what the rest does not keep.
        let bytes = [vec![0; 1 << 20], noise(300_000), sparse(1 << 20, 50)].concat();
        let packed = Compressor::default()
            .compress(&bytes, usize::MAX)
            .unwrap()
            .len();
        assert_eq!(written(packed, &bytes, &[4096]), compressed(&bytes));
        for most in [packed - 1, packed / 2, 100_000, 20_000] {
            assert!(written(most, &bytes, &[4096]) == plain(&bytes), "{most}");
        }
    }

    #[test]
    fn what_does_not_compress_is_given_up_early() {
        let full = noise(1 << 20);
        let mut strings = Strings::new(true);
        let mut out = Vec::new();
        let mut pieces = Pieces::begin(&mut out, &mut strings, full.len() as u64, true).unwrap();
        pieces.put(&mut out, &mut strings, &full[..SAMPLE]).unwrap();
        assert!(pieces.packing.is_none());
        assert_eq!(out.len(), 5 + SAMPLE, "it is written at once");
    }

    #[test]
    fn what_no_redis_reads_compressed_is_written_plain() {
        for (len, packing) in [(u32::MAX.into(), true), (1 << 32, false)] {
            let (mut out, mut strings) = (Vec::new(), Strings::new(true));
            let pieces = Pieces::begin(&mut out, &mut strings, len, true).unwrap();
            assert_eq!(pieces.packing.is_some(), packing, "{len}");
        }
    }
}
