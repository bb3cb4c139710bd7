//! The event loop. Each connection sends a batch of requests, waits for all its replies, and sends
//! the next batch.

use std::io::{self, ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use everbloom_resp::Decoder;
use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};

use super::answers::Answers;
use super::requests::{Recipe, Ring};
use super::stream::Stream;
use super::tally::{Tally, record};

/// A run fails when the server sends nothing for this long.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// The most bytes to read from a socket at a time.
pub(super) const READ_SIZE: usize = 256 * 1024;

/// When to stop. Batches that were sent before are still waited for and counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limit {
    pub(super) requests: u64,
    pub(super) time: Duration,
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
        tally: Tally,
    ) -> Self {
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
        Self {
            connections: connections.collect(),
            ring,
            recipe: recipe.clone(),
            batch,
            limit,
            tally,
            begun: 0,
            busy: 0,
            start,
        }
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
        self.tally.begin()?;
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
        self.tally.end()
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
        let batch = &connection.batch;
        let present = self.ring.present(batch);
        let found = &mut connection.answers.found;
        self.tally
            .count(&self.recipe, batch.len(), found, present)?;
        found.clear();
        record(&mut self.tally.latency, now - connection.since);
        self.busy -= 1;
        Ok(())
    }
}
