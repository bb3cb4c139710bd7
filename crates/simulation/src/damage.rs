//! Damage to the files of the log while no server runs, and what a start must make of it.
//!
//! What a loss of power can leave behind is no damage: a start goes on with what is whole. Everything else
//! must be refused with the name of the file, and nothing may be changed.

use everbloom_files::aof::{CommandReader, Manifest, Unit};
use everbloom_files::storage::Storage;

use crate::crashing::CrashingDisk;

/// The directory of the log.
pub const LOG_DIR: &str = "appendonlydir";
/// The manifest of the log.
pub const MANIFEST: &str = "appendonlydir/appendonly.aof.manifest";

/// MULTI, as EXEC, has so many bytes in the log, or one more.
const BRACKET_BYTES: usize = 14;

/// What has become of a file. Numbers that select something are taken modulo what there is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Damage {
    /// The manifest lacks so many of its last lines.
    LinesMissing(usize),
    /// The manifest, or the base, has no bytes.
    Emptied(usize),
    /// The manifest, or a file that it names and that has bytes, is missing.
    Removed(usize),
    /// A bit of the framing of a command or of a transaction has flipped: which unit, which byte, which bit.
    Flipped(usize, usize, u8),
    /// So many bytes from a unit on are zeros, and a whole command follows.
    Hole(usize, usize),
    /// So many bytes at the end of the last unit are zeros, and so many zeros follow.
    ZerosAtEnd(usize, usize),
    /// The last unit lacks so many bytes, and the disk is full.
    TornOnFullDisk(usize),
}

/// What a start must make of a damaged log.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It refuses, and names this file.
    Refusal(String),
    /// It refuses and names this file, or takes the file as it is.
    NothingIsCut(String),
    /// It loads all but so many bytes at the end.
    AllBut(u64),
    /// The same, or it refuses and leaves no new file.
    AllButIfRoom(u64),
}

/// A file of the log with its units.
struct LogFile {
    path: String,
    bytes: Vec<u8>,
    /// Where each unit begins and ends.
    units: Vec<(usize, usize)>,
    /// The units that are transactions.
    transactions: Vec<usize>,
}

impl LogFile {
    fn of(path: String, bytes: Vec<u8>) -> Self {
        let mut reader = CommandReader::new(bytes.as_slice(), path.as_str(), u64::MAX);
        let (mut units, mut transactions, mut start) = (Vec::new(), Vec::new(), 0);
        while let Ok(Some(unit)) = reader.next_unit() {
            let end = reader.valid_up_to() as usize;
            if matches!(unit, Unit::Transaction(_)) {
                transactions.push(units.len());
            }
            units.push((start, end));
            start = end;
        }
        LogFile {
            path,
            bytes,
            units,
            transactions,
        }
    }

    /// A unit with a whole one behind it; every second choice is a transaction, if there is one, the last first.
    fn unit_before_another(&self, number: usize) -> Option<(usize, usize, bool)> {
        let last = self.units.len().checked_sub(1).filter(|last| *last > 0)?;
        let transactions = self.transactions.partition_point(|unit| *unit < last);
        let unit = match number.is_multiple_of(2) && transactions > 0 {
            true => self.transactions[transactions - 1 - number / 2 % transactions],
            false => number / 2 % last,
        };
        let (start, end) = self.units[unit];
        Some((start, end, self.transactions.contains(&unit)))
    }
}

impl Damage {
    /// Does the damage to a disk that is well. `None` if there is nothing of that kind to damage.
    pub fn apply(self, disk: &CrashingDisk) -> Option<Outcome> {
        let manifest = disk.contents(MANIFEST)?;
        match self {
            Damage::LinesMissing(lines) => remove_lines(disk, &manifest, lines),
            Damage::Emptied(number) => {
                let base = Manifest::parse(&manifest, MANIFEST).ok()?.base;
                let base = base.map(|base| format!("{LOG_DIR}/{}", base.name));
                let names = [Some(MANIFEST.to_owned()), base];
                let path = names[number % 2].clone()?;
                disk.put(&path, b"");
                Some(Outcome::Refusal(path))
            }
            Damage::Removed(number) => {
                let path = remove_file(disk, number)?;
                Some(Outcome::Refusal(path))
            }
            Damage::Flipped(unit, byte, bit) => {
                let mut file = last_file(disk, &manifest)?;
                let (start, end, is_transaction) = file.unit_before_another(unit)?;
                let at = match (is_transaction, byte % 2) {
                    (true, 0) => end - 1 - byte / 2 % BRACKET_BYTES,
                    (true, _) => start + byte / 2 % BRACKET_BYTES,
                    (false, _) => start + byte % (end - start).min(8),
                };
                file.bytes[at] ^= 1 << (bit % 8);
                disk.put(&file.path, &file.bytes);
                Some(Outcome::NothingIsCut(file.path))
            }
            Damage::Hole(unit, len) => {
                let mut file = last_file(disk, &manifest)?;
                let (start, ..) = file.unit_before_another(unit)?;
                let (last, _) = *file.units.last()?;
                let end = start + 1 + len % (last - start);
                file.bytes[start..end].fill(0);
                disk.put(&file.path, &file.bytes);
                Some(Outcome::NothingIsCut(file.path))
            }
            Damage::ZerosAtEnd(within, behind) => {
                let mut file = last_file(disk, &manifest)?;
                let (start, end) = *file.units.last()?;
                let within = within % (end - start + 1);
                file.bytes[end - within..].fill(0);
                file.bytes.resize(end + behind, 0);
                disk.put(&file.path, &file.bytes);
                let lost = if within > 0 { end - start } else { 0 };
                Some(Outcome::AllBut(lost as u64))
            }
            Damage::TornOnFullDisk(bytes) => {
                let file = last_file(disk, &manifest)?;
                let (start, end) = *file.units.last()?;
                let kept = end - 1 - bytes % (end - start - 1);
                disk.put(&file.path, &file.bytes[..kept]);
                disk.fail_writes_after(0);
                Some(Outcome::AllButIfRoom((end - start) as u64))
            }
        }
    }
}

/// Removes the manifest, or a file with bytes that it names. Returns its path.
pub fn remove_file(disk: &CrashingDisk, number: usize) -> Option<String> {
    let manifest = disk.contents(MANIFEST)?;
    let mut names: Vec<String> = named(disk, &manifest)?.collect();
    names.push(MANIFEST.to_owned());
    let path = names.swap_remove(number % names.len());
    disk.remove(&path).ok()?;
    Some(path)
}

/// Whether the manifest and all files that it names are there.
pub fn is_complete(disk: &CrashingDisk) -> bool {
    let manifest = disk.contents(MANIFEST).unwrap_or_default();
    Manifest::parse(&manifest, MANIFEST).is_ok_and(|manifest| {
        let mut files = manifest.files();
        files.all(|info| disk.len(&format!("{LOG_DIR}/{}", info.name)).is_some())
    })
}

/// The files with bytes that a manifest names, without the history.
fn named<'d>(disk: &'d CrashingDisk, manifest: &[u8]) -> Option<impl Iterator<Item = String> + 'd> {
    let manifest = Manifest::parse(manifest, MANIFEST).ok()?;
    let names = manifest.base.into_iter().chain(manifest.increments);
    let paths = names.map(|info| format!("{LOG_DIR}/{}", info.name));
    Some(paths.filter(|path| disk.len(path).is_some_and(|len| len > 0)))
}

/// The last file with bytes, if it holds whole commands.
fn last_file(disk: &CrashingDisk, manifest: &[u8]) -> Option<LogFile> {
    let path = named(disk, manifest)?.last()?;
    let bytes = disk.contents(&path)?;
    let file = LogFile::of(path, bytes);
    // A start cuts nothing off a log that ends within a command before it was damaged.
    let is_whole = file.units.last()?.1 == file.bytes.len();
    is_whole.then_some(file)
}

/// Removes the last lines of the manifest, if one of them names a file that the log cannot do without.
fn remove_lines(disk: &CrashingDisk, manifest: &[u8], lines: usize) -> Option<Outcome> {
    let text = String::from_utf8_lossy(manifest).into_owned();
    let all: Vec<&str> = text.split_inclusive('\n').collect();
    let kept = all.len().saturating_sub(lines).max(1);
    // A crash can leave an increment behind that is empty, and one of a log that is being begun.
    let is_needed = |line: &&str| {
        let name = line.split(' ').nth(1).unwrap_or_default();
        let len = disk.len(&format!("{LOG_DIR}/{name}"));
        line.ends_with("type i\n") && len.is_some_and(|len| len > 0)
    };
    let is_beginning = disk.len(&format!("{LOG_DIR}/temp.begin")).is_some();
    if is_beginning || !all[kept..].iter().any(is_needed) {
        return None;
    }
    disk.put(MANIFEST, all[..kept].concat().as_bytes());
    Some(Outcome::Refusal(MANIFEST.to_owned()))
}
