//! What the flags mean together, checked.

use std::time::Duration;

use crate::client::{Target, parse_url};
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

/// The number of items added to a single key before the measured part when no flag states it.
const FILL: u64 = 100_000;

impl Setup {
    pub(super) fn new(args: &Args) -> Result<Self, Failure> {
        let (host, port) = match &args.url {
            Some(url) => parse_url(url).map_err(Failure::Usage)?,
            None => (args.host.clone(), args.port),
        };
        let target = Target {
            host,
            port,
            protocol: everbloom_resp::Protocol::Resp2,
            credentials: args.login.credentials(),
        };
        let verb = args.command;
        let keys = keys(args)?;
        let usual = match keys.count() {
            _ if !verb.probes() => 0,
            1 => FILL,
            count => count,
        };
        let present = args.filled.or(args.fill).unwrap_or(usual);
        let (hit_share, limit) = (hit_share(args, present)?, limit(args)?);
        let reserve = args.reserve.clone();
        let reserve = reserve.unwrap_or_else(|| Reservation::usual(keys.several()));
        let bitmap = if verb.is_bitmap() {
            Bitmap::new(reserve.capacity, reserve.error_rate).ok_or_else(|| {
                let text = "--reserve: a Redis string has not enough bits for such a filter";
                Failure::Usage(text.to_owned())
            })?
        } else {
            // Filters may be larger than any bitmap, so this does not check the size.
            Bitmap::default()
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
                filling: false,
            },
            reserve,
            fill: (args.filled.is_none() && verb != Verb::Echo).then_some(present),
            limit,
            threads: args.threads.min(args.clients),
            quiet: args.quiet,
        })
    }
}

fn keys(args: &Args) -> Result<Keys, Failure> {
    let keys = Keys::new(&args.key, args.keys as u64);
    let wrong = if !keys.several() {
        None
    } else if !args.command.takes_keys() {
        Some("--keys goes with the commands add, exists, setbit and getbit")
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
