//! The cases: commands, pipelines, and the flags of `load` for each.

use serde::Serialize;

/// The number of connections of the load.
pub const CLIENTS: usize = 50;

/// The error rate of all filters.
pub const RATE: f64 = 0.001;

/// What is measured.
#[derive(Clone, Copy, Debug)]
pub enum What {
    /// `everbloom serve` beside redis-server.
    Server,
    /// The module beside its host's own commands and beside `everbloom serve`.
    Module,
}

/// Whose commands are measured. The module and its host are two peers, though one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    Everbloom,
    Redis,
    Module,
    /// valkey-bloom in a host of its own.
    ValkeyBloom,
}

/// The sizes and times of a run.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scale {
    /// The capacity of the filters, and the number of items in those that are probed.
    pub items: u64,
    /// The number of items in a bitmap, for redis-server fills it slowly.
    pub bitmap_items: u64,
    /// The number of small filters, and of small bitmaps. The labels name the full scale's.
    pub keys: u64,
    pub seconds: f64,
    pub rounds: usize,
}

impl Scale {
    pub const FULL: Scale = Scale {
        items: 10_000_000,
        bitmap_items: 1_000_000,
        keys: 300_000,
        seconds: 1.0,
        rounds: 5,
    };
    pub const SMOKE: Scale = Scale {
        items: 100_000,
        bitmap_items: 10_000,
        keys: 1000,
        seconds: 0.1,
        rounds: 1,
    };
}

pub const PIPELINES: [usize; 3] = [1, 16, 128];

/// One line of the report, at one pipeline.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    pub peer: Peer,
    pub label: &'static str,
    pub pipeline: usize,
    /// The flags of `load`.
    pub args: Vec<String>,
}

/// The bitmaps that are filled once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Bitmap {
    /// As many bits as the classic filter.
    AsFilter,
    /// A bit for each item of the scale, so 10 million.
    Small,
    /// A hundred times as many.
    Large,
}

impl Bitmap {
    const ALL: [Bitmap; 3] = [Bitmap::AsFilter, Bitmap::Small, Bitmap::Large];

    fn key(self) -> &'static str {
        match self {
            Bitmap::AsFilter => "bench:bitmap",
            Bitmap::Small => "bench:bitmap:small",
            Bitmap::Large => "bench:bitmap:large",
        }
    }

    /// The items for which it has the right size, and how many it holds: with more, redis-server
    /// would be filling it for long.
    fn capacity_and_fill(self, scale: &Scale) -> (u64, u64) {
        let bits_per_item = -RATE.ln() / std::f64::consts::LN_2.powi(2);
        let for_bits = |bits: u64| (bits as f64 / bits_per_item) as u64;
        let capacity = match self {
            Bitmap::AsFilter => scale.items,
            Bitmap::Small => for_bits(scale.items),
            Bitmap::Large => for_bits(100 * scale.items),
        };
        (capacity, scale.bitmap_items.min(capacity))
    }
}

/// The small filters and bitmaps that are filled once.
const SMALL_FILTERS: &str = "bench:filters";
const SMALL_BITMAPS: &str = "bench:bitmaps";

/// The number of items in each small filter or bitmap before a run.
pub const SMALL_FILL: u64 = 10;

/// The mean number of items that a run adds to each small filter at most. The filters are drawn, so
/// some get more: 80 are six standard deviations. With `SMALL_FILL` they stay below 100, the
/// capacity that BF.ADD gives a filter.
const SMALL_ROOM: u64 = 40;

/// Bitmaps with one bit an item. Their offsets go from 100 to 998, so they are 125 bytes; a filter
/// for 100 items at 0.01 that may grow is 138.
const SMALL_BITMAP: &str = "--reserve 623,0.5";

/// The labels of the lines with which others are compared.
pub const ECHO: &str = "ECHO";
pub const SETBIT: &str = "SETBIT, one bit";

/// A line of the report. It is there for each pipeline and each peer that has the command.
#[derive(Clone, Copy)]
struct Line {
    label: &'static str,
    load: Load,
}

/// The commands of a run.
#[derive(Clone, Copy)]
enum Load {
    Echo,
    /// One SETBIT a request, in a new bitmap of as many bits as the classic filter has.
    Setbit,
    /// A command on the full filter. This share of its items is in the filter.
    Probe(FilterKind, &'static str, f64),
    /// A command on a new filter.
    Add(FilterKind, &'static str),
    /// A command on a bitmap for each bit of an item.
    Bits(Bitmap, &'static str, f64),
    /// A probe of many small filters or bitmaps, each request of another. All items are present.
    SmallProbe(&'static str),
    /// Adds to many small filters or bitmaps that exist.
    SmallAdd(&'static str),
}

/// The kind of the filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FilterKind {
    Classic,
    Blocked,
    Cuckoo,
}

impl FilterKind {
    const ALL: [FilterKind; 3] = [FilterKind::Classic, FilterKind::Blocked, FilterKind::Cuckoo];

    /// The key that is filled once.
    fn key(self) -> &'static str {
        match self {
            FilterKind::Classic => "bench:classic",
            FilterKind::Blocked => "bench:blocked",
            FilterKind::Cuckoo => "bench:cuckoo",
        }
    }

    /// The command that asks for an item.
    fn probe(self) -> &'static str {
        match self {
            FilterKind::Classic | FilterKind::Blocked => "exists",
            FilterKind::Cuckoo => "cf-exists",
        }
    }

    /// The flag that makes the filter. A cuckoo filter of RedisBloom's bucket size grows when it
    /// is about half full; it gets room enough not to.
    fn reserve(self, items: u64) -> String {
        match self {
            FilterKind::Classic => format!("--reserve {items},{RATE}"),
            FilterKind::Blocked => format!("--reserve {items},{RATE},LAYOUT,BLOCKED"),
            FilterKind::Cuckoo => format!("--reserve {}", 4 * items),
        }
    }
}

const fn line(label: &'static str, load: Load) -> Line {
    Line { label, load }
}

const ECHO_LINE: Line = line(ECHO, Load::Echo);

const SETBIT_LINE: Line = line(SETBIT, Load::Setbit);

#[rustfmt::skip]
const FILTER_LINES: [Line; 18] = {
    use FilterKind::{Blocked, Classic, Cuckoo};
    use Load::{Add, Probe};
    [
        line("BF.EXISTS, present", Probe(Classic, "exists", 1.0)),
        line("BF.EXISTS, absent", Probe(Classic, "exists", 0.0)),
        line("BF.ADD, new", Add(Classic, "add")),
        line("BF.MEXISTS of 100, present", Probe(Classic, "mexists", 1.0)),
        line("BF.MEXISTS of 100, absent", Probe(Classic, "mexists", 0.0)),
        line("BF.MADD of 100, new", Add(Classic, "madd")),
        line("blocked: BF.EXISTS, present", Probe(Blocked, "exists", 1.0)),
        line("blocked: BF.EXISTS, absent", Probe(Blocked, "exists", 0.0)),
        line("blocked: BF.ADD, new", Add(Blocked, "add")),
        line("blocked: BF.MEXISTS of 100, present", Probe(Blocked, "mexists", 1.0)),
        line("blocked: BF.MEXISTS of 100, absent", Probe(Blocked, "mexists", 0.0)),
        line("blocked: BF.MADD of 100, new", Add(Blocked, "madd")),
        line("CF.EXISTS, present", Probe(Cuckoo, "cf-exists", 1.0)),
        line("CF.EXISTS, absent", Probe(Cuckoo, "cf-exists", 0.0)),
        line("CF.ADD, new", Add(Cuckoo, "cf-add")),
        line("CF.MEXISTS of 100, present", Probe(Cuckoo, "cf-mexists", 1.0)),
        line("CF.MEXISTS of 100, absent", Probe(Cuckoo, "cf-mexists", 0.0)),
        line("CF.INSERT of 100, new", Add(Cuckoo, "cf-insert")),
    ]
};

#[rustfmt::skip]
const BITMAP_LINES: [Line; 7] = {
    use Bitmap::{AsFilter, Large, Small};
    use Load::Bits;
    [
        line("10 GETBIT an item, present", Bits(AsFilter, "getbit", 1.0)),
        line("10 GETBIT an item, absent", Bits(AsFilter, "getbit", 0.0)),
        line("10 SETBIT an item", Bits(AsFilter, "setbit", 0.0)),
        line("10 M bits: 10 GETBIT an item, present", Bits(Small, "getbit", 1.0)),
        line("10 M bits: 10 SETBIT an item, half present", Bits(Small, "setbit", 0.5)),
        line("1000 M bits: 10 GETBIT an item, present", Bits(Large, "getbit", 1.0)),
        line("1000 M bits: 10 SETBIT an item, half present", Bits(Large, "setbit", 0.5)),
    ]
};

const SMALL_FILTER_LINES: [Line; 2] = [
    line(
        "300 000 filters: BF.EXISTS, present",
        Load::SmallProbe("exists"),
    ),
    line("300 000 filters: BF.ADD, new", Load::SmallAdd("add")),
];

const SMALL_BITMAP_LINES: [Line; 2] = [
    line("300 000 bitmaps: GETBIT", Load::SmallProbe("getbit")),
    line("300 000 bitmaps: SETBIT", Load::SmallAdd("setbit")),
];

/// The flags for many small filters or bitmaps, and the key for those that are filled once.
fn small(command: &str, scale: &Scale) -> (String, &'static str) {
    let flags = format!("{command} --keys {}", scale.keys);
    match command {
        "getbit" | "setbit" => (format!("{flags} {SMALL_BITMAP}"), SMALL_BITMAPS),
        _ => (flags, SMALL_FILTERS),
    }
}

fn words(text: String) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

impl What {
    /// The name of the files with the results.
    pub fn name(self) -> &'static str {
        match self {
            What::Server => "server",
            What::Module => "module",
        }
    }

    /// How to fill the keys that the probes use: the server, and the flags of `load`.
    /// `valkey_bloom` says whether that peer is there.
    pub fn preparations(self, scale: &Scale, valkey_bloom: bool) -> Vec<(Peer, Vec<String>)> {
        let fill = |peer, command, key, reserve: String, items| {
            let fill = format!("--fill {items} --requests 100 --keep");
            (
                peer,
                words(format!("--command {command} --key {key} {reserve} {fill}")),
            )
        };
        let filter = |peer, kind: FilterKind| {
            let (command, key) = (kind.probe(), kind.key());
            fill(peer, command, key, kind.reserve(scale.items), scale.items)
        };
        let bitmap = |peer, bitmap: Bitmap| {
            let (capacity, items) = bitmap.capacity_and_fill(scale);
            let reserve = format!("--reserve {capacity},{RATE}");
            fill(peer, "getbit", bitmap.key(), reserve, items)
        };
        let ours = FilterKind::ALL.map(|kind| filter(Peer::Everbloom, kind));
        let many = |peer, command| {
            let (flags, key) = small(command, scale);
            let fill = format!("--fill {} --requests 100 --keep", SMALL_FILL * scale.keys);
            (peer, words(format!("--command {flags} --key {key} {fill}")))
        };
        let others = match self {
            What::Server => {
                let mut others = vec![many(Peer::Everbloom, "exists")];
                for peer in [Peer::Redis, Peer::Everbloom] {
                    others.extend(Bitmap::ALL.map(|which| bitmap(peer, which)));
                    others.push(many(peer, "getbit"));
                }
                others
            }
            What::Module => FilterKind::ALL
                .map(|kind| filter(Peer::Module, kind))
                .into(),
        };
        let theirs = valkey_bloom.then(|| filter(Peer::ValkeyBloom, FilterKind::Classic));
        ours.into_iter().chain(others).chain(theirs).collect()
    }

    /// All cases. The peers of a line and pipeline follow each other directly.
    pub fn cases(self, scale: &Scale, valkey_bloom: bool) -> Vec<Case> {
        let mut cases = Vec::new();
        for (peers, line) in self.lines() {
            let theirs =
                (valkey_bloom && line.label.starts_with("BF.")).then_some(&Peer::ValkeyBloom);
            for pipeline in PIPELINES {
                cases.extend(peers.iter().chain(theirs).map(|&peer| Case {
                    peer,
                    label: line.label,
                    pipeline,
                    args: line.load.args(scale, pipeline),
                }));
            }
        }
        cases
    }

    /// The lines, and the peers that answer them.
    fn lines(self) -> Vec<(&'static [Peer], Line)> {
        use Peer::{Everbloom, Module, Redis};
        const HOSTS: &[Peer] = &[Redis, Everbloom];
        let mut lines = vec![(HOSTS, ECHO_LINE)];
        match self {
            What::Server => {
                lines.extend(FILTER_LINES.map(|line| (&[Everbloom][..], line)));
                lines.extend(BITMAP_LINES.map(|line| (HOSTS, line)));
                lines.extend(SMALL_FILTER_LINES.map(|line| (&[Everbloom][..], line)));
                lines.extend(SMALL_BITMAP_LINES.map(|line| (HOSTS, line)));
            }
            What::Module => {
                lines.push((&[Redis], SETBIT_LINE));
                lines.extend(FILTER_LINES.map(|line| (&[Module, Everbloom][..], line)));
            }
        }
        lines
    }
}

impl Load {
    /// The flags of `load`.
    fn args(self, scale: &Scale, pipeline: usize) -> Vec<String> {
        let clients = format!("--clients {CLIENTS} --pipeline {pipeline}");
        let command = self.command(scale);
        words(format!(
            "--command {command} {clients} --seconds {}",
            scale.seconds
        ))
    }

    /// The command and its filter. Adds get a new filter each time and do not overfill it: a fifth
    /// of the items is there before, and at most three quarters are added.
    fn command(self, scale: &Scale) -> String {
        let items = scale.items;
        match self {
            Load::Echo => "echo".to_owned(),
            Load::Setbit => {
                // The first layer of a filter that may grow has half the error rate, so it has
                // log2(2 / RATE) hashes. A bitmap at 0.5 has one hash. Both have
                // items * hashes / ln 2 bits.
                let same_bits = (items as f64 * (2.0 / RATE).log2()).round();
                format!("setbit --reserve {same_bits},0.5")
            }
            Load::Probe(kind, command, hit_share) => {
                let (key, reserve) = (kind.key(), kind.reserve(items));
                let filled = format!("--filled {items} --hit-share {hit_share}");
                format!("{command} {reserve} --key {key} {filled}")
            }
            Load::Add(kind, command) => {
                let (fill, room) = (items / 5, items / 4 * 3);
                let requests = match command {
                    "madd" | "cf-insert" => room / 100,
                    _ => room,
                };
                let reserve = kind.reserve(items);
                format!("{command} {reserve} --fill {fill} --requests {requests}")
            }
            Load::Bits(bitmap, command, hit_share) => {
                let (capacity, items) = bitmap.capacity_and_fill(scale);
                let reserve = format!("--reserve {capacity},{RATE}");
                let filled = format!("--filled {items} --hit-share {hit_share}");
                format!("{command} {reserve} --key {} {filled}", bitmap.key())
            }
            Load::SmallProbe(command) => {
                let (flags, key) = small(command, scale);
                let filled = SMALL_FILL * scale.keys;
                format!("{flags} --key {key} --filled {filled} --hit-share 1")
            }
            Load::SmallAdd(command) => {
                let (flags, _) = small(command, scale);
                let (fill, room) = (SMALL_FILL * scale.keys, SMALL_ROOM * scale.keys);
                format!("{flags} --fill {fill} --requests {room}")
            }
        }
    }
}
