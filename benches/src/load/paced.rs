//! The event loop of a load with a schedule. Each request is due at a moment that no answer
//! changes, and its latency counts from then, so a slow server is asked no less and every request
//! that it delays counts.
//!
//! The moments are drawn as those of many independent clients: a Poisson process. Connections take
//! the requests in turn. A request is sent when it is due, also while its connection still waits
//! for an earlier one.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::ops::Range;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use everbloom_resp::Decoder;
use mio::event::Event;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use super::answers::Answers;
use super::connections::{Limit, READ_SIZE, SILENCE};
use super::requests::{Recipe, Ring};
use super::stream::Stream;
use super::tally::{Tally, record};

/// The requests due in this time are sent, and not measured: connections are new.
const WARM_UP: Duration = Duration::from_millis(200);

/// Before a request is due, the loop polls for this long and does not sleep: waking takes as long,
/// most of all in a virtual machine, and would make the request late.
const POLLING: Duration = Duration::from_micros(10);

/// Wakes the loop; no connection has this token.
const TIMER: Token = Token(usize::MAX);

/// A request that waits for its replies.
struct Sent {
    due: Instant,
    request: Range<usize>,
}

struct Connection {
    stream: Stream,
    decoder: Decoder,
    /// The first bytes of a reply that is not complete.
    rest: Vec<u8>,
    /// What the socket did not take yet.
    unsent: Vec<u8>,
    waiting: VecDeque<Sent>,
    answers: Answers,
    /// The number of replies to the first request that waits.
    replies: usize,
}

/// The load.
pub(super) struct Paced {
    ring: Ring,
    recipe: Recipe,
    connections: Vec<Connection>,
    schedule: Schedule,
    timer: Timer,
    tally: Tally,
    /// Requests due from here on are measured.
    measured_from: Instant,
    /// Whether the clocks of the measured part run.
    is_measuring: bool,
    /// The connection that gets the next request.
    next: usize,
    /// The number of requests that wait for replies.
    waiting: usize,
}

impl Paced {
    /// A load of so many requests a second, until the limit.
    pub(super) fn new(
        streams: Vec<Stream>,
        ring: Ring,
        recipe: &Recipe,
        limit: Limit,
        rate: f64,
        tally: Tally,
    ) -> Result<Self> {
        let connections = streams.into_iter().map(|stream| Connection {
            stream,
            decoder: Decoder::default(),
            rest: Vec::new(),
            unsent: Vec::new(),
            waiting: VecDeque::new(),
            answers: Answers::default(),
            replies: 0,
        });
        Ok(Self {
            connections: connections.collect(),
            ring,
            recipe: recipe.clone(),
            schedule: Schedule::new(rate, limit),
            timer: Timer::new()?,
            tally,
            measured_from: Instant::now(),
            is_measuring: false,
            next: 0,
            waiting: 0,
        })
    }

    /// Runs until the limit is reached and all requests are answered.
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
        let timer = self.timer.file.as_raw_fd();
        poll.registry()
            .register(&mut SourceFd(&timer), TIMER, Interest::READABLE)?;
        let start = Instant::now();
        self.measured_from = start + WARM_UP;
        self.schedule.begin(start, WARM_UP);
        loop {
            self.send_due()?;
            let before = Instant::now();
            let mut timeout = SILENCE;
            match self.schedule.due {
                Some(due) if due < before + POLLING => timeout = Duration::ZERO,
                Some(due) => self.timer.wake_at(due - POLLING)?,
                None if self.waiting == 0 => break,
                None => {}
            }
            match poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error.into()),
                _ => self.tally.waited += before.elapsed(),
            }
            ensure!(
                before.elapsed() < SILENCE,
                "the server is silent for {SILENCE:?}"
            );
            for event in &events {
                self.serve(event, &mut buffer)?;
                self.send_due()?;
            }
        }
        self.tally.end()
    }

    fn serve(&mut self, event: &Event, buffer: &mut [u8]) -> Result<()> {
        let Some(connection) = self.connections.get_mut(event.token().0) else {
            // The timer has done its work by waking the loop.
            return Ok(());
        };
        if event.is_writable() {
            connection.send()?;
        }
        if event.is_readable() || event.is_read_closed() {
            self.receive(event.token().0, buffer)?;
        }
        Ok(())
    }

    /// Sends what is due by now. What becomes due meanwhile waits, so that replies are read, too.
    fn send_due(&mut self) -> Result<()> {
        let now = Instant::now();
        if !self.is_measuring && now >= self.measured_from {
            self.is_measuring = true;
            self.tally.begin()?;
        }
        while let Some(due) = self.schedule.due.filter(|due| *due <= now) {
            // A request of the ring must not be written anew while it waits for its reply.
            ensure!(
                self.waiting < self.ring.len(),
                "the server is too slow for this rate"
            );
            let request = self.ring.take(1);
            let index = self.next;
            self.next = (index + 1) % self.connections.len();
            let connection = &mut self.connections[index];
            if due >= self.measured_from {
                record(&mut self.tally.lateness, Instant::now() - due);
                self.tally.behind += u64::from(!connection.waiting.is_empty());
            }
            connection
                .unsent
                .extend_from_slice(self.ring.bytes(&request));
            connection.answers.due += self.recipe.commands();
            connection.waiting.push_back(Sent { due, request });
            self.waiting += 1;
            connection.send()?;
            self.schedule.advance();
        }
        Ok(())
    }

    /// Reads what the socket has.
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
            let now = Instant::now();
            let mut bytes = &buffer[..kept + count];
            while let Some((reply, length)) = connection.decoder.decode(bytes)? {
                connection.answers.take(&reply, &self.recipe)?;
                bytes = &bytes[length..];
                connection.replies += 1;
                if connection.replies == self.recipe.commands()
                    && let Some(sent) = connection.waiting.pop_front()
                {
                    connection.replies = 0;
                    self.waiting -= 1;
                    if sent.due >= self.measured_from {
                        record(&mut self.tally.latency, now - sent.due);
                        let present = self.ring.present(&sent.request);
                        let found = &connection.answers.found;
                        self.tally.count(&self.recipe, 1, found, present)?;
                    }
                    connection.answers.found.clear();
                }
            }
            connection.rest.clear();
            connection.rest.extend_from_slice(bytes);
            // The buffer is not full, so the socket is empty. An event says when more arrives.
            if kept + count < buffer.len() && connection.stream.is_plain() {
                return Ok(());
            }
        }
    }
}

impl Connection {
    /// Writes as much as the socket takes.
    fn send(&mut self) -> Result<()> {
        let mut sent = 0;
        while sent < self.unsent.len() {
            match self.stream.write(&self.unsent[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.unsent.drain(..sent);
        match self.stream.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error.into()),
            _ => Ok(()),
        }
    }
}

/// When requests are due. Two schedules of the same rate and limit are the same.
struct Schedule {
    random: SmallRng,
    rate: f64,
    limit: Limit,
    start: Instant,
    /// The seconds from the start to the next request. They are added up as a number, so that
    /// rounding does not change the rate.
    offset: f64,
    /// Those due before are not counted as requests of the limit.
    warm_up: Duration,
    /// Requests still to be due.
    left: u64,
    /// The next one. `None` when all are sent.
    due: Option<Instant>,
}

impl Schedule {
    fn new(rate: f64, limit: Limit) -> Self {
        Self {
            random: SmallRng::seed_from_u64(2),
            rate,
            limit,
            start: Instant::now(),
            offset: 0.0,
            warm_up: Duration::ZERO,
            left: limit.requests,
            due: None,
        }
    }

    fn begin(&mut self, start: Instant, warm_up: Duration) {
        self.start = start;
        self.warm_up = warm_up;
        self.limit.time = self.limit.time.saturating_add(warm_up);
        self.advance();
    }

    /// Draws the next moment: the gaps of a Poisson process are exponential.
    fn advance(&mut self) {
        let drawn: f64 = self.random.random();
        self.offset -= (1.0 - drawn).ln() / self.rate;
        let offset = Duration::from_secs_f64(self.offset);
        self.due = None;
        if self.left > 0 && offset < self.limit.time {
            self.left -= u64::from(offset >= self.warm_up);
            self.due = Some(self.start + offset);
        }
    }
}

/// A clock that wakes the loop to the microsecond. The timeout of epoll counts milliseconds.
struct Timer {
    file: OwnedFd,
    set: Option<Instant>,
}

impl Timer {
    fn new() -> Result<Self> {
        let file = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK)?;
        Ok(Self { file, set: None })
    }

    /// Setting it anew also clears an earlier end, so that it need not be read.
    fn wake_at(&mut self, moment: Instant) -> Result<()> {
        if self.set == Some(moment) {
            return Ok(());
        }
        self.set = Some(moment);
        let wait = moment.saturating_duration_since(Instant::now());
        // Zero would stop the timer.
        let wait = Timespec::try_from(wait.max(Duration::from_nanos(1)))?;
        let once = Itimerspec {
            it_interval: Timespec::default(),
            it_value: wait,
        };
        timerfd_settime(&self.file, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::items::Bitmap;
    use super::super::keys::Keys;
    use super::super::requests::Verb;
    use super::super::stream::Target;
    use super::*;

    fn moments(rate: f64, limit: Limit, warm_up: Duration) -> Vec<Duration> {
        let mut schedule = Schedule::new(rate, limit);
        let start = Instant::now();
        schedule.begin(start, warm_up);
        let due = std::iter::from_fn(|| {
            let due = schedule.due?;
            schedule.advance();
            Some(due - start)
        });
        due.collect()
    }

    #[test]
    fn a_schedule_has_its_rate_and_random_gaps() {
        let limit = Limit {
            requests: u64::MAX,
            time: Duration::from_secs(9),
        };
        let due = moments(10_000.0, limit, Duration::from_secs(1));
        // Six standard deviations of a Poisson process.
        assert!(due.len().abs_diff(100_000) < 1900, "{}", due.len());
        let gaps = due.windows(2).map(|pair| pair[1] - pair[0]);
        let long = gaps.filter(|gap| *gap > Duration::from_micros(100)).count();
        // As many as exp(-1) of the gaps are longer than the mean.
        let share = long as f64 / due.len() as f64;
        assert!((share - (-1f64).exp()).abs() < 0.01, "{share}");
        assert_eq!(due, moments(10_000.0, limit, Duration::from_secs(1)));
    }

    /// A server that answers ECHO. Once, it answers nobody for a while.
    fn stalling_server(length: usize, after: usize, stall: Duration) -> u16 {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut socket, _) = listener.accept().unwrap();
            let (mut bytes, mut answered) = (0, 0);
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = socket.read(&mut buffer) {
                bytes += count;
                if (answered..bytes / length).contains(&after) {
                    std::thread::sleep(stall);
                }
                let replies = b"$5\r\nhello\r\n".repeat(bytes / length - answered);
                socket.write_all(&replies).unwrap();
                answered = bytes / length;
            }
        });
        port
    }

    #[test]
    fn a_stall_counts_for_all_requests_that_were_due_in_it() {
        let recipe = Recipe {
            verb: Verb::Echo,
            keys: Keys::new("k", 1),
            items: 1,
            bitmap: Bitmap::default(),
            present: 0,
            hit_share: 0.0,
            filling: false,
        };
        let ring = Ring::new(recipe.clone(), 1, 1);
        let length = ring.bytes(&(0..1)).len();
        let stall = Duration::from_millis(400);
        let target = Target::Tcp(stalling_server(length, 500, stall));
        let limit = Limit {
            requests: 1300,
            time: Duration::MAX,
        };
        let tally = Tally::new(None).unwrap();
        let streams = vec![target.open().unwrap()];
        let load = Paced::new(streams, ring, &recipe, limit, 1000.0, tally).unwrap();
        let tally = load.run().unwrap();
        // About 200 are due in the first half of the stall. Had they waited for the replies before
        // them, there would be one.
        let half = u64::try_from(stall.as_nanos()).unwrap() / 2;
        let delayed = tally.latency.count_between(half, u64::MAX);
        assert!(delayed > 100, "{delayed}");
        assert!(tally.behind > 100, "{}", tally.behind);
        // Those of the warm-up are not counted.
        assert_eq!(tally.requests, 1300);
        assert_eq!(tally.requests, tally.latency.len());
        assert_eq!(tally.requests, tally.lateness.len());
    }

    #[test]
    fn a_schedule_ends_after_so_many_requests() {
        let limit = Limit {
            requests: 3,
            time: Duration::MAX,
        };
        assert_eq!(moments(1000.0, limit, Duration::ZERO).len(), 3);
    }
}
