//! Workers that crawl a made-up web, with a filter wherever it is.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use super::{Outcome, Problem, figure, mixed, rate};

pub(crate) const WORKERS: usize = 4;
/// Links of which a worker asks at once which are new.
const BATCH: usize = 1000;
/// Links on a page.
pub(crate) const LINKS: u64 = 5;
pub(crate) const ERROR_RATE: f64 = 0.0001;
/// How long a worker waits for a server that is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the URLs are that were seen.
pub(crate) trait Seen: Sync {
    /// What a worker asks over.
    type Connection;

    /// Connects a worker; an error while there is no server.
    fn connect(&self) -> Outcome<Self::Connection>;

    /// Which URLs are known.
    fn known(&self, connection: &mut Self::Connection, urls: &[String]) -> Outcome<Vec<bool>>;

    /// Adds URLs. Which of them were new does not count: a lost request is sent again.
    fn add(&self, connection: &mut Self::Connection, urls: &[String]) -> Outcome<Vec<bool>>;

    /// Whether an error says that URLs are lost.
    fn is_loss(_: &Problem) -> bool {
        false
    }

    /// Makes again what is lost, without the URLs in it.
    fn restore(&self, _: &mut Self::Connection) -> Outcome {
        Ok(())
    }
}

/// What happens to the servers, when so many pages are fetched.
pub(crate) type Event<T> = fn(servers: &mut T, fetched: u64) -> Outcome;

/// A made-up web of pages 0 to `pages` - 1. Each is fetched by looking at its links.
struct Web {
    pages: u64,
    times: Vec<AtomicU8>,
    fetched: AtomicU64,
}

impl Web {
    fn new(pages: u64) -> Web {
        let times = (0..pages).map(|_| AtomicU8::new(0)).collect();
        let fetched = AtomicU64::new(0);
        Web {
            pages,
            times,
            fetched,
        }
    }

    /// Fetches a page. It links to the next one, so that all can be reached, and to others.
    fn fetch(&self, page: u64) -> impl Iterator<Item = u64> {
        if let Some(times) = usize::try_from(page).ok().and_then(|at| self.times.get(at))
            && times.fetch_add(1, Ordering::Relaxed) == 0
        {
            self.fetched.fetch_add(1, Ordering::Relaxed);
        }
        let others = (1..LINKS).map(move |link| mixed(page * LINKS + link));
        let links = std::iter::once(page + 1).chain(others);
        links.map(|page| page % self.pages)
    }

    fn times(&self) -> impl Iterator<Item = u8> {
        self.times.iter().map(|times| times.load(Ordering::Relaxed))
    }

    /// The URLs of all pages that were fetched.
    fn fetched(&self) -> Vec<String> {
        let fetched = (0..).zip(self.times()).filter(|(_, times)| *times > 0);
        fetched.map(|(page, _)| url(page)).collect()
    }
}

fn url(page: u64) -> String {
    format!("https://site{}.example/page/{page}", page % 1000)
}

/// What the workers share. A link belongs to one of them, who alone asks for it and adds it.
pub(crate) struct Crawl<S> {
    web: Web,
    seen: S,
    /// For each worker the links that nobody has asked for yet.
    inboxes: [Mutex<Vec<u64>>; WORKERS],
    /// Links in the inboxes, and those that the workers are at.
    open: AtomicU64,
    /// How many pages are fetched before the next event. So it comes while the workers crawl.
    limit: AtomicU64,
    /// How often lost URLs were added again. Meanwhile nobody asks: they would seem to be new.
    restored: RwLock<u64>,
    asked: AtomicU64,
    sent_again: AtomicU64,
    failed: AtomicBool,
}

impl<S: Seen> Crawl<S> {
    /// A crawl that begins with the first of so many pages.
    pub(crate) fn new(pages: u64, seen: S) -> Crawl<S> {
        let crawl = Crawl {
            web: Web::new(pages),
            seen,
            inboxes: Default::default(),
            open: AtomicU64::new(0),
            limit: AtomicU64::new(u64::MAX),
            restored: RwLock::new(0),
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

    /// Takes a batch of links, or none for now.
    fn take(&self, inbox: &Mutex<Vec<u64>>) -> Vec<u64> {
        if self.fetched() >= self.limit.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = inbox.len().saturating_sub(BATCH);
        inbox.split_off(kept)
    }

    /// A worker: takes links, fetches those that are new, and hands over what they link to.
    fn work(&self, inbox: &Mutex<Vec<u64>>) -> Outcome {
        let mut connection = None;
        while !self.is_over() {
            let mut links = self.take(inbox);
            if links.is_empty() {
                thread::sleep(Duration::from_millis(1));
                continue;
            }
            let taken = links.len() as u64;
            links.sort_unstable();
            links.dedup();
            let found = self.fetch_new(&mut connection, &links);
            let found = found.inspect_err(|_| self.failed.store(true, Ordering::SeqCst))?;
            self.hand_over(&found);
            self.open.fetch_sub(taken, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Fetches the pages that are new, and returns their links. The pages are added before they are
    /// fetched. When a reply was lost, it is safe to send either request again, because nobody else
    /// adds these links meanwhile.
    fn fetch_new(
        &self,
        connection: &mut Option<S::Connection>,
        links: &[u64],
    ) -> Outcome<Vec<u64>> {
        let urls = |links: &[u64]| links.iter().map(|page| url(*page)).collect::<Vec<_>>();
        let all = urls(links);
        let known = self.ask(connection, |connection| self.seen.known(connection, &all))?;
        let new = links.iter().zip(known).filter(|(_, known)| !known);
        let new: Vec<u64> = new.map(|(link, _)| *link).collect();
        if new.is_empty() {
            return Ok(Vec::new());
        }
        let added = urls(&new);
        let found = self.ask(connection, |connection| {
            self.seen.add(connection, &added)?;
            Ok(new.iter().flat_map(|page| self.web.fetch(*page)).collect())
        })?;
        let answers = all.len() + added.len();
        self.asked.fetch_add(answers as u64, Ordering::Relaxed);
        Ok(found)
    }

    /// Asks until there is an answer.
    fn ask<T>(
        &self,
        connection: &mut Option<S::Connection>,
        mut question: impl FnMut(&mut S::Connection) -> Outcome<T>,
    ) -> Outcome<T> {
        let started = Instant::now();
        loop {
            let restored = self.restored.read().unwrap_or_else(PoisonError::into_inner);
            let before = *restored;
            let outcome = self.connected(connection).and_then(&mut question);
            drop(restored);
            match outcome {
                Err(error) if S::is_loss(&error) => self.restore(connection, before)?,
                Err(_) if started.elapsed() < PATIENCE => self.wait(connection),
                outcome => return outcome,
            }
        }
    }

    /// Waits a little for a server that did not answer.
    fn wait(&self, connection: &mut Option<S::Connection>) {
        let was_connected = connection.take().is_some();
        self.sent_again
            .fetch_add(u64::from(was_connected), Ordering::Relaxed);
        thread::sleep(Duration::from_millis(10));
    }

    fn connected<'c>(
        &self,
        connection: &'c mut Option<S::Connection>,
    ) -> Outcome<&'c mut S::Connection> {
        Ok(match connection {
            Some(connection) => connection,
            None => connection.insert(self.seen.connect()?),
        })
    }

    /// Makes again what is lost, and adds all pages that were fetched, unless another worker has
    /// done so since.
    fn restore(&self, connection: &mut Option<S::Connection>, before: u64) -> Outcome {
        let mut restored = self
            .restored
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let started = Instant::now();
        while *restored == before {
            let outcome = self.connected(connection).and_then(|connection| {
                self.seen.restore(connection)?;
                let fetched = self.web.fetched();
                let mut batches = fetched.chunks(BATCH);
                batches.try_for_each(|urls| self.seen.add(connection, urls).map(drop))
            });
            match outcome {
                Ok(()) => *restored += 1,
                Err(_) if started.elapsed() < PATIENCE => self.wait(connection),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn fetched(&self) -> u64 {
        self.web.fetched.load(Ordering::Relaxed)
    }

    /// Crawls with all workers. Events happen meanwhile, after equal parts of the pages.
    pub(crate) fn run<T>(&self, servers: &mut T, events: &[Event<T>]) -> Outcome {
        let part = self.web.pages / (events.len() as u64 + 1);
        self.limit.store(part, Ordering::SeqCst);
        thread::scope(|scope| {
            let inboxes = self.inboxes.iter();
            let workers: Vec<_> = inboxes
                .map(|inbox| scope.spawn(|| self.work(inbox)))
                .collect();
            let happened = events.iter().try_for_each(|event| {
                while self.fetched() < self.limit.load(Ordering::SeqCst) {
                    if self.is_over() {
                        return Ok(());
                    }
                    thread::sleep(Duration::from_millis(1));
                }
                self.limit.fetch_add(part, Ordering::SeqCst);
                event(servers, self.fetched())
            });
            self.limit.store(u64::MAX, Ordering::SeqCst);
            self.failed.fetch_or(happened.is_err(), Ordering::SeqCst);
            for worker in workers {
                worker.join().map_err(|_| "a worker has panicked")??;
            }
            happened
        })
    }

    /// How many of the fetched pages are not known. Each was acknowledged before it was fetched.
    pub(crate) fn forgotten(
        &self,
        mut known: impl FnMut(&[String]) -> Outcome<Vec<bool>>,
    ) -> Outcome<u64> {
        let mut forgotten = 0;
        for batch in self.web.fetched().chunks(BATCH) {
            forgotten += known(batch)?.into_iter().filter(|known| !known).count() as u64;
        }
        Ok(forgotten)
    }

    /// Prints what the crawl came to.
    pub(crate) fn figures(&self) {
        let (pages, fetched) = (self.web.pages, self.fetched());
        let twice = self.web.times().filter(|times| *times > 1).count();
        let never = pages - fetched;
        figure("items", pages);
        figure("questions and adds", self.asked.load(Ordering::Relaxed));
        figure("fetched", fetched);
        figure("repeats", twice);
        figure("missed, that is never fetched", never);
        figure(
            "requests sent again",
            self.sent_again.load(Ordering::Relaxed),
        );
        figure("error rate, expected at most", format!("{ERROR_RATE:.6}"));
        figure("error rate, measured", format!("{:.6}", rate(never, pages)));
    }
}
