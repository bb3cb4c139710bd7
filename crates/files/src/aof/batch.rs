//! Many commands of a log at once, found by the parser of requests in the bytes that were read.
//!
//! That parser forgives what a log does not: it skips the bytes behind a line and an argument
//! whatever they are, and takes lines of words. So the framing of what it finds is checked here.
//! Whatever is not as Redis writes it, or is not all there, is left to the
//! [reader of units](super::CommandReader::next_unit), which knows what is wrong with it.

use everbloom_resp::{Batch, Limits, RequestParser};

/// The most arguments of a command, its name included: what Redis reads of a client at most.
pub(super) const MAX_ARGS: u64 = (1 << 31) - 1;

/// Whole units of a log, with the `MULTI` and `EXEC` of transactions among their commands.
#[derive(Clone, Copy, Debug)]
pub struct Commands<'r> {
    /// The bytes of the file in which they are; they begin with the first command.
    pub bytes: &'r [u8],
    /// Where the arguments lie in these bytes.
    pub batch: &'r Batch,
    /// Where in the file the first command begins.
    pub(super) offset: u64,
}

impl Commands<'_> {
    /// Where in the file a command begins, by its number from 0.
    pub fn offset_of(&self, command: usize) -> u64 {
        let before = command.checked_sub(1);
        let last = before.and_then(|before| self.batch.request(before, self.bytes).last());
        let start = last.map_or(0, |last| start_of(last, self.bytes) + last.len() + 2);
        self.offset + start as u64
    }
}

/// Whether a command is `MULTI` or `EXEC`, which only bracket a transaction.
pub fn is_bracket(command: &[&[u8]]) -> bool {
    matches!(
        TransactionWord::of(command),
        Some(TransactionWord::Multi | TransactionWord::Exec)
    )
}

/// A command without arguments that begins or ends a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransactionWord {
    Multi,
    Exec,
    /// No server writes this one.
    Discard,
}

impl TransactionWord {
    pub(super) fn of(command: &[impl AsRef<[u8]>]) -> Option<Self> {
        let [name] = command else { return None };
        let known: [(&[u8], Self); 3] = [
            (b"MULTI", Self::Multi),
            (b"EXEC", Self::Exec),
            (b"DISCARD", Self::Discard),
        ];
        let mut known = known.into_iter();
        known.find_map(|(word, found)| word.eq_ignore_ascii_case(name.as_ref()).then_some(found))
    }
}

/// Puts the whole units at the start of `bytes` into `batch`. Returns how many bytes they take.
pub(super) fn whole_units(bytes: &[u8], max_bulk: u64, batch: &mut Batch) -> usize {
    let limits = Limits {
        max_args: usize::try_from(MAX_ARGS).unwrap_or(usize::MAX),
        max_bulk: usize::try_from(max_bulk).unwrap_or(usize::MAX),
        ..Limits::default()
    };
    // The reader of units finds what is wrong, if anything is.
    let _ = RequestParser::new().parse(bytes, &limits, batch);
    let (mut at, mut in_transaction, mut whole) = (0, false, (0, 0));
    for number in 0..batch.len() {
        let mut request = batch.request(number, bytes);
        let Some(end) = framed(bytes, at, request.clone()) else {
            break;
        };
        at = end;
        if let (1, Some(name)) = (request.len(), request.next()) {
            match TransactionWord::of(&[name]) {
                Some(TransactionWord::Multi) if !in_transaction => in_transaction = true,
                Some(TransactionWord::Exec) if in_transaction => in_transaction = false,
                Some(_) => break,
                None => {}
            }
        }
        if !in_transaction {
            whole = (number + 1, at);
        }
    }
    let (commands, len) = whole;
    batch.truncate(commands);
    len
}

/// The end of a command that begins at `at`, if it is framed as Redis writes it.
fn framed<'b>(bytes: &'b [u8], at: usize, args: impl Iterator<Item = &'b [u8]>) -> Option<usize> {
    let mut at = line_end(bytes, at, b'*')?;
    for arg in args {
        let start = line_end(bytes, at, b'$')?;
        let end = start.checked_add(arg.len())?;
        if start_of(arg, bytes) != start || bytes.get(end..)?.first_chunk()? != b"\r\n" {
            return None;
        }
        at = end + 2;
    }
    Some(at)
}

/// The end of a line of a mark and digits.
#[inline]
fn line_end(bytes: &[u8], at: usize, mark: u8) -> Option<usize> {
    let line = bytes.get(at..)?;
    // Nearly all numbers have one digit or two.
    match line.first_chunk::<5>()? {
        [first, ..] if *first != mark => return None,
        [_, b'0'..=b'9', b'\r', b'\n', _] => return Some(at + 4),
        [_, b'0'..=b'9', b'0'..=b'9', b'\r', b'\n'] => return Some(at + 5),
        _ => {}
    }
    let mut end = 1;
    while line.get(end)?.is_ascii_digit() {
        end += 1;
    }
    let is_whole = end > 1 && line.get(end..)?.first_chunk()? == b"\r\n";
    is_whole.then_some(at + end + 2)
}

/// Where in `bytes` a part of them begins.
#[inline]
fn start_of(part: &[u8], bytes: &[u8]) -> usize {
    part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr())
}
