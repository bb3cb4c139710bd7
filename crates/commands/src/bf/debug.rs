//! BF.DEBUG: lines of text about a filter and each of its layers. The line of a blocked layer ends
//! with the number of bits in a block; RedisBloom's lines do not have that.

use crate::context::LazyContext;
use crate::format::g;
use crate::run::{Answers, Run};
use crate::slot::ReadSlot;
use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom::sizing::BlockedSize;
use everbloom_resp::Reply;

pub(crate) const DEBUG: &str = "bf.debug";

/// `BF.DEBUG key`
pub fn debug(
    _: &LazyContext<'_>,
    run: &mut Run<'_>,
    slot: ReadSlot<'_>,
    answers: &mut dyn Answers,
) {
    let request = run.next_args(DEBUG).exactly();
    answers.answer(request.and_then(|[_]| slot.required()).map(describe))
}

fn describe(filter: &LayeredFilter) -> Reply {
    let width = filter.options().hash_width().bits();
    let layers = filter.layers().iter().map(|layer| {
        let line = format!(
            "bytes:{} bits:{} hashes:{} hashwidth:{} capacity:{} size:{} ratio:{}",
            layer.bytes(),
            layer.bits(),
            layer.hashes(),
            width,
            layer.capacity(),
            layer.len(),
            g::format(layer.error_rate()),
        );
        match layer.layout() {
            Layout::Classic => line,
            Layout::Blocked => format!("{line} blockbits:{}", BlockedSize::BLOCK_BITS),
        }
    });
    let lines = std::iter::once(format!("size:{}", filter.len())).chain(layers);
    Reply::Array(lines.map(Reply::bulk).collect())
}
