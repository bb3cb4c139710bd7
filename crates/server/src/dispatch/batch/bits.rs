//! Batches of SETBIT and GETBIT.

use std::ops::ControlFlow;

use everbloom_commands::Effect;
use everbloom_files::Value;
use everbloom_resp::encode::{encode_error, encode_integer};
use everbloom_store::journal::Record;
use everbloom_store::keyspace::Shard;

use super::alike::{Stretch, Words};
use super::done::Done;
use crate::dispatch::place::Place;
use crate::dispatch::turn::Turn;
use crate::native::bitmaps::single::{self, Answer, Refusal};
use crate::stats::WorkerStats;

/// Asks for the bits of the string that is there. The offset is the first word of a request.
#[inline]
pub fn ask<const N: usize>(place: &Place<'_>, shard: &Shard, requests: &[Words<'_, N>]) {
    if let Some(Value::Text(text)) = place.peek(shard) {
        let offsets = requests.iter().filter_map(|words| words.first());
        single::ask_ahead(text, offsets.copied());
    }
}

/// Writes the reply; returns 1 if it is an error.
#[inline]
fn answer(bit: Result<bool, Refusal>, stats: &WorkerStats, out: &mut Vec<u8>) -> u64 {
    match bit {
        Ok(bit) => encode_integer(bit.into(), out),
        Err(text) => {
            stats.count_error(text);
            encode_error(text, out);
        }
    }
    bit.is_err().into()
}

/// Reads the bits of a stretch.
pub fn get(turn: &mut Turn<'_>, at: Stretch<'_, '_, 1>, place: Place<'_>, shard: &Shard) -> Done {
    let limit = turn.settings.proto_max_bulk_len;
    let (stats, out) = (turn.stats, &mut *turn.out);
    let value = place.get(shard);
    let text = match value {
        None => Some(&[][..]),
        Some(Value::Text(text)) => Some(&**text),
        Some(Value::Filter(_)) => None,
    };
    let mut failed = 0;
    let looked = single::get_each(at.requests.as_flattened(), text, limit, |bit| {
        failed += answer(bit, stats, out);
    });
    Place::count_look_ups(value.is_some(), looked, stats);
    Done::all(at.requests, failed)
}

/// Sets the bits of a stretch. Where memory is limited, a string that has grown ends the batch: for
/// the next request there may be none left.
pub fn set<'a>(
    turn: &mut Turn<'_>,
    at: Stretch<'_, 'a, 2>,
    place: Place<'a>,
    shard: &mut Shard,
    record: &mut Record,
) -> Done {
    let limit = turn.settings.proto_max_bulk_len;
    let bounded = turn.settings.maxmemory > 0;
    let (stats, out) = (turn.stats, &mut *turn.out);
    place.remove_expired(turn.server, shard, record);
    let (mut failed, mut changed, mut ends) = (0, false, false);
    let emit = |one: Answer<'a>| {
        failed += answer(one.old, stats, out);
        if one.changed {
            changed = true;
            let [offset, bit] = one.words;
            let args = [b"SETBIT", place.key, offset, bit];
            record.effect(place.db, &Effect::Verbatim, &args);
        }
        ends = one.grown && bounded;
        match ends {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    let requests = place.change_text(turn.server, shard, |text| {
        single::set_each(at.requests, text, limit, emit)
    });
    if changed {
        shard.touch(place.db, place.key);
    }
    Done {
        requests,
        failed,
        ends,
    }
}
