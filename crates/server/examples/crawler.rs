//! A crawler that never fetches a URL twice: four workers share a filter on a server, which is
//! stopped in the middle and started again on its files.
//!
//! `cargo run --release --example crawler`; `-- --items 20000` makes the web smaller.

mod support;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use redis::{Connection, RedisResult};
use support::{Embedded, Outcome, argument, figure, mixed, rate, used_memory};

const WORKERS: usize = 4;
/// Links of which a worker asks at once which are new.
const BATCH: usize = 1000;
/// Links on a page.
const LINKS: u64 = 5;
const FILTER: &str = "crawler:seen";
const ERROR_RATE: f64 = 0.0001;
/// How long a worker waits for a server that is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// A made-up web of pages 0 to `pages` - 1. Each is fetched by looking at its links.
struct Web {
    pages: u64,
    fetched: Vec<AtomicU8>,
}

impl Web {
    fn new(pages: u64) -> Web {
        let fetched = (0..pages).map(|_| AtomicU8::new(0)).collect();
        Web { pages, fetched }
    }

    /// Fetches a page. It links to the next one, so that all can be reached, and to others.
    fn fetch(&self, page: u64) -> impl Iterator<Item = u64> {
        if let Some(times) = usize::try_from(page)
            .ok()
            .and_then(|at| self.fetched.get(at))
        {
            times.fetch_add(1, Ordering::Relaxed);
        }
        let others = (1..LINKS).map(move |link| mixed(page * LINKS + link));
        let links = std::iter::once(page + 1).chain(others);
        links.map(|page| page % self.pages)
    }

    fn times(&self) -> impl Iterator<Item = u8> {
        self.fetched
            .iter()
            .map(|times| times.load(Ordering::Relaxed))
    }
}

fn url(page: u64) -> String {
    format!("https://site{}.example/page/{page}", page % 1000)
}

/// What the workers share. A link belongs to one of them, who alone asks for it and adds it.
struct Crawl {
    web: Web,
    server: Embedded,
    /// For each worker the links that nobody has asked for yet.
    inboxes: [Mutex<Vec<u64>>; WORKERS],
    /// Links in the inboxes, and those that the workers are at.
    open: AtomicU64,
    asked: AtomicU64,
    sent_again: AtomicU64,
    failed: AtomicBool,
}

impl Crawl {
    fn new(web: Web, server: Embedded) -> Crawl {
        let crawl = Crawl {
            web,
            server,
            inboxes: Default::default(),
            open: AtomicU64::new(0),
            asked: AtomicU64::new(0),
            sent_again: AtomicU64::new(0),
            failed: AtomicBool::new(false),
        };
        crawl.hand_over(&[0]);
        crawl
    }

    fn is_over(&self) -> bool {
        self.open.load(Ordering::SeqCst) == 0 || self.failed.load(Ordering::SeqCst)
    }

    fn hand_over(&self, links: &[u64]) {
        self.open.fetch_add(links.len() as u64, Ordering::SeqCst);
        for (owner, inbox) in (0..).zip(&self.inboxes) {
            let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
            inbox.extend(links.iter().filter(|link| *link % WORKERS as u64 == owner));
        }
    }

    /// A worker: takes links, asks which are new, fetches those, and hands over what they link to.
    fn work(&self, inbox: &Mutex<Vec<u64>>) -> RedisResult<()> {
        let mut connection = None;
        while !self.is_over() {
            let mut links = {
                let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
                let kept = inbox.len().saturating_sub(BATCH);
                inbox.split_off(kept)
            };
            if links.is_empty() {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            let taken = links.len() as u64;
            links.sort_unstable();
            links.dedup();
            let new = self.new_ones(&mut connection, &links);
            let new = new.inspect_err(|_| self.failed.store(true, Ordering::SeqCst))?;
            let found: Vec<u64> = new.iter().flat_map(|page| self.web.fetch(*page)).collect();
            self.hand_over(&found);
            self.open.fetch_sub(taken, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Which links are new. They are added before they are fetched. When a reply was lost, it is
    /// safe to send either request again, because nobody else adds these links meanwhile.
    fn new_ones(
        &self,
        connection: &mut Option<Connection>,
        links: &[u64],
    ) -> RedisResult<Vec<u64>> {
        let known = self.ask(connection, "BF.MEXISTS", links)?;
        let new = links.iter().zip(known).filter(|(_, known)| !known);
        let new: Vec<u64> = new.map(|(link, _)| *link).collect();
        if !new.is_empty() {
            self.ask(connection, "BF.MADD", &new)?;
        }
        Ok(new)
    }

    /// Asks until there is an answer.
    fn ask(
        &self,
        connection: &mut Option<Connection>,
        command: &str,
        links: &[u64],
    ) -> RedisResult<Vec<bool>> {
        let started = Instant::now();
        loop {
            match self.try_ask(connection, command, links) {
                Err(_) if started.elapsed() < PATIENCE => {
                    let was_connected = connection.take().is_some();
                    self.sent_again
                        .fetch_add(u64::from(was_connected), Ordering::Relaxed);
                    thread::sleep(Duration::from_millis(10));
                }
                outcome => return outcome,
            }
        }
    }

    fn try_ask(
        &self,
        connection: &mut Option<Connection>,
        command: &str,
        links: &[u64],
    ) -> RedisResult<Vec<bool>> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(self.server.connect()?),
        };
        let mut request = redis::cmd(command);
        request.arg(FILTER);
        for page in links {
            request.arg(url(*page));
        }
        let answers: Vec<bool> = request.query(connection)?;
        self.asked
            .fetch_add(answers.len() as u64, Ordering::Relaxed);
        Ok(answers)
    }

    fn fetched(&self) -> u64 {
        self.web.times().filter(|times| *times > 0).count() as u64
    }
}

fn main() -> Outcome {
    let folder = std::env::temp_dir().join(format!("crawler-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = run(&folder);
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn run(folder: &Path) -> Outcome {
    let pages = argument("items", 1_000_000)?;
    let crawl = Crawl::new(Web::new(pages), Embedded::on(folder)?);
    let mut connection = crawl.server.connect()?;
    redis::cmd("BF.RESERVE")
        .arg(FILTER)
        .arg(ERROR_RATE)
        .arg(pages)
        .exec(&mut connection)?;
    drop(connection);

    println!("{WORKERS} workers crawl {pages} pages with {LINKS} links each.");
    let started = Instant::now();
    thread::scope(|scope| {
        let inboxes = crawl.inboxes.iter();
        let workers: Vec<_> = inboxes
            .map(|inbox| scope.spawn(|| crawl.work(inbox)))
            .collect();
        while crawl.fetched() < pages / 2 && !crawl.is_over() {
            thread::sleep(Duration::from_millis(10));
        }
        println!("After {} of them the server is stopped.", crawl.fetched());
        crawl.server.stop();
        let again = crawl.server.start_again();
        crawl.failed.fetch_or(again.is_err(), Ordering::SeqCst);
        again?;
        println!("It is started again on its files. The workers connect again and go on.");
        for worker in workers {
            worker.join().map_err(|_| "a worker has panicked")??;
        }
        Outcome::Ok(())
    })?;
    let seconds = started.elapsed().as_secs_f64();

    let mut connection = crawl.server.connect()?;
    let fetched = crawl.fetched();
    let twice = crawl.web.times().filter(|times| *times > 1).count();
    let never = pages - fetched;
    println!("\nFigures");
    figure("items", pages);
    figure("questions and adds", crawl.asked.load(Ordering::Relaxed));
    figure("fetched", fetched);
    figure("repeats", twice);
    figure("missed, that is never fetched", never);
    figure(
        "requests sent again",
        crawl.sent_again.load(Ordering::Relaxed),
    );
    figure("error rate, expected at most", format!("{ERROR_RATE:.6}"));
    figure("error rate, measured", format!("{:.6}", rate(never, pages)));
    figure("memory of the server, bytes", used_memory(&mut connection)?);
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
