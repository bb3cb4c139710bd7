//! What is done with many items, a chunk at a time.

use std::mem;

use everbloom::{InsertError, Item};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::error;
use crate::filter::{Filter, Lookup};
use crate::item::Value;
use crate::raw;
use crate::shared::{Access, Detached};

/// Items of a chunk: enough for the filter to prefetch all the time, and few enough to stay in the
/// first cache.
pub(crate) const CHUNK: usize = raw::TEXTS;

/// After how many items a long task lets the interpreter handle signals, such as that of Ctrl-C.
pub(crate) const SIGNALS: usize = 1 << 21;

/// What is done with each item.
pub(crate) trait Task<F>: Copy + Send + Sync {
    /// Whether there is an answer for each item.
    const ANSWERS: bool;
    /// Whether it adds the items, so that all of them are checked first.
    const ADDS: bool;

    /// Whether nothing is left to do with an item that comes again, but to answer.
    fn once_is_enough(self, filter: &F) -> bool;

    /// The answer for an item that comes again, of the answer for the first one.
    fn answer_again(answer: &mut u8) -> u8;

    fn run(
        self,
        filter: impl Access<F>,
        items: &[impl Item],
        answers: &mut Vec<u8>,
    ) -> Result<(), InsertError>;
}

/// Tell whether it is there, at this time.
#[derive(Clone, Copy)]
pub(crate) struct Contains(pub(crate) u64);

impl<F: Lookup> Task<F> for Contains {
    const ANSWERS: bool = true;
    const ADDS: bool = false;

    fn once_is_enough(self, _filter: &F) -> bool {
        true
    }

    fn answer_again(answer: &mut u8) -> u8 {
        *answer
    }

    fn run(
        self,
        filter: impl Access<F>,
        items: &[impl Item],
        answers: &mut Vec<u8>,
    ) -> Result<(), InsertError> {
        let answer = |found: bool| answers.push(found.into());
        filter.read(|filter| filter.contains_each(items, self.0, answer));
        Ok(())
    }
}

/// Insert it at this time, and tell whether it is new if there are answers.
#[derive(Clone, Copy)]
pub(crate) struct Insert<const ANSWERS: bool>(pub(crate) u64);

impl<F: Filter, const ANSWERS: bool> Task<F> for Insert<ANSWERS> {
    const ANSWERS: bool = ANSWERS;
    const ADDS: bool = true;

    fn once_is_enough(self, filter: &F) -> bool {
        filter.is_set()
    }

    /// The first one takes the answer that it is new.
    fn answer_again(answer: &mut u8) -> u8 {
        mem::take(answer)
    }

    fn run(
        self,
        filter: impl Access<F>,
        items: &[impl Item],
        answers: &mut Vec<u8>,
    ) -> Result<(), InsertError> {
        let answer = |new: bool| {
            if ANSWERS {
                answers.push(new.into());
            }
        };
        filter.write(|filter| filter.insert_each(items, self.0, answer))
    }
}

/// Why a task stopped before the last item.
pub(crate) enum Stop {
    Insert(InsertError),
    /// This element is no text.
    NoText(usize),
    /// An item is not where it should be.
    Damaged,
    /// The handler of a signal has raised it.
    Raised(PyErr),
}

impl Stop {
    /// The exception for it; `items` are what the elements come from, and `row_of` says in which
    /// row an element is.
    pub(crate) fn error(self, items: &Bound<'_, PyAny>, row_of: impl Fn(usize) -> usize) -> PyErr {
        match self {
            Stop::Insert(error) => error::insert(error),
            // Python says what is wrong with it.
            Stop::NoText(element) => {
                let object = items.get_item(element);
                let item = object.and_then(|object| Value::of(object.as_borrowed()).map(drop));
                let error = item
                    .err()
                    .unwrap_or_else(|| PyValueError::new_err("this is no text"));
                error::in_row(items.py(), error, row_of(element))
            }
            Stop::Raised(error) => error,
            Stop::Damaged => PyValueError::new_err("the column's memory contradicts its type"),
        }
    }
}

/// Lets the interpreter handle signals, for a thread that has not got it.
pub(crate) fn handle_signals() -> Result<(), Stop> {
    Python::attach(|py| py.check_signals()).map_err(Stop::Raised)
}

/// Does a task with the items, without the interpreter.
pub(crate) fn each<F, I: Item>(
    shared: Detached<'_, F>,
    mut items: impl Iterator<Item = Option<I>>,
    task: impl Task<F>,
    answers: &mut Vec<u8>,
) -> Result<(), Stop> {
    let mut chunk = Vec::with_capacity(CHUNK);
    let mut done = 0;
    loop {
        done += chunk.len();
        if done >= SIGNALS {
            done = 0;
            handle_signals()?;
        }
        chunk.clear();
        for item in items.by_ref().take(CHUNK) {
            chunk.push(item.ok_or(Stop::Damaged)?);
        }
        if chunk.is_empty() {
            return Ok(());
        }
        task.run(shared, &chunk, answers).map_err(Stop::Insert)?;
    }
}
