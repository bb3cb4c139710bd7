//! Where effects go: what a log or a replica must replay, in the order in which it happened.
//!
//! A command writes its effects into a [`Record`]; the record enters the [`Journal`] as a whole
//! while the shards it changed are still locked, so that the order of the records of a key is the
//! order of its changes, and nothing comes between the commands of one record.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use everbloom_resp::encode_request;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use crate::unwritten::{Mark, Unwritten};

/// The effects of one command, or of one transaction.
#[derive(Debug, Default)]
pub struct Record {
    commands: Vec<u8>,
    /// The database of the first command, which the journal selects.
    first_db: Option<usize>,
    /// The database of the last command, which the next need not select again.
    db: Option<usize>,
    changes: u64,
    in_transaction: bool,
    /// Whether anybody will read the commands; changes are counted in any case.
    wanted: bool,
}

impl Record {
    /// Notes commands that together have one effect in database `db`.
    pub fn commands<T: AsRef<[u8]>>(&mut self, db: usize, commands: &[impl AsRef<[T]>]) {
        self.together(commands.len() > 1, |record| {
            for command in commands {
                record.command(db, command.as_ref());
            }
        });
    }

    /// Notes commands of one effect. A log that ends between two of them must not hold half of it,
    /// so if there are `several` they are a transaction, unless they are in one already.
    fn together(&mut self, several: bool, note: impl FnOnce(&mut Self)) {
        let bracketed = several && !self.in_transaction && self.wanted;
        if bracketed {
            encode_request(&["MULTI"], &mut self.commands);
        }
        note(self);
        if bracketed {
            encode_request(&["EXEC"], &mut self.commands);
        }
    }

    /// Notes that a key was removed because its time had come.
    pub fn expired(&mut self, db: usize, key: &[u8]) {
        self.command(db, &[b"DEL".as_slice(), key]);
    }

    /// The commands up to [`Record::end_transaction`] are one transaction.
    pub fn begin_transaction(&mut self) {
        self.in_transaction = true;
    }

    /// Ends the transaction.
    pub fn end_transaction(&mut self) {
        if self.in_transaction && self.wanted && self.changes > 0 {
            encode_request(&["EXEC"], &mut self.commands);
        }
        self.in_transaction = false;
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// Notes a command in database `db`.
    pub fn command<T: AsRef<[u8]>>(&mut self, db: usize, args: &[T]) {
        self.changes += 1;
        if !self.wanted {
            return;
        }
        if self.first_db.is_none() {
            (self.first_db, self.db) = (Some(db), Some(db));
            if self.in_transaction {
                encode_request(&["MULTI"], &mut self.commands);
            }
        }
        if self.db != Some(db) {
            select(db, &mut self.commands);
            self.db = Some(db);
        }
        let lengths = args.iter().map(|arg| arg.as_ref().len() + MOST_FRAMING);
        self.commands.reserve(lengths.sum());
        encode_request(args, &mut self.commands);
    }
}

/// The record of all changes: a queue between the commands, which append to it under the locks of
/// what they changed, and the log. While no log is kept, it only counts.
///
/// Nobody waits here for the writer while shards are locked. The queue stays within bounds for
/// another reason: a connection runs nothing more before the log has what it ran, and no change is
/// made while the log fails ([`Store::can_log`](crate::Store::can_log)). So there are at most the
/// records of one turn of each connection.
#[derive(Debug)]
pub struct Journal {
    queue: Mutex<Queue>,
    /// The writer waits here for something to write.
    filled: Condvar,
    changes: AtomicU64,
    logging: AtomicBool,
    /// The position behind everything taken in.
    end: AtomicU64,
    /// Everything before this position is written; with `appendfsync always` it is on the disk.
    /// Replies to changes before it may leave.
    written: AtomicU64,
    /// How many connections wait for that.
    waiting: AtomicUsize,
    /// Tells them when more is written.
    further: watch::Sender<()>,
}

/// Somebody waits for [`Journal::written`] to go further.
#[derive(Debug)]
pub struct Waiting<'j>(&'j Journal);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Queue {
    unwritten: Unwritten,
    /// A buffer to go on with when `unwritten` is taken: one that has its pages already.
    spare: Vec<u8>,
    /// How often the log has gone on in a new file, over the whole life of the journal.
    switched: u64,
    /// The database that the log has selected last.
    db: Option<usize>,
    /// The writer is not to wait for more.
    urgent: bool,
    closed: bool,
}

/// With so many bytes waiting, the writer is woken at once: a batch is not yet at its end.
const PLENTY: usize = 1 << 20;

/// An argument takes at most so many bytes beside its own: `$`, its length, two line ends.
const MOST_FRAMING: usize = 25;

/// A buffer that grew beyond this is not kept.
const MOST_SPARE: usize = 8 << 20;

impl Default for Journal {
    fn default() -> Self {
        Journal {
            queue: Mutex::default(),
            filled: Condvar::new(),
            changes: AtomicU64::new(0),
            logging: AtomicBool::new(false),
            end: AtomicU64::new(0),
            written: AtomicU64::new(0),
            waiting: AtomicUsize::new(0),
            further: watch::Sender::new(()),
        }
    }
}

impl Journal {
    /// An empty record. The shards that it will speak of must be locked already, for whether a log
    /// is kept changes only while all of them are.
    pub fn record(&self) -> Record {
        Record {
            wanted: self.logging.load(Ordering::Relaxed),
            ..Record::default()
        }
    }

    /// Takes a record in, and returns the position that the reply must wait for, 0 while no log is
    /// kept. The shards that the record speaks of must still be locked.
    ///
    /// An empty record waits, too: "it was there already" is a promise, and what put it there may
    /// not be written yet.
    pub fn append(&self, record: Record) -> u64 {
        if !record.is_empty() {
            self.changes.fetch_add(record.changes, Ordering::Relaxed);
        }
        if !record.wanted {
            return 0;
        }
        if record.commands.is_empty() {
            return self.end();
        }
        let mut selection = Vec::new();
        let mut queue = self.queue.lock();
        if record.first_db.is_some() && queue.db != record.first_db {
            select(record.first_db.unwrap_or_default(), &mut selection);
        }
        queue.db = record.db;
        queue.unwritten.push([&selection, &record.commands]);
        let end = queue.unwritten.end();
        self.end.store(end, Ordering::Release);
        if queue.unwritten.len() >= PLENTY {
            self.wake_writer(&mut queue);
        }
        end
    }

    /// The position behind everything taken in so far.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    /// How many bytes wait to be written.
    pub fn backlog(&self) -> u64 {
        self.end().saturating_sub(self.written())
    }

    /// How many changes there were.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Wakes the writer for what has gathered. Records do not wake it one by one: those of all
    /// connections that are served in one turn of an event loop share one write, and one fsync.
    pub fn nudge(&self) {
        let mut queue = self.queue.lock();
        if !queue.unwritten.is_empty() {
            self.wake_writer(&mut queue);
        }
    }

    /// Wakes the writer to look around.
    pub(crate) fn wake(&self) {
        self.wake_writer(&mut self.queue.lock());
    }

    fn wake_writer(&self, queue: &mut Queue) {
        if !queue.urgent {
            queue.urgent = true;
            self.filled.notify_one();
        }
    }

    /// Whether a log is kept.
    pub fn is_logging(&self) -> bool {
        self.logging.load(Ordering::Relaxed)
    }

    /// Begins or ends to keep a log. All shards must be locked.
    pub fn set_logging(&self, on: bool) {
        let mut queue = self.queue.lock();
        queue.db = None;
        let before = self.logging.swap(on, Ordering::Relaxed);
        if before && !on {
            queue.unwritten.mark(Mark::LogEnds);
            self.wake_writer(&mut queue);
        }
    }

    /// What comes from now on goes into a new file. All shards must be locked, so that the file
    /// begins at one moment of the whole keyspace. Returns how many times this was done.
    pub fn switch_file(&self) -> u64 {
        let mut queue = self.queue.lock();
        queue.unwritten.mark(Mark::NewFile);
        queue.switched += 1;
        queue.db = None;
        self.wake_writer(&mut queue);
        queue.switched
    }

    /// Returns once there is something to write that somebody waits for, or after `patience`.
    pub fn wait(&self, patience: Duration) {
        let mut queue = self.queue.lock();
        if !queue.urgent && !queue.closed {
            self.filled.wait_for(&mut queue, patience);
        }
    }

    /// What waits to be written, if it is nothing but commands.
    pub fn take_commands(&self) -> Option<Unwritten> {
        let queue = self.queue.lock();
        let waits = !queue.unwritten.is_empty();
        (waits && !queue.unwritten.has_marks() && !queue.closed).then(|| self.take_from(queue))
    }

    /// What waits to be written.
    pub fn take(&self) -> Unwritten {
        self.take_from(self.queue.lock())
    }

    fn take_from(&self, mut queue: MutexGuard<'_, Queue>) -> Unwritten {
        queue.urgent = false;
        let buffer = mem::take(&mut queue.spare);
        let next = Unwritten::after(queue.unwritten.end(), buffer);
        let mut unwritten = mem::replace(&mut queue.unwritten, next);
        if queue.closed {
            unwritten.set_last();
        }
        unwritten
    }

    /// Takes a buffer back that was written.
    pub fn return_buffer(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= MOST_SPARE {
            bytes.clear();
            self.queue.lock().spare = bytes;
        }
    }

    /// Nothing will follow: the writer writes what waits and ends.
    pub fn close(&self) {
        self.queue.lock().closed = true;
        self.filled.notify_one();
    }

    /// Everything before `position` is written now, and with `appendfsync always` on the disk, or no
    /// log is kept that would need it.
    pub fn set_written(&self, position: u64) {
        let before = self.written.fetch_max(position, Ordering::SeqCst);
        // Whoever is not counted here looks at the position after this.
        if position > before && self.waiting.load(Ordering::SeqCst) > 0 {
            self.further.send_replace(());
        }
    }

    /// The position before which everything is written: replies to changes before it may leave.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// From now on [`Journal::each_further`] is told. Look at the position after this.
    pub fn expect_further(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// Calls `further` each time more is written and some wait for it; never returns.
    pub async fn each_further(&self, further: impl Fn()) {
        let mut changes = self.further.subscribe();
        // The sender lives in `self`, so the channel does not close.
        while changes.changed().await.is_ok() {
            further();
        }
    }
}

fn select(db: usize, out: &mut Vec<u8>) {
    encode_request(&["SELECT", &db.to_string()], out);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(journal: &Journal) -> String {
        let unwritten = journal.take();
        String::from_utf8(unwritten.into_buffer())
            .unwrap()
            .replace("\r\n", " ")
    }

    fn record(journal: &Journal, db: usize, keys: &[&str]) -> Record {
        let mut record = journal.record();
        for key in keys {
            record.command(db, &[b"DEL", key.as_bytes()]);
        }
        record
    }

    #[test]
    fn a_database_is_selected_when_it_changes() {
        let journal = Journal::default();
        journal.set_logging(true);
        for (db, key) in [(0, "a"), (0, "b"), (3, "c")] {
            journal.append(record(&journal, db, &[key]));
        }
        let text = logged(&journal);
        assert_eq!(text.matches("SELECT").count(), 2, "{text}");
        journal.append(record(&journal, 3, &["d"]));
        assert!(!logged(&journal).contains("SELECT"));
        journal.switch_file();
        journal.append(record(&journal, 3, &["d"]));
        assert!(
            logged(&journal).contains("SELECT"),
            "a new file begins in database 0"
        );
    }

    #[test]
    fn a_transaction_is_one_piece_and_an_empty_one_none() {
        let journal = Journal::default();
        journal.set_logging(true);
        let mut both = journal.record();
        both.begin_transaction();
        for (db, key) in [(0, "a"), (1, "b")] {
            both.command(db, &[b"DEL", key.as_bytes()]);
        }
        both.end_transaction();
        journal.append(both);
        let text = logged(&journal);
        let order = ["SELECT", "$1 0", "MULTI", "a", "$1 1", "b", "EXEC"];
        let mut from = 0;
        for word in order {
            from += text[from..]
                .find(word)
                .unwrap_or_else(|| panic!("{word} in {text}"));
        }
        let mut none = journal.record();
        none.begin_transaction();
        none.end_transaction();
        journal.append(none);
        assert_eq!(logged(&journal), "");
        assert_eq!(journal.changes(), 2);
    }

    #[test]
    fn an_effect_of_several_commands_is_one_piece() {
        let journal = Journal::default();
        journal.set_logging(true);
        let command = |word: &str| vec![b"SET".to_vec(), b"k".to_vec(), word.into()];
        let two = [command("1"), command("2")];
        let mut record = journal.record();
        record.commands(2, &two);
        journal.append(record);
        let text = logged(&journal);
        let words: Vec<&str> = text.split(' ').filter(|w| w.len() > 2).collect();
        assert_eq!(words, ["SELECT", "MULTI", "SET", "SET", "EXEC"]);
        // Those of a transaction are within its piece.
        let mut record = journal.record();
        record.begin_transaction();
        record.commands(2, &two);
        record.end_transaction();
        journal.append(record);
        assert_eq!(logged(&journal).matches("MULTI").count(), 1);
    }

    #[test]
    fn without_a_log_changes_are_counted_only() {
        let journal = Journal::default();
        assert_eq!(journal.append(record(&journal, 0, &["a", "b"])), 0);
        let mut several = journal.record();
        let command = || vec![b"DEL".to_vec(), b"k".to_vec()];
        several.commands(0, &[command(), command()]);
        assert_eq!(journal.append(several), 0);
        assert_eq!((journal.changes(), logged(&journal).as_str()), (4, ""));
    }
}
