//! Runs a command on the value of its one key, in locked shards.

use std::ops::ControlFlow;

use everbloom::{CuckooFilter, ScalableBloomFilter};
use everbloom_commands::table::{ReadFn, WriteFn};
use everbloom_commands::{Action, Answers, Context, Family, ReadSlot, Run, Slot};
use everbloom_files::{Text, Value};
use everbloom_store::journal::Record;
use everbloom_store::keyspace::{Found, Place, View};

use super::sinks::Noted;
use crate::config::Settings;
use crate::server::Server;
use crate::stats::WorkerStats;

/// A type of values that commands of this shape work on. To them, other values have the wrong type.
pub trait Stored: Sized {
    /// The value, if it is of this type.
    fn of(value: &Value) -> Option<&Self>;

    /// The same, for changes.
    fn of_mut(value: &mut Value) -> Option<&mut Self>;

    /// The value of a new key.
    fn into_value(self) -> Value;
}

/// A filter of one family.
macro_rules! stored_filter {
    ($($family:ty),*) => { $(
        impl Stored for $family {
            #[inline]
            fn of(value: &Value) -> Option<&Self> {
                match value {
                    Value::Filter(filter) => Family::of(filter),
                    Value::Text(_) => None,
                }
            }

            #[inline]
            fn of_mut(value: &mut Value) -> Option<&mut Self> {
                match value {
                    Value::Filter(filter) => Family::of_mut(filter),
                    Value::Text(_) => None,
                }
            }

            fn into_value(self) -> Value {
                Value::Filter(self.into())
            }
        }
    )* };
}

stored_filter!(ScalableBloomFilter, CuckooFilter);

impl Stored for Text {
    #[inline]
    fn of(value: &Value) -> Option<&Self> {
        match value {
            Value::Text(text) => Some(text),
            Value::Filter(_) => None,
        }
    }

    #[inline]
    fn of_mut(value: &mut Value) -> Option<&mut Self> {
        match value {
            Value::Text(text) => Some(text),
            Value::Filter(_) => None,
        }
    }

    fn into_value(self) -> Value {
        Value::Text(self)
    }
}

/// What the server provides to commands on values.
#[derive(Debug)]
pub struct Runner<'r> {
    pub server: &'r Server,
    pub settings: &'r Settings,
    pub stats: &'r WorkerStats,
    pub context: Context,
}

impl Runner<'_> {
    /// Runs requests on the key at a place. The view must hold it exclusively if they may write.
    /// They stop early, and no others may follow, when they have used up the allowed memory.
    #[inline]
    pub fn run<T: Stored>(
        &mut self,
        action: Action<T>,
        run: &mut Run<'_>,
        (view, place): (&mut View<'_>, &Place<'_>),
        record: &mut Record,
        answers: &mut dyn Answers,
    ) -> ControlFlow<()> {
        match action {
            Action::Read(function) => {
                self.read(function, run, (view, place), answers);
                ControlFlow::Continue(())
            }
            Action::Write(function) => self.write(function, run, (view, place), record, answers),
        }
    }

    fn read<T: Stored>(
        &self,
        function: ReadFn<T>,
        run: &mut Run<'_>,
        (view, place): (&View<'_>, &Place<'_>),
        answers: &mut dyn Answers,
    ) {
        let (value, requests) = (view.get_at(place).map(|entry| &entry.value), run.len());
        let slot = match value {
            None => ReadSlot::Missing,
            Some(value) => T::of(value).map_or(ReadSlot::OtherType, ReadSlot::Held),
        };
        function(&self.context, run, slot, answers);
        let counter = match value {
            Some(_) => &self.stats.keyspace_hits,
            None => &self.stats.keyspace_misses,
        };
        counter.add(requests.saturating_sub(run.refused()) as u64);
    }

    fn write<T: Stored>(
        &mut self,
        function: WriteFn<T>,
        run: &mut Run<'_>,
        (view, place): (&mut View<'_>, &Place<'_>),
        record: &mut Record,
        answers: &mut dyn Answers,
    ) -> ControlFlow<()> {
        view.remove_expired(place);
        note_expired(self.server, view, record);
        loop {
            let mut changes = Noted {
                record,
                db: place.db(),
                touched: false,
            };
            let context = &self.context;
            let mut call =
                |slot: &mut Slot<'_, T>| function(context, run, slot, answers, &mut changes);
            let ((), grown) = view.change_at(place, |found| match found {
                Found::Value(value) => {
                    call(&mut T::of_mut(value).map_or(Slot::OtherType, Slot::Held));
                }
                Found::Nothing(value) => {
                    let mut created = None;
                    call(&mut Slot::Vacant(&mut created));
                    *value = created.map(T::into_value);
                }
            });
            if changes.touched {
                view.touch_at(place);
            }
            if grown {
                // The next request, of this key or of another, gets what is left of it.
                self.context.free_bytes = self.server.free_memory(self.settings);
                if self.server.over_memory_limit(self.settings) {
                    return ControlFlow::Break(());
                }
            }
            if run.is_empty() {
                return ControlFlow::Continue(());
            }
        }
    }
}

/// Records the keys that were found expired, before the changes made to them.
pub fn note_expired(server: &Server, view: &mut View<'_>, record: &mut Record) {
    let expired = view.take_expired();
    if !expired.is_empty() {
        for (db, key) in &expired {
            record.expired(*db, key);
        }
        server.stats.expired(expired.len());
    }
}
