//! `everbloom convert`: a filter file to the pieces of BF.SCANDUMP, and back; a key of an RDB file
//! to a filter file.

use std::ffi::{OsStr, OsString};
use std::fmt::Display;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use everbloom::host::LayeredFilter;
use everbloom_commands::bf::dump::piece;
use everbloom_commands::format::header;
use everbloom_files::Value;
use everbloom_files::rdb::{Event, Reader};

use crate::failure::Failure;
use crate::filter::{OwnFilter, of_pieces};
use crate::filter_file::{FilterFile, name_beside};
use crate::number::grouped;
use crate::records::signals::Signals;

/// Convert a filter file to pieces for BF.LOADCHUNK, or pieces or a key of an RDB file to a file
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Where to write: a new folder, or a filter file, which is replaced if it is there
    #[arg(value_name = "OUT")]
    to: PathBuf,
    /// A filter file, a folder of pieces, or with --key an RDB file
    #[arg(value_name = "IN")]
    from: PathBuf,
    /// Take the filter with this key from an RDB file, as RedisBloom, the module and the server
    /// write it
    #[arg(short, long, value_name = "NAME")]
    key: Option<OsString>,
    /// The number of its database
    #[arg(long, value_name = "N", default_value_t = 0, requires = "key")]
    db: u64,
}

const HELP: &str = "\
A piece is a file in the folder. Its name is the iterator that BF.SCANDUMP answered, and its content
is the data. Names may begin with zeros. RedisBloom takes the pieces of a filter that was made with
`build --growing --layout classic`. To copy a filter between a file and a server, use `copy`.

Pieces cannot remember what of the records was put in. That is said, and a filter of `build
--ignore-case` is refused: what is asked for in capital letters would not be found.

A filter of DCSO's bloom or of Guava cannot be converted, because each program places the bits of an
item elsewhere, and no filter knows its items. `check` reads it as it is, and `build --format dcso`
makes a filter for DCSO's bloom of the items themselves.

Exit code: 0 when OUT is written, 2 for an error, 130, 143 or 129 after SIGINT, SIGTERM or SIGHUP;
then OUT is as it was.

Examples:
  everbloom convert seen.pieces seen.bloom
  everbloom convert seen.bloom seen.pieces
  everbloom convert --key seen seen.bloom dump.rdb";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (to, from) = (&args.to, &args.from);
    if to.exists() && !from.exists() {
        return Err(Failure::Other(format!(
            "there is no {}; OUT comes before IN: everbloom convert {} {}",
            from.display(),
            from.display(),
            to.display()
        )));
    }
    // First, because what is new exists during the run and is removed at its end.
    let signals = Signals::catch(Arc::default())?;
    if from.is_dir() || args.key.is_some() {
        let mut out = FilterFile::open(to)?;
        out.check_is_of(None)?;
        let filter = OwnFilter::from(match &args.key {
            Some(key) => read_key(from, key, args.db)?,
            None => read_pieces(from)?,
        });
        if let Some(code) = signals.exit_code() {
            return Ok(ExitCode::from(code));
        }
        out.save(|to| filter.write_to(to))?;
        return Ok(ExitCode::SUCCESS);
    }
    let (filter, selection) = FilterFile::look_at_bloom(from)?;
    selection.leave(from, "the pieces", false)?;
    let ended = write_folder(&filter, to, &signals)?;
    Ok(ended.map_or(ExitCode::SUCCESS, ExitCode::from))
}

/// Writes the pieces into a folder that has its name only when all are there. Returns the exit code
/// if a signal ends it before.
fn write_folder(
    filter: &LayeredFilter,
    folder: &Path,
    signals: &Signals,
) -> Result<Option<u8>, Failure> {
    if folder.exists() {
        return Err(Failure::Other(format!(
            "{} is there already; name a new folder",
            folder.display()
        )));
    }
    let new = make_beside(folder)?;
    let written = write_pieces(filter, &new, signals);
    let written = written.and_then(|()| match signals.exit_code() {
        None => fs::rename(&new, folder).map(|()| None),
        ended => Ok(ended),
    });
    if !matches!(written, Ok(None)) {
        // Ignore the error: the first one tells more.
        let _ = fs::remove_dir_all(&new);
    }
    written.map_err(|error| Failure::of_file("write to", folder, error))
}

/// Makes a folder that is of this run alone: another may write the same one now.
fn make_beside(folder: &Path) -> Result<PathBuf, Failure> {
    let mut number = 0_u32;
    loop {
        let mut new = name_beside(folder).into_os_string();
        new.push(format!("-{number}"));
        let new = PathBuf::from(new);
        match fs::create_dir(&new) {
            Ok(()) => return Ok(new),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            Err(error) => return Err(Failure::of_file("make the folder", &new, error)),
        }
    }
}

/// Writes the pieces, or some when a signal comes.
fn write_pieces(filter: &LayeredFilter, folder: &Path, signals: &Signals) -> io::Result<()> {
    let mut iterator = 0;
    while let Some((next, data)) = piece(filter, iterator) {
        if signals.exit_code().is_some() {
            break;
        }
        // With zeros, so that every listing has them in order.
        fs::write(folder.join(format!("{next:020}")), data)?;
        iterator = next;
    }
    Ok(())
}

/// A piece that is still in its file.
struct Piece {
    iterator: u64,
    len: u64,
    path: PathBuf,
}

fn read_pieces(folder: &Path) -> Result<LayeredFilter, Failure> {
    let wrong = |why: String| {
        Failure::Other(format!(
            "{} has no whole filter: {why}; take all pieces from the server again",
            folder.display()
        ))
    };
    let read = |path: &Path| fs::read(path).map_err(|error| Failure::of_file("read", path, error));
    let pieces = list(folder)?;
    let Some((first, rest)) = pieces.split_first() else {
        return Err(wrong("it has no pieces".to_owned()));
    };
    let start = first.iterator;
    let parts = header::decode(&read(&first.path)?)
        .filter(|parts| parts.stream_start().checked_add(1) == Some(start))
        .ok_or_else(|| wrong(format!("piece {start} is no header of a filter")))?;
    let sizes = parts.layers.iter().map(|layer| layer.bytes);
    let length = sizes.fold(0, u64::saturating_add);
    // The iterator of a piece is one behind its last byte.
    let mut at = 0_u64;
    for piece in rest {
        at = at.saturating_add(piece.len);
        if piece.iterator != at.saturating_add(start) {
            return Err(wrong(format!(
                "piece {} does not fit the others",
                piece.iterator
            )));
        }
    }
    // The header does not announce more than there is.
    if at != length {
        return Err(wrong(format!(
            "it needs {} bytes, and the pieces have {}",
            grouped(length),
            grouped(at)
        )));
    }
    let mut rest = rest.iter();
    let next = || rest.next().map(|piece| read(&piece.path)).transpose();
    of_pieces(&parts, next, wrong)
}

/// The filter with this key. All of the file is read, so that its checksum is compared.
fn read_key(path: &Path, key: &OsStr, wanted: u64) -> Result<LayeredFilter, Failure> {
    let shown = path.display();
    let failed = |error: &dyn Display| {
        let error = format!("{error}; give an RDB file, or leave --key off");
        Failure::of_file("read", path, error)
    };
    let file = File::open(path).map_err(|error| failed(&error))?;
    let mut reader = Reader::new(file, u64::MAX).map_err(|error| failed(&error))?;
    let mut db = 0;
    let mut found = None;
    loop {
        let (name, value) = match reader.next_event().map_err(|error| failed(&error))? {
            Event::End { .. } => break,
            Event::SelectDb(number) => {
                db = number;
                continue;
            }
            Event::Key { key, value, .. } => (key, Some(value)),
            Event::Skipped { key: Some(key), .. } => (key, None),
            _ => continue,
        };
        if db == wanted && name == key.as_encoded_bytes() {
            found = Some(value);
        }
    }
    let key = key.display();
    match found {
        Some(Some(Value::Filter(everbloom_commands::Filter::Bloom(filter)))) => Ok(filter),
        Some(_) => Err(Failure::Other(format!(
            "{key} in {shown} is no Bloom filter; give another --key"
        ))),
        None => Err(Failure::Other(format!(
            "{shown} has no key {key} in database {wanted}; give another --key or --db"
        ))),
    }
}

/// The pieces in a folder, in order.
fn list(folder: &Path) -> Result<Vec<Piece>, Failure> {
    let failed = |error: io::Error| Failure::of_file("read", folder, error);
    let mut pieces = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let iterator = name.to_str().and_then(|name| name.parse().ok());
        let iterator = iterator.ok_or_else(|| {
            Failure::Other(format!(
                "{} is no piece of a filter: its name is no number; give a folder that has \
                 nothing else",
                entry.path().display()
            ))
        })?;
        pieces.push(Piece {
            iterator,
            len: entry.metadata().map_err(failed)?.len(),
            path: entry.path(),
        });
    }
    pieces.sort_unstable_by_key(|piece| piece.iterator);
    Ok(pieces)
}
