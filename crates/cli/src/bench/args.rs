//! The flags.

use crate::client::LoginArgs;
use crate::number;

use super::requests::Verb;
use super::target::{DEFAULT_KEY, Reservation};

/// Put a load on a server and measure throughput and latency
#[derive(clap::Args, Debug)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The server as `redis://HOST[:PORT]`, in place of --host and --port; `rediss://` is TLS,
    /// `unix:///PATH` a Unix socket
    #[arg(long, value_name = "URL", conflicts_with_all = ["host", "port"])]
    pub(super) url: Option<String>,
    /// The server's host name or address
    #[arg(long, default_value = "127.0.0.1")]
    pub(super) host: String,
    /// The server's port
    #[arg(long, default_value_t = 6379)]
    pub(super) port: u16,
    #[command(flatten)]
    pub(super) login: LoginArgs,
    /// What to send
    #[arg(long, value_enum, default_value_t = Verb::Exists)]
    pub(super) command: Verb,
    /// Connections
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = at_least_one())]
    pub(super) clients: usize,
    /// Requests that a connection sends before it waits for the replies
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one())]
    pub(super) pipeline: usize,
    /// Items of one BF.MADD, BF.MEXISTS, CF.INSERT or CF.MEXISTS
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = at_least_one())]
    pub(super) items_per_command: usize,
    /// The share of items that were added before [default: 0.5 for probes, 0 for adds]
    #[arg(long, value_name = "SHARE", value_parser = number::share)]
    pub(super) hit_share: Option<f64>,
    /// Stop after so many requests
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>(0, MOST))]
    pub(super) requests: Option<u64>,
    /// Stop after so many seconds [default: 5 without --requests]
    #[arg(long, value_name = "S")]
    pub(super) seconds: Option<f64>,
    /// The filter to make, and more words for BF.RESERVE or CF.RESERVE, which takes no ERROR
    /// [default: 1000000,0.01; 4000000 for a cuckoo filter; 100,0.01 for each of several bitmaps]
    #[arg(long, value_name = "CAPACITY[,ERROR][,WORD...]")]
    pub(super) reserve: Option<Reservation>,
    /// Items to add before the measured part [default: 0 for adds, 100000 for probes, one for each
    /// key for probes of several keys, 1000000 for cf-del]
    #[arg(long, value_name = "N", value_parser = number::whole::<u64>(0, MOST))]
    pub(super) fill: Option<u64>,
    /// Use the keys as a run with --keep and this --fill, --keys and --seed left them
    #[arg(
        long,
        value_name = "N",
        conflicts_with = "fill",
        value_parser = number::whole::<u64>(0, MOST)
    )]
    pub(super) filled: Option<u64>,
    /// Leave the keys on the server
    #[arg(long)]
    pub(super) keep: bool,
    /// The key of the filter; any but the default must not exist, unless --filled is given
    #[arg(long, default_value = DEFAULT_KEY)]
    pub(super) key: String,
    /// Spread the items over so many keys, KEY:0, KEY:1 and so on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one())]
    pub(super) keys: usize,
    /// Threads to send from
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = at_least_one())]
    pub(super) threads: usize,
    /// The seed of the items
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    pub(super) seed: u64,
    /// Print the report as JSON
    #[arg(long)]
    pub(super) json: bool,
    /// No progress
    #[arg(short, long)]
    pub(super) quiet: bool,
}

const HELP: &str = "\
Every reply is checked: an error, a byte that was not due, or an added item that the filter does
not know ends the run with exit code 1. Latency is that of a batch: from the first byte of
--pipeline requests to the last byte of their replies. When the load generator is busy all the
time, it is what was measured, not the server: give it --threads and cores of its own.

The commands setbit and getbit are what clients without filter commands do: a request is then one
item, its k SETBIT or GETBIT in a pipeline; --reserve says how large the bitmap is.

The command cf-del deletes the items of --fill, each once, and ends when all are deleted. A cuckoo
filter grows when it is about half full: --reserve decides whether that is measured, too.

With --keys, each request of add, exists, setbit, getbit, cf-add, cf-exists or cf-del names one of
many small filters or bitmaps. The item decides the key, and an added item is looked for under its
own key. --fill gives all keys the same number of items, in turn; the measured requests name the
keys in random order.
The first add makes a filter, with the settings that the server uses by default, so --reserve is
only for bitmaps. The numbers in the keys have zeros in front: of 300000 keys the first is
KEY:000000.

Examples:
  everbloom bench --command echo --pipeline 128
  everbloom bench --command mexists --reserve 10000000,0.001 --fill 10000000 --pipeline 16
  everbloom bench --command mexists --reserve 10000000,0.001,LAYOUT,BLOCKED
  everbloom bench --command cf-exists --reserve 10000000,BUCKETSIZE,4 --pipeline 128
  everbloom bench --command getbit --url redis://127.0.0.1:7000 --json
  everbloom bench --command exists --keys 300000 --fill 3000000 --pipeline 128";

/// The most items and requests of a run.
const MOST: u64 = 1_000_000_000_000_000;

fn at_least_one() -> impl Fn(&str) -> Result<usize, String> + Clone {
    number::whole(1, 1_000_000)
}
