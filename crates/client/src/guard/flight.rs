//! A load that is under way, and those who wait for it: threads that block, and tasks.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// What a load came to; `None` when whoever did it gave up, by a panic or because its task was
/// dropped.
type Outcome<T> = Option<T>;

/// How somebody waits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Manner {
    Blocking,
    Awaiting,
}

struct State<T> {
    outcome: Option<Outcome<T>>,
    tasks: Vec<Waker>,
}

struct Flight<T> {
    state: Mutex<State<T>>,
    done: Condvar,
}

/// What a panic left behind is as good as before: nothing here is half done under a lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Clone> Flight<T> {
    fn end(&self, outcome: Outcome<T>) {
        let tasks = {
            let mut state = locked(&self.state);
            state.outcome = Some(outcome);
            std::mem::take(&mut state.tasks)
        };
        self.done.notify_all();
        tasks.into_iter().for_each(Waker::wake);
    }

    async fn outcome(&self, manner: Manner) -> Outcome<T> {
        poll_fn(|context| {
            let mut state = locked(&self.state);
            loop {
                if let Some(outcome) = &state.outcome {
                    return Poll::Ready(outcome.clone());
                }
                if manner == Manner::Awaiting {
                    state.tasks.push(context.waker().clone());
                    return Poll::Pending;
                }
                state = self
                    .done
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        })
        .await
    }
}

/// The loads that are under way, by key.
pub(super) struct Flights<T>(Mutex<HashMap<String, Arc<Flight<T>>>>);

impl<T: Clone> Flights<T> {
    pub(super) fn new() -> Self {
        Flights(Mutex::new(HashMap::new()))
    }

    /// The right to load a key, or else what another one's load of it came to.
    pub(super) async fn join(
        &self,
        key: &str,
        manner: Manner,
    ) -> Result<Leader<'_, T>, Outcome<T>> {
        let flight = {
            let mut flights = locked(&self.0);
            match flights.get(key) {
                Some(flight) => Arc::clone(flight),
                None => {
                    let flight = Arc::new(Flight {
                        state: Mutex::new(State {
                            outcome: None,
                            tasks: Vec::new(),
                        }),
                        done: Condvar::new(),
                    });
                    flights.insert(key.to_owned(), Arc::clone(&flight));
                    return Ok(Leader {
                        flights: self,
                        key: key.to_owned(),
                        flight,
                        outcome: None,
                    });
                }
            }
        };
        Err(flight.outcome(manner).await)
    }
}

/// The one who loads a key. When it is dropped, those who wait learn what it came to.
pub(super) struct Leader<'a, T: Clone> {
    flights: &'a Flights<T>,
    key: String,
    flight: Arc<Flight<T>>,
    outcome: Outcome<T>,
}

impl<T: Clone> Leader<'_, T> {
    pub(super) fn finish(mut self, outcome: T) {
        self.outcome = Some(outcome);
    }
}

impl<T: Clone> Drop for Leader<'_, T> {
    fn drop(&mut self) {
        // First out of the map: who comes now loads anew, and is not given what may be old.
        locked(&self.flights.0).remove(&self.key);
        self.flight.end(self.outcome.take());
    }
}
