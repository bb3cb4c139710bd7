//! Requests from bytes: resumable, zero-copy, and never looking at a byte twice.
//!
//! ```text
//! request  = multibulk | inline
//! multibulk = "*" count CR LF  count times argument       count <= 0: skipped
//! argument  = "$" len CR LF  len bytes  two bytes
//! inline    = words LF | words CR LF                      no word: skipped
//! ```
//!
//! Exactly as in Redis 7, the byte after the `\r` of a line and the two bytes after an argument
//! are skipped whatever they are. Two deliberate differences make the result independent of how
//! the bytes arrive: a line above the limit is refused also when its end has arrived with it,
//! and a zero byte is a byte like any other (Redis waits forever for the rest of such a line).

use crate::batch::{Batch, Span};
use crate::inline;
use crate::limits::{Limits, ProtocolError};
use crate::number::parse_i64;
use crate::scan::{examined, find};

/// The memory for the arguments of an unfinished request that is kept for the next: 16 KiB.
const KEPT_SPANS: usize = 1024;

/// Finds requests in a buffer that grows at its end and is drained at its front.
///
/// One parser belongs to one connection, since it remembers how far an unfinished request was
/// scanned. The loop of a server:
///
/// ```
/// use everbloom_resp::{Batch, Limits, ProtocolError, RequestParser};
///
/// let mut parser = RequestParser::new();
/// let mut batch = Batch::new();
/// let limits = Limits::default();
/// let mut buf: Vec<u8> = Vec::new();
/// let mut names = Vec::new();
///
/// for read in [&b"*1\r\n$4\r\nPING\r\n*2\r\n$4\r\nEC"[..], b"HO\r\n$2\r\nhi\r\n"] {
///     buf.extend_from_slice(read);
///     parser.parse(&buf, &limits, &mut batch)?;
///     for i in 0..batch.len() {
///         names.extend(batch.request(i, &buf).next().map(<[u8]>::to_vec));
///     }
///     buf.drain(..parser.consume());
/// }
/// assert_eq!(names, [b"PING", b"ECHO"]);
/// # Ok::<(), ProtocolError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RequestParser {
    /// The bytes at the front of the buffer that belong to requests already handed out.
    done: usize,
    /// How far the unfinished request behind them is known.
    progress: Progress,
    /// Its arguments so far; their spans count from its first byte.
    partial: Vec<Span>,
    /// How many bytes its argument needs that have not arrived.
    wanted: usize,
    /// Whether the last parse stopped in front of bytes it did not look at.
    has_more: bool,
    /// What ended this connection.
    failed: Option<ProtocolError>,
}

/// How far an unfinished request is known. Positions count from its first byte.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// Arguments still missing. Zero: the first line is not complete.
    left: usize,
    /// Where the current line or payload begins.
    at: usize,
    /// Where the search for the current line's end goes on; not below `at` in a line.
    scanned: usize,
    /// The length of the payload at `at`, unless a line begins there.
    payload: Option<usize>,
}

/// What reading a line or arguments came to.
enum Step<T> {
    /// It is complete, and the next thing begins at this position.
    Done(T, usize),
    /// More bytes are needed; for a line, where to go on searching its end.
    Incomplete(T),
}

impl RequestParser {
    /// A parser at the beginning of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds every complete request in `buf` and puts them into `batch`, which it clears first.
    ///
    /// `buf` begins at the first byte not yet taken by [`RequestParser::consume`]; between two
    /// calls it may only grow, apart from that. A partial request at its end is no error: call
    /// again when more has arrived. The work is linear in the bytes of the connection, however
    /// small the pieces in which they arrive.
    ///
    /// # Errors
    /// When a request is malformed or over a limit. The requests before it are in the batch:
    /// answer them, send the error, and close the connection. Every further call returns the same
    /// error and an empty batch.
    pub fn parse(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        batch: &mut Batch,
    ) -> Result<(), ProtocolError> {
        batch.clear();
        if let Some(error) = self.failed {
            return Err(error);
        }
        self.wanted = 0;
        self.has_more = false;
        let result = self.parse_requests(buf, limits, batch);
        if let Err(error) = result {
            self.failed = Some(error);
            batch.spans.truncate(batch.first_open());
        }
        result
    }

    /// How many bytes at the front of the buffer the requests of the last parse took.
    ///
    /// The caller drops them before it parses again; until it has asked, they count as present.
    #[must_use = "these bytes must be dropped from the front of the buffer"]
    pub fn consume(&mut self) -> usize {
        std::mem::take(&mut self.done)
    }

    /// How many bytes are missing at least until the argument in which the buffer ends is whole,
    /// so that the caller can make room for it at once. Zero when that is not known.
    ///
    /// The client states this number, and it may be as large as [`Limits::max_bulk`].
    #[must_use]
    pub const fn bytes_wanted(&self) -> usize {
        self.wanted
    }

    /// Whether the last parse stopped after one request because the client has not authenticated.
    ///
    /// If so, answer that request, consume, and parse the same buffer again with the limits that
    /// hold then, without waiting for more bytes.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.has_more
    }

    fn parse_requests(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        batch: &mut Batch,
    ) -> Result<(), ProtocolError> {
        let max_args = limits.args_now();
        let max_bulk = limits.bulk_now();
        let one_only = !limits.authenticated;
        if self.progress.left > 0 && !self.resume(buf, limits, batch)? {
            return Ok(());
        }
        while self.done < buf.len() {
            if one_only && !batch.is_empty() {
                self.has_more = true;
                break;
            }
            let start = self.done;
            let (count, at) = match short_head(buf, start, self.progress.scanned, b'*') {
                Some(head) => head,
                None => match self.first_line(buf, limits, batch)? {
                    Step::Done(count, next) => (count, next),
                    Step::Incomplete(scanned) => {
                        self.progress.scanned = scanned - start;
                        break;
                    }
                },
            };
            if count > max_args {
                return Err(limits.args_error(count));
            }
            let progress = Progress {
                left: count,
                at,
                scanned: at,
                payload: None,
            };
            match read_args(buf, progress, limits, max_bulk, &mut batch.spans)? {
                Step::Done(_, end) => {
                    self.done = end;
                    if batch.spans.len() > batch.first_open() {
                        batch.end_request();
                    }
                }
                Step::Incomplete(progress) => {
                    self.suspend(buf, progress, batch);
                    break;
                }
            }
        }
        Ok(())
    }

    /// Goes on with the arguments of a request whose first line was complete in an earlier parse.
    /// Returns whether it is complete now.
    fn resume(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        batch: &mut Batch,
    ) -> Result<bool, ProtocolError> {
        let start = self.done;
        let request = buf.get(start..).unwrap_or_default();
        let max_bulk = limits.bulk_now();
        match read_args(request, self.progress, limits, max_bulk, &mut self.partial)? {
            Step::Done(_, end) => {
                let shifted = |span: &Span| Span {
                    start: span.start + start,
                    len: span.len,
                };
                batch.spans.extend(self.partial.iter().map(shifted));
                batch.end_request();
                self.partial.clear();
                if self.partial.capacity() > KEPT_SPANS {
                    self.partial = Vec::new();
                }
                self.progress = Progress::default();
                self.done += end;
                Ok(true)
            }
            Step::Incomplete(progress) => {
                self.wanted = progress.wanted(request);
                self.progress = progress;
                Ok(false)
            }
        }
    }

    /// Puts aside the arguments found so far of the request that begins at `self.done`.
    fn suspend(&mut self, buf: &[u8], progress: Progress, batch: &mut Batch) {
        let start = self.done;
        self.wanted = progress.wanted(buf);
        self.progress = Progress {
            at: progress.at - start,
            scanned: progress.scanned - start,
            ..progress
        };
        let shifted = |span: Span| Span {
            start: span.start - start,
            len: span.len,
        };
        self.partial
            .extend(batch.spans.drain(batch.first_open()..).map(shifted));
    }

    /// Reads the first line of the request at `self.done`: the number of arguments to come.
    ///
    /// That is zero after an inline request, whose arguments are in the batch then.
    fn first_line(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        batch: &mut Batch,
    ) -> Result<Step<usize>, ProtocolError> {
        let start = self.done;
        let from = start + std::mem::take(&mut self.progress.scanned);
        if buf.get(start) != Some(&b'*') {
            return inline_request(buf, start, from, limits, batch);
        }
        let (line, next) = match find_line(buf, start, from, limits.max_inline) {
            Line::Whole(line, next) => (line, next),
            Line::Incomplete(scanned) => return Ok(Step::Incomplete(scanned)),
            Line::TooLong => return Err(ProtocolError::TooBigMultibulkCount),
        };
        let digits = line.get(1..).unwrap_or_default();
        let count = parse_i64(digits).ok_or(ProtocolError::InvalidMultibulkLength)?;
        // A negative count means no arguments, like zero.
        let count = usize::try_from(count.max(0));
        Ok(Step::Done(
            count.map_err(|_| ProtocolError::InvalidMultibulkLength)?,
            next,
        ))
    }
}

impl Progress {
    /// How many bytes behind the end of `buf` the payload reaches, with the two that follow it.
    fn wanted(&self, buf: &[u8]) -> usize {
        self.payload.map_or(0, |len| {
            self.at
                .saturating_add(len)
                .saturating_add(2)
                .saturating_sub(buf.len())
        })
    }
}

/// Reads arguments until none is left, or until the buffer ends.
///
/// This is the hot loop of a server: per argument one load for a short head, one addition, one
/// comparison with the end of the buffer, one push.
fn read_args(
    buf: &[u8],
    mut progress: Progress,
    limits: &Limits,
    max_bulk: usize,
    args: &mut Vec<Span>,
) -> Result<Step<Progress>, ProtocolError> {
    let Progress {
        mut left,
        mut at,
        mut scanned,
        mut payload,
    } = progress;
    while left > 0 {
        let (len, start) = match payload.take() {
            Some(len) => (len, at),
            None => {
                let (len, start) = match short_head(buf, at, scanned - at, b'$') {
                    Some(head) => head,
                    None => match long_head(buf, at, scanned, limits)? {
                        Step::Done(len, start) => (len, start),
                        Step::Incomplete(scanned) => {
                            progress = Progress {
                                left,
                                at,
                                scanned,
                                payload: None,
                            };
                            return Ok(Step::Incomplete(progress));
                        }
                    },
                };
                if len > max_bulk {
                    return Err(limits.bulk_error(len));
                }
                (len, start)
            }
        };
        let end = start.saturating_add(len).saturating_add(2);
        if end > buf.len() {
            progress = Progress {
                left,
                at: start,
                scanned: start,
                payload: Some(len),
            };
            return Ok(Step::Incomplete(progress));
        }
        args.push(Span { start, len });
        at = end;
        scanned = end;
        left -= 1;
    }
    Ok(Step::Done(progress, at))
}

/// The number in a head of one or two digits at `at`, and the position behind it.
///
/// `seen` bytes of the line were looked at before; if there are any, the line is for the slow way,
/// and so it is whenever its form is any other.
#[inline(always)]
fn short_head(buf: &[u8], at: usize, seen: usize, mark: u8) -> Option<(usize, usize)> {
    if seen > 0 {
        return None;
    }
    let rest = buf.get(at..)?;
    let &[first, tens, b'\r', _] = rest.first_chunk::<4>()? else {
        let &[first, tens, ones, b'\r', _] = rest.first_chunk::<5>()? else {
            return None;
        };
        if first != mark || !matches!(tens, b'1'..=b'9') || !ones.is_ascii_digit() {
            return None;
        }
        examined(5);
        return Some((
            usize::from(tens - b'0') * 10 + usize::from(ones - b'0'),
            at + 5,
        ));
    };
    if first != mark || !tens.is_ascii_digit() {
        return None;
    }
    examined(4);
    Some((usize::from(tens - b'0'), at + 4))
}

/// The length in the head of an argument at `at`, in any form.
#[cold]
fn long_head(
    buf: &[u8],
    at: usize,
    scanned: usize,
    limits: &Limits,
) -> Result<Step<usize>, ProtocolError> {
    let (line, next) = match find_line(buf, at, scanned, limits.max_inline) {
        Line::Whole(line, next) => (line, next),
        Line::Incomplete(scanned) => return Ok(Step::Incomplete(scanned)),
        Line::TooLong => return Err(ProtocolError::TooBigBulkCount),
    };
    match line {
        [b'$', digits @ ..] => {
            let len = parse_i64(digits).and_then(|len| usize::try_from(len).ok());
            Ok(Step::Done(
                len.ok_or(ProtocolError::InvalidBulkLength)?,
                next,
            ))
        }
        // An empty line: what stands in the place of the `$` is its end.
        [] => Err(ProtocolError::ExpectedDollar(b'\r')),
        [other, ..] => Err(ProtocolError::ExpectedDollar(*other)),
    }
}

/// Reads an inline request at `start`, the end of whose line is sought from `from` on.
fn inline_request(
    buf: &[u8],
    start: usize,
    from: usize,
    limits: &Limits,
    batch: &mut Batch,
) -> Result<Step<usize>, ProtocolError> {
    let end = match find(b'\n', buf, from) {
        Some(end) if end - start <= limits.max_inline => end,
        None if buf.len() - start <= limits.max_inline => {
            return Ok(Step::Incomplete(buf.len()));
        }
        _ => return Err(ProtocolError::TooBigInline),
    };
    let carriage_return = end > start && buf.get(end - 1) == Some(&b'\r');
    inline::split(buf, start, end - usize::from(carriage_return), batch)?;
    Ok(Step::Done(0, end + 1))
}

/// What looking for a line that ends in `\r` and one more byte came to.
enum Line<'b> {
    /// The line without its end, and the position behind its end.
    Whole(&'b [u8], usize),
    /// Where to go on searching.
    Incomplete(usize),
    /// It is longer than the limit.
    TooLong,
}

/// The line that begins at `at` and has no end before `from`.
fn find_line(buf: &[u8], at: usize, from: usize, limit: usize) -> Line<'_> {
    match find(b'\r', buf, from) {
        Some(end) if end - at > limit => Line::TooLong,
        Some(end) if end + 1 < buf.len() => {
            Line::Whole(buf.get(at..end).unwrap_or_default(), end + 2)
        }
        Some(end) => Line::Incomplete(end),
        None if buf.len() - at > limit => Line::TooLong,
        None => Line::Incomplete(buf.len()),
    }
}

#[cfg(test)]
mod tests;
