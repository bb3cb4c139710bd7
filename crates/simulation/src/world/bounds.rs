//! No command takes more than its bound of work while others wait.

use std::sync::LazyLock;

use everbloom::host::Limit;
use everbloom_commands::Filter;
use everbloom_files::Value as Stored;
use everbloom_server::internals::LIMITS;

use super::{Verdict, World};
use crate::op::Words;
use crate::work::Work;

/// From this many bytes on, work is left to another thread.
static WORK_BYTES: LazyLock<&Limit> = LazyLock::new(|| limit_named("bytes of work"));

/// Longer changes copy the page that a reader needs.
static NOTED_BYTES: LazyLock<&Limit> =
    LazyLock::new(|| named(&everbloom::limits::ALL, "change that is noted"));

/// What a filter that is read takes for an item: its hashes, and the bytes that change.
const ITEM_BYTES: usize = 4 << 10;

/// The same if each of the changes copies its page of 64 KiB.
const COPIED_ITEM_BYTES: usize = 2 << 20;

/// A limit of the server.
pub(super) fn limit_named(name: &str) -> &'static Limit {
    named(&LIMITS, name)
}

fn named(limits: &[&'static Limit], name: &str) -> &'static Limit {
    let found = limits.iter().find(|limit| limit.name() == name);
    found.expect("a limit of this name")
}

/// Bytes of the newest layer of a filter, and of all, with those that a window has dropped.
fn sizes(value: &Stored) -> (usize, usize) {
    match value {
        Stored::Filter(Filter::Bloom(filter)) => {
            let newest = filter.layers().last();
            let newest = newest.map_or(0, |layer| layer.bytes() as usize);
            (
                newest,
                (filter.stream_start() + filter.stream_len()) as usize,
            )
        }
        _ => (0, value.memory()),
    }
}

fn name_of(request: &Words) -> String {
    String::from_utf8_lossy(&request[0]).into_owned()
}

impl World {
    /// What bounds the work of a request that is about to run, if anything does.
    pub(super) fn work_before(&self, request: &Words) -> Option<Work> {
        let name = name_of(request);
        Work::default().bound(&name)?;
        // Who finds no room removes what has expired of other keys, and makes filters without copies.
        if self.instance().server.config.snapshot().maxmemory > 0 {
            return None;
        }
        let keys = match name.as_str() {
            "BF.MERGE" | "CF.MERGE" | "BF.SHRINK" => &request[1..],
            _ => &request[1..2],
        };
        let size = |key: &Vec<u8>| self.instance().look(key, |value| value.memory());
        Some(Work {
            request: request.iter().map(Vec::len).sum(),
            words: request.len(),
            read: keys.iter().filter_map(size).sum(),
            grown: self
                .instance()
                .look(&request[1], sizes)
                .map_or(0, |it| it.1),
            newest: 0,
            limit: WORK_BYTES.get(),
            item: match NOTED_BYTES.get() == NOTED_BYTES.ordinary() {
                true => ITEM_BYTES,
                false => COPIED_ITEM_BYTES,
            },
        })
    }

    /// Compares what a request has taken with its bound.
    pub(super) fn check_work(&self, request: &Words, before: Work, taken: usize) -> Verdict {
        let now = self.instance().look(&request[1], sizes);
        let (newest, all) = now.unwrap_or_default();
        let work = Work {
            // A window counts what it drops from 0 again at a maximum, which a forged header comes to.
            grown: all.checked_sub(before.grown).unwrap_or(all),
            newest,
            ..before
        };
        let name = name_of(request);
        // The changes that wait for the log may move to a buffer of twice the length.
        let waiting = self.instance().server.store.journal.backlog() as usize;
        match work.bound(&name).map(|bound| bound + 2 * waiting) {
            Some(bound) if taken > bound => Err(format!(
                "{name} takes {taken} bytes, and {bound} are its bound: {work:?}"
            )),
            _ => Ok(()),
        }
    }
}
