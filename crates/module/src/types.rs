//! Filters: Bloom filters in the classic layout are RedisBloom's `MBbloom--` and cuckoo filters its
//! `MBbloomCF`, every version that it loads; Bloom filters in the blocked layout are `everbloom`, and
//! cuckoo filters with a chosen error rate `everblmCF`.

use std::ffi::c_int;

use everbloom_commands::format::header;
use everbloom_commands::format::value::{load, save, value_type};
use everbloom_commands::{CommandError, Filter, FilterKind, bf, cf};

use crate::command::write_context_of;
use crate::config;
use crate::info;
use crate::raw::context::{LogLevel, clients_decide, log_without_call};
use crate::raw::data_type::{DataType, TYPES};
use crate::raw::io::{Defragmenter, Digester, Loader, Rewriter, Saver};
use crate::stored::Stored;
use crate::windows;

/// How many bytes are a unit of work when they are freed: a page.
const EFFORT: u64 = 4096;

impl DataType for Stored {
    fn types() -> [(&'static str, c_int); TYPES] {
        FilterKind::ALL.map(|kind| {
            let known = value_type(kind);
            (known.name, known.version.cast_signed())
        })
    }

    fn number(&self) -> usize {
        let kind = self.filter().kind();
        FilterKind::ALL.iter().take_while(|it| **it != kind).count()
    }

    /// Filters of any size are loaded if there is memory: a file or a primary has accepted them.
    fn load(loader: &mut Loader, number: usize, version: u32) -> Option<Self> {
        let kind = *FilterKind::ALL.get(number)?;
        if kind.redisbloom_lacks() && redisbloom_must_follow() {
            loader
                .log("no filter that RedisBloom lacks is restored: bf-redisbloom-compatible is on");
            return None;
        }
        match load(kind, loader, version, u64::MAX) {
            Ok(filter) => {
                if let Err(error) = check_loaded(&filter) {
                    loader.log(&format!("the filter is not restored: {error}"));
                    return None;
                }
                let mut stored = Stored::new(filter);
                windows::list(&mut stored, || loader.place());
                stored.watch(true, || loader.place());
                Some(stored)
            }
            Err(error) => {
                let family = match kind {
                    FilterKind::Bloom(_) | FilterKind::Valkey => "Bloom",
                    FilterKind::Cuckoo | FilterKind::KeyedCuckoo => "cuckoo",
                };
                loader.log(&format!("no valid {family} filter: {error}"));
                None
            }
        }
    }

    fn save(&self, saver: &mut Saver) {
        let Ok(()) = save(self.filter(), saver);
    }

    fn rewrite(&self, rewriter: &mut Rewriter) {
        match self.filter() {
            Filter::Bloom(filter) => {
                let mut iterator = 0;
                while let Some((next, data)) = bf::dump::piece(filter, iterator) {
                    rewriter.emit("BF.LOADCHUNK", next, &data);
                    iterator = next;
                }
            }
            Filter::Cuckoo(filter) => {
                let mut position = 0;
                while let Some((next, data)) = cf::dump::piece(filter, position) {
                    rewriter.emit("CF.LOADCHUNK", next, &data);
                    position = next.unsigned_abs();
                }
            }
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<Filter>() + self.filter().memory_usage()
    }

    fn digest(&self, digester: &mut Digester) {
        digester.add(&match self.filter() {
            Filter::Bloom(filter) => header::encode(filter),
            Filter::Cuckoo(filter) => header::cuckoo::encode(&filter.parts()),
        });
        let mut offset = 0;
        while let Some(array) = self.filter().stream_chunk(offset, usize::MAX) {
            digester.add(&array);
            offset += array.len() as u64;
        }
        digester.end();
    }

    fn free_effort(&self) -> usize {
        let pages = self.filter().stream_len() / EFFORT;
        let blocks = self.filter().arrays().saturating_add(1);
        usize::try_from(pages).unwrap_or(usize::MAX).max(blocks)
    }

    /// RedisBloom has no copies: as a replica it would not make this one, and then build another
    /// filter from what is added to it.
    fn copy(&self) -> Option<Self> {
        if redisbloom_must_follow() {
            let line = "no filter is copied: bf-redisbloom-compatible is on";
            log_without_call(LogLevel::Warning, line);
            return None;
        }
        self.filter().try_clone().map(Stored::new)
    }

    fn defragment(&mut self, defragmenter: &mut Defragmenter) -> bool {
        let mut array = defragmenter.cursor();
        let mut done = true;
        while let Ok(index) = usize::try_from(array) {
            if index >= self.filter().arrays() {
                break;
            }
            // A cursor cannot be kept where the host gives one step only; that one is not timed.
            if array > defragmenter.cursor() && defragmenter.should_stop() {
                done = !defragmenter.stop_at(array);
                break;
            }
            let relocate = |bits| defragmenter.bytes(bits);
            self.relocate(index, relocate);
            array += 1;
        }
        info::defragmented(defragmenter.counts());
        done
    }
}

/// Refuses a filter that a client restores with very many layers or tables.
fn check_loaded(filter: &Filter) -> Result<(), CommandError> {
    write_context_of(!clients_decide()).check_loaded(filter.kind(), filter.arrays())
}

/// Whether a change by a client must be one that RedisBloom can follow. What a primary or a log
/// brings was accepted before.
fn redisbloom_must_follow() -> bool {
    config::redisbloom_compatible() && clients_decide()
}
