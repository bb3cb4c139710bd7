//! A machine with a clock that the simulation sets, and threads that run only when it says so.
//!
//! A thread of the store stops at each of its pauses ([`Machine::sleep`]), where it holds no lock.
//! It goes on when the simulation's own thread lets it ([`Simulated::step`]), which waits until it
//! pauses again or ends. So exactly one thread runs at any time, and the order is the simulation's.
//!
//! A thread may also wait for a disk that hangs ([`Simulated::wait_for_disk`]), or for another thread. It keeps its
//! locks then, as a thread of a real server does.

use std::cell::Cell;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use everbloom_store::clock::Now;
use everbloom_store::machine::{Machine, Running, Work};
use foldhash::SharedSeed;
use foldhash::quality::SeedableRandomState;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// The keys are hashed the same way in every run.
static HASH_SEED: SharedSeed = SharedSeed::from_u64(7);

/// How far the uptime advances each time it is read: every pause that a thread may make is due.
const TICK: Duration = Duration::from_millis(1);

/// A thread that neither pauses nor ends for so long waits for a lock that another one keeps.
const DEADLOCK: Duration = Duration::from_secs(60);

thread_local! {
    /// The number of this thread, unless it is the simulation's own.
    static SELF: Cell<Option<usize>> = const { Cell::new(None) };
}

/// The machine.
#[derive(Debug, Clone, Default)]
pub struct Simulated {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Wakes the simulation's own thread.
    returned: Condvar,
}

#[derive(Debug, Default)]
struct State {
    now_ms: u64,
    uptime: Duration,
    /// The thread that runs; `None` is the simulation's own.
    current: Option<usize>,
    /// How many more pauses it passes without stopping: a change of threads takes longer than most steps.
    left: usize,
    threads: Vec<Thread>,
}

#[derive(Debug)]
struct Thread {
    name: String,
    /// Wakes it: one for all would wake all others, too.
    turned: Arc<Condvar>,
    ended: bool,
    panicked: bool,
    /// What it waits for.
    waits: Option<WaitsFor>,
}

/// What a thread waits for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum WaitsFor {
    Disk,
    Thread(usize),
}

impl Simulated {
    /// A machine at this time, without threads.
    pub fn new(now_ms: u64) -> Self {
        let machine = Simulated::default();
        machine.lock().now_ms = now_ms;
        machine
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        let state = self.shared.state.lock();
        state.unwrap_or_else(PoisonError::into_inner)
    }

    /// Moves the clock, forward or back; the uptime follows forward.
    pub fn pass(&self, ms: i64) {
        let mut state = self.lock();
        state.now_ms = state.now_ms.saturating_add_signed(ms);
        if let Ok(ms) = u64::try_from(ms) {
            state.uptime += Duration::from_millis(ms);
        }
    }

    /// The threads that have not ended, by number.
    pub fn threads(&self) -> Vec<(usize, String)> {
        let state = self.lock();
        let threads = state.threads.iter().enumerate();
        let alive = threads.filter(|(_, thread)| !thread.ended);
        alive
            .map(|(number, thread)| (number, thread.name.clone()))
            .collect()
    }

    /// Whether a thread has panicked.
    pub fn has_panicked(&self) -> Option<String> {
        let state = self.lock();
        let thread = state.threads.iter().find(|thread| thread.panicked);
        thread.map(|thread| thread.name.clone())
    }

    /// Lets a thread go on over so many pauses, or to its end.
    pub fn step(&self, number: usize, times: usize) {
        let mut state = self.lock();
        let Some(left) = times.checked_sub(1) else {
            return;
        };
        let thread = state.threads.get(number).filter(|thread| !thread.ended);
        let Some(turned) = thread.map(|thread| thread.turned.clone()) else {
            return;
        };
        (state.current, state.left) = (Some(number), left);
        turned.notify_one();
        while state.current.is_some() {
            let woken = self.shared.returned.wait_timeout(state, DEADLOCK);
            let (woken, patience) = woken.unwrap_or_else(PoisonError::into_inner);
            state = woken;
            if patience.timed_out() && state.current.is_some() {
                let name = state.threads[number].name.clone();
                drop(state);
                panic!("the thread '{name}' waits for a lock that another thread keeps");
            }
        }
    }

    /// Lets a thread go on to its end, and before it the one that it waits for. Returns whether it came to its end
    /// in good order; not if it waits for the disk.
    pub fn finish(&self, number: usize) -> bool {
        loop {
            self.step(number, usize::MAX);
            let Some((ended, panicked, waits)) = self.look(number) else {
                return false;
            };
            match waits {
                _ if ended => return !panicked,
                Some(WaitsFor::Thread(other)) if self.finish(other) => {}
                // One that has panicked has ended, too.
                Some(WaitsFor::Thread(other)) if self.has_ended(other) => {}
                _ => return false,
            }
        }
    }

    /// Whether a thread has ended, whether by a panic, and what it waits for.
    fn look(&self, number: usize) -> Option<(bool, bool, Option<WaitsFor>)> {
        let state = self.lock();
        let thread = state.threads.get(number)?;
        Some((thread.ended, thread.panicked, thread.waits))
    }

    fn has_ended(&self, number: usize) -> bool {
        self.look(number).is_none_or(|it| it.0)
    }

    /// Whether a thread of this name waits for the disk.
    pub fn waits_for_disk(&self, name: &str) -> bool {
        let state = self.lock();
        let mut threads = state.threads.iter().filter(|it| it.name == name);
        threads.any(|it| !it.ended && it.waits == Some(WaitsFor::Disk))
    }

    /// A thread pauses, because the disk does not answer.
    ///
    /// # Panics
    ///
    /// The simulation's own thread is the main thread of the server, which waits for no disk.
    pub fn wait_for_disk(&self) {
        let number = SELF.get();
        self.block(
            number.expect("the main thread must not wait for the disk"),
            WaitsFor::Disk,
        );
    }

    /// Pauses, however many pauses this thread may pass.
    fn block(&self, number: usize, waits: WaitsFor) {
        let mut state = self.lock();
        state.threads[number].waits = Some(waits);
        state.current = None;
        drop(state);
        self.shared.returned.notify_one();
        self.wait_for_turn(number);
        self.lock().threads[number].waits = None;
    }

    /// Waits until it is the turn of this thread.
    fn wait_for_turn(&self, number: usize) {
        let mut state = self.lock();
        let turned = state.threads[number].turned.clone();
        while state.current != Some(number) {
            let woken = turned.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn end(&self, number: usize, panicked: bool) {
        let mut state = self.lock();
        if let Some(thread) = state.threads.get_mut(number) {
            (thread.ended, thread.panicked) = (true, panicked);
        }
        state.current = None;
        self.shared.returned.notify_one();
    }
}

impl Machine for Simulated {
    fn now(&self) -> Now {
        let ms = self.lock().now_ms;
        Now {
            ms,
            clock: u32::try_from((ms / 1000) & u64::from(u32::MAX)).unwrap_or(0),
        }
    }

    fn uptime(&self) -> Duration {
        let mut state = self.lock();
        state.uptime += TICK;
        state.uptime
    }

    fn key_hasher(&self) -> SeedableRandomState {
        SeedableRandomState::with_seed(7, &HASH_SEED)
    }

    fn start(&self, name: &str, work: Work) -> io::Result<Box<dyn Running>> {
        let mut state = self.lock();
        let number = state.threads.len();
        state.threads.push(Thread {
            name: name.into(),
            turned: Arc::default(),
            ended: false,
            panicked: false,
            waits: None,
        });
        drop(state);
        let machine = self.clone();
        thread::Builder::new().name(name.into()).spawn(move || {
            SELF.set(Some(number));
            machine.wait_for_turn(number);
            let ended = catch_unwind(AssertUnwindSafe(work));
            machine.end(number, ended.is_err());
        })?;
        let machine = self.clone();
        Ok(Box::new(Handle { machine, number }))
    }

    fn sleep(&self, _: Duration) {
        // What the simulation's own thread does is one step.
        let Some(number) = SELF.get() else { return };
        let mut state = self.lock();
        if let Some(left) = state.left.checked_sub(1) {
            state.left = left;
            return;
        }
        state.current = None;
        drop(state);
        self.shared.returned.notify_one();
        self.wait_for_turn(number);
    }
}

/// A thread that the store has started.
#[derive(Debug)]
struct Handle {
    machine: Simulated,
    number: usize,
}

impl Running for Handle {
    fn join(self: Box<Self>) -> bool {
        let Handle { machine, number } = *self;
        let Some(own) = SELF.get() else {
            let is_well = machine.finish(number);
            assert!(
                machine.has_ended(number),
                "the main thread must not wait for the disk"
            );
            return is_well;
        };
        while !machine.has_ended(number) {
            machine.block(own, WaitsFor::Thread(number));
        }
        machine.look(number).is_some_and(|it| !it.1)
    }
}
