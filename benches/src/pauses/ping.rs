//! What others notice: connections that ask something small a thousand times a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use everbloom_dev::Client;
use serde::Serialize;

use super::acts::BIG;

const EACH: Duration = Duration::from_millis(1);

/// What a round of an act came to. Times are milliseconds. Each is that of the connection for which
/// it is the worst.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Figures {
    /// How long the act itself took.
    pub took: f64,
    /// Pings of one connection.
    pub pings: usize,
    pub p50: f64,
    pub p99: f64,
    pub p99_9: f64,
    pub max: f64,
}

/// One ping: when it was due, and when it was answered.
type Ping = (Instant, Instant);

/// Pings on a thread of its own.
struct Pinger {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<Ping>>,
}

/// Runs an act beside so many connections that ping: servers give their threads connections in
/// turn, so as many as threads are on each of them. The pings go on for a while `after` the act:
/// the server may still be cleaning up.
pub fn beside(
    port: u16,
    connections: usize,
    after: Duration,
    act: impl FnOnce() -> Result<()>,
) -> Result<Figures> {
    let pingers = (0..connections).map(|_| Pinger::start(port));
    let pingers = pingers.collect::<Result<Vec<_>>>()?;
    thread::sleep(after / 5);
    let begun = Instant::now();
    let result = act();
    let ended = Instant::now();
    thread::sleep(after);
    let mut worst = Figures::default();
    for pinger in pingers {
        let pings = pinger.end()?;
        let counted = |ping: &&Ping| (begun..=ended + after).contains(&ping.0);
        let times = pings.iter().filter(counted).map(|(due, end)| *end - *due);
        let mut times: Vec<f64> = times.map(|time| time.as_secs_f64() * 1e3).collect();
        times.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let index = (times.len() as f64 * part) as usize;
            let last = times.len().saturating_sub(1);
            times.get(index.min(last)).copied().unwrap_or(f64::NAN)
        };
        worst.pings = times.len();
        worst.p50 = worst.p50.max(at(0.5));
        worst.p99 = worst.p99.max(at(0.99));
        worst.p99_9 = worst.p99_9.max(at(0.999));
        worst.max = worst.max.max(at(1.0));
    }
    worst.took = (ended - begun).as_secs_f64() * 1e3;
    result.map(|()| worst)
}

impl Pinger {
    fn start(port: u16) -> Result<Self> {
        let mut client = Client::try_connect(("127.0.0.1", port))?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || {
            let mut pings = Vec::new();
            let mut due = Instant::now();
            while !stopped.load(Ordering::Relaxed) {
                due += EACH;
                thread::sleep(due.saturating_duration_since(Instant::now()));
                client.ok(&ping(pings.len()));
                pings.push((due, Instant::now()));
            }
            pings
        });
        Ok(Self { stop, thread })
    }

    fn end(self) -> Result<Vec<Ping>> {
        self.stop.store(true, Ordering::Relaxed);
        let pings = self.thread.join();
        pings.map_err(|_| anyhow!("a pinger panicked"))
    }
}

/// Writes of small keys all over the keyspace, and reads and writes that change nothing of the key
/// that is acted upon. So the locks of an act are noticed.
fn ping(number: usize) -> String {
    match number % 3 {
        0 => format!("SET ping:{} 1", number % 4096),
        1 => format!("EXISTS {BIG}"),
        _ => format!("PERSIST {BIG}"),
    }
}
