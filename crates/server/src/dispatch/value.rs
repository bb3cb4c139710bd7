//! Runs a command on the value of its one key, in locked shards.

use std::ops::ControlFlow;

use everbloom_commands::table::{ReadFn, WriteFn};
use everbloom_commands::{Answers, LazyContext, Run, Slot};
use everbloom_files::Value;
use everbloom_store::keyspace::{KeyRef, ValueSlot, View};

use super::sinks::Logged;
use crate::call::Call;
use crate::limits::ARRAYS_TOGETHER;
use crate::locked::Locked;
use crate::slot::{Stored, read_slot};

/// The requests that run before the time is checked: a value of very many layers or tables costs
/// each of them a step for each.
#[inline]
fn portion<'r, T: Stored>(run: &Run<'r>, value: Option<&T>) -> Run<'r> {
    let (requests, arrays) = (run.len(), value.map_or(1, T::arrays));
    let most = ARRAYS_TOGETHER.get();
    match requests > 1 && requests.saturating_mul(arrays) > most {
        true => run.up_to((most / arrays.max(1)).max(1)),
        false => *run,
    }
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
    let mut part = portion(run, value.and_then(T::of));
    let requests = part.len();
    function(context, &mut part, read_slot(value), answers);
    let done = requests - part.len();
    call.count_look_ups(value.is_some(), done.saturating_sub(part.refused()));
    run.take(done);
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
    key: KeyRef<'_>,
    answers: &mut dyn Answers,
) -> ControlFlow<()> {
    let (mut entry, record) = locked.entry_and_record(key);
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
            let mut part = portion(run, held);
            let requests = part.len();
            is_cut = requests < run.len();
            function(context, &mut part, slot, answers, &mut changes);
            run.take(requests - part.len());
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
    let _ = write(call, &mut context, function, run, locked, key, answers);
}
