//! A Bloom filter between a file and a key of a server.

use std::path::Path;

use everbloom::host::LayeredFilter;
use everbloom::redisbloom::FilterParts;
use everbloom_commands::Parts;
use everbloom_commands::bf::dump::piece;
use everbloom_resp::quoted;

use super::Args;
use super::destination::{self, CopiedKey, Target};
use super::transfer::{self, Passes, moved};
use crate::client::Url;
use crate::failure::Failure;
use crate::filter::{OwnFilter, of_pieces};
use crate::filter_file::FilterFile;
use crate::progress::Progress;
use crate::records::signals::Signals;
use crate::servers::difference::Change;
use crate::servers::dump::{Header, PieceReader, WRITABLE, header_of};
use crate::servers::family::Family;
use crate::servers::server::{Content, Server};
use crate::servers::temporary;

/// A key of a server: `redis://HOST#KEY`.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) url: Url,
    pub(super) key: Vec<u8>,
}

/// Saves the filter of a key in a file. Returns its bytes, and whether it changed meanwhile.
/// An error ends it after a signal, too.
pub(super) fn save(
    from: &Remote,
    path: &Path,
    args: &Args,
    signals: &Signals,
) -> Result<(u64, bool), Failure> {
    let progress = Progress::of_filters(args.quiet);
    let mut file = FilterFile::open(path)?;
    file.check_is_of(None)?;
    if !args.replace && !file.is_new() {
        return Err(Failure::Other(format!(
            "there is a filter in {}; --replace overwrites it",
            path.display()
        )));
    }
    // A server that has the filter knows the commands; of one that lacks it, the key is the news.
    let mut server = Server::connect(&from.url, &args.server, &[])?;
    let (filter, bytes, changed) = fetch(&mut server, &from.key, (&progress, signals))?;
    let filter = OwnFilter::from(filter);
    file.save(|to| filter.write_to(to))?;
    Ok((bytes, changed))
}

/// The filter of a key. When it changes while it is read, it is read again a few times.
fn fetch(
    server: &mut Server,
    key: &[u8],
    (progress, signals): (&Progress, &Signals),
) -> Result<(LayeredFilter, u64, bool), Failure> {
    match server.find(key)? {
        Content::Filter(Family::Bloom) => {}
        Content::Nothing => {
            let (key, name) = (quoted(key), server.name());
            return Err(Failure::Other(format!(
                "there is no such key: {key} at {name}"
            )));
        }
        found => {
            let found = found.describe().unwrap_or_else(|| "nothing".to_owned());
            return Err(Failure::Filter(format!(
                "the key holds {found}; only Bloom filters go from a server to a file"
            )));
        }
    }
    let mut passes = Passes::begin(Family::Bloom);
    loop {
        let header = header_of(server, key, Family::Bloom)?;
        let Parts::Bloom(parts) = &header.parts else {
            return Err(server.odd("BF.SCANDUMP"));
        };
        progress.begin("copying", header.length);
        let read = match read(server, key, (&header, parts), (progress, signals)) {
            Err(failure @ Failure::Other(_)) => return Err(failure),
            read => read,
        };
        server.drain()?;
        let change = Change::between(&header, &header_of(server, key, Family::Bloom)?);
        if passes.again(change) {
            continue;
        }
        return match change {
            Change::Moved => Err(moved(Family::Bloom)),
            _ => Ok((read?, header.length, change != Change::Still)),
        };
    }
}

fn read(
    server: &mut Server,
    key: &[u8],
    (header, parts): (&Header, &FilterParts),
    (progress, signals): (&Progress, &Signals),
) -> Result<LayeredFilter, Failure> {
    let mut reader = PieceReader::new(server, key, header, header.all())?;
    let next = || {
        if signals.exit_code().is_some() {
            return Err(Failure::other("a signal ended it"));
        }
        let piece = reader.next(server)?;
        progress.advance(piece.as_ref().map_or(0, Vec::len));
        Ok(piece)
    };
    of_pieces(parts, next, |why| {
        Failure::Filter(format!("it is damaged: {why}"))
    })
}

/// Loads the filter of a file into a key, which has it whole or not at all. Returns its bytes.
pub(super) fn load(path: &Path, to: &Remote, args: &Args) -> Result<u64, Failure> {
    let progress = Progress::of_filters(args.quiet);
    let (filter, selection) = FilterFile::look_at_bloom(path)?;
    selection.leave(path, "a server", args.quiet)?;
    let mut server = Server::connect(&to.url, &args.server, WRITABLE)?;
    let temporary = temporary::name(&to.key, &transfer::token());
    let name = CopiedKey {
        key: &to.key,
        family: Family::Bloom,
        temporary: &temporary,
    };
    let outcome = target(&mut server, &to.key, args.replace).and_then(|target| {
        publish(
            &mut server,
            name,
            &filter,
            (target, !args.no_verify),
            &progress,
        )
    });
    if outcome.is_err() {
        // Ignore the error: without us the temporary key expires.
        let _ = destination::forget(&mut server, &temporary);
    }
    outcome
}

fn target(server: &mut Server, key: &[u8], replace: bool) -> Result<Target, Failure> {
    match server.find(key)?.describe() {
        None => Ok(Target::Vacant),
        Some(_) if replace => Ok(Target::Overwritten),
        Some(there) => Err(Failure::Filter(format!(
            "the destination holds {there}; --replace overwrites it"
        ))),
    }
}

fn publish(
    server: &mut Server,
    name: CopiedKey<'_>,
    filter: &LayeredFilter,
    (target, verify): (Target, bool),
    progress: &Progress,
) -> Result<u64, Failure> {
    let header = piece(filter, 0).and_then(|(_, bytes)| Header::of_bloom(bytes));
    let header = header.ok_or_else(|| Failure::filter("it is too large for a server"))?;
    progress.begin("copying", transfer::to_move(&header, verify));
    destination::load_header(server, name, &header)?;
    let mut iterator = i64::try_from(header.start + 1).unwrap_or(i64::MAX);
    let next = || {
        let found = piece(filter, iterator);
        iterator = found.as_ref().map_or(iterator, |(next, _)| *next);
        Ok(found.map(|(_, piece)| piece))
    };
    let sent = destination::load_pieces(server, name, &header, next, progress)?;
    if verify {
        progress.go_on("reading back");
        destination::read_back(server, name, &header, sent, progress)?;
    }
    destination::publish(server, name, target, None)?;
    Ok(header.length)
}
