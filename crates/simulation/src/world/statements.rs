//! What the server says of its files must be the truth: INFO, CONFIG GET, and the reason that `/ready` gives.

use std::collections::BTreeMap;

use everbloom_resp::Reply;
use everbloom_server::Settings;
use everbloom_server::window::misconf;
use everbloom_store::Fsync;

use super::{Request, Verdict, World, switches_log};
use crate::crashing::CrashingDisk;
use crate::damage::{self, LOG_DIR, MANIFEST};
use crate::op::Op;

/// How the files of the log end that changes are written to.
const INCREMENTS: &str = ".incr.aof";

/// The file of snapshots.
const SNAPSHOT: &str = "dump.rdb";

/// After this time a file of the log that was removed is missed when the log's writer has its turn.
const MISSED_MS: u64 = 2000;

/// After this time a snapshot that has failed, and without which writes are refused, is tried again.
const RETRY_MS: u64 = 7000;

/// How often [`World::mend`] lets every thread go on.
const MEND_ROUNDS: usize = 300;

/// What the server says at one moment.
#[derive(Debug, Clone, Default, PartialEq)]
struct Said {
    enabled: bool,
    write_fails: bool,
    rewriting: bool,
    scheduled: bool,
    rewrite_failed: bool,
    rewrites: u64,
    saving: bool,
    save_failed: bool,
    saves: u64,
    /// Changes since the last snapshot.
    unsaved: u64,
    /// Bytes of the log, while one is kept.
    size: Option<u64>,
    /// Why writes are refused.
    refusal: Option<String>,
}

impl Said {
    fn of(info: &str, refusal: Option<String>) -> Result<Self, String> {
        let field = |name: &str| {
            let mut values = info.lines().filter_map(|line| line.strip_prefix(name));
            let value = values.find_map(|rest| rest.strip_prefix(':'));
            value.ok_or_else(|| format!("INFO does not say {name}"))
        };
        let number = |name: &str| {
            let number = field(name)?.parse::<u64>();
            number.map_err(|_| format!("{name} is no number"))
        };
        let is = |name: &str| number(name).map(|number| number > 0);
        let fails = |name: &str| field(name).map(|status| status != "ok");
        Ok(Said {
            enabled: is("aof_enabled")?,
            write_fails: fails("aof_last_write_status")?,
            rewriting: is("aof_rewrite_in_progress")?,
            scheduled: is("aof_rewrite_scheduled")?,
            rewrite_failed: fails("aof_last_bgrewrite_status")?,
            rewrites: number("aof_rewrites")?,
            saving: is("rdb_bgsave_in_progress")?,
            save_failed: fails("rdb_last_bgsave_status")?,
            saves: number("rdb_saves")?,
            unsaved: number("rdb_changes_since_last_save")?,
            size: number("aof_current_size").ok(),
            refusal,
        })
    }

    /// Whether writes are refused because the log waits for a slow disk, and for no other reason.
    fn is_behind(&self) -> bool {
        let why = self.refusal.as_deref();
        why.is_some_and(|why| why.ends_with("the disk does not take it"))
    }
}

/// What the server has said, and what is known of its files.
#[derive(Debug, Default)]
pub(super) struct Statements {
    /// What CONFIG GET must say.
    settings: BTreeMap<&'static str, String>,
    /// What the server said after the step before.
    said: Said,
    /// Whether the log is one that was begun, and promises all of its changes.
    begun: bool,
    /// How many operations of the disk had failed when the log was last written well.
    failures: usize,
    /// How many fsyncs of the log have failed.
    failed_syncs: usize,
    /// How much of the journal was written after the step before.
    written: u64,
    /// The number of rewrites when an fsync of the log failed.
    lost: Option<u64>,
    /// The file that is the snapshot.
    snapshot: Option<usize>,
    /// How many milliseconds passed since it was saved, or since the start.
    unsaved_ms: u64,
    /// How many milliseconds ago a snapshot was begun or ended.
    tried_ms: u64,
    /// Whether the log was switched off during the running rewrite, which then may end unwanted.
    switched_off: bool,
    /// How many milliseconds ago a file of the log was removed by somebody else, while one is missing.
    removed_ms: Option<u64>,
    /// Whether one was missing before this step, which may have put it back.
    was_removed: bool,
    /// The first moment that a rewrite without a log may hold, while one runs.
    pub(super) unlogged: Option<usize>,
}

impl Statements {
    /// What is known at the start of a server.
    pub(super) fn at_start(settings: &Settings, disk: &CrashingDisk) -> Self {
        let data = &settings.data;
        let yes = |on: bool| if on { "yes" } else { "no" }.to_owned();
        let fsync = match data.appendfsync {
            Fsync::Always => "always",
            Fsync::EverySecond => "everysec",
            Fsync::No => "no",
        };
        let points = data.save.iter();
        let points: Vec<String> = points.map(|it| format!("{} {}", it.0, it.1)).collect();
        Statements {
            settings: BTreeMap::from([
                ("appendonly", yes(data.appendonly)),
                ("appendfsync", fsync.into()),
                ("save", points.join(" ")),
                ("rdbcompression", yes(data.rdbcompression)),
                ("maxmemory", settings.maxmemory.to_string()),
            ]),
            failures: disk.failures(),
            failed_syncs: disk.failed_syncs(INCREMENTS),
            snapshot: disk.lasting(SNAPSHOT),
            begun: data.appendonly,
            ..Statements::default()
        }
    }

    /// Time passes. A clock that goes back says nothing of it.
    pub(super) fn pass(&mut self, ms: i64) {
        let ms = u64::try_from(ms).unwrap_or(0);
        self.unsaved_ms += ms;
        self.tried_ms += ms;
        self.removed_ms = self.removed_ms.map(|before| before + ms);
    }

    /// Whether a file of the log is missing that somebody else has removed.
    pub(super) fn is_log_removed(&self) -> bool {
        self.removed_ms.is_some()
    }

    /// Whether a save point is reached, for sure.
    fn reach_save_point(&self, unsaved: u64) -> bool {
        let words = self.settings.get("save").map_or("", String::as_str);
        let words: Vec<u64> = words.split(' ').filter_map(|it| it.parse().ok()).collect();
        let mut points = words.chunks_exact(2);
        points.any(|it| unsaved >= it[1] && self.unsaved_ms > 1000 * (it[0] + 2))
    }

    fn wants_log(&self) -> bool {
        self.settings
            .get("appendonly")
            .is_some_and(|on| on == "yes")
    }

    /// Whether the server says that a log has all changes.
    pub(super) fn promise_log(&self) -> bool {
        self.begun && self.said.enabled
    }
}

impl World {
    /// Checks after each step what the server says. After a turn of the log's writer, `left` is how
    /// much it has not written.
    pub(super) fn check_statements(&mut self, left: Option<u64>) -> Verdict {
        let said = self.says()?;
        let before = std::mem::replace(&mut self.statements.said, said);
        self.statements.written = self.instance().server.store.journal.written();
        self.statements.begun &= self.statements.said.enabled || self.statements.wants_log();
        if self.instance().server.store.failure().is_some() {
            return Ok(());
        }
        self.check_jobs(&before)?;
        self.check_log_is_told()?;
        self.check_removed(left)?;
        self.check_write_status(&before, left)?;
        self.check_refusal()
    }

    /// What is due was begun.
    pub(super) fn check_save_points(&mut self) -> Verdict {
        let said = self.says()?;
        if said.saving || said.rewriting || said.scheduled {
            return Ok(());
        }
        if self.statements.reach_save_point(said.unsaved) && !said.save_failed {
            return Err("a save point is reached, and no snapshot is begun".into());
        }
        let refuses = said.save_failed && !said.write_fails && said.refusal.is_some();
        match refuses && self.statements.tried_ms > RETRY_MS {
            true => Err("writes are refused until a snapshot is made, and none is begun".into()),
            false => Ok(()),
        }
    }

    /// What it says now.
    fn says(&mut self) -> Result<Said, String> {
        match self.line("INFO persistence") {
            Reply::Bulk(info) => Said::of(&String::from_utf8_lossy(&info), self.refusal()),
            other => Err(format!("INFO: {other:?}")),
        }
    }

    /// Why writes are refused, as `/ready` says.
    fn refusal(&self) -> Option<String> {
        let server = &self.instance().server;
        misconf(server, &server.config.snapshot()).map(String::from)
    }

    /// CONFIG GET says what was set.
    pub(super) fn check_settings(&mut self) -> Verdict {
        let names: Vec<&str> = self.statements.settings.keys().copied().collect();
        let reply = self.line(&format!("CONFIG GET {}", names.join(" ")));
        let Reply::Array(reply) = reply else {
            return Err(format!("CONFIG GET: {reply:?}"));
        };
        let text = |reply: &Reply| match reply {
            Reply::Bulk(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            other => format!("{other:?}"),
        };
        let pairs = reply.chunks_exact(2);
        let pairs: BTreeMap<String, String> =
            pairs.map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
        for (name, must) in &self.statements.settings {
            let is = pairs.get(*name);
            if is != Some(must) {
                return Err(format!("CONFIG GET {name} says {is:?}, and it is {must:?}"));
            }
        }
        Ok(())
    }

    /// A job is said to run while its thread does, and its status is that of its end.
    fn check_jobs(&mut self, before: &Said) -> Verdict {
        let threads = self.machine.threads();
        let runs = |name: &str| threads.iter().any(|thread| thread.1 == name);
        let known = &mut self.statements;
        let said = &known.said;
        for (name, is_said) in [("save", said.saving), ("rewrite", said.rewriting)] {
            if runs(name) != is_said {
                return Err(format!("INFO says of the {name} that it runs: {is_said}"));
            }
        }
        if said.saves > before.saves {
            known.unsaved_ms = 0;
        }
        if (said.saving, said.save_failed, said.saves)
            != (before.saving, before.save_failed, before.saves)
        {
            known.tried_ms = 0;
        }
        let last = self.moments.len() - 1;
        if said.rewriting && !before.rewriting && !known.wants_log() {
            known.unlogged = Some(last);
        }
        let agree = |name: &str, good: bool, failed: bool| match good != failed {
            true => Ok(()),
            false => Err(format!(
                "a {name} ends well: {good}, and INFO says otherwise"
            )),
        };
        let snapshot = self.disk.lasting(SNAPSHOT);
        let was = known.snapshot;
        known.snapshot = snapshot.or(was);
        if before.saving && !said.saving {
            let good = said.saves > before.saves;
            agree("snapshot", good, said.save_failed)?;
            if good && (snapshot.is_none() || snapshot == was) {
                return Err("a snapshot was saved, as INFO says, and it is not on the disk".into());
            }
        }
        if before.rewriting && !said.rewriting {
            let good = said.rewrites > before.rewrites;
            // An unwanted rewrite has neither succeeded nor failed.
            if good || !known.switched_off || said.enabled {
                agree("rewrite", good, said.rewrite_failed)?;
            }
            let unlogged = known.unlogged.take().filter(|_| !known.wants_log());
            if let Some(first) = unlogged.filter(|_| good) {
                return self.check_unlogged_rewrite(first);
            }
        }
        self.statements.switched_off &= self.statements.said.rewriting;
        Ok(())
    }

    /// `aof_enabled` says whether a log is written; one that is wanted and missing is told.
    fn check_log_is_told(&mut self) -> Verdict {
        let known = &mut self.statements;
        let (wanted, said) = (known.wants_log(), &known.said);
        if said.enabled && !wanted {
            return Err("INFO says that a log is kept, and appendonly is no".into());
        }
        let begins = said.rewriting || said.scheduled;
        if wanted && !said.enabled && !begins && !said.write_fails {
            return Err("appendonly is yes, no log is kept, and INFO says that all is well".into());
        }
        if said.enabled && !said.rewriting && !said.rewrite_failed && !known.begun {
            known.begun = true;
            self.beside.clear();
        }
        Ok(())
    }

    /// Removes a file of the log, if one is kept, on a disk that is well. A log that is being switched off is
    /// never whole again.
    pub(super) fn remove_log_file(&mut self, number: usize) {
        let known = &self.statements;
        let is_switched = self
            .unanswered
            .iter()
            .flatten()
            .any(|request| match request {
                Request::One(op) => switches_log(op),
                Request::Exec(ops) => ops.iter().any(switches_log),
                Request::Watch(_) | Request::Queued(_) => false,
            });
        let is_kept = known.promise_log() && known.wants_log() && !is_switched;
        if is_kept && self.disk.is_well() && damage::remove_file(&self.disk, number).is_some() {
            self.statements.removed_ms.get_or_insert(0);
        }
    }

    /// A file of the log that was removed is missed within some seconds. `left` is as in
    /// [`World::check_statements`].
    fn check_removed(&mut self, left: Option<u64>) -> Verdict {
        let known = &mut self.statements;
        known.was_removed = known.removed_ms.is_some();
        let Some(ago) = known.removed_ms else {
            return Ok(());
        };
        if !known.promise_log() || damage::is_complete(&self.disk) {
            known.removed_ms = None;
            return Ok(());
        }
        match left.is_some() && ago >= MISSED_MS && !known.said.write_fails {
            true => Err("a file of the log was removed, and INFO says that all is well".into()),
            false => Ok(()),
        }
    }

    /// `aof_last_write_status` says whether the log could be written.
    fn check_write_status(&mut self, before: &Said, left: Option<u64>) -> Verdict {
        let failed_syncs = self.disk.failed_syncs(INCREMENTS);
        let failures = self.disk.failures();
        let known = &mut self.statements;
        let (wanted, said) = (known.wants_log(), &known.said);
        let is_new = failed_syncs > std::mem::replace(&mut known.failed_syncs, failed_syncs);
        // The last fsync of a log that was switched off is of no use to the next one.
        if is_new && known.begun {
            known.lost = Some(said.rewrites);
        }
        known.lost = known
            .lost
            .filter(|then| wanted && said.enabled && said.rewrites <= *then);
        if let (Some(left), true, false) = (left, said.enabled, said.write_fails) {
            if left > 0 {
                return Err(format!(
                    "{left} bytes of the log are not written, and INFO says that all is well"
                ));
            }
            if known.lost.is_some() {
                return Err(
                    "an fsync of the log has failed, and INFO says that all is well".into(),
                );
            }
        }
        // Writes are refused without a failure, too, while the log waits for a slow disk.
        let fails_now = said.write_fails && !before.write_fails && !said.is_behind();
        if fails_now && failures == known.failures && !known.was_removed {
            return Err("the disk is well, and INFO says that the log cannot be written".into());
        }
        // What fails on a thread is known later.
        if left == Some(0) && !said.write_fails && !said.rewriting {
            known.failures = failures;
            return self.check_size();
        }
        Ok(())
    }

    /// `aof_current_size` is the length of the files that the manifest names, while all of them are well.
    fn check_size(&self) -> Verdict {
        let manifest = self.disk.contents(MANIFEST).unwrap_or_default();
        let manifest = String::from_utf8_lossy(&manifest);
        let lines = manifest.lines().filter(|line| !line.ends_with("type h"));
        let names = lines.filter_map(|line| line.split(' ').nth(1));
        let lengths = names.filter_map(|name| self.disk.len(&format!("{LOG_DIR}/{name}")));
        let (is, said) = (lengths.sum::<usize>() as u64, &self.statements.said);
        match said.size {
            Some(_) if self.statements.is_log_removed() => Ok(()),
            Some(size) if self.statements.begun && size != is => Err(format!(
                "INFO says that the log has {size} bytes, and it has {is}"
            )),
            _ => Ok(()),
        }
    }

    /// `/ready` says no while INFO names a failure that makes writes impossible, and only then.
    fn check_refusal(&self) -> Verdict {
        let said = &self.statements.said;
        let points = self.statements.settings.get("save");
        let has_points = points.is_some_and(|save| !save.is_empty());
        // What a log holds needs no snapshot.
        let lacks_snapshot = said.save_failed && has_points && !self.statements.promise_log();
        let must = said.write_fails || lacks_snapshot;
        match &said.refusal {
            None if must => Err("INFO names a failure, and /ready says that all is well".into()),
            Some(why) if !must => Err(format!(
                "INFO says that all is well, and /ready says: {why}"
            )),
            _ => Ok(()),
        }
    }

    /// A write is refused while the server says that writes are, and only then. Notes what is set.
    pub(super) fn check_acceptance(&mut self, op: &Op, reply: &Reply, past: bool) -> Verdict {
        if let (Op::Config(name, to), Reply::Simple(_)) = (op, reply) {
            if *name == "appendonly" && self.statements.settings.get(name) != Some(to) {
                self.statements.begun = false;
                self.statements.lost = None;
                self.statements.unlogged = None;
                self.statements.switched_off |= to == "no";
            }
            self.statements.settings.insert(name, to.clone());
        }
        if matches!(op, Op::Other("SAVE")) {
            self.statements.tried_ms = 0;
        }
        if self.on_second {
            // What is refused was looked at before others changed it.
            return Ok(());
        }
        let was_refused = self.statements.said.refusal.is_some();
        let has_written = self.instance().server.store.journal.written() > self.statements.written;
        match (op, reply) {
            (_, Reply::Error(text)) if text.starts_with("MISCONF") && !was_refused => {
                match self.refusal() {
                    Some(_) => Ok(()),
                    None => Err(format!(
                        "{op} is refused, and the server says that all is well"
                    )),
                }
            }
            // If more is written by now, all was well in between.
            (Op::Set(..), Reply::Simple(_)) if was_refused && !past && !has_written => {
                match self.refusal() {
                    // A write that hung has failed, and until that was noticed all was well.
                    Some(why) if self.statements.said.refusal.as_ref() != Some(&why) => Ok(()),
                    Some(why) => Err(format!("{op} is taken, and /ready says: {why}")),
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// The disk is well again, and what has failed is done again. Then the server must say that all is well.
    pub(super) fn mend(&mut self) -> Verdict {
        self.heal();
        for job in ["BGSAVE", "BGREWRITEAOF"] {
            // Longer than the pause before a second try.
            self.pass(7000)?;
            if job == "BGSAVE" || self.statements.wants_log() {
                self.line(job);
            }
            for _ in 0..MEND_ROUNDS {
                self.instance().attend();
                let threads = self.machine.threads();
                threads.iter().for_each(|it| self.machine.step(it.0, 1000));
                self.instance().write_log();
                if threads.is_empty() {
                    break;
                }
            }
            if self.instance().server.store.failure().is_some() {
                return Ok(());
            }
        }
        let said = self.says()?;
        let wanted = self.statements.wants_log();
        let is_well = said.enabled == wanted
            && !(said.write_fails || said.save_failed || wanted && said.rewrite_failed)
            && !(said.saving || said.rewriting)
            && said.refusal.is_none();
        if !is_well {
            return Err(format!("all is mended, and the server says {said:?}"));
        }
        // Of the jobs of this step only the last is known. One of them was a snapshot.
        self.statements.said = said;
        self.statements.unsaved_ms = 0;
        self.statements.snapshot = self.disk.lasting(SNAPSHOT);
        Ok(())
    }
}
