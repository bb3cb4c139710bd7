//! Notices a disk that stalls: a write or an fsync of the AOF that does not return, and gives no
//! error.
//!
//! The main thread looks, which never waits for the disk. Writers do nothing for that: what was in
//! the journal at one look, and is still not written, has waited since.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tracing::warn;

use super::figures::PersistenceFigures;
use crate::health::Cause;
use crate::store::Store;

/// A write or an fsync that takes longer than this is a stall.
const STALL: Duration = Duration::from_secs(2);

/// What is known of the writes and fsyncs that have not returned.
#[derive(Debug, Default)]
pub(super) struct StallWatch {
    /// A position of the journal that was not written, and the machine's uptime when it was seen.
    unwritten: Option<(u64, Duration)>,
    /// When the stall began that was logged.
    logged: Option<Duration>,
    /// When an fsync began, and for how many times [`STALL`] it has delayed writes.
    delayed: (Duration, u32),
}

impl StallWatch {
    /// Begins to time what is not written yet, once what was timed before is written.
    fn note_unwritten(&mut self, store: &Store) {
        let journal = &store.journal;
        let (written, end) = (journal.written(), journal.end());
        if self
            .unwritten
            .is_none_or(|(position, _)| position <= written)
        {
            self.unwritten = (written < end).then(|| (end, store.machine.uptime()));
        }
    }

    /// Counts a delay for each [`STALL`] that an fsync takes while changes wait for it. Redis counts
    /// as many: it postpones a write by as much, writes, and postpones the next one.
    fn count_delays(&mut self, store: &Store, figures: &PersistenceFigures) {
        let Some(began) = *figures.log_sync_began.lock() else {
            return;
        };
        let (of, count) = &mut self.delayed;
        if *of != began {
            (*of, *count) = (began, 0);
        }
        let took = store.machine.uptime().saturating_sub(began);
        if store.journal.backlog() > 0 && took > STALL * (*count + 1) {
            *count = u32::try_from(took.as_secs() / STALL.as_secs()).unwrap_or(u32::MAX);
            figures.delayed_syncs.fetch_add(1, Relaxed);
        }
    }
}

impl Store {
    /// How long the oldest change has waited to be written to the log, or the running fsync of the
    /// log has taken, if that is longer.
    pub fn log_wait(&self) -> Duration {
        let Some(persistence) = self.persistence() else {
            return Duration::ZERO;
        };
        let unwritten = persistence.stall.lock().unwritten;
        let unwritten = unwritten.filter(|(position, _)| self.journal.written() < *position);
        let syncing = *persistence.figures.log_sync_began.lock();
        let since = unwritten
            .map(|(_, since)| since)
            .into_iter()
            .chain(syncing)
            .min();
        since.map_or(Duration::ZERO, |since| {
            self.machine.uptime().saturating_sub(since)
        })
    }

    /// How long the disk has stalled, if it has. A log that gives an error is no stall.
    pub fn disk_stall(&self) -> Option<Duration> {
        let wait = self.log_wait();
        let fails = self.health.has(Cause::LogFailing) || self.health.has(Cause::LogMissing);
        (wait > STALL && !fails).then_some(wait)
    }
}

/// Looks whether the disk stalls. Logs the beginning and the end of a stall, and counts delayed
/// fsyncs.
pub(super) fn look(store: &Store) {
    let Some(persistence) = store.persistence() else {
        return;
    };
    let watch = &persistence.stall;
    watch.lock().note_unwritten(store);
    watch.lock().count_delays(store, &persistence.figures);
    let now = store.machine.uptime();
    let stall = store.disk_stall();
    let logged = &mut watch.lock().logged;
    match (*logged, stall) {
        (None, Some(stall)) => {
            *logged = Some(now.saturating_sub(stall));
            let clients = store.journal.waiting();
            warn!(
                "the disk stalls: a write or an fsync of the AOF has not returned for {:.1} s, and \
                 at least {clients} clients wait",
                stall.as_secs_f64()
            );
        }
        (Some(since), None) => {
            *logged = None;
            let stall = now.saturating_sub(since).as_secs_f64();
            warn!("the disk no longer stalls, after {stall:.1} s");
        }
        (None, None) | (Some(_), Some(_)) => {}
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Debug;
    use std::io;
    use std::sync::Arc;

    use everbloom_files::storage::Disk;
    use foldhash::quality::SeedableRandomState;
    use parking_lot::Mutex;
    use tracing::field::{Field, Visit};
    use tracing::{Event, Metadata, Subscriber, span};

    use super::*;
    use crate::clock::Now;
    use crate::machine::{Machine, Running, System, Work};
    use crate::persistence::Persistence;
    use crate::settings::Settings;

    /// A machine whose uptime is what the test says.
    #[derive(Debug, Default)]
    struct Stopwatch {
        system: System,
        uptime: Mutex<Duration>,
    }

    impl Machine for Stopwatch {
        fn now(&self) -> Now {
            self.system.now()
        }

        fn uptime(&self) -> Duration {
            *self.uptime.lock()
        }

        fn key_hasher(&self) -> SeedableRandomState {
            self.system.key_hasher()
        }

        fn start(&self, name: &str, work: Work) -> io::Result<Box<dyn Running>> {
            self.system.start(name, work)
        }

        fn sleep(&self, time: Duration) {
            *self.uptime.lock() += time;
        }
    }

    /// The lines that are logged.
    #[derive(Debug, Clone, Default)]
    struct Lines(Arc<Mutex<Vec<String>>>);

    impl Visit for Lines {
        fn record_debug(&mut self, _: &Field, value: &dyn Debug) {
            self.0.lock().push(format!("{value:?}"));
        }
    }

    impl Subscriber for Lines {
        fn enabled(&self, _: &Metadata<'_>) -> bool {
            true
        }
        fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
            span::Id::from_u64(1)
        }
        fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
        fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
        fn event(&self, event: &Event<'_>) {
            event.record(&mut self.clone());
        }
        fn enter(&self, _: &span::Id) {}
        fn exit(&self, _: &span::Id) {}
    }

    /// Looks ten times a second, for so many tenths. Returns what was logged.
    fn look_for(store: &Store, tenths: u32) -> Vec<String> {
        let lines = Lines::default();
        tracing::subscriber::with_default(lines.clone(), || {
            for _ in 0..tenths {
                store.machine.sleep(Duration::from_millis(100));
                look(store);
            }
        });
        lines.0.lock().clone()
    }

    fn logging() -> Arc<Store> {
        let (settings, disk) = (Settings::default(), Arc::new(Disk::new("nowhere")));
        let machine = Arc::new(Stopwatch::default());
        let persistence = Persistence::on_machine(disk, machine, &settings);
        let store = Store::new(settings, Some(persistence), 0);
        store.journal.set_logging(true);
        store
    }

    fn change(store: &Store) {
        let mut record = store.journal.record();
        record.command(0, &["DEL", "k"]);
        store.journal.append(record);
    }

    #[test]
    fn a_write_that_does_not_return_is_logged_once_and_so_is_its_end() {
        let store = logging();
        assert_eq!(look_for(&store, 100), [""; 0]);
        change(&store);
        let _waiting = [store.journal.count_waiting(), store.journal.count_waiting()];
        assert_eq!(look_for(&store, 20), [""; 0]);
        let line = "the disk stalls: a write or an fsync of the AOF has not returned for 2.1 s, and \
                    at least 2 clients wait";
        assert_eq!(look_for(&store, 60), [line]);
        // What comes later does not make it younger.
        change(&store);
        assert_eq!(look_for(&store, 19), [""; 0]);
        assert_eq!(store.log_wait(), Duration::from_millis(9800));
        store.journal.set_written(store.journal.end());
        assert_eq!(store.log_wait(), Duration::ZERO);
        let end = "the disk no longer stalls, after 9.9 s";
        assert_eq!(look_for(&store, 50), [end]);
        // So it is for the next one.
        change(&store);
        assert_eq!(look_for(&store, 30), [line]);
    }

    #[test]
    fn many_writes_that_return_in_time_are_no_stall() {
        let store = logging();
        for _ in 0..100 {
            change(&store);
            let end = store.journal.end();
            assert_eq!(look_for(&store, 15), [""; 0]);
            change(&store);
            store.journal.set_written(end);
        }
    }

    /// Redis 7.0 counts 1 after two seconds and 5 after ten, if there are writes all the time.
    #[test]
    fn each_two_seconds_of_an_fsync_delay_the_writes_that_wait() {
        let store = logging();
        let figures = &store.persistence().unwrap().figures;
        *figures.log_sync_began.lock() = Some(store.machine.uptime());
        assert_eq!(look_for(&store, 50).len(), 1, "also if nothing waits");
        assert_eq!(figures.delayed_syncs.load(Relaxed), 0);
        change(&store);
        let mut counts = Vec::new();
        for _ in 5..11 {
            look_for(&store, 10);
            counts.push(figures.delayed_syncs.load(Relaxed));
        }
        assert_eq!(counts, [1, 2, 2, 3, 3, 4]);
        // The next fsync.
        *figures.log_sync_began.lock() = Some(store.machine.uptime());
        look_for(&store, 25);
        assert_eq!(figures.delayed_syncs.load(Relaxed), 5);
    }

    #[test]
    fn a_log_that_fails_is_no_stall() {
        let store = logging();
        change(&store);
        store.health.set(Cause::LogFailing, true);
        assert_eq!(look_for(&store, 50), [""; 0]);
        assert_eq!(store.log_wait(), Duration::from_millis(4900));
    }

    #[test]
    fn a_stall_goes_on_while_too_much_waits() {
        let store = logging();
        change(&store);
        assert_eq!(look_for(&store, 30).len(), 1);
        store.health.set(Cause::LogBehind, true);
        assert_eq!(look_for(&store, 50), [""; 0]);
        store.journal.set_written(store.journal.end());
        assert_eq!(look_for(&store, 5).len(), 1);
    }
}
