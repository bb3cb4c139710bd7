//! Writes a snapshot of the keyspace as an RDB file.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use everbloom_files::rdb::{Aux, LogMark, WriteError, WriteOptions, Writer};
use everbloom_files::storage::StorageFile;
use everbloom_files::{Outline, Value};

use crate::keyspace::captured::Captured;
use crate::keyspace::snapshot::{Kept, KeptValue, Snapshot};
use crate::keyspace::{Keyspace, SHARDS};
use crate::limits::SYNC_BYTES;
use crate::machine::Machine;
use crate::pace::Pace;
use crate::settings::Settings;

/// The version of Redis that we declare compatibility with.
pub const COMPATIBLE_VERSION: &str = "7.4.0";

/// What a file is for.
#[derive(Debug, Clone, Copy)]
pub enum Purpose {
    /// The base of the log.
    Base,
    /// A snapshot. One that is made while no log is kept says what it knows of the last one.
    Snapshot(Option<LogMark>),
}

/// How a snapshot is written.
#[derive(Debug, Clone, Copy)]
pub struct Writing<'w> {
    /// What the file is for.
    pub purpose: Purpose,
    /// Whether it is compressed, and has a checksum.
    pub settings: &'w Settings,
    /// The clock.
    pub machine: &'w Arc<dyn Machine>,
    /// Whether the work is given up.
    pub is_ending: &'w AtomicBool,
}

impl Writing<'_> {
    /// Writes the whole snapshot, and syncs the file; returns its length.
    pub fn write(
        &self,
        snapshot: &Snapshot,
        file: &mut dyn StorageFile,
    ) -> Result<u64, WriteError> {
        let pace = Pace::new(self.machine);
        let out = Paced {
            file,
            unsynced: 0,
            pace: &pace,
        };
        let mut writer = SnapshotWriter {
            how: self,
            snapshot,
            pace: &pace,
            rdb: self.begin(out, snapshot.keyspace())?,
            db: None,
            large: Vec::new(),
        };
        for shard in 0..SHARDS {
            while !snapshot.walk(shard) {
                writer.write_kept()?;
            }
            writer.write_kept()?;
        }
        writer.write_large()?;
        let (out, bytes) = writer.rdb.finish()?;
        out.file.sync()?;
        Ok(bytes)
    }

    fn begin<W: Write>(&self, out: W, keyspace: &Keyspace) -> Result<Writer<W>, WriteError> {
        let options = WriteOptions {
            compression: self.settings.rdbcompression,
            checksum: self.settings.rdbchecksum,
        };
        let mut rdb = Writer::new(out, options)?;
        rdb.aux(&Aux {
            version: COMPATIBLE_VERSION,
            created: self.machine.now().seconds(),
            used_memory: u64::try_from(keyspace.memory()).unwrap_or(u64::MAX),
            aof_base: Some(matches!(self.purpose, Purpose::Base)),
            log: match self.purpose {
                Purpose::Base => None,
                Purpose::Snapshot(log) => log,
            },
        })?;
        Ok(rdb)
    }

    fn go_on(&self) -> Result<(), WriteError> {
        match self.is_ending.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the server ends").into()),
            false => Ok(()),
        }
    }
}

struct SnapshotWriter<'s, W: Write> {
    how: &'s Writing<'s>,
    snapshot: &'s Snapshot,
    pace: &'s Pace,
    rdb: Writer<W>,
    /// The database selected last.
    db: Option<usize>,
    /// Large filters, left to the end.
    large: Vec<Kept<Captured>>,
}

impl<W: Write> SnapshotWriter<'_, W> {
    fn write_kept(&mut self) -> Result<(), WriteError> {
        self.how.go_on()?;
        for kept in self.snapshot.take_kept() {
            match &kept.value {
                KeptValue::Large(_, Outline::Filter(_)) => self.large.push(kept),
                _ => self.write(&kept)?,
            }
        }
        Ok(())
    }

    fn write_large(&mut self) -> Result<(), WriteError> {
        loop {
            // An emptied database may have added some more.
            self.write_kept()?;
            match self.large.pop() {
                Some(kept) => self.write(&kept)?,
                None => return Ok(()),
            }
        }
    }

    fn write(&mut self, kept: &Kept<Captured>) -> Result<(), WriteError> {
        if self.db != Some(kept.db) {
            let db = u64::try_from(kept.db).unwrap_or(u64::MAX);
            self.rdb.select_db(db)?;
            self.db = Some(kept.db);
        }
        let (rdb, key, expires_at) = (&mut self.rdb, &*kept.key, kept.expires_at);
        match &kept.value {
            KeptValue::Whole(Value::Text(text)) => rdb.text(key, expires_at, text),
            KeptValue::Whole(Value::Filter(filter)) => rdb.filter(key, expires_at, filter),
            KeptValue::Large(value, outline) => {
                let (how, pace) = (self.how, self.pace);
                let next = |piece: &mut Vec<u8>| next_piece(how, pace, value, piece);
                match outline {
                    Outline::Text(len) => rdb.long_text(key, expires_at, *len, next),
                    Outline::Filter(parts) => rdb.long_filter(key, expires_at, parts, next),
                }
            }
        }
    }
}

/// Replaces the buffer with the next bytes of a large value.
fn next_piece(
    how: &Writing<'_>,
    pace: &Pace,
    value: &Captured,
    piece: &mut Vec<u8>,
) -> Result<(), WriteError> {
    how.go_on()?;
    // While a value is being compressed, nothing is written, so the file does not pause.
    pace.rest();
    piece.clear();
    match value.next(piece) {
        true => Ok(()),
        false => Err(io::Error::other("a captured value was lost").into()),
    }
}

/// A file that is synced now and then while it is written, by a thread that pauses now and then.
struct Paced<'f> {
    file: &'f mut dyn StorageFile,
    unsynced: u64,
    pace: &'f Pace,
}

impl Write for Paced<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pace.rest();
        let written = self.file.write(bytes)?;
        self.unsynced += u64::try_from(written).unwrap_or(0);
        if self.unsynced >= SYNC_BYTES.get_u64() {
            self.file.sync()?;
            self.unsynced = 0;
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
