//! Parses requests without copying them. The parser can stop anywhere and scans no byte twice, but
//! for the five of the head of an argument whose payload is not all there.
//!
//! ```text
//! request  = multibulk | inline
//! multibulk = "*" count CR LF  count times argument       count <= 0: skipped
//! argument  = "$" len CR LF  len bytes  two bytes
//! inline    = words LF | words CR LF                      no word: skipped
//! ```
//!
//! As in Redis 7, the byte behind the `\r` of a line and the two bytes behind an argument are
//! skipped whatever they are. Two differences are deliberate:
//!
//! - A line above the limit is refused, also when its end has already arrived. So the result does
//!   not depend on how the bytes arrive.
//! - An inline line with a byte below 0x20 is refused at this byte; only tab and carriage return
//!   are allowed. Nobody types such a line. It is another protocol, like the first message of TLS,
//!   and the lines in it may be commands that somebody else chose.

use crate::batch::{Batch, Span};
use crate::inline;
use crate::limits::{Limits, ProtocolError, is_line_end};
use crate::number::integer;
use crate::scan::{examined, find, find_control};

/// The most spans whose memory is kept for the next unfinished request: 16 KiB.
const KEPT_SPANS: usize = 1024;

/// Finds requests in a buffer that grows at its end and is drained at its front.
///
/// One parser belongs to one connection, because it remembers how far it scanned an unfinished
/// request. A server's loop looks like this:
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
    /// How many bytes at the front of the buffer belong to requests already returned.
    done: usize,
    /// How far the unfinished request behind these bytes is parsed.
    progress: Progress,
    /// The arguments of that request so far. Their spans count from its first byte.
    partial: Vec<Span>,
    /// How many bytes of its current argument have not arrived yet.
    wanted: usize,
    /// Whether the last parse stopped before bytes that it did not look at.
    has_more: bool,
    /// The error that ended this connection.
    failed: Option<ProtocolError>,
}

/// How far an unfinished request is parsed. Positions count from its first byte.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    /// The number of arguments still missing, or zero while the first line is not complete.
    left: usize,
    /// Where the current line or payload begins.
    at: usize,
    /// Where the search for the current line's end continues. In a line it is not below `at`.
    scanned: usize,
    /// The length of the payload at `at`, unless a line begins there.
    payload: Option<usize>,
}

/// The result of reading a line or arguments.
enum Step<T, P = T> {
    /// It is complete. What follows begins at this position.
    Done(T, usize),
    /// More bytes are needed. For a line, this is where to continue the search for its end.
    Incomplete(P),
}

impl RequestParser {
    /// A parser at the beginning of a connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds every complete request in `buf` and puts them into `batch`, which it clears first.
    ///
    /// `buf` begins at the first byte not yet dropped after [`RequestParser::consume`]. Otherwise
    /// it may only grow between two calls. A partial request at its end is not an error: call again
    /// when more bytes have arrived. The work is linear in the bytes of the connection, however
    /// small the pieces in which they arrive.
    ///
    /// # Errors
    /// When a request is malformed or over a limit. The requests before it are in the batch.
    /// Answer them, send the error, and close the connection. Every further call returns the same
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
        let result = match limits.strict {
            true => self.parse_requests::<true>(buf, limits, batch),
            false => self.parse_requests::<false>(buf, limits, batch),
        };
        if let Err(error) = result {
            self.failed = Some(error);
            batch.spans.truncate(batch.first_open());
        }
        result
    }

    /// The number of bytes at the front of the buffer that the parsed requests took.
    ///
    /// Drop these bytes before the next parse. Without this call a parse takes them as present.
    #[must_use = "these bytes must be dropped from the front of the buffer"]
    pub fn consume(&mut self) -> usize {
        std::mem::take(&mut self.done)
    }

    /// The number of bytes that are missing from the last argument in the buffer, with the two that
    /// end it. The caller can reserve room for them at once. Zero when the number is not known.
    ///
    /// The client chooses this number. It may be as large as [`Limits::max_bulk`].
    #[must_use]
    pub const fn bytes_wanted(&self) -> usize {
        self.wanted
    }

    /// The bytes of memory that the arguments of the unfinished request take beside the buffer:
    /// two words an argument, however short it is.
    #[must_use]
    pub const fn memory(&self) -> usize {
        self.partial.capacity() * size_of::<Span>()
    }

    /// Whether the last parse stopped after one request because the client has not authenticated.
    ///
    /// If so, do not wait for more bytes. Answer that request, consume it, and parse the rest of
    /// the buffer with the new limits.
    #[must_use]
    pub const fn has_more(&self) -> bool {
        self.has_more
    }

    fn parse_requests<const STRICT: bool>(
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
            let short = match self.progress.scanned {
                0 => short_head::<STRICT>(buf, start, b'*'),
                _ => None,
            };
            let (count, at) = match short {
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
            if STRICT && count == 0 {
                return Err(ProtocolError::NotStrict);
            }
            let (left, at) = short_args::<STRICT>(buf, count, at, max_bulk, &mut batch.spans);
            if left == 0 {
                self.done = at;
            } else {
                let rest = Progress::before(left, at);
                match read_args(buf, rest, limits, max_bulk, &mut batch.spans)? {
                    Step::Done((), end) => self.done = end,
                    Step::Incomplete(progress) => return self.suspend(buf, progress, batch),
                }
            }
            if batch.spans.len() > batch.first_open() {
                batch.end_request();
            }
        }
        Ok(())
    }

    /// Continues with the arguments of a request whose first line an earlier parse completed.
    /// Returns whether the request is complete now.
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
                reserve(self.partial.len(), &mut batch.spans)?;
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

    /// Stores the arguments found so far of the request that begins at `self.done`.
    fn suspend(
        &mut self,
        buf: &[u8],
        progress: Progress,
        batch: &mut Batch,
    ) -> Result<(), ProtocolError> {
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
        let spans = batch.spans.drain(batch.first_open()..);
        reserve(spans.len(), &mut self.partial)?;
        self.partial.extend(spans.map(shifted));
        Ok(())
    }

    /// Reads the first line of the request at `self.done`. Returns the number of arguments to come.
    ///
    /// For an inline request that is zero: its arguments are already in the batch.
    fn first_line(
        &mut self,
        buf: &[u8],
        limits: &Limits,
        batch: &mut Batch,
    ) -> Result<Step<usize>, ProtocolError> {
        let start = self.done;
        let from = start + std::mem::take(&mut self.progress.scanned);
        if buf.get(start) != Some(&b'*') {
            if limits.strict {
                return Err(ProtocolError::NotStrict);
            }
            return inline_request(buf, start, from, limits, batch);
        }
        let (line, next) = match find_line(buf, start, from, limits.max_inline) {
            Line::Whole(line, next) => (line, next),
            Line::Incomplete(scanned) => return Ok(Step::Incomplete(scanned)),
            Line::TooLong => return Err(ProtocolError::TooBigMultibulkCount),
        };
        limits.check_line_end(buf, next)?;
        let digits = line.get(1..).unwrap_or_default();
        let count = integer(digits).ok_or(ProtocolError::InvalidMultibulkLength)?;
        // A negative count means no arguments, as zero does.
        let count = usize::try_from(count.max(0));
        Ok(Step::Done(
            count.map_err(|_| ProtocolError::InvalidMultibulkLength)?,
            next,
        ))
    }
}

impl Progress {
    /// So many arguments are missing, and nothing is known of the next.
    fn before(left: usize, at: usize) -> Self {
        Progress {
            left,
            at,
            scanned: at,
            payload: None,
        }
    }

    /// How many bytes of the payload, and of the two behind it, lie beyond the end of `buf`.
    fn wanted(&self, buf: &[u8]) -> usize {
        self.payload.map_or(0, |len| {
            self.at
                .saturating_add(len)
                .saturating_add(2)
                .saturating_sub(buf.len())
        })
    }
}

/// Reads arguments of any form until none is left or the buffer ends. There is one at least.
fn read_args(
    buf: &[u8],
    mut progress: Progress,
    limits: &Limits,
    max_bulk: usize,
    args: &mut Vec<Span>,
) -> Result<Step<(), Progress>, ProtocolError> {
    loop {
        match any_arg(buf, progress, limits, max_bulk, args)? {
            Step::Done(left, at) => {
                let (left, at) = match limits.strict {
                    true => short_args::<true>(buf, left, at, max_bulk, args),
                    false => short_args::<false>(buf, left, at, max_bulk, args),
                };
                if left == 0 {
                    return Ok(Step::Done((), at));
                }
                progress = Progress::before(left, at);
            }
            Step::Incomplete(progress) => return Ok(Step::Incomplete(progress)),
        }
    }
}

/// Reads arguments as long as they have short heads and are whole. Returns how many are left, and
/// where the next begins.
///
/// This is the hot loop of a server. For each argument it does one load, one addition, one
/// comparison with the end of the buffer and one push.
#[inline]
fn short_args<const STRICT: bool>(
    buf: &[u8],
    mut left: usize,
    mut at: usize,
    max_bulk: usize,
    args: &mut Vec<Span>,
) -> (usize, usize) {
    while left > 0
        && args.len() < args.capacity()
        && let Some((len, start)) = short_head::<STRICT>(buf, at, b'$')
    {
        let end = start + len + 2;
        if len > max_bulk || end > buf.len() || STRICT && !is_line_end(buf, end) {
            break;
        }
        args.push(Span { start, len });
        at = end;
        left -= 1;
    }
    (left, at)
}

/// Reads an argument of any form. What is incomplete can be continued when more bytes have arrived.
#[inline(never)]
fn any_arg(
    buf: &[u8],
    progress: Progress,
    limits: &Limits,
    max_bulk: usize,
    args: &mut Vec<Span>,
) -> Result<Step<usize, Progress>, ProtocolError> {
    let Progress { left, at, .. } = progress;
    let (len, start) = match progress.payload {
        Some(len) => (len, at),
        None => match long_head(buf, at, progress.scanned, limits)? {
            Step::Done(len, _) if len > max_bulk => return Err(limits.bulk_error(len)),
            Step::Done(len, start) => {
                limits.check_line_end(buf, start)?;
                (len, start)
            }
            Step::Incomplete(scanned) => {
                return Ok(Step::Incomplete(Progress {
                    scanned,
                    ..progress
                }));
            }
        },
    };
    let end = start.saturating_add(len).saturating_add(2);
    if end > buf.len() {
        return Ok(Step::Incomplete(Progress {
            left,
            at: start,
            scanned: start,
            payload: Some(len),
        }));
    }
    limits.check_line_end(buf, end)?;
    reserve(1, args)?;
    args.push(Span { start, len });
    Ok(Step::Done(left - 1, end))
}

/// Makes room for more arguments: a client may send any number.
fn reserve(more: usize, args: &mut Vec<Span>) -> Result<(), ProtocolError> {
    args.try_reserve(more)
        .map_err(|_| ProtocolError::OutOfMemory)
}

/// The number in a head of one or two digits at `at`, and the position behind it. `None` if the line
/// has another form, or little follows: then the slow path reads it.
#[inline(always)]
fn short_head<const STRICT: bool>(buf: &[u8], at: usize, mark: u8) -> Option<(usize, usize)> {
    let rest = buf.get(at..)?.first_chunk::<5>()?;
    let line = u32::from_le_bytes(*rest.first_chunk()?);
    let (tens, ones) = ((line >> 8) & 0xf, (line >> 16) & 0xf);
    let (looked_at, end) = if STRICT { (!0, b'\n') } else { (!0 >> 8, 0) };
    let one_digit = u32::from_le_bytes([mark, b'0', b'\r', end]);
    if line & 0xffff_f0ff & looked_at == one_digit && tens <= 9 {
        examined(4);
        return Some((tens as usize, at + 4));
    }
    let is_number = line & 0xfff0_f0ff == u32::from_le_bytes([mark, b'0', b'0', b'\r']);
    let is_number = is_number && (!STRICT || rest.last() == Some(&b'\n'));
    // A number of two digits does not begin with 0.
    if !is_number || !(1..=9).contains(&tens) || ones > 9 {
        return None;
    }
    examined(5);
    Some(((tens * 10 + ones) as usize, at + 5))
}

/// The length in the head of an argument at `at`, in any form.
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
            let len = integer(digits).and_then(|len| usize::try_from(len).ok());
            Ok(Step::Done(
                len.ok_or(ProtocolError::InvalidBulkLength)?,
                next,
            ))
        }
        // The line is empty: its end is where the `$` should be.
        [] => Err(ProtocolError::ExpectedDollar(b'\r')),
        [other, ..] => Err(ProtocolError::ExpectedDollar(*other)),
    }
}

/// Reads the inline request at `start`. Searches for the end of its line from `from` on.
fn inline_request(
    buf: &[u8],
    start: usize,
    from: usize,
    limits: &Limits,
    batch: &mut Batch,
) -> Result<Step<usize>, ProtocolError> {
    let end = match find_control(buf, from) {
        Some((end, b'\n')) if end - start <= limits.max_inline => end,
        Some((at, byte)) if byte != b'\n' && at - start <= limits.max_inline => {
            return Err(ProtocolError::ControlCharacter);
        }
        None if buf.len() - start <= limits.max_inline => {
            return Ok(Step::Incomplete(buf.len()));
        }
        _ => return Err(ProtocolError::TooBigInline),
    };
    let carriage_return = end > start && buf.get(end - 1) == Some(&b'\r');
    inline::split(buf, start, end - usize::from(carriage_return), batch)?;
    Ok(Step::Done(0, end + 1))
}

/// The result of looking for a line that ends in `\r` and one more byte.
enum Line<'b> {
    /// The line without its end, and the position behind its end.
    Whole(&'b [u8], usize),
    /// The end has not arrived. The search continues at this position.
    Incomplete(usize),
    /// The line is longer than the limit.
    TooLong,
}

/// Finds the line that begins at `at`. It has no end before `from`.
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
