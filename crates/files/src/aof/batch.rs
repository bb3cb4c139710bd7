//! Many commands of a log at once, found by the parser of requests in the bytes that were read.
//!
//! The parser is strict here: Redis writes no lines of words into a log, and no other ends of lines.
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
        let start = end_of(command, self.batch, self.bytes);
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
        strict: true,
        ..Limits::default()
    };
    // The reader of units finds what is wrong, if anything is.
    let _ = RequestParser::new().parse(bytes, &limits, batch);
    let (mut in_transaction, mut whole) = (false, 0);
    for number in 0..batch.len() {
        if batch.range(number).len() == 1
            && let Some(name) = batch.request(number, bytes).next()
        {
            match TransactionWord::of(&[name]) {
                Some(TransactionWord::Multi) if !in_transaction => in_transaction = true,
                Some(TransactionWord::Exec) if in_transaction => in_transaction = false,
                Some(_) => break,
                None => {}
            }
        }
        if !in_transaction {
            whole = number + 1;
        }
    }
    batch.truncate(whole);
    end_of(whole, batch, bytes)
}

/// Where the first so many commands of a batch end in the bytes in which they are.
fn end_of(commands: usize, batch: &Batch, bytes: &[u8]) -> usize {
    let last = commands.checked_sub(1);
    let last = last.and_then(|last| batch.request(last, bytes).last());
    last.map_or(0, |last| start_of(last, bytes) + last.len() + 2)
}

/// Where in `bytes` a part of them begins.
#[inline]
fn start_of(part: &[u8], bytes: &[u8]) -> usize {
    part.as_ptr().addr().wrapping_sub(bytes.as_ptr().addr())
}
