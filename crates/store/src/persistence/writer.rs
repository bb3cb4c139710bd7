//! Writes a snapshot of the keyspace as an RDB file.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use everbloom_files::Value;
use everbloom_files::rdb::{Aux, LogMark, WriteError, WriteOptions, Writer};
use everbloom_files::storage::StorageFile;

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

/// Writes the whole snapshot, and syncs the file; returns its length. Fails once `given_up` is set.
pub fn write(
    given_up: &AtomicBool,
    keyspace: &Keyspace,
    machine: &Arc<dyn Machine>,
    snapshot: &Snapshot<'_>,
    file: &mut dyn StorageFile,
    settings: &Settings,
    purpose: Purpose,
) -> Result<u64, WriteError> {
    let pace = Pace::new(machine);
    let aux = Aux {
        version: COMPATIBLE_VERSION,
        created: machine.now().seconds(),
        used_memory: u64::try_from(keyspace.memory()).unwrap_or(u64::MAX),
        aof_base: Some(matches!(purpose, Purpose::Base)),
        log: match purpose {
            Purpose::Base => None,
            Purpose::Snapshot(log) => log,
        },
    };
    let rdb = begin(file, &pace, settings, &aux)?;
    let mut file = SnapshotWriter {
        source: SnapshotReader {
            snapshot,
            given_up,
            pace: &pace,
        },
        rdb,
        db: None,
        large: Vec::new(),
    };
    for shard in 0..SHARDS {
        while !snapshot.walk(shard) {
            file.write_kept()?;
        }
        file.write_kept()?;
    }
    file.write_large()?;
    let (out, bytes) = file.rdb.finish()?;
    out.file.sync()?;
    Ok(bytes)
}

fn begin<'f>(
    file: &'f mut dyn StorageFile,
    pace: &'f Pace,
    settings: &Settings,
    aux: &Aux<'_>,
) -> Result<Writer<Paced<'f>>, WriteError> {
    let options = WriteOptions {
        compression: settings.rdbcompression,
        checksum: settings.rdbchecksum,
    };
    let out = Paced {
        file,
        unsynced: 0,
        pace,
    };
    let mut rdb = Writer::new(out, options)?;
    rdb.aux(aux)?;
    Ok(rdb)
}

fn put<W: Write>(
    rdb: &mut Writer<W>,
    key: &[u8],
    expires_at: Option<u64>,
    value: &Value,
) -> Result<(), WriteError> {
    match value {
        Value::Text(text) => rdb.text(key, expires_at, text),
        Value::Filter(filter) => rdb.filter(key, expires_at, filter),
    }
}

/// Reads the entries of a snapshot.
struct SnapshotReader<'s> {
    snapshot: &'s Snapshot<'s>,
    given_up: &'s AtomicBool,
    pace: &'s Pace,
}

impl SnapshotReader<'_> {
    fn go_on(&self) -> Result<(), WriteError> {
        if self.given_up.load(Ordering::Relaxed) {
            return Err(io::Error::other("the server ends").into());
        }
        Ok(())
    }

    /// Replaces the buffer with the next bytes of a large value.
    fn next_piece(&self, id: u64, piece: &mut Vec<u8>) -> Result<(), WriteError> {
        self.go_on()?;
        // While a value is being compressed, nothing is written, so the file does not pause.
        self.pace.rest();
        piece.clear();
        if self.snapshot.next_piece(id, piece) {
            Ok(())
        } else {
            Err(io::Error::other("a captured value was lost").into())
        }
    }

    /// Ends the capture of a large value after its last bytes.
    fn end(&self, id: u64) {
        self.snapshot.next_piece(id, &mut Vec::new());
    }
}

struct SnapshotWriter<'s, 'f> {
    source: SnapshotReader<'s>,
    rdb: Writer<Paced<'f>>,
    /// The database selected last.
    db: Option<usize>,
    /// Large filters, left to the end.
    large: Vec<Kept>,
}

impl SnapshotWriter<'_, '_> {
    fn write_kept(&mut self) -> Result<(), WriteError> {
        self.source.go_on()?;
        for kept in self.source.snapshot.take_kept() {
            match &kept.value {
                KeptValue::LargeFilter(..) => self.large.push(kept),
                KeptValue::LongText(id, len) => {
                    self.select(kept.db)?;
                    let next = |piece: &mut Vec<u8>| self.source.next_piece(*id, piece);
                    self.rdb.long_text(&kept.key, kept.expires_at, *len, next)?;
                    self.source.end(*id);
                }
                KeptValue::Whole(value) => {
                    self.select(kept.db)?;
                    put(&mut self.rdb, &kept.key, kept.expires_at, value)?;
                }
            }
        }
        Ok(())
    }

    fn write_large(&mut self) -> Result<(), WriteError> {
        loop {
            // An emptied database may have added some more.
            self.write_kept()?;
            let Some(kept) = self.large.pop() else {
                return Ok(());
            };
            let KeptValue::LargeFilter(id, parts) = &kept.value else {
                continue;
            };
            self.select(kept.db)?;
            let next = |piece: &mut Vec<u8>| self.source.next_piece(*id, piece);
            let (key, expires_at) = (&kept.key, kept.expires_at);
            self.rdb.long_filter(key, expires_at, parts, next)?;
            self.source.end(*id);
        }
    }

    fn select(&mut self, db: usize) -> Result<(), WriteError> {
        if self.db != Some(db) {
            self.rdb.select_db(u64::try_from(db).unwrap_or(u64::MAX))?;
            self.db = Some(db);
        }
        Ok(())
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
