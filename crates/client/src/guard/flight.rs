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
        // The index of this caller's task: one that is polled again must not be added again.
        let mut index: Option<usize> = None;
        poll_fn(|context| {
            let mut state = locked(&self.0);
            if let Some(outcome) = &state.outcome {
                return Poll::Ready(outcome.clone());
            }
            match index.and_then(|index| state.tasks.get_mut(index)) {
                Some(task) => task.clone_from(context.waker()),
                None => {
                    index = Some(state.tasks.len());
                    state.tasks.push(context.waker().clone());
                }
            }
            Poll::Pending
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

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::task::{Context, Poll, Waker};

    use super::{Flights, locked};
    use crate::wire::wait;

    #[test]
    fn a_task_that_is_polled_often_waits_once() {
        let flights = Flights::new();
        let Ok(leader) = wait(flights.join("key")) else {
            panic!("nobody else loads");
        };
        let mut callers = [0, 1].map(|_| Box::pin(flights.join("key")));
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..100 {
            for caller in &mut callers {
                assert!(caller.as_mut().poll(&mut context).is_pending());
            }
        }
        assert_eq!(locked(&leader.flight.0).tasks.len(), callers.len());
        leader.finish(7);
        for caller in &mut callers {
            match caller.as_mut().poll(&mut context) {
                Poll::Ready(Err(outcome)) => assert_eq!(outcome, Some(7)),
                _ => panic!("the load has ended"),
            }
        }
    }
}
