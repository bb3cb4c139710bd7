//! Fills chunks from the inputs, in order.

use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender};

use memchr::memrchr;

use super::chunk::{Chunk, contents};
use super::csv::columns::CsvKey;
use super::csv::header::Headers;
use super::csv::scanner::Scanner;
use super::input::{Input, Source};
use super::magic;
use super::read::read_again;
use super::shared::Shared;
use crate::failure::say;

/// Bytes of a chunk, unless a record is longer. Small enough to stay in a processor's cache from
/// the read to the write.
const CHUNK: usize = 256 << 10;

/// The longest record. Where there is a longer one, somebody mistook something for lines.
const LONGEST: usize = 1 << 30;

/// Reads all inputs. It takes empty chunks from `empty`, and gives chunk number i to worker i
/// modulo their number.
pub(crate) struct RecordReader {
    pub(crate) terminator: u8,
    /// The records are CSV.
    pub(crate) csv: Option<CsvKey>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) empty: Receiver<Chunk>,
    pub(crate) workers: Vec<SyncSender<Chunk>>,
}

/// Why an input ends before its end.
enum Stop {
    Failed(io::Error),
    /// Nobody takes chunks any more, or a signal came.
    Told,
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Stop::Failed(error)
    }
}

/// The part of a record at the end of what was read of an input.
struct Part {
    bytes: Vec<u8>,
    /// Finds the ends of records of CSV. It has read the bytes.
    scanner: Option<Scanner>,
}

impl Part {
    /// Fails when it would not be a record, if it had an end.
    fn check_whole(&self) -> io::Result<()> {
        self.scanner.as_ref().map_or(Ok(()), Scanner::check_closed)
    }
}

impl RecordReader {
    pub(crate) fn run(&self, sources: &[Source]) {
        self.read_all(sources);
        self.shared.done.store(true, Ordering::Release);
    }

    fn read_all(&self, sources: &[Source]) {
        let with_header = self.csv.as_ref().filter(|csv| csv.has_header);
        let mut headers = with_header.cloned().map(Headers::new);
        // The chunk that an input left unused. There are few, and nobody else gives it back.
        let mut spare = None;
        for source in sources {
            let opened = source.open(self.terminator == b'\n', &self.shared);
            match opened
                .map_err(Stop::Failed)
                .and_then(|input| self.read(source, input, headers.as_mut(), &mut spare))
            {
                Ok(()) => {}
                Err(Stop::Told) => return,
                // The signal ended the read, or what wrote the input.
                Err(Stop::Failed(_)) if self.shared.stop.load(Ordering::SeqCst) => return,
                Err(Stop::Failed(error)) => {
                    self.shared.failed.fetch_add(1, Ordering::Relaxed);
                    let name = source.name();

                    say(&format!("cannot read {name}: {error}"));
                }
            }
        }
    }

    fn read(
        &self,
        source: &Source,
        mut input: Input,
        mut headers: Option<&mut Headers>,
        spare: &mut Option<Chunk>,
    ) -> Result<(), Stop> {
        let mut is_first = true;
        let mut is_table = None;
        let mut part = Part {
            scanner: self.csv.as_ref().map(|csv| Scanner::new(csv.delimiter)),
            bytes: Vec::new(),
        };
        loop {
            let mut chunk = match spare.take() {
                Some(chunk) => chunk,
                None => self.empty.recv().map_err(|_| Stop::Told)?,
            };
            prepare(&mut chunk, &part.bytes);
            let outcome = self.fill(&mut chunk, &mut input, &mut part);
            if let Some(csv) = &self.csv {
                chunk.empty_from = empty_from(csv, &chunk, &mut is_table);
            }
            if chunk.filled == 0 {
                *spare = Some(chunk);
            } else if let Err(error) = begin(&mut chunk, source, &mut is_first, &mut headers) {
                *spare = Some(chunk);
                return Err(Stop::Failed(error));
            } else {
                self.send(chunk)?;
            }
            if !outcome? {
                return Ok(());
            }
        }
    }

    /// Fills a chunk up to the end of a record, and keeps the part of one that follows. False at the
    /// end of the input; what was read before an error is a chunk too, up to its last whole record.
    fn fill(&self, chunk: &mut Chunk, input: &mut Input, part: &mut Part) -> Result<bool, Stop> {
        // Where the last whole record ends.
        let mut whole = 0;
        let mut len = part.bytes.len();
        let outcome = loop {
            if self.shared.stop.load(Ordering::Relaxed) {
                break Err(Stop::Told);
            }
            if len == chunk.buffer.len() {
                if whole > 0 {
                    break Ok(true);
                }
                if let Err(error) = make_place(&mut chunk.buffer, part, self.terminator) {
                    break Err(Stop::Failed(error));
                }
            }
            let place = chunk.buffer.get_mut(len..).unwrap_or_default();
            let count = match read_again(&mut input.reader, place) {
                Ok(count) => count,
                Err(error) => break Err(Stop::Failed(error)),
            };
            if count == 0 {
                // The last record of a file gets the end that it lacks. Not after a signal: that
                // may have ended all programs of a pipe, in the middle of a record.
                if len > whole && !self.shared.stop.load(Ordering::Relaxed) {
                    if let Err(error) = part.check_whole() {
                        break Err(Stop::Failed(error));
                    }
                    if let Some(end) = chunk.buffer.get_mut(len) {
                        *end = self.terminator;
                    }
                    whole = len + 1;
                    len = whole;
                    chunk.ends.push(whole);
                }
                break Ok(false);
            }
            let (end, scanned) = self.last_end(chunk, len..len + count, part);
            whole = end.unwrap_or(whole);
            if let Err(error) = scanned {
                break Err(Stop::Failed(error));
            }
            len += count;
            // Somebody may wait for each line: pass it on when it arrives.
            if input.waits && whole > 0 && !self.shared.full_chunks {
                break Ok(true);
            }
        };
        chunk.filled = whole;
        part.bytes.clear();
        if outcome.is_ok() {
            let bytes = chunk.buffer.get(whole..len).unwrap_or_default();
            part.bytes.extend_from_slice(bytes);
        }
        outcome
    }

    /// Where the last record ends that has its end in a range of the chunk. The bytes before an
    /// error have records, too.
    fn last_end(
        &self,
        chunk: &mut Chunk,
        range: Range<usize>,
        part: &mut Part,
    ) -> (Option<usize>, io::Result<()>) {
        let start = range.start;
        let bytes = chunk.buffer.get(range).unwrap_or_default();
        let Some(scanner) = &mut part.scanner else {
            let end = memrchr(self.terminator, bytes).map(|end| start + end + 1);
            return (end, Ok(()));
        };
        let scanned = scanner.scan(bytes, start, &mut chunk.ends);
        (chunk.ends.last().copied(), scanned)
    }

    fn send(&self, chunk: Chunk) -> Result<(), Stop> {
        let number = self.shared.chunks.fetch_add(1, Ordering::AcqRel);
        let worker = usize::try_from(number).unwrap_or(0) % self.workers.len().max(1);
        let worker = self.workers.get(worker).ok_or(Stop::Told)?;
        worker.send(chunk).map_err(|_| Stop::Told)
    }
}

/// Checks the first chunk of an input, and takes its header off. No record may be left in it then.
fn begin(
    chunk: &mut Chunk,
    source: &Source,
    is_first: &mut bool,
    headers: &mut Option<&mut Headers>,
) -> io::Result<()> {
    let bytes = chunk.buffer.get(..chunk.filled).unwrap_or_default();
    if mem::take(is_first)
        && let Some(format) = magic::format_of_more(bytes)
    {
        return Err(source.unread(None, format));
    }
    let headers = headers.take();
    let taken = headers.map_or(Ok(()), |headers| headers.take(chunk, &source.name()));
    taken.map_err(io::Error::other)
}

/// The first record of a chunk that has a key although it is empty. `is_table` says whether the
/// records of the input have several fields. The first that is not empty tells it.
fn empty_from(csv: &CsvKey, chunk: &Chunk, is_table: &mut Option<bool>) -> usize {
    let known = match *is_table {
        Some(is_table) => Some((0, is_table)),
        None => {
            let bytes = chunk.buffer.get(..chunk.filled).unwrap_or_default();
            let mut records = contents(bytes, &chunk.ends, b'\n').enumerate();
            let first = records.find(|(_, record)| !record.is_empty());
            first.map(|(number, record)| (number, csv.has_several_fields(record)))
        }
    };
    *is_table = known.map(|(_, is_table)| is_table);
    match known {
        Some((first, false)) => first,
        Some((_, true)) | None => usize::MAX,
    }
}

/// Makes place for a chunk that begins with these bytes.
fn prepare(chunk: &mut Chunk, rest: &[u8]) {
    // What a long record needed is given back.
    let size = CHUNK.max(rest.len() * 2);
    if chunk.buffer.len() != size {
        chunk.buffer = vec![0; size];
    }
    if let Some(place) = chunk.buffer.get_mut(..rest.len()) {
        place.copy_from_slice(rest);
    }
    chunk.filled = 0;
    chunk.header.clear();
    chunk.ends.clear();
}

/// Makes place for a record that is longer than the buffer.
fn make_place(buffer: &mut Vec<u8>, part: &Part, terminator: u8) -> io::Result<()> {
    let len = buffer.len();
    if len >= LONGEST {
        let why = match &part.scanner {
            Some(scanner) => scanner.too_long(LONGEST >> 20),
            None => too_long(terminator),
        };
        return Err(io::Error::other(why));
    }
    buffer.try_reserve_exact(len).map_err(|_| {
        let text = format!(
            "there is no memory for a record of more than {} MiB",
            len >> 20
        );
        io::Error::other(text)
    })?;
    buffer.resize(len * 2, 0);
    Ok(())
}

fn too_long(terminator: u8) -> String {
    let advice = match terminator {
        0 => "are its records separated by NUL?",
        _ => "if its records are separated by NUL, give --null",
    };
    format!("a record is longer than {} MiB; {advice}", LONGEST >> 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_that_is_too_long() {
        let quoted = "a record is longer than 1024 MiB; the quote that opens in line 2 does not \
                      close in it";
        for (read, terminator, why) in [
            (Some("a\nb,\"\n"), b'\n', quoted),
            (
                Some("a\nb,c"),
                b'\n',
                "a record is longer than 1024 MiB, in line 2",
            ),
            (
                None,
                b'\n',
                "a record is longer than 1024 MiB; if its records are separated by NUL, give --null",
            ),
            (
                None,
                0,
                "a record is longer than 1024 MiB; are its records separated by NUL?",
            ),
        ] {
            let part = Part {
                bytes: Vec::new(),
                scanner: read.map(|read| {
                    let mut scanner = Scanner::new(b',');
                    scanner.scan(read.as_bytes(), 0, &mut Vec::new()).unwrap();
                    scanner
                }),
            };
            // The system gives zeros without memory behind them.
            let mut full = vec![0; LONGEST];
            let error = make_place(&mut full, &part, terminator).unwrap_err();
            assert_eq!(error.to_string(), why);
            let mut short = vec![0; CHUNK];
            make_place(&mut short, &part, terminator).unwrap();
            assert_eq!(short.len(), CHUNK * 2);
        }
    }
}
