//! The flags, and what they mean together.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail, ensure};

use super::connections::Limit;
use super::items::Bitmap;
use super::keys::Keys;
use super::requests::{Recipe, Verb};
use super::reservation::{DEFAULT_KEY, Reservation};
use super::stream::Target;

pub const USAGE: &str = "\
Usage: everbloom-benches load --command COMMAND [OPTION...]

  echo, add, exists, madd, mexists, setbit, getbit, cf-add, cf-exists, cf-insert or cf-mexists; a
  request of setbit or getbit is one item, its k SETBIT or GETBIT in a pipeline. Every reply is
  checked. Latency is that of a batch: from the first byte of --pipeline requests to the last byte
  of their replies.

  --port N             the server on 127.0.0.1 [default: 6379]
  --tls-port N         the same over TLS; --cacert FILE has the authority to trust
  --unix PATH          its Unix socket
  --clients N          connections [default: 50]
  --pipeline N         requests that a connection sends before it waits [default: 1]
  --rate N             requests a second by a schedule that no answer changes, and latency from the
                       moment that each was due; without it, all connections are always busy
  --server-process N   also prints the processor time that this process takes for a request
  --requests N, --seconds S
                       when to stop [default: 5 seconds]
  --reserve CAPACITY[,ERROR][,WORD...]
                       the filter to make [default: 1000000,0.01; 4000000 for a cuckoo filter;
                       100,0.01 for each of several bitmaps]
  --hit-share SHARE    of the items sent, those that were added before [default: 0.5 for probes]
  --fill N             items to add first [default: 100000 for probes of one key]
  --filled N           use the keys as a run with --keep and --fill N left them
  --key KEY            any but the default must not exist, unless --filled is given
  --keys N             spread the items over KEY:0, KEY:1 and so on
  --keep               leave the keys on the server";

/// Items of one BF.MADD, BF.MEXISTS, CF.INSERT or CF.MEXISTS.
const ITEMS_PER_REQUEST: usize = 100;

/// The number of items added to a single key before probes when no flag states it.
const FILL: u64 = 100_000;

/// The flags as given.
#[derive(Default)]
struct Flags {
    command: Option<String>,
    port: Option<u16>,
    tls_port: Option<u16>,
    cacert: Option<PathBuf>,
    unix: Option<PathBuf>,
    clients: Option<usize>,
    pipeline: Option<usize>,
    rate: Option<f64>,
    server_process: Option<u32>,
    requests: Option<u64>,
    seconds: Option<f64>,
    reserve: Option<Reservation>,
    hit_share: Option<f64>,
    fill: Option<u64>,
    filled: Option<u64>,
    key: Option<String>,
    keys: Option<u64>,
    keep: bool,
}

impl Flags {
    fn parse(words: &[String]) -> Result<Self> {
        let mut flags = Flags::default();
        let mut words = words.iter();
        while let Some(flag) = words.next() {
            if flag == "--keep" {
                flags.keep = true;
                continue;
            }
            let value = words.next().context(USAGE)?;
            let parsed = match flag.as_str() {
                "--command" => set(&mut flags.command, value),
                "--port" => set(&mut flags.port, value),
                "--tls-port" => set(&mut flags.tls_port, value),
                "--cacert" => set(&mut flags.cacert, value),
                "--unix" => set(&mut flags.unix, value),
                "--clients" => set(&mut flags.clients, value),
                "--pipeline" => set(&mut flags.pipeline, value),
                "--rate" => set(&mut flags.rate, value),
                "--server-process" => set(&mut flags.server_process, value),
                "--requests" => set(&mut flags.requests, value),
                "--seconds" => set(&mut flags.seconds, value),
                "--reserve" => set(&mut flags.reserve, value),
                "--hit-share" => set(&mut flags.hit_share, value),
                "--fill" => set(&mut flags.fill, value),
                "--filled" => set(&mut flags.filled, value),
                "--key" => set(&mut flags.key, value),
                "--keys" => set(&mut flags.keys, value),
                _ => bail!(USAGE),
            };
            parsed.with_context(|| format!("{flag} {value}\n\n{USAGE}"))?;
        }
        Ok(flags)
    }
}

fn set<T: FromStr>(flag: &mut Option<T>, value: &str) -> Result<()> {
    *flag = Some(value.parse().map_err(|_| anyhow!("wrong value"))?);
    Ok(())
}

/// The checked flags, and what follows from them.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) target: Target,
    pub(super) recipe: Recipe,
    pub(super) reserve: Reservation,
    /// The number of items to add first. `None` when the key is used as it is.
    pub(super) fill: Option<u64>,
    pub(super) limit: Limit,
    pub(super) clients: usize,
    pub(super) pipeline: usize,
    /// Requests a second. `None` when connections are always busy.
    pub(super) rate: Option<f64>,
    pub(super) server_process: Option<u32>,
    pub(super) keep: bool,
}

impl Setup {
    pub(super) fn new(words: &[String]) -> Result<Self> {
        let flags = Flags::parse(words)?;
        let verb = flags.command.as_deref().and_then(Verb::parse);
        let verb = verb.context(USAGE)?;
        ensure!(
            flags.rate.is_none_or(|rate| rate > 0.0 && rate.is_finite()),
            "--rate: requests a second"
        );
        ensure!(
            flags.rate.is_none() || flags.pipeline.is_none_or(|pipeline| pipeline == 1),
            "--rate sends one request at a time: leave --pipeline out"
        );
        let keys = Keys::new(
            flags.key.as_deref().unwrap_or(DEFAULT_KEY),
            flags.keys.unwrap_or(1),
        );
        ensure!(
            !keys.several() || verb.takes_keys(),
            "--keys goes with the commands whose requests have one item"
        );
        let usual = match keys.count() {
            _ if !verb.probes() => 0,
            1 => FILL,
            count => count,
        };
        let present = flags.filled.or(flags.fill).unwrap_or(usual);
        let usual_share = if verb.probes() && present > 0 {
            0.5
        } else {
            0.0
        };
        let hit_share = flags.hit_share.unwrap_or(usual_share);
        ensure!(
            (0.0..=1.0).contains(&hit_share) && (hit_share == 0.0 || present > 0),
            "--hit-share: a share, of items that --fill added"
        );
        let usual = Reservation::usual(keys.several(), verb.is_cuckoo());
        let reserve = flags.reserve.unwrap_or(usual);
        let bitmap = match reserve.error_rate {
            Some(error_rate) if verb.is_bitmap() => Bitmap::new(reserve.capacity, error_rate)
                .context("--reserve: a Redis string has not enough bits for such a filter")?,
            // Filters may be larger than any bitmap, so this does not check the size.
            _ => Bitmap::default(),
        };
        let time = match (flags.seconds, flags.requests) {
            (Some(seconds), _) => Duration::try_from_secs_f64(seconds)?,
            (None, None) => Duration::from_secs(5),
            (None, Some(_)) => Duration::MAX,
        };
        let target = match (flags.unix, flags.tls_port) {
            (Some(path), _) => Target::Unix(path),
            (None, Some(port)) => Target::tls(port, &flags.cacert.context("--cacert")?)?,
            (None, None) => Target::Tcp(flags.port.unwrap_or(6379)),
        };
        Ok(Self {
            target,
            recipe: Recipe {
                verb,
                keys,
                items: if verb.takes_several() {
                    ITEMS_PER_REQUEST
                } else {
                    1
                },
                bitmap,
                present,
                hit_share,
                filling: false,
            },
            reserve,
            fill: (flags.filled.is_none() && verb != Verb::Echo).then_some(present),
            limit: Limit {
                requests: flags.requests.unwrap_or(u64::MAX),
                time,
            },
            clients: flags.clients.unwrap_or(50).max(1),
            pipeline: flags.pipeline.unwrap_or(1).max(1),
            rate: flags.rate,
            server_process: flags.server_process,
            keep: flags.keep,
        })
    }
}
