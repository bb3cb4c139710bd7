//! Runs a command on the value of its one key, in locked shards.

use std::ops::ControlFlow;

use everbloom_commands::table::{ReadFn, WriteFn};
use everbloom_commands::{Answers, LazyContext, Run, Slot};
use everbloom_files::Value;
use everbloom_store::keyspace::{KeyRef, Place, ValueSlot, View};

use super::sinks::Logged;
use crate::call::Call;
use crate::limits::ARRAYS_TOGETHER;
use crate::locked::Locked;
use crate::slot::{Stored, read_slot};

/// How many requests run before the time is checked, if not all of them: a value of very many
/// layers or tables costs each of them a step for each.
#[inline]
fn portion<T: Stored>(run: &Run<'_>, value: Option<&T>) -> Option<usize> {
    // Most runs are of one request: these look at nothing.
    if run.len() <= 1 {
        return None;
    }
    let (arrays, most) = (value?.arrays(), ARRAYS_TOGETHER.get());
    let is_long = run.len().saturating_mul(arrays) > most;
    is_long.then(|| (most / arrays.max(1)).max(1))
}

/// Takes requests off the front of a run as a run of their own, and runs that.
#[cold]
fn run_part<'r>(run: &mut Run<'r>, requests: usize, work: impl FnOnce(&mut Run<'r>)) {
    let mut part = run.up_to(requests);
    let before = part.len();
    work(&mut part);
    run.take(before - part.len());
}

/// Runs requests that read the value of one key, some of them if it has very many layers.
#[inline]
pub fn read<T: Stored>(
    call: &Call<'_>,
    context: &LazyContext<'_>,
    function: ReadFn<T>,
    run: &mut Run<'_>,
    value: Option<&Value>,
    answers: &mut dyn Answers,
) {
    let slot = read_slot(value);
    let mut read = |run: &mut Run<'_>| {
        let requests = run.len();
        function(context, run, slot, answers);
        let done = requests - run.len();
        call.count_look_ups(value.is_some(), done.saturating_sub(run.refused()));
    };
    match portion(run, value.and_then(T::of)) {
        None => read(run),
        Some(requests) => run_part(run, requests, read),
    }
}

/// The same for requests that run alone, on a key of this view.
#[inline]
pub fn read_alone<T: Stored>(
    call: &Call<'_>,
    function: ReadFn<T>,
    run: &mut Run<'_>,
    view: View<'_>,
    key: KeyRef<'_>,
    answers: &mut dyn Answers,
) {
    let find = || call.context();
    let value = view.get(key).map(|entry| &entry.value);
    read(
        call,
        &LazyContext::new(&find),
        function,
        run,
        value,
        answers,
    );
}

/// Runs requests that change the value of one key. They stop early, and no others may follow, when
/// they have used up the allowed memory, or the value has very many layers.
pub fn write<T: Stored>(
    call: &Call<'_>,
    context: &mut LazyContext<'_>,
    function: WriteFn<T>,
    run: &mut Run<'_>,
    locked: &mut Locked<'_>,
    (key, place): (KeyRef<'_>, Place),
    answers: &mut dyn Answers,
) -> ControlFlow<()> {
    let (mut entry, record) = locked.entry_and_record(key, place);
    loop {
        let mut changes = Logged {
            record: &mut *record,
            db: key.db,
            touched: false,
        };
        let mut is_cut = false;
        let mut run_on = |slot: &mut Slot<'_, T>| {
            let held = match slot {
                Slot::Held(value) => Some(&**value),
                Slot::Vacant(_) | Slot::OtherType => None,
            };
            let part = portion(run, held);
            let mut write = |run: &mut Run<'_>| function(context, run, slot, answers, &mut changes);
            match part {
                None => write(run),
                Some(requests) => {
                    is_cut = true;
                    run_part(run, requests, write);
                }
            }
        };
        let ((), grown) = entry.change(|found| match found {
            ValueSlot::Held(value) => {
                run_on(&mut T::of_mut(value).map_or(Slot::OtherType, Slot::Held));
            }
            ValueSlot::Vacant(value) => {
                let mut created = None;
                run_on(&mut Slot::Vacant(&mut created));
                *value = created.map(T::into_value);
            }
        });
        if changes.touched {
            entry.touch();
        }
        if grown {
            // The next request, of this key or of another, gets what is left of it.
            context.forget();
            if call.server.over_memory_limit(call.settings) {
                return ControlFlow::Break(());
            }
        }
        if run.is_empty() {
            return ControlFlow::Continue(());
        }
        if is_cut {
            return ControlFlow::Break(());
        }
    }
}

/// The same for requests that run alone.
#[inline]
pub fn write_alone<T: Stored>(
    call: &Call<'_>,
    function: WriteFn<T>,
    run: &mut Run<'_>,
    locked: &mut Locked<'_>,
    key: KeyRef<'_>,
    answers: &mut dyn Answers,
) {
    let find = || call.context();
    let mut context = LazyContext::new(&find);
    let target = (key, Place::default());
    let _ = write(call, &mut context, function, run, locked, target, answers);
}
