//! LZF, the compression of strings in RDB files.
//!
//! ```text
//! 000nnnnn bytes                         n + 1 bytes as they are (1 to 32)
//! lllooooo oooooooo                      l + 2 bytes (l from 1 to 6) from o + 1 back
//! 111ooooo llllllll oooooooo             l + 9 bytes from o + 1 back (at most 8192)
//! ```
//!
//! The compressor is greedy and remembers the last place of every three bytes, as liblzf's does, so
//! that it gives what Redis gives. References are short, so neither direction needs more of the
//! plain bytes at hand than some tens of KiB.

use std::io::{self, Write};
use std::mem;

use everbloom::host;

/// The longest distance of a reference.
const WINDOW_BYTES: usize = 1 << 13;
/// The most bytes of one back reference.
const MAX_REFERENCE_BYTES: usize = 264;
/// The most bytes as they are behind one control byte.
const MAX_LITERALS: usize = 32;
/// Slots of the compressor's table, as a power of two.
const TABLE_BITS: u32 = 16;

/// The most that compressed data can grow by: three bytes that stand for [`MAX_REFERENCE_BYTES`].
const EXPANSION: u64 = MAX_REFERENCE_BYTES.div_ceil(3) as u64;
/// How many plain bytes are handled between two looks at the window.
const STRIDE: usize = 64 << 10;
/// A step of the compressor looks at so many bytes at most.
const LOOKAHEAD: usize = MAX_REFERENCE_BYTES + 3;
/// A run of this many zero bytes is not written where the output is zero already.
const ZEROS: usize = 1 << 10;

/// The error of compressed data that has no plain form.
const DAMAGED: io::ErrorKind = io::ErrorKind::InvalidData;

/// Whether `packed` bytes may be the compressed form of `len` bytes.
pub(super) fn may_be(len: u64, packed: u64) -> bool {
    len <= packed.saturating_mul(EXPANSION)
}

/// The plain form of `input`, which must be `len` bytes.
///
/// It allocates memory only when `input` can be that long. Runs of zeros are left as
/// the allocator gave them, so they take no memory of the machine.
///
/// # Errors
///
/// [`io::ErrorKind::InvalidData`] when it is not, or when a reference points before the start;
/// [`io::ErrorKind::OutOfMemory`].
pub fn decompress(input: &[u8], len: usize) -> io::Result<Vec<u8>> {
    if !may_be(len as u64, input.len() as u64) {
        return Err(DAMAGED.into());
    }
    let mut out = host::zeros(len).ok_or(io::ErrorKind::OutOfMemory)?;
    let mut left = out.as_mut_slice();
    unpack(input, |plain| {
        let (place, rest) = mem::take(&mut left)
            .split_at_mut_checked(plain.len())
            .ok_or(DAMAGED)?;
        left = rest;
        for (to, from) in place.chunks_mut(ZEROS).zip(plain.chunks(ZEROS)) {
            if from.iter().fold(0, |any, byte| any | byte) != 0 {
                to.copy_from_slice(from);
            }
        }
        Ok(())
    })?;
    if left.is_empty() {
        Ok(out)
    } else {
        Err(DAMAGED.into())
    }
}

/// Hands the plain form of `input` to `sink`, piece by piece.
fn unpack(input: &[u8], mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    // The last bytes that were handed over, then those that were not.
    let mut plain = Vec::new();
    let mut old = 0;
    let mut rest = input.iter();
    while let Some(&control) = rest.next() {
        let control = usize::from(control);
        if control < MAX_LITERALS {
            let (literals, tail) = rest
                .as_slice()
                .split_at_checked(control + 1)
                .ok_or(DAMAGED)?;
            plain.extend_from_slice(literals);
            rest = tail.iter();
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += usize::from(*rest.next().ok_or(DAMAGED)?);
            }
            let low = usize::from(*rest.next().ok_or(DAMAGED)?);
            let back = ((control & 0x1f) << 8 | low) + 1;
            copy_back(&mut plain, back, count + 2)?;
        }
        if plain.len() >= WINDOW_BYTES + STRIDE {
            sink(plain.get(old..).unwrap_or_default())?;
            plain.drain(..plain.len() - WINDOW_BYTES);
            old = WINDOW_BYTES;
        }
    }
    sink(plain.get(old..).unwrap_or_default())
}

/// Appends `count` bytes from `back` bytes before the end, which may include bytes appended by
/// this.
fn copy_back(out: &mut Vec<u8>, back: usize, count: usize) -> io::Result<()> {
    let start = out.len().checked_sub(back).ok_or(DAMAGED)?;
    let mut left = count;
    while left > 0 {
        // What lies between is the same bytes over and over, so all of it may be repeated.
        let n = left.min(out.len() - start);
        out.extend_from_within(start..start + n);
        left -= n;
    }
    Ok(())
}

/// Compresses strings one after another, keeping its table. A string may come piece by piece; how
/// it is cut changes nothing.
#[derive(Debug, Default)]
pub struct Compressor {
    /// For the hash of three bytes: `base` of the string they were in, plus where, plus 1.
    table: Vec<u32>,
    /// What is at most this in the table is of strings before this one.
    base: u32,
    /// The same for the next string.
    next: u32,
    /// The last bytes of the string that have come: those not compressed yet, and before them as
    /// many as references reach.
    window: Vec<u8>,
    /// Where in the string the window begins.
    start: usize,
    /// Where in the window the next step begins.
    at: usize,
    packed: Packed,
}

impl Compressor {
    /// The compressed form when that has at most `max` bytes.
    pub fn compress(&mut self, input: &[u8], max: usize) -> Option<Vec<u8>> {
        let fits = self.begin(input.len() as u64, max)
            && input.chunks(STRIDE).all(|piece| self.push(piece));
        if fits { self.finish() } else { None }
    }

    /// Begins a string of `len` bytes, whose compressed form may have `max`. False when the string
    /// is too long: readers have 32 bits for its length.
    pub(super) fn begin(&mut self, len: u64, max: usize) -> bool {
        let Ok(len) = u32::try_from(len) else {
            return false;
        };
        if self.table.is_empty() || self.next.checked_add(len).is_none() {
            self.table.clear();
            self.table.resize(1 << TABLE_BITS, 0);
            self.next = 0;
        }
        self.base = self.next;
        self.next += len;
        self.window.clear();
        (self.start, self.at) = (0, 0);
        self.packed = Packed {
            max,
            ..Packed::default()
        };
        true
    }

    /// Takes the next bytes of the string. False once the compressed form is too long, or finds no
    /// memory.
    pub(super) fn push(&mut self, piece: &[u8]) -> bool {
        self.window.extend_from_slice(piece);
        self.packed.reserve(self.window.len() - self.at);
        while self.window.len() - self.at >= LOOKAHEAD && self.packed.fits() {
            self.step();
        }
        if self.at > WINDOW_BYTES + STRIDE {
            let forgotten = self.at - WINDOW_BYTES;
            self.window.drain(..forgotten);
            self.start += forgotten;
            self.at = WINDOW_BYTES;
        }
        self.packed.fits()
    }

    /// How many bytes the compressed form has so far.
    pub(super) fn packed_len(&self) -> usize {
        self.packed.out.len()
    }

    /// The compressed form of the string, unless it is too long or finds no memory.
    pub(super) fn finish(&mut self) -> Option<Vec<u8>> {
        self.packed.reserve(self.window.len() - self.at);
        if !self.packed.fits() {
            return None;
        }
        while self.at + 2 < self.window.len() && self.packed.fits() {
            self.step();
        }
        for byte in self.window.drain(..).skip(mem::take(&mut self.at)) {
            self.packed.literal(byte);
        }
        let fits = self.packed.fits();
        fits.then(|| mem::take(&mut self.packed.out))
    }

    /// Writes all bytes of the string that have come, for one whose compressed form is too long.
    pub(super) fn take_back(&mut self, out: &mut impl Write) -> io::Result<()> {
        let packed = mem::take(&mut self.packed.out);
        unpack(&packed, |plain| out.write_all(plain))?;
        out.write_all(self.window.get(self.at..).unwrap_or_default())
    }

    fn step(&mut self) {
        let at = self.start + self.at;
        let candidate = self.swap(self.at);
        // The first byte of all is never referred to: liblzf has its place mean "none".
        let back = candidate.filter(|place| *place > 0 && at - place <= WINDOW_BYTES);
        let count = back.map_or(0, |place| common(&self.window, place - self.start, self.at));
        let Some(place) = back.filter(|_| count >= 3) else {
            self.packed
                .literal(self.window.get(self.at).copied().unwrap_or(0));
            self.at += 1;
            return;
        };
        self.packed.reference(at - place, count);
        self.at += count;
        // Of the places within the reference only the last two are remembered.
        if self.at + 2 < self.window.len() {
            self.swap(self.at - 2);
            self.swap(self.at - 1);
        }
    }

    /// The last place in the string of the three bytes there in the window, which are remembered
    /// instead.
    fn swap(&mut self, at: usize) -> Option<usize> {
        let three = self.window.get(at..)?.first_chunk::<3>()?;
        let slot = self.table.get_mut(slot_of(*three))?;
        let place = u32::try_from(self.start + at).ok()?;
        let before = mem::replace(slot, self.base + place + 1);
        let place = before.checked_sub(self.base)?.checked_sub(1)?;
        usize::try_from(place).ok()
    }
}

/// liblzf's hash of three bytes.
fn slot_of([a, b, c]: [u8; 3]) -> usize {
    let three = u32::from_be_bytes([0, a, b, c]);
    let hash = (three >> (24 - TABLE_BITS)).wrapping_sub(three.wrapping_mul(5));
    usize::from(hash.to_le_bytes()[0]) | usize::from(hash.to_le_bytes()[1]) << 8
}

/// How many bytes from `at` on a reference to `place` stands for; 0 when not three. It stops short
/// of the last two bytes of all, except where liblzf, which looks at the first 3 or 19 bytes
/// without asking, does not.
fn common(input: &[u8], place: usize, at: usize) -> usize {
    let (Some(old), Some(new)) = (input.get(place..), input.get(at..)) else {
        return 0;
    };
    let most = match MAX_REFERENCE_BYTES.min(new.len().saturating_sub(2)) {
        most @ ..=16 => most.max(3),
        most => most.max(19),
    };
    let (old, new) = (old.get(..most), new.get(..most));
    let (old, new) = (old.unwrap_or_default(), new.unwrap_or_default());
    let eights = old.chunks_exact(8).zip(new.chunks_exact(8));
    let equal = 8 * eights.take_while(|(old, new)| old == new).count();
    let pairs = old.iter().zip(new).skip(equal);
    let count = equal + pairs.take_while(|(old, new)| old == new).count();
    if count < 3 { 0 } else { count }
}

/// Compressed data in the making. It is whole after every call.
#[derive(Debug, Default)]
struct Packed {
    out: Vec<u8>,
    max: usize,
    /// Where the control byte of the literals at the end is.
    control: Option<usize>,
    /// There was no memory for more.
    starved: bool,
}

impl Packed {
    fn fits(&self) -> bool {
        self.out.len() <= self.max && !self.starved
    }

    /// Makes room for the longest form of so many more bytes: literals, and a control byte for each
    /// run of them.
    fn reserve(&mut self, plain: usize) {
        let most = plain + plain / MAX_LITERALS + 2;
        self.starved |= self.out.try_reserve(most).is_err();
    }

    fn literal(&mut self, literal: u8) {
        let control = match self.control {
            Some(control) => control,
            None => {
                self.out.push(0);
                self.out.len() - 1
            }
        };
        self.out.push(literal);
        let literals = self.out.len() - 1 - control;
        if let (Some(byte), Ok(count)) = (self.out.get_mut(control), u8::try_from(literals - 1)) {
            *byte = count;
        }
        self.control = (literals < MAX_LITERALS).then_some(control);
    }

    fn reference(&mut self, back: usize, count: usize) {
        let [low, high, ..] = (back - 1).to_le_bytes();
        match u8::try_from(count - 2) {
            Ok(short) if short < 7 => self.out.push(short << 5 | high),
            _ => {
                let [long, ..] = (count - 9).to_le_bytes();
                self.out.extend([7 << 5 | high, long]);
            }
        }
        self.out.push(low);
        self.control = None;
    }
}
