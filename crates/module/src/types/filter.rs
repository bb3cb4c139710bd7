//! Filters: in the classic layout RedisBloom's `MBbloom--`, every version that it loads, and in the
//! blocked layout `everbloom`.

use std::ffi::{CStr, c_int};

use everbloom::redisbloom::Check;
use everbloom::{Layout, ScalableBloomFilter};
use everbloom_commands::bf::dump::piece;
use everbloom_commands::format::header;
use everbloom_commands::format::value::{load, save, value_type};

use crate::config;
use crate::info::{self, Counted};
use crate::raw::context::{LogLevel, clients_decide, log_without_call};
use crate::raw::data_type::{DataType, Registration};
use crate::raw::io::{Defragmenter, Digester, Loader, Rewriter, Saver};

/// A filter of one layout that a key holds, and its part of what INFO counts.
#[derive(Debug)]
pub(crate) struct Filter<const BLOCKED: bool> {
    filter: ScalableBloomFilter,
    counted: Counted,
}

/// How many bytes are a unit of work when they are freed: a page.
const EFFORT: u64 = 4096;

impl<const BLOCKED: bool> Filter<BLOCKED> {
    const LAYOUT: Layout = if BLOCKED {
        Layout::Blocked
    } else {
        Layout::Classic
    };

    pub(crate) fn new(filter: ScalableBloomFilter) -> Self {
        let counted = Counted::new(&filter);
        Filter { filter, counted }
    }

    /// The filter, to read it.
    pub(crate) fn filter(&self) -> &ScalableBloomFilter {
        &self.filter
    }

    /// Changes the filter.
    pub(crate) fn change<R>(&mut self, work: impl FnOnce(&mut ScalableBloomFilter) -> R) -> R {
        let result = work(&mut self.filter);
        self.counted.update(&self.filter);
        result
    }
}

impl<const BLOCKED: bool> DataType for Filter<BLOCKED> {
    const NAME: &'static CStr = if BLOCKED { c"everbloom" } else { c"MBbloom--" };
    const VERSION: c_int = value_type(Self::LAYOUT).version.cast_signed();

    fn registration() -> &'static Registration {
        static REGISTRATIONS: [Registration; 2] = [Registration::new(), Registration::new()];
        let [classic, blocked] = &REGISTRATIONS;
        if BLOCKED { blocked } else { classic }
    }

    /// Any size that there is memory for: what a file or a primary has is not for us to refuse.
    fn load(loader: &mut Loader<'_>, version: u32) -> Option<Self> {
        if BLOCKED && redisbloom_must_follow() {
            loader.log("no blocked filter is restored: bf-redisbloom-compatible is on");
            return None;
        }
        match load(Self::LAYOUT, loader, version, u64::MAX) {
            Ok(filter) => Some(Filter::new(filter)),
            Err(error) => {
                loader.log(&format!("no valid Bloom filter: {error}"));
                None
            }
        }
    }

    fn save(&self, saver: &mut Saver<'_>) {
        let Ok(()) = save(&self.filter, saver);
    }

    fn rewrite(&self, rewriter: &mut Rewriter<'_>) {
        let mut iterator = 0;
        loop {
            let (next, data) = piece(&self.filter, iterator);
            if next == 0 {
                return;
            }
            rewriter.emit("BF.LOADCHUNK", next, &data);
            iterator = next;
        }
    }

    fn memory(&self) -> usize {
        size_of::<Self>() - size_of::<ScalableBloomFilter>() + self.filter.memory_usage()
    }

    fn digest(&self, digester: &mut Digester<'_>) {
        digester.add(&header::encode(&self.filter));
        for layer in self.filter.layers() {
            digester.add(&layer.as_bytes());
        }
        digester.end();
    }

    fn free_effort(&self) -> usize {
        let pages = self.filter.stream_len() / EFFORT;
        let blocks = self.filter.layers().len().saturating_add(1);
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
        let parts = self.filter.parts();
        let mut copy =
            ScalableBloomFilter::from_parts_checked(&parts, u64::MAX, Check::RdbValue).ok()?;
        let mut offset = 0;
        while let Some(chunk) = self.filter.stream_chunk(offset, usize::MAX) {
            copy.load_chunk(offset, &chunk).ok()?;
            offset += chunk.len() as u64;
        }
        Some(Filter::new(copy))
    }

    fn defragment(&mut self, defragmenter: &mut Defragmenter<'_>) -> bool {
        let mut layer = defragmenter.cursor();
        let mut done = true;
        while let Ok(index) = usize::try_from(layer) {
            if index >= self.filter.layers().len() {
                break;
            }
            // A cursor cannot be kept where the host gives one step only; that one is not timed.
            if layer > defragmenter.cursor() && defragmenter.should_stop() {
                done = !defragmenter.stop_at(layer);
                break;
            }
            let relocate = |bits| defragmenter.bytes(bits);
            self.filter.relocate_bits(index, relocate);
            layer += 1;
        }
        info::defragmented(defragmenter.counts());
        done
    }
}

/// Whether a change by a client must be one that RedisBloom can follow. What a primary or a log
/// brings was accepted before.
fn redisbloom_must_follow() -> bool {
    config::redisbloom_compatible() && clients_decide()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_types_are_those_of_the_format() {
        let name = |layout| value_type(layout).name;
        assert_eq!(Filter::<false>::NAME.to_str(), Ok(name(Layout::Classic)));
        assert_eq!(Filter::<true>::NAME.to_str(), Ok(name(Layout::Blocked)));
    }
}
