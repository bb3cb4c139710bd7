//! Filters of `bloom`, DCSO's tool and library for Go. CIRCL's hashlookup comes in this format, and
//! flor reads it in Python.
//!
//! [`DcsoView`] finds items in the bytes, where they are, with the tool's answers. [`DcsoHeader`]
//! gives the positions of an item's bits, for bytes that are stored elsewhere. [`DcsoFilter`] makes
//! a new filter, which the tool reads. If the tool packed a file with `--gzip`, unpack it first.
//!
//! The tool takes each line as an item, without its line feed. CIRCL's items are SHA-1 sums in
//! hexadecimal, in capitals.
//!
//! # The bytes
//!
//! All numbers are little-endian, of 64 bits.
//!
//! ```text
//! offset  size  field
//!      0     8  version: 1
//!      8     8  capacity, n
//!     16     8  error rate, p: an IEEE double
//!     24     8  hashes, k
//!     32     8  bits, m
//!     40     8  items that changed a bit when they were put in, N
//!     48   8 w  words of the bits, the lowest bit first: w = m / 64, rounded up
//!   rest        data that the user attached
//! ```
//!
//! The hash is FNV-1 of 64 bits (Fowler, Noll and Vo). With `M` = 2^64 - 59 and `g` = 2^64 - 1469,
//! `h = FNV(item) mod M` at first; for each bit of the item `h = (g h mod 2^64) mod M`, and the
//! position is `h mod m`.
//!
//! The tool makes `m` the whole part of `n |ln p| / (ln 2)^2`, and `k` is `m / n ln 2`, rounded up.

use alloc::boxed::Box;
use core::f64::consts::LN_2;
use core::fmt;

use crate::bits::array::{count_ones, test_bit};
use crate::bits::memory::zeroed;
use crate::bloom::sets::UnionError;
use crate::bloom::stats::Stats;
use crate::error::{BuildError, first_broken};
use crate::hash::Modulus;
use crate::math::{ceil, whole};
use crate::sizing::textbook;

/// The only version that exists.
const VERSION: u64 = 1;

/// The number of hashes for the smallest double as an error rate. More would only take time.
const MAX_HASHES: u64 = 1075;

/// `M`, the largest prime below 2^64, and `g`.
const PRIME: u64 = 0xffff_ffff_ffff_ffc5;
const MULTIPLIER: u64 = 0xffff_ffff_ffff_fa43;

/// The offset of the number of items in the header.
const LEN_AT: usize = 40;

/// The header of a filter. It gives the parameters and the positions of an item's bits.
///
/// ```
/// use everbloom::dcso::{DcsoFilter, DcsoHeader};
///
/// let mut fruit = DcsoFilter::new(5, 0.01)?;
/// fruit.insert("apple");
/// let header = DcsoHeader::new(fruit.as_bytes())?;
/// assert_eq!((header.len(), header.capacity(), header.error_rate()), (1, 5, 0.01));
/// assert_eq!((header.hashes(), header.bits(), header.filter_len()), (7, 47, 56));
/// let bit = |at: u64| fruit.as_bytes()[DcsoHeader::SIZE + at as usize / 8] >> (at % 8) & 1 == 1;
/// assert!(header.positions("apple").all(bit));
/// assert!(!header.positions("plum").all(bit));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DcsoHeader {
    capacity: u64,
    error_rate: f64,
    hashes: u32,
    bits: Modulus,
    len: u64,
}

/// Why bytes are not a filter of DCSO's.
///
/// ```
/// use everbloom::dcso::{DcsoError, DcsoFilter, DcsoView};
///
/// let filter = DcsoFilter::new(5, 0.01)?;
/// let bytes = filter.as_bytes();
/// let error = DcsoView::new(&bytes[..50]).unwrap_err();
/// assert_eq!(error, DcsoError::Length { expected: 56, found: 50 });
/// assert_eq!(DcsoView::new(&bytes[..47]).unwrap_err(), DcsoError::Truncated);
/// assert_eq!(DcsoView::new(&[2; 56]).unwrap_err(), DcsoError::Version(0x0202_0202_0202_0202));
/// # Ok::<(), everbloom::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum DcsoError {
    /// There are fewer bytes than the header has: [48](DcsoHeader::SIZE).
    Truncated,
    /// The version is not 1.
    Version(u64),
    /// The capacity is 0.
    Capacity,
    /// The error rate is not greater than 0 and less than 1.
    ErrorRate(f64),
    /// The hash count is 0, so that every item would be found, or above 1075, the hash count of the
    /// smallest error rate.
    Hashes(u64),
    /// There are no bits.
    Bits,
    /// There are fewer bytes than the filter has.
    Length {
        /// The length of the filter, without attached data.
        expected: u64,
        /// The length of the bytes.
        found: u64,
    },
}

messages! {
    DcsoError {
        Truncated => "the bytes end before the header does";
        Version(found) => "version {found} is not known";
        Capacity => "a filter for no items";
        ErrorRate(found) => "{found} is no error rate";
        Hashes(found) => "{found} hashes are none or too many";
        Bits => "a filter without bits";
        Length { expected, found } => "the filter has {expected} bytes, not {found}";
    }
}

impl DcsoHeader {
    /// How many bytes it has.
    pub const SIZE: usize = 48;

    /// The header of a filter that begins with these bytes. Looks at the first 48 only.
    ///
    /// # Errors
    ///
    /// [`DcsoError`] says what is wrong with the first 48 bytes. The rest is not checked.
    pub fn new(bytes: &[u8]) -> Result<DcsoHeader, DcsoError> {
        let (fields, _) = bytes.as_chunks::<8>();
        let fields = fields.first_chunk().ok_or(DcsoError::Truncated)?;
        let [version, capacity, rate, hashes, bits, len] = fields.map(u64::from_le_bytes);
        let error_rate = f64::from_bits(rate);
        let is_rate = error_rate > 0.0 && error_rate < 1.0;
        first_broken([
            (version == VERSION, DcsoError::Version(version)),
            (capacity > 0, DcsoError::Capacity),
            (is_rate, DcsoError::ErrorRate(error_rate)),
            (
                (1..=MAX_HASHES).contains(&hashes),
                DcsoError::Hashes(hashes),
            ),
            (bits > 0, DcsoError::Bits),
        ])?;
        Ok(DcsoHeader {
            capacity,
            error_rate,
            hashes: u32::try_from(hashes).map_err(|_| DcsoError::Hashes(hashes))?,
            bits: Modulus::new(bits),
            len,
        })
    }

    /// The header of an empty filter. [Example](DcsoFilter).
    ///
    /// # Errors
    ///
    /// [`BuildError`], if the capacity is 0, the error rate is not between 0 and 1, or both are so
    /// near to 1 that there would be no bits.
    pub fn of(capacity: u64, error_rate: f64) -> Result<DcsoHeader, BuildError> {
        let is_rate = error_rate > 0.0 && error_rate < 1.0;
        first_broken([
            (capacity > 0, BuildError::Capacity),
            (is_rate, BuildError::ErrorRate),
        ])?;
        let bits = whole(textbook::bits(capacity as f64, error_rate));
        let hashes = whole(ceil(LN_2 * bits as f64 / capacity as f64));
        match u32::try_from(hashes) {
            Ok(hashes) if bits > 0 => Ok(DcsoHeader {
                capacity,
                error_rate,
                hashes,
                bits: Modulus::new(bits),
                len: 0,
            }),
            _ => Err(BuildError::Unsizable),
        }
    }

    /// The positions of the item's bits, in the order in which the tool tests them. Bit `8 i + j`
    /// is in byte `i` behind the header and has the weight `2^j` there. Takes time linear in the
    /// item's bytes, and constant time for each position.
    pub fn positions(&self, item: impl AsRef<[u8]>) -> impl Iterator<Item = u64> {
        let (bits, hash) = (self.bits, fnv1(item.as_ref()) % PRIME);
        let next = |hash: &u64| Some(MULTIPLIER.wrapping_mul(*hash) % PRIME);
        let hashes = core::iter::successors(Some(hash), next).skip(1);
        let count = usize::try_from(self.hashes).unwrap_or(usize::MAX);
        hashes.take(count).map(move |hash| bits.reduce(hash))
    }

    /// The items that the filter was made for.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The error rate that the filter was made for, once it has as many items as its capacity.
    #[must_use]
    pub fn error_rate(&self) -> f64 {
        self.error_rate
    }

    /// How many bits an item sets.
    #[must_use]
    pub fn hashes(&self) -> u32 {
        self.hashes
    }

    /// How many bits there are.
    #[must_use]
    pub fn bits(&self) -> u64 {
        self.bits.get()
    }

    /// The number of inserted items that changed a bit, as the tool recorded it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether no item was inserted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The length of the header and the bits. Any bytes after them are attached data.
    #[must_use]
    pub fn filter_len(&self) -> u64 {
        Self::SIZE as u64 + self.bits().div_ceil(64) * 8
    }

    /// The parameters, contents and error rate of the filter when this many of its bits are 1.
    ///
    /// ```
    /// # use everbloom::dcso::DcsoHeader;
    /// let header = DcsoHeader::of(1000, 0.01)?;
    /// let rate = header.stats(header.bits() / 2).estimated_error_rate;
    /// assert!((rate - 1.0 / 128.0).abs() < 1e-5);
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stats(&self, ones: u64) -> Stats {
        Stats {
            items: self.len,
            capacity: Some(self.capacity),
            error_rate: Some(self.error_rate),
            ..Stats::of_array(ones, self.bits(), self.hashes)
        }
    }

    fn to_bytes(self) -> [[u8; 8]; 6] {
        [
            VERSION.to_le_bytes(),
            self.capacity.to_le_bytes(),
            self.error_rate.to_le_bytes(),
            u64::from(self.hashes).to_le_bytes(),
            self.bits().to_le_bytes(),
            self.len.to_le_bytes(),
        ]
    }
}

/// A filter of DCSO's in borrowed bytes.
///
/// ```
/// use everbloom::dcso::DcsoView;
///
/// // printf 'apple\npear\n' | bloom create -n 5 -p 0.01 fruit.bloom
/// let bytes = [
///     1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0,
///     0x7b, 0x14, 0xae, 0x47, 0xe1, 0x7a, 0x84, 0x3f, 7, 0, 0, 0, 0, 0, 0, 0,
///     47, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0,
///     0x02, 0x88, 0x1c, 0x10, 0x09, 0x35, 0, 0,
/// ];
/// let fruit = DcsoView::new(&bytes)?;
/// assert!(fruit.contains("apple") && fruit.contains("pear"));
/// assert!(!fruit.contains("plum"));
/// assert_eq!((fruit.header().len(), fruit.data()), (2, &[][..]));
/// # Ok::<(), everbloom::dcso::DcsoError>(())
/// ```
///
/// The bytes have no checksum. A view of changed bits gives wrong answers, but is otherwise safe.
#[derive(Clone, Copy, PartialEq)]
pub struct DcsoView<'a> {
    header: DcsoHeader,
    words: &'a [u8],
    data: &'a [u8],
}

impl<'a> DcsoView<'a> {
    /// A view of the filter in these bytes. Checks the header and the number of bytes.
    ///
    /// # Errors
    ///
    /// [`DcsoError`] says what is wrong. Bytes behind the filter are its [`data`](Self::data).
    pub fn new(bytes: &'a [u8]) -> Result<DcsoView<'a>, DcsoError> {
        let header = DcsoHeader::new(bytes)?;
        let (expected, found) = (header.filter_len(), bytes.len() as u64);
        let short = DcsoError::Length { expected, found };
        DcsoView::of(header, bytes).ok_or(short)
    }

    /// The view; `None` when there are fewer bytes than the filter has.
    fn of(header: DcsoHeader, bytes: &'a [u8]) -> Option<DcsoView<'a>> {
        let len = usize::try_from(header.filter_len()).ok()?;
        let (filter, data) = bytes.split_at_checked(len)?;
        let words = filter.get(DcsoHeader::SIZE..)?;
        Some(DcsoView {
            header,
            words,
            data,
        })
    }

    /// Whether the item may be in the filter, as `bloom check` says. Takes time linear in its bytes
    /// and in the hashes.
    #[must_use]
    pub fn contains(&self, item: impl AsRef<[u8]>) -> bool {
        let mut positions = self.header.positions(item);
        positions.all(|position| test_bit(self.words, position))
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &DcsoHeader {
        &self.header
    }

    /// The data that `bloom set-data` attached.
    #[must_use]
    pub fn data(&self) -> &'a [u8] {
        self.data
    }

    /// The parameters, contents and error rate of the filter. Takes time linear in the bits.
    ///
    /// ```
    /// # use everbloom::dcso::{DcsoFilter, DcsoView};
    /// let mut filter = DcsoFilter::new(1000, 0.01)?;
    /// for number in 0..1000 {
    ///     filter.insert(number.to_string());
    /// }
    /// let rate = filter.view().stats().estimated_error_rate;
    /// assert!((0.009..0.013).contains(&rate));
    /// # Ok::<(), everbloom::BuildError>(())
    /// ```
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.header.stats(count_ones(self.words))
    }
}

impl fmt::Debug for DcsoView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DcsoView")
            .field("header", &self.header)
            .field("data", &self.data.len())
            .finish_non_exhaustive()
    }
}

/// A new filter in DCSO's format, for its tool and for programs that read its files.
///
/// ```
/// use everbloom::dcso::DcsoFilter;
///
/// let mut fruit = DcsoFilter::new(5, 0.01)?;
/// assert!(fruit.insert("apple"));
/// assert!(!fruit.insert("apple"));
/// assert!(fruit.view().contains("apple") && !fruit.view().contains("plum"));
/// std::fs::write(std::env::temp_dir().join("fruit.bloom"), fruit.as_bytes())?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Its hash has no key, so anyone can choose items that are found although they were never
/// inserted. If you can choose the format, use a [`BloomFilter`](crate::BloomFilter).
#[derive(Clone)]
pub struct DcsoFilter {
    header: DcsoHeader,
    /// The file's bytes.
    bytes: Box<[u8]>,
}

impl DcsoFilter {
    /// An empty filter for this many items, of the same size as the tool's.
    ///
    /// # Errors
    ///
    /// Those of [`DcsoHeader::of`], and [`BuildError::OutOfMemory`].
    pub fn new(capacity: u64, error_rate: f64) -> Result<DcsoFilter, BuildError> {
        let header = DcsoHeader::of(capacity, error_rate)?;
        let bytes = header.filter_len();
        let refused = BuildError::OutOfMemory { bytes };
        let len = usize::try_from(bytes).map_err(|_| refused)?;
        let mut bytes = zeroed(len).map_err(|_| refused)?;
        for (place, byte) in bytes.iter_mut().zip(header.to_bytes().as_flattened()) {
            *place = *byte;
        }
        Ok(DcsoFilter { header, bytes })
    }

    /// The filter of a file. [Example](Self::union).
    ///
    /// # Errors
    ///
    /// Those of [`DcsoView::new`]. Data behind the filter stays there.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Result<DcsoFilter, DcsoError> {
        let bytes = bytes.into();
        let header = *DcsoView::new(&bytes)?.header();
        Ok(DcsoFilter { header, bytes })
    }

    /// Adds all items of another filter of the same parameters. The tool then counts an item twice
    /// that both have. [`data`](DcsoView::data) of the other is not added.
    ///
    /// ```
    /// use everbloom::dcso::DcsoFilter;
    ///
    /// let mut fruit = DcsoFilter::new(5, 0.01)?;
    /// let mut more = DcsoFilter::from_bytes(fruit.as_bytes())?;
    /// fruit.insert("apple");
    /// more.insert("plum");
    /// fruit.union(&more)?;
    /// assert!(fruit.view().contains("apple") && fruit.view().contains("plum"));
    /// assert_eq!(fruit.view().header().len(), 2);
    /// assert!(fruit.union(&DcsoFilter::new(6, 0.01)?).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`UnionError`] names a parameter in which the filters differ; nothing has changed then.
    pub fn union(&mut self, other: &DcsoFilter) -> Result<(), UnionError> {
        let (one, two) = (&self.header, &other.header);
        first_broken([
            (one.capacity == two.capacity, UnionError::Capacity),
            (one.error_rate == two.error_rate, UnionError::ErrorRate),
            (one.hashes == two.hashes, UnionError::Hashes),
            (one.bits() == two.bits(), UnionError::Bits),
        ])?;
        let words = self.bytes.get_mut(DcsoHeader::SIZE..).unwrap_or_default();
        for (mine, others) in words.iter_mut().zip(other.view().words) {
            *mine |= others;
        }
        self.set_len(self.header.len.saturating_add(other.header.len));
        Ok(())
    }

    fn set_len(&mut self, len: u64) {
        self.header.len = len;
        let fields = self.bytes.get_mut(LEN_AT..);
        if let Some(field) = fields.and_then(<[u8]>::first_chunk_mut) {
            *field = len.to_le_bytes();
        }
    }

    /// Inserts an item; true when it is new: it was certainly not in the filter before. Takes time
    /// linear in its bytes and in the hashes.
    pub fn insert(&mut self, item: impl AsRef<[u8]>) -> bool {
        let mut is_new = false;
        let words = self.bytes.get_mut(DcsoHeader::SIZE..).unwrap_or_default();
        for position in self.header.positions(item) {
            let at = usize::try_from(position / 8).ok();
            if let Some(byte) = at.and_then(|at| words.get_mut(at)) {
                let bit = 1 << (position % 8);
                is_new |= *byte & bit == 0;
                *byte |= bit;
            }
        }
        if is_new {
            self.set_len(self.header.len.saturating_add(1));
        }
        is_new
    }

    /// A view of the filter, without a copy.
    #[must_use]
    pub fn view(&self) -> DcsoView<'_> {
        let none = DcsoView {
            header: self.header,
            words: &[],
            data: &[],
        };
        // The bytes were zeroed or checked for this length.
        DcsoView::of(self.header, &self.bytes).unwrap_or(none)
    }

    /// The bytes of its file, which never need a copy.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for DcsoFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DcsoFilter")
            .field("header", &self.header)
            .finish_non_exhaustive()
    }
}

/// FNV-1 of 64 bits: multiply, then exclusive or.
fn fnv1(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        hash.wrapping_mul(0x0100_0000_01b3) ^ u64::from(*byte)
    })
}
