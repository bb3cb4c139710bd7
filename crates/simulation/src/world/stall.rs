//! A disk that hangs: nobody waits for it who need not, nothing is acknowledged that it does not have, and the
//! server says so.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use everbloom_store::machine::Machine;

use super::{Request, Verdict, World};
use crate::op::Op;
use crate::plan::Fault;

/// What waits for longer than this is a stall, and must be told.
const TOLD: Duration = Duration::from_millis(2100);

/// What is known of a disk that hangs.
#[derive(Debug, Default)]
pub(super) struct Hang {
    /// When the server first looked while the log waited for the disk, and how many fsyncs it had counted as
    /// delayed.
    seen: Option<(Duration, u64)>,
    /// How much of the journal was written when the running turn of the log's writer began.
    written: u64,
}

impl World {
    /// Something happens to the disk. Not while a file of the log is missing: a server that ends at a
    /// failed fsync could not write it again.
    pub(super) fn set_fault(&mut self, fault: Fault) {
        if self.statements.is_log_removed() && fault != Fault::Heals {
            return;
        }
        match fault {
            Fault::Full(bytes) => self.disk.fail_writes_after(bytes),
            Fault::Loses => {
                self.disk.lose_at_next_sync();
                self.has_lost = true;
            }
            Fault::SyncsFail => self.disk.fail_syncs(),
            Fault::DirSyncFails => self.disk.fail_next_dir_sync(),
            Fault::Hangs => {
                let machine = self.machine.clone();
                self.disk.hang(move || machine.wait_for_disk());
            }
            Fault::Heals => self.heal(),
        }
    }

    /// The disk is well again, and what waited for it goes on.
    pub(super) fn heal(&mut self) {
        self.disk.heal();
        self.instance().end_hang();
        self.hang = Hang::default();
    }

    /// The log's writer has its turn. Returns how much it has not written, unless it waits for the disk.
    pub(super) fn write_log(&mut self) -> Result<Option<u64>, String> {
        let written = self.instance().server.store.journal.written();
        if !self.instance().runs("log") {
            self.hang.written = written;
        }
        let has_returned = self.instance().write_log();
        let journal = &self.instance().server.store.journal;
        if has_returned {
            return Ok(Some(journal.backlog()));
        }
        // Replies leave when their changes are written.
        match self.instance().runs("log") && journal.written() > self.hang.written {
            true => {
                Err("a write or an fsync of the log hangs, and its changes are acknowledged".into())
            }
            false => Ok(None),
        }
    }

    /// Only SAVE waits for a disk that hangs.
    pub(super) fn check_waits_for_no_disk(&self, client: usize) -> Verdict {
        let unanswered = &self.unanswered[client];
        match unanswered.first() {
            Some(Request::One(Op::Other("SAVE"))) if unanswered.len() == 1 => Ok(()),
            Some(first) if self.clients[client].waits_for_disk() => {
                let name = String::from_utf8_lossy(&first.words()[0]).into_owned();
                Err(format!("{name} waits for a disk that hangs"))
            }
            _ => Ok(()),
        }
    }

    /// After the server has looked: what it says of a log that has waited for some seconds.
    pub(super) fn check_stall(&mut self) -> Verdict {
        let waits = |name| self.machine.waits_for_disk(name);
        let (syncs, writes) = (waits("fsync"), waits("log") || waits("write"));
        let store = &self.instance().server.store;
        let backlog = store.journal.backlog();
        // An fsync of a log that has ended keeps nobody waiting.
        let syncs = syncs && store.journal.is_logging();
        let figures = &self.instance().persistence().figures;
        let delayed = figures.delayed_syncs.load(Relaxed);
        if !(syncs || writes && backlog > 0) {
            self.hang.seen = None;
            return Ok(());
        }
        let now = self.machine.uptime();
        let (since, delayed_then) = self.hang.seen.unwrap_or((now, delayed));
        let (is_told, fails) = (store.disk_stall().is_some(), store.health.is_log_failing());
        let is_pending = figures.is_log_syncing();
        self.hang.seen = Some((since, delayed_then));
        if now.saturating_sub(since) <= TOLD || fails {
            return Ok(());
        }
        let waited = now.saturating_sub(since).as_secs();
        if !is_told {
            return Err(format!(
                "the log waits for the disk for {waited} s, and nobody says so"
            ));
        }
        if syncs && !is_pending {
            return Err("an fsync of the log hangs, and INFO says that none runs".into());
        }
        match syncs && backlog > 0 && delayed <= delayed_then {
            true => Err(format!(
                "an fsync hangs for {waited} s, and delays nothing in INFO"
            )),
            false => Ok(()),
        }
    }

    /// After a turn of the log's writer that has left nothing, there is no stall. `left` is what it has left.
    pub(super) fn check_stall_is_over(&self, left: Option<u64>) -> Verdict {
        let store = &self.instance().server.store;
        match left == Some(0) && !self.instance().runs("fsync") && store.disk_stall().is_some() {
            true => Err("the log waits for nothing, and the disk is said to stall".into()),
            false => Ok(()),
        }
    }
}
