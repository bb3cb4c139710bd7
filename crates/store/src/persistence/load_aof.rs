//! Reads the files of the AOF at the start.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::sync::atomic::Ordering::Relaxed;

use everbloom_files::aof::{self, BaseFormat, Command, CommandReader, FileInfo, Manifest, Piece};
use everbloom_files::rdb;
use everbloom_resp::recycle;
use tracing::{info, warn};

use super::load::{DataLoader, LoadError};
use super::log;
use super::log_writer::Log;
use super::progress::ProgressReader;
use super::torn_end::TornEnd;
use crate::replay::{Replay, ReplayError};
use crate::settings::Fsync;

impl DataLoader<'_> {
    pub(super) fn load_log(&self, replay: &mut dyn Replay) -> Result<Log, LoadError> {
        let persistence = self.persistence;
        let manifest = Manifest::load(&*persistence.storage, &persistence.names)?;
        if manifest.is_empty() || self.is_snapshot_newer(&manifest)? {
            self.load_snapshot()?;
            return self.begin_log(manifest);
        }
        let (lengths, torn_end) = self.load_files(&manifest, replay)?;
        Ok(self.go_on(manifest, lengths)?.behind(torn_end))
    }

    /// Reads all files of the log; returns their lengths by name, and a torn end that is still
    /// there.
    fn load_files(
        &self,
        log: &Manifest,
        replay: &mut dyn Replay,
    ) -> Result<(BTreeMap<String, u64>, Option<TornEnd>), LoadError> {
        let (names, figures) = (&self.persistence.names, &self.persistence.figures);
        let files: Vec<FileInfo> = log.files().cloned().collect();
        let (mut lengths, mut last_len, mut torn_end) = (BTreeMap::new(), 0, None);
        let end = self.end_of(&files)?;
        for (number, info) in files.iter().enumerate() {
            let format = match &log.base {
                Some(base) if base == info => BaseFormat::of(base),
                _ => None,
            };
            // A base of a rewrite got its name when it was whole.
            let may_be_torn = number >= end && format.is_none();
            let path = names.path(info);
            let (len, torn) = self.load_log_file(&path, format, may_be_torn, replay)?;
            (last_len, torn_end) = (len, torn_end.or(torn));
            lengths.insert(info.name.clone(), len);
            if number == 0 {
                figures.log_base_size.store(last_len, Relaxed);
            }
        }
        figures.log_size.store(lengths.values().sum(), Relaxed);
        figures.log_file_size.store(last_len, Relaxed);
        Ok((lengths, torn_end))
    }

    /// The number of the last file that has bytes. Empty ones may follow it: after a failed fsync a
    /// rewrite begins a file, and nothing is written to that before the rewrite has succeeded.
    fn end_of(&self, files: &[FileInfo]) -> Result<usize, LoadError> {
        for (number, info) in files.iter().enumerate().rev() {
            let opened = self.open(&self.persistence.names.path(info))?;
            if opened.is_none_or(|(_, len)| len > 0) {
                return Ok(number);
            }
        }
        Ok(0)
    }

    /// Reads one file of the log; returns the length of what is whole, and a torn end that is still
    /// there.
    fn load_log_file(
        &self,
        file: &str,
        format: Option<BaseFormat>,
        may_be_torn: bool,
        replay: &mut dyn Replay,
    ) -> Result<(u64, Option<TornEnd>), LoadError> {
        let Some((input, len)) = self.open(file)? else {
            let source = io::Error::new(io::ErrorKind::NotFound, "the manifest names it");
            return Err(LoadError::io(file)(source));
        };
        info!("loading {file}, {len} bytes");
        if len == 0 && format.is_some() {
            warn!("{file} is empty: it stands for no keys, as Redis writes an empty database");
        }
        let input = ProgressReader::new(input, len, &self.persistence.figures);
        let commands = self.commands_of(file, format, input)?;
        match self.replay(file, commands, replay) {
            Ok(()) => Ok((len, None)),
            Err(LoadError::Log(error @ aof::ReadError::Truncated { valid_up_to, .. }))
                if may_be_torn && self.settings.aof_load_truncated =>
            {
                warn!("{error}");
                Ok((valid_up_to, self.move_torn_end(file, valid_up_to)?))
            }
            Err(error) => Err(error),
        }
    }

    /// Moves the torn end of a file aside. It is returned if that fails now and is tried again
    /// later: writes are refused until then.
    fn move_torn_end(&self, file: &str, start: u64) -> Result<Option<TornEnd>, LoadError> {
        let (storage, machine) = (&self.persistence.storage, &self.store.machine);
        let mut torn_end = TornEnd::new(storage, machine, file, start);
        match torn_end.move_aside(true) {
            Ok(mut truncated) => {
                truncated.sync().map_err(LoadError::io(file))?;
                Ok(None)
            }
            Err(error) if self.settings.appendfsync == Fsync::Always => Err(error.into()),
            Err(error) => {
                log::refuse_writes(self.store, self.persistence, error.to_string());
                Ok(Some(torn_end))
            }
        }
    }

    /// The commands of a file of the log, once the RDB file that it may begin with is loaded.
    fn commands_of<'r>(
        &self,
        file: &str,
        format: Option<BaseFormat>,
        mut input: impl Read + 'r,
    ) -> Result<CommandReader<Box<dyn Read + 'r>>, LoadError> {
        let mut magic = Vec::new();
        let start = Read::by_ref(&mut input).take(5).read_to_end(&mut magic);
        start.map_err(LoadError::io(file))?;
        let is_rdb = rdb::MAGIC.iter().any(|known| magic == known[..]);
        // Redis leaves a base of commands with this name if `aof-use-rdb-preamble` is switched on
        // during a rewrite. One of an empty database would be like a file that lost its bytes.
        if format == Some(BaseFormat::Rdb) && magic.is_empty() {
            return Err(LoadError::Log(aof::ReadError::Damaged {
                file: file.into(),
                offset: 0,
                expected: "an RDB file or commands".into(),
                found: "an empty file".into(),
            }));
        }
        let input = io::Cursor::new(magic).chain(input);
        // A command that was accepted once must not be refused now because of a setting.
        let budget = self.store.memory;
        if is_rdb {
            let (input, offset) = self.read_rdb(file, input, true)?;
            return Ok(CommandReader::starting_at(offset, input, file, budget));
        }
        Ok(CommandReader::new(Box::new(input), file, budget))
    }

    fn replay<R: Read>(
        &self,
        file: &str,
        mut commands: CommandReader<R>,
        replay: &mut dyn Replay,
    ) -> Result<(), LoadError> {
        replay.begin();
        let skip = self.settings.rdb_skip_unknown_values;
        let check = |replay: &dyn Replay, command: &Command| match replay.check(&command.words()) {
            Err(ReplayError::Unknown(_)) if skip => Ok(()),
            checked => checked.map_err(|problem| problem.to_string()),
        };
        let mut unknown: BTreeMap<String, usize> = BTreeMap::new();
        let mut skip_or_fail = |offset, problem| match problem {
            ReplayError::Unknown(name) if skip => {
                *unknown.entry(name).or_default() += 1;
                Ok(())
            }
            problem => Err(LoadError::Command {
                file: file.into(),
                offset,
                problem,
            }),
        };
        let mut spare: Vec<&'static [u8]> = Vec::new();
        loop {
            let piece = commands.next_piece(&|command| check(replay, command))?;
            let Some(piece) = piece else { break };
            self.stop_if_asked()?;
            match piece {
                Piece::Commands(commands) => {
                    let (batch, mut first) = (commands.batch, 0);
                    let mut args = recycle(spare);
                    batch.resolve(commands.bytes, &mut args);
                    while let Err((failed, problem)) = replay.run_batch(batch, &args, first) {
                        skip_or_fail(commands.offset_of(failed), problem)?;
                        first = failed + 1;
                    }
                    spare = recycle(args);
                }
                Piece::Unit(unit) => {
                    for command in unit.commands() {
                        if let Err(problem) = replay.run(&command.words()) {
                            skip_or_fail(command.offset, problem)?;
                        }
                    }
                }
            }
        }
        if !unknown.is_empty() {
            warn!("{file}: left out unknown commands: {unknown:?}");
        }
        if let Some((count, first)) = replay.refusals() {
            warn!("{file}: {count} commands were answered with an error, the first: {first}");
        }
        Ok(())
    }
}
