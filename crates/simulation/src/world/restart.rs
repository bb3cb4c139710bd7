//! The end of a server, and what the next one has loaded.

use std::collections::BTreeMap;

use everbloom::Layout;
use everbloom_commands::Filter;
use everbloom_files::Value as Stored;
use everbloom_files::storage::Storage;

use super::checks::{Items, check_items};
use super::{Moment, Verdict, World};
use crate::damage::{Damage, LOG_DIR, Outcome};
use crate::model::{Model, Value};
use crate::plan::End;
use crate::server::{Digests, Instance};

/// What a start says that refuses to choose between a log and a snapshot.
const UNREAD_LOG: &str = "had not read the log";

/// A key of the server.
struct Found {
    key: String,
    expires_at: Option<u64>,
    text: Option<Vec<u8>>,
    /// The span in milliseconds and the number of generations of a window; 0 is one of items.
    window: Option<(u64, u64)>,
    /// The rate that a blocked filter was asked for.
    rate: Option<f64>,
    /// How often items were added to a cuckoo filter and not removed.
    count: u64,
    items: Option<Items>,
}

impl World {
    /// Ends the server and starts it again, and finds the moment that it has loaded. With `damage`, a
    /// start on damaged files is tried before.
    pub(super) fn restart(&mut self, end: End, damage: Option<Damage>) -> Verdict {
        self.finish_second()?;
        if self.statements.is_log_removed() {
            self.mend()?;
        }
        if end == End::Stop && self.disk.hangs() {
            // A stop waits for the disk.
            self.heal();
        }
        let all_written = self.log_that_holds(end);
        let before = self.end_server(end);
        self.disk.heal();
        let is_read = |damage: &Damage| match damage {
            Damage::LinesMissing(_) => self.settings.data.appendonly,
            _ => all_written.is_some(),
        };
        if let Some(damage) = damage.filter(is_read) {
            self.start_damaged(damage, all_written.unwrap_or(0))?;
        }
        let moments = std::mem::take(&mut self.moments);
        if let Some(first) = self.statements.unlogged.take() {
            self.beside.extend_from_slice(&moments[first..]);
        }
        self.start()?;
        let (first, digests) = before;
        let found = self.found();
        let loaded = self.loaded(&moments, first, &found).or_else(|why| {
            let beside = self.loaded(&self.beside, 0, &found);
            beside.map_err(|_| why)
        })?;
        self.model = loaded.0;
        // Whether an expired item was lost cannot be seen, even if the clock goes back later.
        let now = self.now();
        self.model.drop_forgotten(loaded.1);
        if self.settings.data.appendonly {
            self.beside.clear();
        }
        self.drop_doubtful();
        self.moments.clear();
        self.remember(0);
        if let Some(before) = digests {
            let after = self.instance().digests();
            let now = self.now();
            for (key, digest) in &before {
                let alive = digest.0.is_none_or(|at| at > now);
                if alive && self.model.get(key, now).is_some() && after.get(key) != Some(digest) {
                    return Err(format!("{key} has another digest after a restart"));
                }
            }
        }
        for it in &found {
            let known = self.model.get(&it.key, now).cloned();
            if let (Some(known), Some(items)) = (known, &it.items) {
                check_items(&it.key, &known.value, items, now)?;
            }
        }
        self.check_server()?;
        self.check_statements(None)
    }

    /// Starts a server. If it refuses because a log lies there that it has never read, and a snapshot
    /// of another one, the log is moved away.
    pub(super) fn start_instance(&mut self) -> Result<Instance, String> {
        let start = || Instance::start(&self.disk, &self.machine, self.settings.clone());
        let refusal = match start() {
            Err(why) if !self.beside.is_empty() && why.contains(UNREAD_LOG) => why,
            started => return started,
        };
        for name in self.disk.list(LOG_DIR).map_err(|_| refusal)? {
            let removed = self.disk.remove(&format!("{LOG_DIR}/{name}"));
            removed.expect("a disk that is well");
        }
        start()
    }

    /// A rewrite without a log has made one that holds what there was when it began. A server that is
    /// started with a log reads that. `first` is the first moment that it may be.
    pub(super) fn check_unlogged_rewrite(&mut self, first: usize) -> Verdict {
        self.beside = self.moments[first..].to_vec();
        let mut settings = self.settings.clone();
        settings.data.appendonly = true;
        let disk = self.disk.after_kill();
        disk.heal();
        let other = Instance::start(&disk, &self.machine, settings)?;
        let own = self.instance.replace(other);
        let found = self.found();
        self.instance = own;
        let loaded = self.loaded(&self.beside, 0, &found);
        loaded
            .map(drop)
            .map_err(|why| format!("after a rewrite without a log, {why}"))
    }

    /// How much of the journal the log has after a kill, if it has every acknowledged change.
    fn log_that_holds(&self, end: End) -> Option<u64> {
        let is_whole = end == End::Kill && !self.has_lost && self.statements.promise_log();
        is_whole.then(|| self.instance().server.store.journal.written())
    }

    /// Tries to start on a copy of the disk whose files are damaged. `written` is how much of the journal
    /// they have without the damage.
    fn start_damaged(&mut self, damage: Damage, written: u64) -> Verdict {
        let disk = self.disk.after_kill();
        let Some(outcome) = damage.apply(&disk) else {
            return Ok(());
        };
        let before = disk.files();
        let started = Instance::start(&disk, &self.machine, self.settings.clone());
        let after = disk.files();
        let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        let is_named = |why: &str, path: &str| match why.contains(path) {
            true => Ok(()),
            false => Err(format!("{damage:?}: it does not name {path}: {why}")),
        };
        match (outcome, started) {
            (Outcome::Refusal(path), Err(why)) => is_named(&why, &path),
            (Outcome::Refusal(path), Ok(_)) => {
                Err(format!("{damage:?}: it starts, and must refuse {path}"))
            }
            (Outcome::NothingIsCut(path), Err(why)) => is_named(&why, &path),
            (Outcome::NothingIsCut(path), Ok(_)) => match before.get(&path) == after.get(&path) {
                true => Ok(()),
                false => Err(format!(
                    "{damage:?}: it starts without whole commands of {path}"
                )),
            },
            (Outcome::AllButIfRoom(_), Err(_)) if names(&before) == names(&after) => Ok(()),
            (Outcome::AllBut(_), Err(why)) => Err(format!("{damage:?}: {why}")),
            (Outcome::AllButIfRoom(_), Err(why)) => {
                Err(format!("{damage:?}: it leaves a file, and {why}"))
            }
            (Outcome::AllBut(lost) | Outcome::AllButIfRoom(lost), Ok(other)) => {
                // What an earlier process has written is in the first moment, as a whole.
                match written.checked_sub(lost) {
                    Some(written) => self.check_loaded(other, written),
                    None => Ok(()),
                }
            }
        }
    }

    /// Another server has loaded what was acknowledged before the log had more than so many bytes of the journal.
    fn check_loaded(&mut self, other: Instance, written: u64) -> Verdict {
        let own = self.instance.replace(other);
        let found = self.found();
        self.instance = own;
        let is_written = |moment: &Moment| moment.position <= written;
        let first = self.moments.iter().rposition(is_written).unwrap_or(0);
        self.loaded(&self.moments, first, &found).map(drop)
    }

    /// Ends the server. Returns the first moment that may be on the disk, and the digests that must
    /// be there.
    fn end_server(&mut self, end: End) -> (usize, Option<Digests>) {
        let end = match std::mem::take(&mut self.has_lost) {
            true => End::Power(0),
            false => end,
        };
        let last = self.moments.len() - 1;
        let instance = self.instance.take().expect("the server runs");
        let store = &instance.server.store;
        if end == End::Stop {
            let digests = instance.digests();
            let kept = instance.keeps_log() || !store.settings().save.is_empty();
            instance.stop();
            if kept && store.failure().is_none() {
                return (last, Some(digests));
            }
        } else {
            self.disk.crash_now();
            instance.end_threads();
        }
        let first = self.first_kept(&instance, end);
        self.disk = match end {
            End::Power(seed) => self.disk.survivors(seed),
            End::Kill | End::Stop => self.disk.after_kill(),
        };
        (first, None)
    }

    /// The first moment that may be on the disk.
    fn first_kept(&self, instance: &Instance, end: End) -> usize {
        let store = &instance.server.store;
        let persistence = store.persistence().expect("a disk");
        if !self.statements.promise_log() {
            let saved = &persistence.figures;
            let relaxed = std::sync::atomic::Ordering::Relaxed;
            if saved.save.done.load(relaxed) == 0 {
                return self.safe;
            }
            let changes = saved.saved_changes.load(relaxed);
            // The log is read, unless a snapshot was made after it was switched off.
            if self.off_since.is_some_and(|since| changes < since) {
                return self.safe;
            }
            // Keys and generations that expire are changes, too, and no moments.
            let is_saved = |moment: &Moment| moment.changes <= changes;
            let saved = self.moments.partition_point(is_saved).saturating_sub(1);
            return saved.max(self.safe);
        }
        let written = store.journal.written();
        let is_written = |moment: &Moment| moment.position <= written;
        let acknowledged = self.moments.iter().rposition(is_written).unwrap_or(0);
        match end {
            End::Power(_) => self.safe,
            End::Stop | End::Kill => acknowledged,
        }
    }

    /// The moment that the server has loaded, the last that fits: its model, and the clock before the next.
    fn loaded(
        &self,
        moments: &[Moment],
        first: usize,
        found: &[Found],
    ) -> Result<(Model, u64), String> {
        let mut why = String::new();
        for (index, moment) in moments.iter().enumerate().skip(first).rev() {
            let until = self.until(moments, index);
            match self.fits(&moment.model, found, until) {
                Ok(()) => {
                    let mut model = moment.model.clone();
                    // It may be an earlier one in which the filters find the same items.
                    let earlier = moments.iter().enumerate().take(index).skip(first);
                    for (index, moment) in earlier {
                        let until = self.until(moments, index);
                        if self.fits(&moment.model, found, until).is_ok() {
                            model.may_be(&moment.model);
                        }
                    }
                    return Ok((model, until));
                }
                Err(reason) if why.is_empty() => why = reason,
                Err(_) => {}
            }
        }
        let last = moments.len().saturating_sub(1);
        Err(format!(
            "what the server has loaded is none of the moments {first} to {last}; the last: {why}"
        ))
    }

    /// The clock before the next moment: what expired until then may be gone, without a moment of its own.
    pub(super) fn until(&self, moments: &[Moment], index: usize) -> u64 {
        let next = moments.get(index + 1);
        next.map_or(0, |next| next.at).max(self.now())
    }

    /// The keys of the server, and which items its filters have.
    fn found(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        self.instance().each(|key, expires_at, value| {
            found.push(Found {
                key: key.to_owned(),
                expires_at,
                text: match value {
                    Stored::Text(text) => Some(text.to_vec()),
                    Stored::Filter(_) => None,
                },
                window: match value {
                    Stored::Filter(Filter::Bloom(filter)) => filter.window().map(|window| {
                        let span = window.span.ticks().unwrap_or(0);
                        (span, u64::from(window.generations))
                    }),
                    _ => None,
                },
                rate: match value {
                    Stored::Filter(Filter::Bloom(filter)) if filter.layout() == Layout::Blocked => {
                        Some(filter.error_rate())
                    }
                    _ => None,
                },
                count: match value {
                    Stored::Filter(Filter::Cuckoo(filter)) => filter.len(),
                    _ => 0,
                },
                items: None,
            });
        });
        let now = self.now();
        found.retain(|it| it.expires_at.is_none_or(|at| at > now));
        for it in found.iter_mut().filter(|it| it.text.is_none()) {
            it.items = Some(self.items_of(&it.key));
        }
        found
    }

    /// Whether the keys of the server are those of a model.
    fn fits(&self, model: &Model, found: &[Found], until: u64) -> Verdict {
        let now = self.now();
        // The clock may have gone back since they expired.
        let doubtful = |at: Option<u64>| at.is_some_and(|at| at <= self.latest);
        for (key, _) in model.alive(now).filter(|it| !doubtful(it.1.expires_at)) {
            if !found.iter().any(|it| it.key == *key) {
                return Err(format!("{key} is missing"));
            }
        }
        for it in found.iter().filter(|it| !doubtful(it.expires_at)) {
            let Some(key) = model.get(&it.key, now) else {
                return Err(format!("{} is there", it.key));
            };
            if key.expires_at != it.expires_at {
                let (is, must) = (it.expires_at, key.expires_at);
                return Err(format!("{} expires at {is:?}, not at {must:?}", it.key));
            }
            let window = match &key.value {
                Value::Window(window) => Some((window.span_ms, window.generations)),
                Value::Forged => it.window,
                _ => None,
            };
            // The same items may be in a filter that promises less.
            let rate = Model::rate(&key.value);
            if window != it.window || rate.is_some() && rate != it.rate {
                return Err(format!("{} is of another kind", it.key));
            }
            match &key.value {
                Value::Text(text) if it.text.as_ref() != Some(text) => {
                    return Err(format!("{} has another text", it.key));
                }
                Value::Text(_) => {}
                // An item that was added twice looks as one that was added once.
                Value::Cuckoo(items) if it.count < items.values().copied().map(u64::from).sum() => {
                    return Err(format!("{} has {} items", it.key, it.count));
                }
                value => {
                    let has = |number| it.items.as_ref().is_some_and(|all| all.has(number));
                    if let Some(number) = Model::wanted(value, until).find(|number| !has(*number)) {
                        return Err(format!("item{number} of {} is missing", it.key));
                    }
                }
            }
        }
        Ok(())
    }

    /// Removes the keys of which the model cannot know whether they have expired.
    fn drop_doubtful(&mut self) {
        let mut keys = Vec::new();
        self.instance().each(|key, expires_at, _| {
            if expires_at.is_some_and(|at| at <= self.latest) {
                keys.push(key.to_owned());
            }
        });
        let model = self.model.keys.iter();
        let expired = model.filter(|it| it.1.expires_at.is_some_and(|at| at <= self.latest));
        keys.extend(expired.map(|it| it.0.clone()));
        for key in keys {
            self.model.keys.remove(&key);
            self.line(&format!("DEL {key}"));
        }
    }
}
