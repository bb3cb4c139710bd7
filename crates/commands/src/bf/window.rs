//! The option WINDOW of BF.RESERVE and BF.INSERT.

use everbloom::host::MAX_GENERATIONS;
use everbloom::{Span, WindowedBloomFilter};

use crate::args::Args;
use crate::error::CommandError;
use crate::number;

/// The longest window, in seconds: over a century.
const MAX_SECONDS: u64 = 1 << 32;

/// `SECONDS t | ITEMS [GENERATIONS g]`, which follow the word WINDOW. A tick is a millisecond.
pub(super) fn parse(args: &mut Args<'_>) -> Result<(Span, u32), CommandError> {
    let word = args.next_optional().ok_or(CommandError::Window)?;
    let span = if word.eq_ignore_ascii_case(b"ITEMS") {
        Span::Items
    } else if word.eq_ignore_ascii_case(b"SECONDS") {
        let seconds = next_number(args).filter(|seconds| (1..=MAX_SECONDS).contains(seconds));
        Span::Ticks(seconds.ok_or(CommandError::Window)? * 1000)
    } else {
        return Err(CommandError::Window);
    };
    let mut behind = args.clone();
    let next = behind.next_optional();
    if !next.is_some_and(|word| word.eq_ignore_ascii_case(b"GENERATIONS")) {
        return Ok((span, WindowedBloomFilter::GENERATIONS));
    }
    *args = behind;
    let generations = next_number(args).and_then(|number| u32::try_from(number).ok());
    let generations = generations.filter(|number| (1..=MAX_GENERATIONS).contains(number));
    Ok((span, generations.ok_or(CommandError::Window)?))
}

pub(super) fn next_number(args: &mut Args<'_>) -> Option<u64> {
    let number = args.next_optional().and_then(number::integer)?;
    u64::try_from(number).ok()
}
