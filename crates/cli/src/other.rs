//! Filters that other programs wrote: DCSO's `bloom` and Guava.
//!
//! ```text
//! first bytes                             is a filter of
//! 1 0 0 0 0 0 0 0                         DCSO's bloom
//! 0 or 1, not 0, a length that fits       Guava
//! a header of DCSO's, but the version     DCSO's bloom, of another version
//! ```

use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use everbloom::dcso::{DcsoError, DcsoHeader};
use everbloom::guava::{GuavaError, GuavaView, Strategy};

use crate::description::Description;
use crate::pages::Pages;
use crate::records::selection::Selection;

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
        /// The file.
        pages: Pages,
        /// How many bytes are attached.
        data: u64,
    },
    /// All bytes, which are a filter.
    Guava(Vec<u8>),
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

impl Other {
    /// Opens a filter that this program wrote.
    pub(crate) fn open(program: Program, file: &File) -> Result<Self, Box<dyn Error>> {
        let length = file.metadata()?.len();
        match program {
            Program::Guava => {
                let mut bytes = Vec::new();
                rewound(file)?.read_to_end(&mut bytes)?;
                GuavaView::new(&bytes)?;
                Ok(Other::Guava(bytes))
            }
            Program::Dcso => {
                let header = DcsoHeader::new(&first_bytes(rewound(file)?)?)?;
                let (expected, found) = (header.filter_len(), length);
                let data = found.checked_sub(expected);
                Ok(Other::Dcso {
                    header,
                    pages: Pages::new(file.try_clone()?)?,
                    data: data.ok_or(DcsoError::Length { expected, found })?,
                })
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
    ) -> Result<(), Box<dyn Error>> {
        match self {
            Other::Dcso { header, pages, .. } => {
                for item in items {
                    let mut found = true;
                    for position in header.positions(item) {
                        let byte = pages.byte(DcsoHeader::SIZE as u64 + position / 8)?;
                        found = byte >> (position % 8) & 1 == 1;
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
    pub(crate) fn describe(&mut self) -> Result<Description, Box<dyn Error>> {
        let program = self.program().name();
        let (kind, variant, stats, data) = match self {
            Other::Dcso {
                header,
                pages,
                data,
            } => {
                let ones = count_ones(pages, header.filter_len())?;
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
            fingerprints: None,
            selection: Selection::default(),
        })
    }
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

/// How many bits are 1 in a filter of DCSO's, which ends at this byte.
fn count_ones(pages: &mut Pages, end: u64) -> io::Result<u64> {
    let header = DcsoHeader::SIZE as u64;
    let mut rest = pages.reader(header)?.take(end - header);
    let mut piece = vec![0; PIECE];
    let mut ones = 0;
    loop {
        let count = rest.read(&mut piece)?;
        let bytes = piece.get(..count).unwrap_or_default().iter();
        ones += bytes.map(|byte| u64::from(byte.count_ones())).sum::<u64>();
        if count == 0 {
            return Ok(ones);
        }
    }
}
