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
        seconds: 1.0,
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

/// The bitmap that is filled once.
const BITMAP: &str = "bench:bitmap";

pub const ECHO: &str = "ECHO";

/// A line of the report, at every pipeline.
struct Line {
    peer: Peer,
    label: &'static str,
    command: &'static str,
    hit_share: f64,
    layout: Layout,
}

/// The layout of the filter.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Layout {
    Classic,
    Blocked,
}

impl Layout {
    /// The key that is filled once, and the words for BF.RESERVE.
    fn words(self) -> (&'static str, &'static str) {
        match self {
            Layout::Classic => ("bench:classic", ""),
            Layout::Blocked => ("bench:blocked", ",LAYOUT,BLOCKED"),
        }
    }
}

const fn line(
    peer: Peer,
    label: &'static str,
    command: &'static str,
    hit_share: f64,
    layout: Layout,
) -> Line {
    Line {
        peer,
        label,
        command,
        hit_share,
        layout,
    }
}

#[rustfmt::skip]
const LINES: [Line; 17] = {
    use Layout::{Blocked, Classic};
    use Peer::{Everbloom, Redis};
    [
        line(Redis, ECHO, "echo", 0.0, Classic),
        line(Everbloom, ECHO, "echo", 0.0, Classic),
        line(Everbloom, "BF.EXISTS, present", "exists", 1.0, Classic),
        line(Everbloom, "BF.EXISTS, absent", "exists", 0.0, Classic),
        line(Everbloom, "BF.ADD, new", "add", 0.0, Classic),
        line(Everbloom, "BF.MEXISTS of 100, present", "mexists", 1.0, Classic),
        line(Everbloom, "BF.MEXISTS of 100, absent", "mexists", 0.0, Classic),
        line(Everbloom, "BF.MADD of 100, new", "madd", 0.0, Classic),
        line(Everbloom, "blocked: BF.EXISTS, present", "exists", 1.0, Blocked),
        line(Everbloom, "blocked: BF.EXISTS, absent", "exists", 0.0, Blocked),
        line(Everbloom, "blocked: BF.ADD, new", "add", 0.0, Blocked),
        line(Everbloom, "blocked: BF.MEXISTS of 100, present", "mexists", 1.0, Blocked),
        line(Everbloom, "blocked: BF.MEXISTS of 100, absent", "mexists", 0.0, Blocked),
        line(Everbloom, "blocked: BF.MADD of 100, new", "madd", 0.0, Blocked),
        line(Redis, "10 GETBIT an item, present", "getbit", 1.0, Classic),
        line(Redis, "10 GETBIT an item, absent", "getbit", 0.0, Classic),
        line(Redis, "10 SETBIT an item", "setbit", 0.0, Classic),
    ]
};

fn words(text: String) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Fills the keys that the probes use: the server, and the flags of `everbloom bench`.
pub fn preparations(scale: &Scale) -> Vec<(Peer, Vec<String>)> {
    let fill = |peer, command, key, more, items| {
        let reserve = format!("--reserve {},{RATE}{more}", scale.items);
        let fill = format!("--fill {items} --requests 100 --keep");
        (
            peer,
            words(format!("--command {command} --key {key} {reserve} {fill}")),
        )
    };
    let filter = |layout: Layout| {
        let (key, more) = layout.words();
        fill(Peer::Everbloom, "exists", key, more, scale.items)
    };
    vec![
        filter(Layout::Classic),
        filter(Layout::Blocked),
        fill(Peer::Redis, "getbit", BITMAP, "", scale.bitmap_items),
    ]
}

/// All cases, in the order of the report.
pub fn cases(scale: &Scale) -> Vec<Case> {
    let mut cases = Vec::new();
    for line in LINES {
        let command = line.command;
        for pipeline in PIPELINES {
            let mut args = words(format!(
                "--command {command} --clients {CLIENTS} --pipeline {pipeline} --seconds {}",
                scale.seconds
            ));
            args.extend(words(filter_args(&line, scale)));
            cases.push(Case {
                peer: line.peer,
                label: line.label,
                pipeline,
                args,
            });
        }
    }
    cases
}

/// Which filter a command works on. Adds get a new one each time, which they do not overfill:
/// a fifth of it is there before, three quarters may come.
fn filter_args(line: &Line, scale: &Scale) -> String {
    let (items, hit_share) = (scale.items, line.hit_share);
    let (key, more) = line.layout.words();
    let reserve = format!("--reserve {items},{RATE}{more}");
    let room = items / 4 * 3;
    match line.command {
        "exists" | "mexists" => {
            format!("{reserve} --key {key} --filled {items} --hit-share {hit_share}")
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
