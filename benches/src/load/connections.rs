//! The event loop. Each connection sends a batch of requests, waits for all its replies, and sends
//! the next batch.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use everbloom_resp::{Decoder, Reply};
use hdrhistogram::Histogram;
use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::requests::{Recipe, Ring, Verb, WORD};
use super::stream::Stream;

/// A run fails when the server sends nothing for this long.
const SILENCE: Duration = Duration::from_secs(30);

/// The longest latency that is told from longer ones, in nanoseconds.
const MAX_LATENCY_NANOS: u64 = 3600 * 1_000_000_000;

/// The most bytes to read from a socket at a time.
const READ_SIZE: usize = 256 * 1024;

/// When to stop. Batches that were sent before are still waited for and counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) requests: u64,
    pub(super) time: Duration,
}

/// The counts of a run.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) requests: u64,
    pub(super) items: u64,
    /// Items whose answer was 1.
    pub(super) positives: u64,
    /// Items that had not been added before the timed part.
    pub(super) others: u64,
    pub(super) other_positives: u64,
    /// Of batches, in nanoseconds.
    pub(super) latency: Histogram<u64>,
    pub(super) elapsed: Duration,
    /// The time spent waiting for the server.
    pub(super) waited: Duration,
}

/// A connection. It waits for the replies of at most one batch.
struct Connection {
    stream: Stream,
    decoder: Decoder,
    /// The first bytes of a reply that is not complete.
    rest: Vec<u8>,
    batch: Range<usize>,
    /// The number of bytes of the batch that were sent.
    sent: usize,
    answers: Answers,
    since: Instant,
}

/// What has been answered of a batch.
#[derive(Default)]
struct Answers {
    /// The number of replies still to come.
    due: usize,
    /// The items answered, in the order of the requests.
    found: Vec<bool>,
    /// The number of bits of the next item of a bitmap that were answered, and whether all were 1.
    bits: usize,
    all_set: bool,
}

/// The load.
pub(super) struct Load {
    ring: Ring,
    recipe: Recipe,
    /// The number of requests in a batch.
    batch: usize,
    limit: Limit,
    connections: Vec<Connection>,
    tally: Tally,
    /// The number of requests given to connections.
    begun: u64,
    /// The number of connections that wait for replies.
    busy: usize,
    start: Instant,
}

impl Load {
    pub(super) fn new(
        streams: Vec<Stream>,
        ring: Ring,
        recipe: &Recipe,
        batch: usize,
        limit: Limit,
    ) -> Result<Self> {
        let start = Instant::now();
        let connections = streams.into_iter().map(|stream| Connection {
            stream,
            decoder: Decoder::default(),
            rest: Vec::new(),
            batch: 0..0,
            sent: 0,
            answers: Answers::default(),
            since: start,
        });
        Ok(Self {
            connections: connections.collect(),
            ring,
            recipe: recipe.clone(),
            batch,
            limit,
            tally: Tally {
                requests: 0,
                items: 0,
                positives: 0,
                others: 0,
                other_positives: 0,
                latency: Histogram::new_with_bounds(1, MAX_LATENCY_NANOS, 3)?,
                elapsed: Duration::ZERO,
                waited: Duration::ZERO,
            },
            begun: 0,
            busy: 0,
            start,
        })
    }

    /// Runs until the limit is reached.
    pub(super) fn run(mut self) -> Result<Tally> {
        let mut poll = Poll::new()?;
        let mut events = Events::with_capacity(1024);
        let mut buffer = vec![0; READ_SIZE];
        for (index, connection) in self.connections.iter().enumerate() {
            poll.registry().register(
                &mut SourceFd(&connection.stream.as_raw_fd()),
                Token(index),
                Interest::READABLE | Interest::WRITABLE,
            )?;
        }
        self.start = Instant::now();
        let start = self.start;
        for index in 0..self.connections.len() {
            self.begin(index, start)?;
        }
        while self.busy > 0 {
            let before = Instant::now();
            match poll.poll(&mut events, Some(SILENCE)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => self.tally.waited += before.elapsed(),
            }
            ensure!(
                before.elapsed() < SILENCE,
                "the server is silent for {SILENCE:?}"
            );
            for event in &events {
                self.serve(event, &mut buffer)?;
            }
        }
        self.tally.elapsed = self.start.elapsed();
        Ok(self.tally)
    }

    fn serve(&mut self, event: &Event, buffer: &mut [u8]) -> Result<()> {
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
        let connection = &mut self.connections[index];
        let batch = self.ring.take(most);
        self.begun += batch.len() as u64;
        self.busy += 1;
        connection.answers.due = batch.len() * self.recipe.commands();
        connection.batch = batch;
        connection.sent = 0;
        connection.since = now;
        self.send(index)
    }

    /// Writes as much of the batch as the socket takes.
    fn send(&mut self, index: usize) -> io::Result<()> {
        let connection = &mut self.connections[index];
        let bytes = self.ring.bytes(&connection.batch);
        while connection.sent < bytes.len() {
            match connection.stream.write(&bytes[connection.sent..]) {
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
    fn receive(&mut self, index: usize, buffer: &mut [u8]) -> Result<()> {
        loop {
            let connection = &mut self.connections[index];
            let kept = connection.rest.len();
            ensure!(kept < buffer.len(), "the server sends an endless reply");
            buffer[..kept].copy_from_slice(&connection.rest);
            let count = match connection.stream.read(&mut buffer[kept..]) {
                Ok(0) => bail!("the server closed the connection"),
                Ok(count) => count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error.into()),
            };
            let mut bytes = &buffer[..kept + count];
            let answers = &mut connection.answers;
            let was_due = answers.due;
            while let Some((reply, length)) = connection.decoder.decode(bytes)? {
                answers.take(&reply, &self.recipe)?;
                bytes = &bytes[length..];
            }
            connection.rest.clear();
            connection.rest.extend_from_slice(bytes);
            // The buffer is not full, so the socket is empty. An event says when more arrives.
            let is_empty = kept + count < buffer.len() && connection.stream.is_plain();
            if was_due > 0 && answers.due == 0 {
                let now = Instant::now();
                self.end(index, now)?;
                self.begin(index, now)?;
            }
            if is_empty {
                return Ok(());
            }
        }
    }

    /// Counts a batch that is answered.
    fn end(&mut self, index: usize, now: Instant) -> Result<()> {
        let connection = &mut self.connections[index];
        let present = self.ring.present(&connection.batch);
        let found = std::mem::take(&mut connection.answers.found);
        let tally = &mut self.tally;
        for (&found, &present) in found.iter().zip(present) {
            ensure!(
                !(present && self.recipe.verb.lost(found)),
                "false negative: the server does not know an item that was added"
            );
            tally.items += 1;
            tally.positives += u64::from(found);
            tally.others += u64::from(!present);
            tally.other_positives += u64::from(found && !present);
        }
        connection.answers.found = found;
        connection.answers.found.clear();
        tally.requests += connection.batch.len() as u64;
        let nanos = (now - connection.since).as_nanos();
        tally
            .latency
            .saturating_record(u64::try_from(nanos).unwrap_or(u64::MAX));
        self.busy -= 1;
        Ok(())
    }
}

impl Answers {
    /// Takes the next reply, which must have the form that the command's replies have.
    fn take(&mut self, reply: &Reply, recipe: &Recipe) -> Result<()> {
        ensure!(
            self.due > 0,
            "the server sent more than was asked: {reply:?}"
        );
        self.due -= 1;
        match reply {
            Reply::Bulk(bytes) if recipe.verb == Verb::Echo && bytes == WORD => {}
            Reply::Array(items) if recipe.verb.takes_several() && items.len() == recipe.items => {
                for item in items {
                    self.found.push(bit(item)?);
                }
            }
            reply if recipe.verb.is_bitmap() => {
                self.all_set = bit(reply)? && (self.bits == 0 || self.all_set);
                self.bits += 1;
                if self.bits == recipe.commands() {
                    self.found.push(self.all_set);
                    self.bits = 0;
                }
            }
            reply if recipe.verb != Verb::Echo && !recipe.verb.takes_several() => {
                self.found.push(bit(reply)?);
            }
            reply => return wrong(reply),
        }
        Ok(())
    }
}

/// The answer 0 or 1.
fn bit(reply: &Reply) -> Result<bool> {
    match reply {
        Reply::Integer(0) => Ok(false),
        Reply::Integer(1) => Ok(true),
        reply => wrong(reply),
    }
}

fn wrong<T>(reply: &Reply) -> Result<T> {
    match reply.as_error() {
        Some(text) => bail!("the server answered with an error: {text}"),
        None => bail!("the server answered with something else: {reply:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::Bitmap;
    use super::super::keys::Keys;
    use super::*;

    fn recipe(verb: Verb) -> Recipe {
        Recipe {
            verb,
            keys: Keys::new("k", 1),
            items: if verb.takes_several() { 2 } else { 1 },
            bitmap: Bitmap::new(1000, 0.2).unwrap(),
            present: 0,
            hit_share: 0.0,
            filling: false,
        }
    }

    /// The items that these replies answer.
    fn take(verb: Verb, replies: &[Reply]) -> Result<Vec<bool>> {
        let mut answers = Answers {
            due: replies.len(),
            ..Answers::default()
        };
        for reply in replies {
            answers.take(reply, &recipe(verb))?;
        }
        assert_eq!(answers.due, 0);
        Ok(answers.found)
    }

    #[test]
    fn replies_become_answers() {
        let [no, yes] = [Reply::Integer(0), Reply::Integer(1)];
        let pair = Reply::Array(vec![yes.clone(), no.clone()]);
        assert_eq!(recipe(Verb::Getbit).commands(), 2);
        for (verb, replies, found) in [
            (Verb::Echo, vec![Reply::bulk("hello")], vec![]),
            (
                Verb::Exists,
                vec![yes.clone(), no.clone()],
                vec![true, false],
            ),
            (Verb::Mexists, vec![pair], vec![true, false]),
            (
                Verb::Getbit,
                vec![no.clone(), yes.clone(), yes.clone(), yes.clone()],
                vec![false, true],
            ),
        ] {
            assert_eq!(take(verb, &replies).unwrap(), found, "{verb:?}");
        }
    }

    #[test]
    fn other_replies_end_the_run() {
        let one = Reply::Integer(1);
        for (verb, reply) in [
            (Verb::Echo, Reply::bulk("hallo")),
            (Verb::Echo, one.clone()),
            (Verb::Exists, Reply::Integer(2)),
            (Verb::Exists, Reply::bulk("1")),
            (Verb::Mexists, one.clone()),
            (Verb::Mexists, Reply::Array(vec![one.clone()])),
            (Verb::Mexists, Reply::Array(vec![one.clone(), Reply::Null])),
            (Verb::Getbit, Reply::error("ERR no")),
        ] {
            assert!(take(verb, &[reply.clone()]).is_err(), "{verb:?} {reply:?}");
        }
        let surplus = Answers::default().take(&one, &recipe(Verb::Exists));
        assert!(surplus.is_err());
    }
}
