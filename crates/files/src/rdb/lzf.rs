//! LZF, the compression of strings in RDB files.
//!
//! ```text
//! 000nnnnn bytes                         n + 1 bytes as they are (1 to 32)
//! lllooooo oooooooo                      l + 2 bytes (l from 1 to 6) from o + 1 back
//! 111ooooo llllllll oooooooo             l + 9 bytes from o + 1 back (at most 8192)
//! ```
//!
//! The compressor is greedy and remembers the last place of every three bytes, as liblzf's does, so
//! that it gives what Redis gives.

/// Distances are below this.
const WINDOW: usize = 1 << 13;
/// The most bytes of one back reference.
const LONGEST: usize = 264;
/// The most bytes as they are behind one control byte.
const LITERALS: usize = 32;
/// Slots of the compressor's table, as a power of two.
const TABLE_BITS: u32 = 16;

/// The most that compressed data can grow by: three bytes that stand for [`LONGEST`].
const EXPANSION: usize = LONGEST.div_ceil(3);

/// Compressed data is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damaged;

/// The plain form of `input`, which must be `len` bytes.
///
/// # Errors
///
/// [`Damaged`] when it is not, or when a reference points before the start. Memory is asked for
/// only when `input` is long enough to be that long.
pub fn decompress(input: &[u8], len: usize) -> Result<Vec<u8>, Damaged> {
    if len > input.len().saturating_mul(EXPANSION) {
        return Err(Damaged);
    }
    let mut out = Vec::new();
    out.try_reserve_exact(len).map_err(|_| Damaged)?;
    let mut rest = input.iter();
    while let Some(&control) = rest.next() {
        let control = usize::from(control);
        if control < LITERALS {
            let (literals, tail) = rest
                .as_slice()
                .split_at_checked(control + 1)
                .ok_or(Damaged)?;
            if literals.len() > len - out.len() {
                return Err(Damaged);
            }
            out.extend_from_slice(literals);
            rest = tail.iter();
            continue;
        }
        let mut count = control >> 5;
        if count == 7 {
            count += usize::from(*rest.next().ok_or(Damaged)?);
        }
        let low = usize::from(*rest.next().ok_or(Damaged)?);
        let back = ((control & 0x1f) << 8 | low) + 1;
        copy_back(&mut out, back, count + 2, len)?;
    }
    if out.len() == len {
        Ok(out)
    } else {
        Err(Damaged)
    }
}

/// Appends `count` bytes from `back` bytes before the end, which may include bytes appended by
/// this.
fn copy_back(out: &mut Vec<u8>, back: usize, count: usize, len: usize) -> Result<(), Damaged> {
    let start = out.len().checked_sub(back).ok_or(Damaged)?;
    if count > len - out.len() {
        return Err(Damaged);
    }
    let mut left = count;
    while left > 0 {
        // What lies between is the same bytes over and over, so all of it may be repeated.
        let n = left.min(out.len() - start);
        out.extend_from_within(start..start + n);
        left -= n;
    }
    Ok(())
}

/// Compresses strings one after another, keeping its table.
#[derive(Debug, Default)]
pub struct Compressor {
    /// For the hash of three bytes: `base` of the string they were in, plus where, plus 1.
    table: Vec<u32>,
    /// What is at most this in the table is of strings before this one.
    base: u32,
    /// The same for the next string.
    next: u32,
}

impl Compressor {
    /// The compressed form when that has at most `max` bytes.
    pub fn compress(&mut self, input: &[u8], max: usize) -> Option<Vec<u8>> {
        let len = u32::try_from(input.len())
            .ok()
            .filter(|len| *len < 1 << 31)?;
        if self.table.is_empty() || self.next.checked_add(len).is_none() {
            self.table.clear();
            self.table.resize(1 << TABLE_BITS, 0);
            self.next = 0;
        }
        self.base = self.next;
        self.next += len;
        let mut out = Packed::new(max);
        let mut at = 0;
        while at + 2 < input.len() && out.fits() {
            let candidate = self.swap(input, at);
            // The first byte of all is never referred to: liblzf has its place mean "none".
            let back = candidate.filter(|place| *place > 0 && at - place <= WINDOW);
            let count = back.map_or(0, |place| common(input, place, at));
            let Some(place) = back.filter(|_| count >= 3) else {
                out.literal(input, at);
                at += 1;
                continue;
            };
            out.reference(at - place, count);
            at += count;
            // Of the places within the reference only the last two are remembered.
            if at + 2 < input.len() {
                self.swap(input, at - 2);
                self.swap(input, at - 1);
            }
        }
        if !out.fits() {
            return None;
        }
        for at in at..input.len() {
            out.literal(input, at);
        }
        out.finish()
    }

    /// The last place of the three bytes at `at`, which is remembered instead.
    fn swap(&mut self, input: &[u8], at: usize) -> Option<usize> {
        let three = input.get(at..)?.first_chunk::<3>()?;
        let slot = self.table.get_mut(slot_of(*three))?;
        let before = std::mem::replace(slot, self.base + u32::try_from(at).ok()? + 1);
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
    let most = match LONGEST.min(new.len().saturating_sub(2)) {
        most @ ..=16 => most.max(3),
        most => most.max(19),
    };
    let pairs = old.iter().zip(new).take(most);
    let count = pairs.take_while(|(old, new)| old == new).count();
    if count < 3 { 0 } else { count }
}

/// Compressed data in the making.
struct Packed {
    out: Vec<u8>,
    max: usize,
    /// Where the control byte of the literals at the end is.
    control: Option<usize>,
}

impl Packed {
    fn new(max: usize) -> Packed {
        Packed {
            out: Vec::new(),
            max,
            control: None,
        }
    }

    fn fits(&self) -> bool {
        self.out.len() <= self.max
    }

    fn literal(&mut self, input: &[u8], at: usize) {
        let control = match self.control {
            Some(control) => control,
            None => {
                self.out.push(0);
                self.out.len() - 1
            }
        };
        self.out.extend(input.get(at));
        let literals = self.out.len() - 1 - control;
        if let (Some(byte), Ok(count)) = (self.out.get_mut(control), u8::try_from(literals - 1)) {
            *byte = count;
        }
        self.control = (literals < LITERALS).then_some(control);
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

    fn finish(self) -> Option<Vec<u8>> {
        self.fits().then_some(self.out)
    }
}
