//! A running load, and the tasks that wait for it. A blocking caller is a task of its thread.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

/// The result of a load; `None` when the loading thread panicked or the loading task was dropped.
type Outcome<T> = Option<T>;

/// A running load, and the waiting tasks.
struct Flight<T>(Mutex<State<T>>);

struct State<T> {
    outcome: Option<Outcome<T>>,
    tasks: Vec<Waker>,
}

/// Ignores poison: a panic leaves no change half done under a lock.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<T: Clone> Flight<T> {
    fn end(&self, outcome: Outcome<T>) {
        let tasks = {
            let mut state = locked(&self.0);
            state.outcome = Some(outcome);
            std::mem::take(&mut state.tasks)
        };
        tasks.into_iter().for_each(Waker::wake);
    }

    async fn outcome(&self) -> Outcome<T> {
        poll_fn(|context| {
            let mut state = locked(&self.0);
            match &state.outcome {
                Some(outcome) => Poll::Ready(outcome.clone()),
                None => {
                    state.tasks.push(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// The running loads, by key.
pub(super) struct Flights<T>(Mutex<HashMap<String, Arc<Flight<T>>>>);

impl<T: Clone> Flights<T> {
    pub(super) fn new() -> Self {
        Flights(Mutex::new(HashMap::new()))
    }

    /// The right to load a key, or else the result of another caller's load.
    pub(super) async fn join(&self, key: &str) -> Result<Leader<'_, T>, Outcome<T>> {
        let flight = {
            let mut flights = locked(&self.0);
            match flights.get(key) {
                Some(flight) => Arc::clone(flight),
                None => {
                    let flight = Arc::new(Flight(Mutex::new(State {
                        outcome: None,
                        tasks: Vec::new(),
                    })));
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
        Err(flight.outcome().await)
    }
}

/// The right to load a key. When it is dropped, all waiting callers get the result.
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
        // Removes the key from the map first, so that a later caller loads again and gets no old
        // value.
        locked(&self.flights.0).remove(&self.key);
        self.flight.end(self.outcome.take());
    }
}
