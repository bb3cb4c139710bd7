//! Workers that crawl a made-up web, with a filter wherever it is.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Outcome, figure, mixed, rate};

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
}

/// [`Seen::known`] or [`Seen::add`].
type Question<S> = fn(&S, &mut <S as Seen>::Connection, &[String]) -> Outcome<Vec<bool>>;

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
pub(crate) struct Crawl<S> {
    web: Web,
    seen: S,
    /// For each worker the links that nobody has asked for yet.
    inboxes: [Mutex<Vec<u64>>; WORKERS],
    /// Links in the inboxes, and those that the workers are at.
    open: AtomicU64,
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
    fn work(&self, inbox: &Mutex<Vec<u64>>) -> Outcome {
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
    fn new_ones(&self, connection: &mut Option<S::Connection>, links: &[u64]) -> Outcome<Vec<u64>> {
        let known = self.ask(connection, links, S::known)?;
        let new = links.iter().zip(known).filter(|(_, known)| !known);
        let new: Vec<u64> = new.map(|(link, _)| *link).collect();
        if !new.is_empty() {
            self.ask(connection, &new, S::add)?;
        }
        Ok(new)
    }

    /// Asks until there is an answer.
    fn ask(
        &self,
        connection: &mut Option<S::Connection>,
        links: &[u64],
        question: Question<S>,
    ) -> Outcome<Vec<bool>> {
        let started = Instant::now();
        let urls: Vec<String> = links.iter().map(|page| url(*page)).collect();
        loop {
            match self.try_ask(connection, &urls, question) {
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
        connection: &mut Option<S::Connection>,
        urls: &[String],
        question: Question<S>,
    ) -> Outcome<Vec<bool>> {
        let connection = match connection {
            Some(connection) => connection,
            None => connection.insert(self.seen.connect()?),
        };
        let answers = question(&self.seen, connection, urls)?;
        self.asked
            .fetch_add(answers.len() as u64, Ordering::Relaxed);
        Ok(answers)
    }

    fn fetched(&self) -> u64 {
        self.web.times().filter(|times| *times > 0).count() as u64
    }

    /// Crawls with all workers. When half of the pages are fetched, something happens meanwhile.
    pub(crate) fn run(&self, happens: impl FnOnce(u64) -> Outcome) -> Outcome {
        let half = self.web.pages / 2;
        thread::scope(|scope| {
            let inboxes = self.inboxes.iter();
            let workers: Vec<_> = inboxes
                .map(|inbox| scope.spawn(|| self.work(inbox)))
                .collect();
            while self.fetched() < half && !self.is_over() {
                thread::sleep(Duration::from_millis(10));
            }
            let happened = happens(self.fetched());
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
        let fetched = (0..).zip(self.web.times()).filter(|(_, times)| *times > 0);
        let urls: Vec<String> = fetched.map(|(page, _)| url(page)).collect();
        let mut forgotten = 0;
        for batch in urls.chunks(BATCH) {
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
