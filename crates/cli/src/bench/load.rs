//! The load. Each connection sends a batch of requests, waits for all its replies, and sends the
//! next batch. Each thread is an event loop, which allocates nothing while it runs.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::histogram::Histogram;
use super::requests::{Ring, Verb};
use crate::client::Stream;

use super::scan::{ScanError, Scanner, Shape};

/// A run fails when the server sends nothing for this long.
const SILENCE: Duration = Duration::from_secs(30);

/// How often a waiting thread checks whether another has failed.
const LOOK: Duration = Duration::from_millis(250);

/// The most bytes to read from a socket at a time.
const READ_SIZE: usize = 256 * 1024;

/// When to stop. Batches that were sent before are still waited for and counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) requests: u64,
    pub(super) time: Duration,
}

/// What the threads share while they run.
#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) done: AtomicU64,
    /// Whether a thread has failed. The others then stop.
    pub(super) stop: AtomicBool,
}

/// The counts of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) items: u64,
    /// Items whose answer was 1.
    pub(super) positives: u64,
    /// Items that had not been added before the timed part.
    pub(super) others: u64,
    pub(super) other_positives: u64,
    pub(super) latency: Histogram,
    pub(super) elapsed: Duration,
    /// The time spent waiting for the server, summed over the threads.
    pub(super) waited: Duration,
}

impl Tally {
    /// Adds the counts of another thread that ran at the same time.
    pub(super) fn merge(&mut self, other: &Tally) {
        self.requests += other.requests;
        self.items += other.items;
        self.positives += other.positives;
        self.others += other.others;
        self.other_positives += other.other_positives;
        self.latency.merge(&other.latency);
        self.elapsed = self.elapsed.max(other.elapsed);
        self.waited += other.waited;
    }
}

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub(super) enum BenchError {
    #[error("the connection broke: {0}")]
    Broken(#[from] io::Error),
    #[error("the server closed the connection")]
    Closed,
    #[error(transparent)]
    Reply(#[from] ScanError),
    #[error("the server has been silent for {} seconds", SILENCE.as_secs())]
    Silent,
    #[error("false negative: the server does not know an item that was added")]
    FalseNegative,
}

/// A connection. It waits for the replies of at most one batch.
#[derive(Debug)]
struct Connection {
    stream: Stream,
    scanner: Scanner,
    batch: Range<usize>,
    /// The number of bytes of the batch that were sent, and of items that were answered.
    sent: usize,
    answered: usize,
    since: Instant,
}

/// One thread's load.
#[derive(Debug)]
pub(super) struct Load<'a> {
    ring: Ring,
    verb: Verb,
    /// The number of requests in a batch.
    batch: usize,
    limit: Limit,
    shared: &'a Shared,
    connections: Vec<Connection>,
    tally: Tally,
    /// The number of requests given to connections.
    begun: u64,
    /// The number of connections that wait for replies.
    busy: usize,
    start: Instant,
}

impl<'a> Load<'a> {
    pub(super) fn new(
        streams: Vec<Stream>,
        ring: Ring,
        (verb, shape): (Verb, &Shape),
        batch: usize,
        limit: Limit,
        shared: &'a Shared,
    ) -> io::Result<Self> {
        let start = Instant::now();
        let connections = streams.into_iter().map(|stream| {
            stream.set_nonblocking()?;
            Ok(Connection {
                stream,
                scanner: Scanner::new(shape.clone()),
                batch: 0..0,
                sent: 0,
                answered: 0,
                since: start,
            })
        });
        Ok(Self {
            connections: connections.collect::<io::Result<_>>()?,
            ring,
            verb,
            batch,
            limit,
            shared,
            tally: Tally::default(),
            begun: 0,
            busy: 0,
            start,
        })
    }

    /// Runs until the limit is reached.
    pub(super) fn run(mut self) -> Result<Tally, BenchError> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; READ_SIZE];
        for (index, connection) in self.connections.iter_mut().enumerate() {
            let interest = Interest::READABLE | Interest::WRITABLE;
            poll.registry().register(
                &mut SourceFd(&connection.stream.as_raw_fd()),
                Token(index),
                interest,
            )?;
        }
        self.start = Instant::now();
        let start = self.start;
        for index in 0..self.connections.len() {
            self.begin(index, start)?;
        }
        let mut heard = start;
        while self.busy > 0 && !self.shared.stop.load(Ordering::Relaxed) {
            let before = Instant::now();
            match poll.poll(&mut events, Some(LOOK)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => self.tally.waited += before.elapsed(),
            }
            if !events.is_empty() {
                heard = before;
            } else if heard.elapsed() > SILENCE {
                return Err(BenchError::Silent);
            }
            let done = self.tally.requests;
            for event in &events {
                self.serve(event, &mut buffer)?;
            }
            let done = self.tally.requests - done;
            self.shared.done.fetch_add(done, Ordering::Relaxed);
        }
        self.tally.elapsed = self.start.elapsed();
        Ok(self.tally)
    }

    fn serve(&mut self, event: &Event, buffer: &mut [u8]) -> Result<(), BenchError> {
        let index = event.token().0;
        if event.is_writable() {
            self.send(index)?;
        }
        if event.is_readable() || event.is_read_closed() {
            self.receive(index, buffer)?;
        }
        Ok(())
    }

    /// Gives a connection its next batch, unless the run is over.
    fn begin(&mut self, index: usize, now: Instant) -> io::Result<()> {
        let left = self.limit.requests.saturating_sub(self.begun);
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(self.batch);
        if most == 0 || now.duration_since(self.start) >= self.limit.time {
            return Ok(());
        }
        let Some(connection) = self.connections.get_mut(index) else {
            return Ok(());
        };
        let batch = self.ring.take(most);
        self.begun += batch.len() as u64;
        self.busy += 1;
        connection.scanner.expect(batch.len());
        connection.batch = batch;
        connection.sent = 0;
        connection.answered = 0;
        connection.since = now;
        self.send(index)
    }

    /// Writes as much of the batch as the socket takes.
    fn send(&mut self, index: usize) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(index) else {
            return Ok(());
        };
        let bytes = self.ring.bytes(&connection.batch);
        while let Some(rest) = bytes.get(connection.sent..)
            && !rest.is_empty()
        {
            match connection.stream.write(rest) {
                Ok(count) => connection.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match connection.stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }

    /// Reads until the socket is empty. Sends the next batch when this one is answered.
    fn receive(&mut self, index: usize, buffer: &mut [u8]) -> Result<(), BenchError> {
        loop {
            let Some(connection) = self.connections.get_mut(index) else {
                return Ok(());
            };
            let count = match connection.stream.read(buffer) {
                Ok(0) => return Err(BenchError::Closed),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let bytes = buffer.get(..count).unwrap_or_default();
            let was_due = connection.scanner.due();
            check(connection, &self.ring, self.verb, bytes, &mut self.tally)?;
            if was_due > 0 && connection.scanner.due() == 0 {
                let now = Instant::now();
                let requests = connection.batch.len() as u64;
                self.tally.requests += requests;
                self.tally.latency.record(now - connection.since);
                self.busy -= 1;
                self.begin(index, now)?;
            }
            // The buffer is not full, so the socket is empty. An event says when more arrives.
            let plain = self
                .connections
                .get(index)
                .is_some_and(|of| of.stream.is_plain());
            if plain && count < buffer.len() {
                return Ok(());
            }
        }
    }
}

/// Compares replies with what is known about their items, and counts them.
fn check(
    connection: &mut Connection,
    ring: &Ring,
    verb: Verb,
    bytes: &[u8],
    tally: &mut Tally,
) -> Result<(), BenchError> {
    let answered = connection.answered;
    let present = ring.present(&connection.batch);
    let mut known = present.get(answered..).unwrap_or_default().iter();
    let (mut positives, mut other_positives, mut others, mut lost) = (0, 0, 0, false);
    connection.scanner.feed(bytes, |found| {
        let present = known.next() == Some(&true);
        positives += u64::from(found);
        others += u64::from(!present);
        other_positives += u64::from(found & !present);
        lost |= present & verb.lost(found);
    })?;
    if lost {
        return Err(BenchError::FalseNegative);
    }
    connection.answered = present.len() - known.len();
    tally.items += (connection.answered - answered) as u64;
    tally.positives += positives;
    tally.others += others;
    tally.other_positives += other_positives;
    Ok(())
}
