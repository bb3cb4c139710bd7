//! The key at the destination: loaded under a temporary name, read back, and given its own name.

use std::time::Instant;

use crc::{CRC_64_XZ, Crc, Digest, Table};
use everbloom_resp::Reply;

use crate::failure::Failure;
use crate::progress::Progress;
use crate::servers::dump::{Header, PieceReader, ask_for_header, take_header};
use crate::servers::family::Family;
use crate::servers::server::Server;

/// What the pieces of a filter are compared by.
static CRC: Crc<u64, Table<16>> = Crc::<u64, Table<16>>::new(&CRC_64_XZ);

/// How long a temporary key lives that nobody works on any more, in milliseconds.
const ABANDONED: &str = "600000";

/// What to do with the key at the destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// The key must not exist.
    Vacant,
    /// The key holds an earlier state and must not have changed since.
    Watched,
    /// The key is overwritten, whatever it holds.
    Overwritten,
}

/// What is copied.
#[derive(Clone, Copy, Debug)]
pub(super) struct CopiedKey<'a> {
    pub(super) key: &'a [u8],
    pub(super) family: Family,
    /// Its name until it is whole.
    pub(super) temporary: &'a [u8],
}

/// Loads the header under the temporary name.
pub(super) fn load_header(
    destination: &mut Server,
    filter: CopiedKey<'_>,
    header: &Header,
) -> Result<(), Failure> {
    let iterator = header.start.saturating_add(1);
    let reply = load_chunk(destination, filter, iterator, &header.bytes)?;
    let Reply::Error(text) = reply else {
        return Ok(());
    };
    Err(Failure::Filter(match header.why_ours() {
        _ if text.starts_with("ERR unknown command") => format!(
            "the destination has no {}: what runs there does not know {}",
            filter.family.loadchunk(),
            filter.family.filter()
        ),
        Some(why) => format!(
            "the destination refused it ({text}): {why}, and only everbloom and its module know \
             such filters"
        ),
        None => format!(
            "the destination refused its header ({text}); perhaps it has no memory for a filter \
             of this size"
        ),
    }))
}

/// Loads all pieces; the digest of what was sent.
pub(super) fn load_pieces(
    destination: &mut Server,
    filter: CopiedKey<'_>,
    header: &Header,
    mut next: impl FnMut() -> Result<Option<Vec<u8>>, Failure>,
    progress: &Progress,
) -> Result<Digest<'static, u64, Table<16>>, Failure> {
    let mut digest = CRC.digest();
    let mut end = header.start.saturating_add(1);
    while let Some(piece) = next()? {
        digest.update(&piece);
        end = end.saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        let reply = load_chunk(destination, filter, end, &piece)?;
        destination.accepted(reply, filter.family.loadchunk())?;
        progress.advance(piece.len());
    }
    Ok(digest)
}

/// Loads the header or a piece; the reply to that, which may be an error.
fn load_chunk(
    destination: &mut Server,
    filter: CopiedKey<'_>,
    iterator: u64,
    bytes: &[u8],
) -> Result<Reply, Failure> {
    let (iterator, command) = (iterator.to_string(), filter.family.loadchunk());
    let load: [&[u8]; 4] = [
        command.as_bytes(),
        filter.temporary,
        iterator.as_bytes(),
        bytes,
    ];
    destination.prepare(&load);
    // Sent together, so that a copy that is killed here leaves no key for ever.
    keep(destination, filter.temporary);
    destination.flush()?;
    let reply = destination.reply()?;
    destination.demand("PEXPIRE")?;
    Ok(reply)
}

/// Prepares a request that lets a temporary key live on.
fn keep(destination: &mut Server, temporary: &[u8]) {
    let keep: [&[u8]; 3] = [b"PEXPIRE", temporary, ABANDONED.as_bytes()];
    destination.prepare(&keep);
}

/// Fails unless the destination has what the source sent.
pub(super) fn read_back(
    destination: &mut Server,
    filter: CopiedKey<'_>,
    header: &Header,
    sent: Digest<'_, u64, Table<16>>,
    progress: &Progress,
) -> Result<(), Failure> {
    let (temporary, family) = (filter.temporary, filter.family);
    ask_for_header(destination, temporary, family);
    destination.flush()?;
    let there = take_header(destination, temporary, family)?;
    let mut digest = CRC.digest();
    let mut reader = PieceReader::new(destination, temporary, &there, there.all())?;
    loop {
        // Its reply comes behind that of the piece that was asked for before.
        keep(destination, temporary);
        destination.flush()?;
        let piece = reader.next(destination)?;
        destination.demand("PEXPIRE")?;
        let Some(piece) = piece else { break };
        digest.update(&piece);
        progress.advance(piece.len());
    }
    if there.bytes == header.bytes && digest.finalize() == sent.finalize() {
        return Ok(());
    }
    Err(Failure::filter(
        "read back from the destination, it is not what was sent",
    ))
}

/// Gives the filter its name, together with its end. Returns whether it was still to live.
pub(super) fn publish(
    destination: &mut Server,
    filter: CopiedKey<'_>,
    target: Target,
    end: Option<Instant>,
) -> Result<bool, Failure> {
    let CopiedKey { key, temporary, .. } = filter;
    if end.is_some_and(|end| end <= Instant::now()) {
        return Ok(false);
    }
    let rename: &[u8] = match target {
        Target::Vacant => b"RENAMENX",
        _ => b"RENAME",
    };
    destination.prepare(&[b"MULTI"]);
    live_until(destination, temporary, end);
    destination.prepare(&[rename, temporary, key]);
    destination.prepare(&[b"EXEC"]);
    destination.flush()?;
    let mut replies = Vec::new();
    for _ in 0..4 {
        replies.push(destination.reply()?);
    }
    if let Some(text) = replies.iter().find_map(Reply::as_error) {
        return Err(not_renamed(text));
    }
    let done = replies.pop().unwrap_or(Reply::Null);
    match done.into_elements().as_deref() {
        Some([_, Reply::Error(text)]) => Err(not_renamed(text)),
        Some([_, Reply::Integer(0)]) => Err(Failure::filter(
            "somebody else made a key of this name at the destination meanwhile",
        )),
        Some([_, _]) => Ok(true),
        _ => Err(Failure::filter(
            "somebody changed it at the destination meanwhile, so it was not replaced",
        )),
    }
}

/// Deletes a temporary key.
pub(super) fn forget(destination: &mut Server, temporary: &[u8]) -> Result<(), Failure> {
    destination.drain()?;
    destination.call(&[b"DEL", temporary])?;
    Ok(())
}

fn not_renamed(text: &str) -> Failure {
    Failure::Filter(format!(
        "the destination does not let us rename the finished filter ({text}); MULTI, PEXPIRE, \
         PERSIST, RENAME and RENAMENX must be allowed there, so that nobody sees half a filter"
    ))
}

/// Prepares a request that lets a key live until then.
pub(super) fn live_until(destination: &mut Server, key: &[u8], end: Option<Instant>) {
    match end.map(|end| end.saturating_duration_since(Instant::now())) {
        Some(left) => {
            // 0 would delete it, and the requests behind would fail.
            let left = left.as_millis().max(1).to_string();
            destination.prepare(&[b"PEXPIRE", key, left.as_bytes()]);
        }
        None => destination.prepare(&[b"PERSIST", key]),
    }
}
