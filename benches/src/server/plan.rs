//! What is run: commands, pipelines, and the flags of `everbloom bench` for each.

use serde::Serialize;

/// Connections of the load.
pub const CLIENTS: usize = 50;

/// The error rate of all filters.
pub const RATE: f64 = 0.001;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Peer {
    Everbloom,
    Redis,
}

/// How large and how long.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Scale {
    /// Capacity of the filters, and items in those that are probed.
    pub items: u64,
    /// Items in the bitmap of redis-server, which takes its time to fill.
    pub bitmap_items: u64,
    pub seconds: f64,
    pub rounds: usize,
}

impl Scale {
    pub const FULL: Scale = Scale {
        items: 10_000_000,
        bitmap_items: 1_000_000,
        seconds: 2.0,
        rounds: 5,
    };
    pub const SMOKE: Scale = Scale {
        items: 100_000,
        bitmap_items: 10_000,
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
    /// Flags of `everbloom bench`.
    pub args: Vec<String>,
}

/// The keys that are filled once.
const FILTER: &str = "bench:filter";
const BITMAP: &str = "bench:bitmap";

pub const ECHO: &str = "ECHO";

/// The lines of the report: who answers, what it is called, the command, the share of hits.
const LINES: [(Peer, &str, &str, f64); 11] = [
    (Peer::Redis, ECHO, "echo", 0.0),
    (Peer::Everbloom, ECHO, "echo", 0.0),
    (Peer::Everbloom, "BF.EXISTS, present", "exists", 1.0),
    (Peer::Everbloom, "BF.EXISTS, absent", "exists", 0.0),
    (Peer::Everbloom, "BF.ADD, new", "add", 0.0),
    (
        Peer::Everbloom,
        "BF.MEXISTS of 100, present",
        "mexists",
        1.0,
    ),
    (Peer::Everbloom, "BF.MEXISTS of 100, absent", "mexists", 0.0),
    (Peer::Everbloom, "BF.MADD of 100, new", "madd", 0.0),
    (Peer::Redis, "10 GETBIT an item, present", "getbit", 1.0),
    (Peer::Redis, "10 GETBIT an item, absent", "getbit", 0.0),
    (Peer::Redis, "10 SETBIT an item", "setbit", 0.0),
];

fn words(text: String) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Fills the key that the probes of a server use.
pub fn preparation(peer: Peer, scale: &Scale) -> Vec<String> {
    let (command, key, fill) = match peer {
        Peer::Everbloom => ("exists", FILTER, scale.items),
        Peer::Redis => ("getbit", BITMAP, scale.bitmap_items),
    };
    words(format!(
        "--command {command} --key {key} --reserve {},{RATE} --fill {fill} --requests 100 --keep",
        scale.items
    ))
}

/// All cases, in the order of the report.
pub fn cases(scale: &Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    for (peer, label, command, hit_share) in LINES {
        for pipeline in PIPELINES {
            let mut args = words(format!(
                "--command {command} --clients {CLIENTS} --pipeline {pipeline} --seconds {}",
                scale.seconds
            ));
            args.extend(words(filter_args(command, hit_share, scale)));
            cases.push(Case {
                peer,
                label,
                pipeline,
                args,
            });
        }
    }
    cases
}

/// Which filter a command works on. Adds get a new one each time, which they do not overfill:
/// a fifth of it is there before, three quarters may come.
fn filter_args(command: &str, hit_share: f64, scale: &Scale) -> String {
    let items = scale.items;
    let reserve = format!("--reserve {items},{RATE}");
    let room = items / 4 * 3;
    match command {
        "exists" | "mexists" => {
            format!("{reserve} --key {FILTER} --filled {items} --hit-share {hit_share}")
        }
        "add" => format!("{reserve} --fill {} --requests {room}", items / 5),
        "madd" => format!("{reserve} --fill {} --requests {}", items / 5, room / 100),
        "getbit" | "setbit" => {
            let filled = scale.bitmap_items;
            format!("{reserve} --key {BITMAP} --filled {filled} --hit-share {hit_share}")
        }
        _ => String::new(),
    }
}
