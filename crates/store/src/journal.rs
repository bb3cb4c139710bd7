//! The queue of effects that a log or a replica must replay, in the order in which they happened.
//!
//! A command writes its effects into a [`Record`]. The record enters the [`Journal`] as a whole
//! while the shards it changed are still locked. So the records of a key are in the order of its
//! changes, and the commands of one record stay together.

use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use everbloom_resp::encode_request;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::watch;

use crate::limits::{RECORD_BYTES, SPARE_BYTES, WAKE_BYTES};
use crate::unwritten::{Mark, Unwritten};

/// The effects of one command, or of one transaction.
#[derive(Debug, Default)]
pub struct Record {
    commands: Vec<u8>,
    /// The database of the first command, which the journal selects.
    first_db: Option<usize>,
    /// The database of the last command; the next command need not select it again.
    db: Option<usize>,
    changes: u64,
    in_transaction: bool,
    /// Whether the commands are recorded. Changes are counted in any case.
    wanted: bool,
    /// Whether there was no memory for a command. Then the log is rewritten from memory.
    lost: bool,
}

impl Record {
    /// Records commands that together have one effect in database `db`.
    pub fn commands<T: AsRef<[u8]>>(&mut self, db: usize, commands: &[impl AsRef<[T]>]) {
        // A log that ends between two of them must not hold half of the effect. So several become
        // a transaction, unless they are in one already.
        let bracketed = commands.len() > 1 && !self.in_transaction && self.wanted;
        if bracketed {
            self.write(&["MULTI"]);
        }
        for command in commands {
            self.command(db, command.as_ref());
        }
        if bracketed {
            self.write(&["EXEC"]);
        }
    }

    /// Makes room for the record of a long request, or of several with their words one after
    /// another, before they change anything. Whether there is memory for it. For short ones there
    /// is the reserve of the process.
    #[inline]
    pub fn reserve(&mut self, words: &[&[u8]]) -> bool {
        let (first, last) = (words.first(), words.last());
        let start = first.map_or(0, |word| word.as_ptr().addr());
        let end = last.map_or(0, |word| word.as_ptr_range().end.addr());
        // Requests that were read into one buffer are no longer than this.
        if !self.wanted || end.wrapping_sub(start) < RECORD_BYTES.get() {
            return true;
        }
        let bytes = words.iter().map(|word| word.len() + MAX_FRAMING_BYTES);
        self.reserve_bytes(bytes.sum::<usize>() + MAX_OTHER_BYTES)
    }

    /// The same for a record of about so many bytes.
    pub fn reserve_bytes(&mut self, bytes: usize) -> bool {
        !self.wanted || bytes < RECORD_BYTES.get() || self.commands.try_reserve_exact(bytes).is_ok()
    }

    /// There was no memory to record a change. The log is rewritten from memory.
    pub fn lose(&mut self) {
        self.lost |= self.wanted;
    }

    /// Records that a key was removed because it expired.
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
            self.write(&["EXEC"]);
        }
        self.in_transaction = false;
    }

    /// Whether the record is empty.
    pub fn is_empty(&self) -> bool {
        self.changes == 0
    }

    /// Records a command in database `db`.
    #[inline]
    pub fn command<T: AsRef<[u8]>>(&mut self, db: usize, args: &[T]) {
        if self.wanted {
            self.begin_command(db);
            self.write(args);
        }
        self.changes += 1;
    }

    /// Records a command that [`encode_command`] has made. If it is the first, it is not copied.
    pub fn encoded(&mut self, db: usize, command: Vec<u8>) {
        self.changes += 1;
        if !self.wanted {
            return;
        }
        self.begin_command(db);
        if self.commands.is_empty() {
            self.commands = command;
            return;
        }
        self.lost |= self.commands.try_reserve(command.len()).is_err();
        if !self.lost {
            self.commands.extend_from_slice(&command);
        }
    }

    /// Records what must precede a command.
    fn begin_command(&mut self, db: usize) {
        if self.first_db.is_none() {
            (self.first_db, self.db) = (Some(db), Some(db));
            if self.in_transaction {
                self.write(&["MULTI"]);
            }
        }
        if self.db != Some(db) {
            self.write(&["SELECT", &db.to_string()]);
            self.db = Some(db);
        }
    }

    fn write<T: AsRef<[u8]>>(&mut self, args: &[T]) {
        self.lost |= self.commands.try_reserve(most_bytes(args)).is_err();
        if !self.lost {
            encode_request(args, &mut self.commands);
        }
    }
}

/// A command for [`Record::encoded`]; `None` if there is no memory for it.
pub fn encode_command(args: &[&[u8]]) -> Option<Vec<u8>> {
    let mut command = Vec::new();
    command.try_reserve_exact(most_bytes(args)).ok()?;
    encode_request(args, &mut command);
    Some(command)
}

/// The most bytes that a command takes, encoded.
fn most_bytes<T: AsRef<[u8]>>(args: &[T]) -> usize {
    let lengths = args.iter().map(|arg| arg.as_ref().len());
    lengths.sum::<usize>() + (args.len() + 1) * MAX_FRAMING_BYTES
}

/// The record of all changes: a queue between the commands and the log. Commands append to it under
/// the locks of what they changed. Without a log it only counts changes.
///
/// No command waits here for the writer while shards are locked. Two rules bound the queue: a
/// connection runs nothing more until the log has its earlier commands, and no change is made while
/// the log fails ([`Store::can_log`](crate::Store::can_log)). So the queue holds at most the
/// records of one turn of each connection.
#[derive(Debug)]
pub struct Journal {
    queue: Mutex<Queue>,
    /// The writer waits here for new records.
    filled: Condvar,
    changes: AtomicU64,
    logging: AtomicBool,
    /// The position after the last record.
    end: AtomicU64,
    /// Everything before this position is written; with `appendfsync always` it is on the disk.
    /// Replies to changes before it may leave.
    written: AtomicU64,
    /// How many connections wait for `written` to advance.
    waiting: AtomicUsize,
    /// Notifies them when it advances.
    writes: watch::Sender<()>,
}

/// Whether a connection waits for [`Journal::written`] to advance.
#[derive(Debug)]
pub struct Waiting<'j>(&'j Journal);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The data that waits to be written.
#[derive(Debug, Default)]
struct Queue {
    unwritten: Unwritten,
    /// The next buffer when `unwritten` is taken. Its pages are already allocated.
    spare: Vec<u8>,
    /// How often the log has switched to a new file, over the whole life of the journal.
    switched: u64,
    /// The database that the log has selected last.
    db: Option<usize>,
    /// The writer must stop waiting.
    urgent: bool,
    closed: bool,
}

/// The most bytes that an argument takes besides its own: `$`, its length, two line ends. Their
/// number takes as many at most.
const MAX_FRAMING_BYTES: usize = 25;

/// The most bytes that a record has besides its request: the selection of a database, a new filter's
/// header, the commands around.
const MAX_OTHER_BYTES: usize = 4096;

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
            writes: watch::Sender::new(()),
        }
    }
}

impl Journal {
    /// An empty record. The shards that it will describe must be locked already: logging is
    /// switched on or off only while all shards are locked.
    pub fn record(&self) -> Record {
        Record {
            wanted: self.logging.load(Ordering::Relaxed),
            ..Record::default()
        }
    }

    /// Appends a record and returns the position that the reply must wait for, or 0 without a log.
    /// The shards that the record describes must still be locked.
    ///
    /// The reply to an empty record waits, too. "It was there already" is a promise, and the record
    /// of the earlier change may not be written yet.
    pub fn append(&self, record: Record) -> u64 {
        if !record.is_empty() {
            self.changes.fetch_add(record.changes, Ordering::Relaxed);
        }
        if !record.wanted {
            return 0;
        }
        if record.commands.is_empty() && !record.lost {
            return self.end();
        }
        let mut selection = Vec::new();
        let mut queue = self.queue.lock();
        if let Some(db) = record.first_db.filter(|_| queue.db != record.first_db) {
            encode_request(&["SELECT", &db.to_string()], &mut selection);
        }
        queue.db = record.db;
        match record.lost {
            true => queue.unwritten.lose(),
            false => queue.unwritten.push(&selection, record.commands),
        }
        let end = queue.unwritten.end();
        self.end.store(end, Ordering::Release);
        if queue.unwritten.len() >= WAKE_BYTES.get() {
            self.wake(&mut queue);
        }
        end
    }

    /// The position after the last record so far.
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

    /// Wakes the writer for the new records. It is not woken for each record: all connections
    /// served in one turn of an event loop share one write and one fsync.
    pub fn wake_for_records(&self) {
        let mut queue = self.queue.lock();
        if !queue.unwritten.is_empty() {
            self.wake(&mut queue);
        }
    }

    /// Wakes the writer to check its state.
    pub(crate) fn wake_writer(&self) {
        self.wake(&mut self.queue.lock());
    }

    fn wake(&self, queue: &mut Queue) {
        if !queue.urgent {
            queue.urgent = true;
            self.filled.notify_one();
        }
    }

    /// Whether a log is kept.
    pub fn is_logging(&self) -> bool {
        self.logging.load(Ordering::Relaxed)
    }

    /// Starts or stops logging. All shards must be locked.
    ///
    /// A stop counts as a change. The next start may read the log that lies there, unless a snapshot
    /// says that it was made without one. So what was saved before is saved once more.
    pub fn set_logging(&self, on: bool) {
        let mut queue = self.queue.lock();
        queue.db = None;
        let before = self.logging.swap(on, Ordering::Relaxed);
        if before && !on {
            self.changes.fetch_add(1, Ordering::Relaxed);
            queue.unwritten.mark(Mark::LogEnds);
            self.wake(&mut queue);
        }
    }

    /// Starts a new file for all later records. All shards must be locked, so that the file begins
    /// at one moment of the whole keyspace. Returns how many times this was done.
    pub fn switch_file(&self) -> u64 {
        let mut queue = self.queue.lock();
        queue.unwritten.mark(Mark::NewFile);
        queue.switched += 1;
        queue.db = None;
        self.wake(&mut queue);
        queue.switched
    }

    /// Waits until a connection waits for new data to be written, or until `patience` is over.
    pub fn wait(&self, patience: Duration) {
        let mut queue = self.queue.lock();
        if !queue.urgent && !queue.closed {
            self.filled.wait_for(&mut queue, patience);
        }
    }

    /// Takes the data that waits to be written, if it holds only commands and is not long.
    pub fn take_commands(&self) -> Option<Unwritten> {
        let queue = self.queue.lock();
        let unwritten = &queue.unwritten;
        let is_quick =
            !unwritten.is_empty() && !unwritten.has_marks() && unwritten.len() < WAKE_BYTES.get();
        (is_quick && !queue.closed).then(|| self.take_from(queue))
    }

    /// Takes the data that waits to be written.
    pub fn take(&self) -> Unwritten {
        self.take_from(self.queue.lock())
    }

    /// Moves the data that waits to be written behind earlier data. Without memory it goes on
    /// waiting.
    pub(crate) fn take_after(&self, earlier: &mut Unwritten) {
        let queue = self.queue.lock();
        if earlier.has_room_for(&queue.unwritten) {
            earlier.append(self.take_from(queue));
        }
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

    /// Returns a buffer for reuse after it was written.
    pub fn return_buffer(&self, mut bytes: Vec<u8>) {
        if bytes.capacity() <= SPARE_BYTES.get() {
            bytes.clear();
            self.queue.lock().spare = bytes;
        }
    }

    /// No more records follow: the writer writes what waits and ends.
    pub fn close(&self) {
        self.queue.lock().closed = true;
        self.filled.notify_one();
    }

    /// Everything before `position` is now written, and with `appendfsync always` it is on the
    /// disk; or no log is kept that would need it.
    pub fn set_written(&self, position: u64) {
        let before = self.written.fetch_max(position, Ordering::SeqCst);
        // A connection not counted here reads the position after this.
        if position > before && self.waiting.load(Ordering::SeqCst) > 0 {
            self.writes.send_replace(());
        }
    }

    /// The position before which everything is written. Replies to changes before it may be sent.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::SeqCst)
    }

    /// From now on [`Journal::after_each_write`] is notified. Read the position after this call.
    pub fn count_waiting(&self) -> Waiting<'_> {
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Waiting(self)
    }

    /// How many connections wait for it. One that writes to the log itself is not counted.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Calls `notify` each time more is written while connections wait for it; never returns.
    pub async fn after_each_write(&self, notify: impl Fn()) {
        let mut changes = self.writes.subscribe();
        // The sender lives in `self`, so the channel does not close.
        while changes.changed().await.is_ok() {
            notify();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(journal: &Journal) -> String {
        let unwritten = journal.take();
        String::from_utf8(unwritten.to_bytes())
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
        // The commands of a transaction are within its piece.
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
