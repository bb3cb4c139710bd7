//! What the flags mean together, checked.

use std::time::Duration;

use crate::client::{Place, Target};
use crate::failure::Failure;

use super::args::Args;
use super::items::Bitmap;
use super::keys::Keys;
use super::load::Limit;
use super::requests::{Recipe, Verb};
use super::target::Reservation;

/// The checked flags, and what follows from them.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) target: Target,
    pub(super) recipe: Recipe,
    pub(super) reserve: Reservation,
    /// The number of items to add first. `None` when the key is used as it is.
    pub(super) fill: Option<u64>,
    pub(super) limit: Limit,
    pub(super) threads: usize,
    pub(super) quiet: bool,
}

/// No limit on requests or time.
pub(super) const NO_LIMIT: Limit = Limit {
    requests: u64::MAX,
    time: Duration::MAX,
};

/// The number of items added to a single key before the measured part when no flag states it, and
/// when the measured part deletes them.
const FILL: u64 = 100_000;
const DELETED: u64 = 1_000_000;

impl Setup {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let target = match &args.url {
            Some(url) => Target::of(url, &args.login)?,
            None => {
                let (host, port, tls) = (args.host.clone(), args.port, false);
                let place = Place::Tcp { host, port, tls };
                Target::new(place, args.login.credentials(), &args.login.tls)?
            }
        };
        let verb = args.command;
        let keys = keys(args)?;
        let usual = match keys.count() {
            _ if verb.deletes() => DELETED,
            _ if !verb.probes() => 0,
            1 => FILL,
            count => count,
        };
        let present = args.filled.or(args.fill).unwrap_or(usual);
        let (hit_share, mut limit) = (hit_share(args, present)?, limit(args)?);
        let threads = args.threads.min(args.clients);
        let deleted = present / threads as u64;
        if verb.deletes() {
            // Each item once, and as many by each thread.
            let most = limit.requests.min(deleted * threads as u64);
            limit.requests = most - most % threads as u64;
        }
        let reserve = reservation(args, keys.several())?;
        let bitmap = match reserve.error_rate {
            Some(error_rate) if verb.is_bitmap() => Bitmap::new(reserve.capacity, error_rate)
                .ok_or_else(|| {
                    let text = "--reserve: a Redis string has not enough bits for such a filter";
                    Failure::Usage(text.to_owned())
                })?,
            // Filters may be larger than any bitmap, so this does not check the size.
            _ => Bitmap::default(),
        };
        Ok(Self {
            target,
            recipe: Recipe {
                verb,
                keys,
                items: if verb.takes_several() {
                    args.items_per_command
                } else {
                    1
                },
                bitmap,
                seed: args.seed,
                present,
                hit_share,
                deleted,
                filling: false,
            },
            reserve,
            fill: (args.filled.is_none() && verb != Verb::Echo).then_some(present),
            limit,
            threads,
            quiet: args.quiet,
        })
    }
}

/// The filter to make, with an error rate if the command's filters have one.
fn reservation(args: &Args, several_keys: bool) -> Result<Reservation, Failure> {
    let cuckoo = args.command.is_cuckoo();
    let Some(reserve) = args.reserve.clone() else {
        return Ok(Reservation::usual(several_keys, cuckoo));
    };
    let wrong = match (cuckoo, reserve.error_rate) {
        (true, Some(_)) => "--reserve: a cuckoo filter takes no error rate",
        (false, None) => "--reserve: expected an error rate, too, as in 1000000,0.01",
        _ => return Ok(reserve),
    };
    Err(Failure::Usage(wrong.to_owned()))
}

fn keys(args: &Args) -> Result<Keys, Failure> {
    let keys = Keys::new(&args.key, args.keys as u64);
    let wrong = if !keys.several() {
        None
    } else if !args.command.takes_keys() {
        Some("--keys goes with the commands whose requests have one item, as add and exists")
    } else if args.reserve.is_some() && !args.command.is_bitmap() {
        Some("--reserve makes one filter: with --keys, the first add makes each filter")
    } else {
        None
    };
    wrong.map_or(Ok(keys), |text| Err(Failure::Usage(text.to_owned())))
}

fn hit_share(args: &Args, present: u64) -> Result<f64, Failure> {
    let usual = if args.command.probes() && present > 0 {
        0.5
    } else {
        0.0
    };
    if args.command.deletes() {
        let text = match args.hit_share {
            Some(_) => "--hit-share: cf-del deletes what was added",
            None if present == 0 => "cf-del deletes what was added: give --fill",
            None => return Ok(1.0),
        };
        return Err(Failure::Usage(text.to_owned()));
    }
    let share = args.hit_share.unwrap_or(usual);
    if share > 0.0 && present == 0 {
        let text = "--hit-share needs items that were added: give --fill";
        return Err(Failure::Usage(text.to_owned()));
    }
    Ok(share)
}

fn limit(args: &Args) -> Result<Limit, Failure> {
    let seconds = match (args.seconds, args.requests) {
        (None, None) => Some(5.0),
        (seconds, _) => seconds,
    };
    let time = match seconds.map(Duration::try_from_secs_f64) {
        Some(Ok(time)) => time,
        Some(Err(_)) => {
            return Err(Failure::Usage("--seconds is not a time".to_owned()));
        }
        None => NO_LIMIT.time,
    };
    Ok(Limit {
        requests: args.requests.unwrap_or(NO_LIMIT.requests),
        time,
    })
}
