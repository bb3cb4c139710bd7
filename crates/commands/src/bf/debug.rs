//! BF.DEBUG: every layer of a filter, in lines of text. Those of the blocked layout say at their
//! end how many bits a block has, which RedisBloom's lines do not.

use super::answer;
use crate::args::Args;
use crate::context::Context;
use crate::error::CommandError;
use crate::format::g;
use crate::slot::ReadSlot;
use everbloom::sizing::blocked::BLOCK_BITS;
use everbloom::{Layout, ScalableBloomFilter};
use everbloom_resp::Reply;

pub(crate) const DEBUG: &str = "bf.debug";

/// `BF.DEBUG key`
pub fn debug(_: &Context, args: &[&[u8]], slot: ReadSlot<'_>) -> Reply {
    let parsed = parse(Args::new(DEBUG, args));
    answer(parsed.and_then(|()| slot.required()).map(describe))
}

fn parse(mut args: Args<'_>) -> Result<(), CommandError> {
    args.next_bytes()?;
    args.finish()
}

fn describe(filter: &ScalableBloomFilter) -> Reply {
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
            Layout::Blocked => format!("{line} blockbits:{BLOCK_BITS}"),
        }
    });
    let lines = std::iter::once(format!("size:{}", filter.len())).chain(layers);
    Reply::Array(lines.map(Reply::bulk).collect())
}
