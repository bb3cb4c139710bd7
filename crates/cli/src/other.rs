//! Filters that other programs wrote: DCSO's `bloom`, also packed with gzip, and Guava.
//!
//! ```text
//! first bytes                             is a filter of
//! 1 0 0 0 0 0 0 0                         DCSO's bloom
//! 0 or 1, not 0, a length that fits       Guava
//! a header of DCSO's, but the version     DCSO's bloom, of another version
//! gzip, and of these DCSO's within        DCSO's bloom, packed
//! ```

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, sink};
use std::path::Path;

use everbloom::dcso::{DcsoError, DcsoHeader};
use everbloom::guava::{GuavaError, GuavaView, Strategy};

use crate::description::Description;
use crate::failure::Failure;
use crate::pages::Pages;
use crate::records::unpack::{GZIP, unpacked};

/// The most bytes that are unpacked into memory.
const UNPACKED: u64 = 1 << 30;

/// How much of a file is read at once.
const PIECE: usize = 64 << 10;

/// A program that writes filters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    Dcso,
    Guava,
}

impl Program {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Program::Dcso => "DCSO's bloom",
            Program::Guava => "Guava",
        }
    }
}

/// Why a filter of another program cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OtherError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Dcso(#[from] DcsoError),
    #[error("{0}")]
    Guava(#[from] GuavaError),
    #[error("{0} bytes are too many to unpack into memory")]
    TooLarge(u64),
}

impl OtherError {
    /// A filter of another program in this file cannot be used.
    pub(crate) fn of_file(self, path: &Path, program: Program) -> Failure {
        let (shown, program) = (path.display(), program.name());
        Failure::Other(match self {
            OtherError::TooLarge(bytes) => format!(
                "{shown} unpacks to {bytes} bytes, too many for memory; unpack it with gunzip, \
                 and name the result"
            ),
            reason => format!(
                "{shown} is no whole filter of {program} ({reason}); put a copy in its place, or \
                 make it again"
            ),
        })
    }
}

/// How a program in Java put its items into a filter of Guava.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Funnel {
    /// Funnels.stringFunnel(UTF_8), or byteArrayFunnel()
    Utf8,
    /// Funnels.unencodedCharsFunnel()
    Chars,
    /// Funnels.integerFunnel(); records are numbers
    Integer,
    /// Funnels.longFunnel(); records are numbers
    Long,
}

/// A filter of another program.
#[derive(Debug)]
pub(crate) enum Other {
    Dcso {
        header: DcsoHeader,
        bits: Bits,
        /// How many bytes are attached.
        data: u64,
    },
    /// All bytes, which are a filter.
    Guava(Vec<u8>),
}

/// The bytes behind the header of a filter of DCSO's, attached data too.
#[derive(Debug)]
pub(crate) enum Bits {
    InFile(Pages),
    InMemory(Vec<u8>),
}

/// The program that wrote a filter into the file, as far as its first bytes tell.
pub(crate) fn program(file: &File) -> io::Result<Option<Program>> {
    let length = file.metadata()?.len();
    let head = first_bytes(rewound(file)?)?;
    if is_dcso(&head, length) {
        return Ok(Some(Program::Dcso));
    }
    if is_guava(&head, length) {
        return Ok(Some(Program::Guava));
    }
    if head.starts_with(&GZIP) {
        // What cannot be unpacked is nothing that is known here.
        let head = unzipped(file).and_then(first_bytes).unwrap_or_default();
        if is_dcso(&head, u64::MAX) {
            return Ok(Some(Program::Dcso));
        }
    }
    Ok(None)
}

/// A filter of the first version may be cut off. Of another version only the numbers tell that it
/// is one.
fn is_dcso(head: &[u8], length: u64) -> bool {
    let version_1 = 1_u64.to_le_bytes();
    if head.starts_with(&version_1) {
        return true;
    }
    let Some((_, numbers)) = head.split_first_chunk::<8>() else {
        return false;
    };
    let header = DcsoHeader::new(&[&version_1, numbers].concat());
    header.is_ok_and(|header| header.filter_len() <= length)
}

fn is_guava(head: &[u8], length: u64) -> bool {
    match GuavaView::new(head) {
        Err(GuavaError::Length { expected, .. }) => expected == length,
        whole => whole.is_ok(),
    }
}

fn rewound(mut file: &File) -> io::Result<&File> {
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn first_bytes(from: impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::new();
    from.take(DcsoHeader::SIZE as u64).read_to_end(&mut head)?;
    Ok(head)
}

fn unzipped(file: &File) -> io::Result<impl Read> {
    Ok(unpacked(&GZIP, rewound(file)?.try_clone()?))
}

impl Other {
    /// Opens a filter that this program wrote.
    pub(crate) fn open(program: Program, file: &File) -> Result<Self, OtherError> {
        let length = file.metadata()?.len();
        match program {
            Program::Guava => {
                let mut bytes = Vec::new();
                rewound(file)?.read_to_end(&mut bytes)?;
                GuavaView::new(&bytes)?;
                Ok(Other::Guava(bytes))
            }
            Program::Dcso => {
                let head = first_bytes(rewound(file)?)?;
                if head.starts_with(&GZIP) {
                    return unpack(unzipped(file)?);
                }
                let header = DcsoHeader::new(&head)?;
                let data = length.checked_sub(header.filter_len());
                let data = data.ok_or_else(|| too_short(&header, length))?;
                let bits = Bits::InFile(Pages::new(file.try_clone()?)?);
                Ok(Other::Dcso { header, bits, data })
            }
        }
    }

    pub(crate) fn program(&self) -> Program {
        match self {
            Other::Dcso { .. } => Program::Dcso,
            Other::Guava(_) => Program::Guava,
        }
    }

    /// Calls `emit` for each item with whether it is in the filter.
    pub(crate) fn contains_each<'a>(
        &mut self,
        funnel: Option<Funnel>,
        items: impl Iterator<Item = &'a [u8]>,
        mut emit: impl FnMut(bool),
    ) -> Result<(), OtherError> {
        match self {
            Other::Dcso { header, bits, .. } => {
                for item in items {
                    let mut found = true;
                    for position in header.positions(item) {
                        found = bits.byte(position / 8)? >> (position % 8) & 1 == 1;
                        if !found {
                            break;
                        }
                    }
                    emit(found);
                }
            }
            Other::Guava(bytes) => {
                let filter = GuavaView::new(bytes)?;
                items.for_each(|item| emit(guava_contains(&filter, funnel, item)));
            }
        }
        Ok(())
    }

    /// Looks at all bits.
    pub(crate) fn describe(&mut self) -> Result<Description, OtherError> {
        let program = self.program().name();
        let (kind, variant, stats, data) = match self {
            Other::Dcso { header, bits, data } => {
                let ones = bits.ones(header.filter_len() - DcsoHeader::SIZE as u64)?;
                ("dcso", None, header.stats(ones), *data)
            }
            Other::Guava(bytes) => {
                let filter = GuavaView::new(bytes)?;
                let strategy = match filter.strategy() {
                    Strategy::Mitz32 => "MURMUR128_MITZ_32",
                    Strategy::Mitz64 => "MURMUR128_MITZ_64",
                };
                ("guava", Some(("strategy", strategy)), filter.stats(), 0)
            }
        };
        Ok(Description {
            kind: [kind, program],
            variant,
            stats,
            is_overfull: stats
                .capacity
                .is_some_and(|capacity| stats.items > capacity),
            layers: None,
            data,
            window: None,
        })
    }
}

impl Bits {
    /// The byte of eight bits.
    fn byte(&mut self, at: u64) -> io::Result<u8> {
        match self {
            Bits::InFile(pages) => pages.byte(DcsoHeader::SIZE as u64 + at),
            Bits::InMemory(bytes) => {
                let at = usize::try_from(at).ok();
                let byte = at.and_then(|at| bytes.get(at)).copied();
                byte.ok_or_else(|| io::Error::other("it has no such bit"))
            }
        }
    }

    /// How many of the bits in the first bytes are 1.
    fn ones(&mut self, bytes: u64) -> io::Result<u64> {
        let pages = match self {
            Bits::InMemory(bits) => return Ok(count_ones(bits)),
            Bits::InFile(pages) => pages,
        };
        let mut rest = pages.reader(DcsoHeader::SIZE as u64)?.take(bytes);
        let mut piece = vec![0; PIECE];
        let mut ones = 0;
        loop {
            match rest.read(&mut piece)? {
                0 => return Ok(ones),
                count => ones += count_ones(piece.get(..count).unwrap_or_default()),
            }
        }
    }
}

/// Reads what a packed filter of DCSO's unpacks to. Memory is taken for what comes, not for what
/// the header says.
fn unpack(mut from: impl Read) -> Result<Other, OtherError> {
    let header = DcsoHeader::new(&first_bytes(&mut from)?)?;
    let length = header.filter_len();
    if length > UNPACKED {
        return Err(OtherError::TooLarge(length));
    }
    let expected = length - DcsoHeader::SIZE as u64;
    let mut bytes = Vec::new();
    from.by_ref().take(expected).read_to_end(&mut bytes)?;
    let found = bytes.len() as u64;
    if found < expected {
        let header_and_found = DcsoHeader::SIZE as u64 + found;
        return Err(too_short(&header, header_and_found));
    }
    // To the end, where the checksum is.
    let data = io::copy(&mut from, &mut sink())?;
    let bits = Bits::InMemory(bytes);
    Ok(Other::Dcso { header, bits, data })
}

fn too_short(header: &DcsoHeader, found: u64) -> OtherError {
    let expected = header.filter_len();
    DcsoError::Length { expected, found }.into()
}

/// Whether the item may be in a filter of Guava. What is no number is in no filter of numbers.
fn guava_contains(filter: &GuavaView<'_>, funnel: Option<Funnel>, item: &[u8]) -> bool {
    let text = || String::from_utf8_lossy(item);
    match funnel {
        None | Some(Funnel::Utf8) => filter.contains(item),
        Some(Funnel::Chars) => filter.contains_chars(&text()),
        Some(Funnel::Integer) => {
            let number = text().parse::<i32>();
            number.is_ok_and(|number| filter.contains(number.to_le_bytes()))
        }
        Some(Funnel::Long) => {
            let number = text().parse::<i64>();
            number.is_ok_and(|number| filter.contains(number.to_le_bytes()))
        }
    }
}

fn count_ones(bytes: &[u8]) -> u64 {
    bytes.iter().map(|byte| u64::from(byte.count_ones())).sum()
}
