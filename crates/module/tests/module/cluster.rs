//! A cluster of three primaries and three replicas: slots move and a primary dies while a client
//! writes, and nothing that was acknowledged is missing.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use everbloom_dev::StopOnDrop;
use everbloom_resp::Reply;

use crate::support::{
    Client, Host, PATIENCE, elements, has_redis_cli, host_program, is_valkey, redis_cli,
    try_redis_cli, version, wait_for,
};

const FILTERS: usize = 1000;
const BATCH: usize = 5;
const WRITERS: usize = 3;
/// How the keys of cuckoo filters begin, and those of filters with a window.
const CUCKOO: &str = "cuckoo";
const WINDOW: &str = "window";

/// The slot of a key without a tag: CRC-16/XMODEM modulo 16384.
fn slot(key: &str) -> u16 {
    let crc = key.bytes().fold(0_u16, |crc, byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| {
            crc << 1 ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    });
    crc & 0x3fff
}

/// A client that follows redirects.
struct ClusterClient {
    ports: Vec<u16>,
    connections: HashMap<u16, Client>,
    owners: HashMap<u16, u16>,
    redirects: usize,
}

/// An answer, with the port of the server that gave it.
type Answer = (u16, Reply);

impl ClusterClient {
    fn new(ports: &[u16]) -> Self {
        ClusterClient {
            ports: ports.to_vec(),
            connections: HashMap::new(),
            owners: HashMap::new(),
            redirects: 0,
        }
    }

    fn try_call(&mut self, port: u16, args: &[String]) -> Option<Reply> {
        let client = match self.connections.entry(port) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Client::try_connect(("127.0.0.1", port)).ok()?),
        };
        let reply = client.try_send(args).ok().and_then(|()| client.try_reply());
        if reply.is_none() {
            self.connections.remove(&port);
        }
        reply
    }

    /// Sends a command on a key to whoever has its slot.
    fn call(&mut self, key: &str, args: &[String]) -> Answer {
        let deadline = Instant::now() + PATIENCE;
        let slot = slot(key);
        let mut asking = None;
        let mut next = 0;
        loop {
            assert!(Instant::now() < deadline, "{args:?} found no server");
            let known = self.owners.get(&slot).copied();
            let port = asking
                .or(known)
                .unwrap_or(self.ports[next % self.ports.len()]);
            if asking.take().is_some() {
                self.try_call(port, &["ASKING".to_owned()]);
            }
            let Some(reply) = self.try_call(port, args) else {
                self.owners.remove(&slot);
                next += 1;
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let text = reply.as_error().unwrap_or_default().to_owned();
            let target = || text.rsplit(':').next().unwrap().parse().unwrap();
            if text.starts_with("MOVED") {
                self.redirects += 1;
                self.owners.insert(slot, target());
            } else if text.starts_with("ASK") {
                self.redirects += 1;
                asking = Some(target());
            } else if ["CLUSTERDOWN", "LOADING", "TRYAGAIN", "READONLY"]
                .iter()
                .any(|word| text.starts_with(word))
            {
                // The owner that is known may be one that is no more.
                self.owners.remove(&slot);
                next += 1;
                thread::sleep(Duration::from_millis(10));
            } else {
                return (port, reply);
            }
        }
    }
}

fn words(start: &[&str], items: &[String]) -> Vec<String> {
    let start = start.iter().map(|word| (*word).to_owned());
    start.chain(items.iter().cloned()).collect()
}

/// How the command that adds to a filter begins. Nothing is deleted: a client that does not know
/// whether its item arrived may not delete it, because that may take another one away.
fn add(key: &str) -> Vec<&str> {
    match key.split(':').next() {
        Some(CUCKOO) => vec!["CF.INSERT", key, "ITEMS"],
        Some(WINDOW) => vec!["BF.INSERT", key, "WINDOW", "SECONDS", "3600", "ITEMS"],
        _ => vec!["BF.MADD", key],
    }
}

/// What a writer did: for each filter the items that a replica is known to have.
#[derive(Default)]
struct Written {
    acknowledged: HashMap<String, Vec<String>>,
    unacknowledged: usize,
    redirects: usize,
}

/// Adds batches to its part of the filters, round after round, until it is told to stop.
fn write(ports: &[u16], writer: usize, stop: &AtomicBool, rounds: &AtomicUsize) -> Written {
    let mut client = ClusterClient::new(ports);
    let mut written = Written::default();
    let mut alone = HashSet::new();
    for round in 0.. {
        for filter in (writer..FILTERS).step_by(WRITERS) {
            if stop.load(Ordering::Relaxed) {
                written.redirects = client.redirects;
                return written;
            }
            let kind = [CUCKOO, WINDOW, "filter", "filter"][filter % 4];
            let key = format!("{kind}:{filter}");
            let items: Vec<String> = (0..BATCH).map(|i| format!("{round}/{i}")).collect();
            let (port, reply) = client.call(&key, &words(&add(&key), &items));
            assert!(matches!(reply, Reply::Array(_)), "{reply:?}");
            // On the same connection: it is what was just written that is waited for. Whoever
            // took over has no replica, and is not waited for long again and again.
            let patience = if alone.contains(&port) { "1" } else { "200" };
            let wait = words(&["WAIT", "1", patience], &[]);
            let replicas = client.try_call(port, &wait);
            if replicas.and_then(|reply| reply.as_integer()) >= Some(1) {
                alone.remove(&port);
                written.acknowledged.entry(key).or_default().extend(items);
            } else {
                alone.insert(port);
                written.unacknowledged += 1;
            }
        }
        rounds.fetch_add(1, Ordering::Relaxed);
    }
    written
}

struct Cluster {
    nodes: Vec<Host>,
}

impl Cluster {
    fn start() -> Option<Cluster> {
        if !has_redis_cli() {
            return None;
        }
        let settings = [
            "--cluster-enabled",
            "yes",
            "--cluster-node-timeout",
            "1000",
            "--cluster-replica-validity-factor",
            "0",
        ];
        let nodes: Option<Vec<Host>> = (0..6).map(|_| Host::start(&settings)).collect();
        let nodes = nodes?;
        let addresses: Vec<String> = nodes.iter().map(|node| node.addr().to_string()).collect();
        let mut args = vec!["--cluster", "create"];
        args.extend(addresses.iter().map(String::as_str));
        args.extend(["--cluster-replicas", "1", "--cluster-yes"]);
        redis_cli(&args);
        for node in &nodes {
            let mut client = node.client();
            wait_for("the cluster", || {
                client.text("CLUSTER INFO").contains("cluster_state:ok")
            });
            if client.info("role") == "slave" {
                client.until("master_link_status", "up");
            }
        }
        Some(Cluster { nodes })
    }

    fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    /// The nodes that are primaries now, by their place and their id.
    fn primaries(&self) -> Vec<(usize, String)> {
        let nodes = self.nodes.iter().enumerate();
        let primaries = nodes.filter(|(_, node)| node.client().info("role") == "master");
        primaries
            .map(|(at, node)| (at, node.client().text("CLUSTER MYID")))
            .collect()
    }

    /// Moves slots from one primary to another, key by key, as redis-cli does it.
    fn move_slots(&self, from: &str, to: &str, count: usize) {
        let address = self.nodes[0].addr().to_string();
        // News of the last move takes a moment to reach all nodes.
        wait_for("agreement", || {
            try_redis_cli(&["--cluster", "check", &address]).is_ok()
        });
        redis_cli(&[
            "--cluster",
            "reshard",
            &address,
            "--cluster-from",
            from,
            "--cluster-to",
            to,
            "--cluster-slots",
            &count.to_string(),
            "--cluster-yes",
        ]);
    }

    /// The longest range of slots that a primary has.
    fn slots(&self, node: usize) -> (u16, u16) {
        let mut client = self.nodes[node].client();
        let nodes = client.text("CLUSTER NODES");
        let own = nodes.lines().find(|line| line.contains("myself")).unwrap();
        // Behind eight other fields stand its slots: ranges, and single ones.
        let ranges = own.split_whitespace().skip(8);
        let ranges = ranges.filter_map(|range| range.split_once('-'));
        let ranges = ranges.map(|(first, last)| (first.parse().unwrap(), last.parse().unwrap()));
        ranges.max_by_key(|(first, last)| last - first).unwrap()
    }

    /// Moves slots from one primary to another all at once, as Valkey does from 9.0 on.
    fn migrate_slots(&self, from: usize, to: &str, count: u16) {
        let (first, last) = self.slots(from);
        let mut client = self.nodes[from].client();
        begin_to_migrate(&mut client, (first, last.min(first + count - 1)), to);
        wait_for("the migration", || has_migrated(&mut client));
    }
}

fn begin_to_migrate(client: &mut Client, (first, last): (u16, u16), to: &str) {
    client.ok(&format!(
        "CLUSTER MIGRATESLOTS SLOTSRANGE {first} {last} NODE {to}"
    ));
}

fn has_migrated(client: &mut Client) -> bool {
    let migrations = elements(client.ok("CLUSTER GETSLOTMIGRATIONS"));
    let states: Vec<String> = migrations.into_iter().map(state).collect();
    assert!(!states.iter().any(|state| state == "failed"), "{states:?}");
    states.iter().all(|state| state == "success")
}

/// Whether the host moves slots all at once.
fn moves_slots_at_once() -> bool {
    let program = host_program().unwrap();
    is_valkey(&program) && version(&program) >= (9, 0)
}

/// In which state a migration is: names and values in turn.
fn state(migration: Reply) -> String {
    let fields = elements(migration);
    let mut pairs = fields.chunks_exact(2);
    let found = pairs.find(|pair| pair[0].as_bytes() == Some(b"state"));
    String::from_utf8_lossy(found.unwrap()[1].as_bytes().unwrap()).into_owned()
}

#[test]
fn no_acknowledged_add_is_lost() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let ports = cluster.ports();
    let atomic = moves_slots_at_once();
    let (stop, rounds) = (AtomicBool::new(false), AtomicUsize::new(0));
    let written: Vec<Written> = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (ports, stop, rounds) = (&ports, &stop, &rounds);
                scope.spawn(move || write(ports, writer, stop, rounds))
            })
            .collect();
        let stopper = StopOnDrop(&stop);
        wait_for("a first round", || {
            rounds.load(Ordering::Relaxed) >= WRITERS
        });
        let primaries = cluster.primaries();
        for at in 0..3 {
            let (from, to) = (&primaries[at].1, &primaries[(at + 1) % 3].1);
            cluster.move_slots(from, to, 150);
            if atomic {
                cluster.migrate_slots(primaries[at].0, to, 150);
            }
        }
        // What was moved there must have come to the replica, too: nobody waited for that.
        for (at, _) in &primaries {
            let mut client = cluster.nodes[*at].client();
            let offset = client.info("master_repl_offset").parse().unwrap();
            wait_for("the replica", || acknowledged(&mut client) >= offset);
        }
        let victim = primaries[1].0;
        cluster.nodes[victim].kill();
        let before = rounds.load(Ordering::Relaxed);
        wait_for("a round after the death", || {
            rounds.load(Ordering::Relaxed) >= before + WRITERS
        });
        drop(stopper);
        writers
            .into_iter()
            .map(|writer| writer.join().unwrap())
            .collect()
    });
    let redirects: usize = written.iter().map(|written| written.redirects).sum();
    let unacknowledged: usize = written.iter().map(|written| written.unacknowledged).sum();
    let mut checker = ClusterClient::new(&ports);
    let (mut filters, mut items) = (0, 0);
    for (key, added) in written.iter().flat_map(|written| &written.acknowledged) {
        let command = match key.starts_with(CUCKOO) {
            true => "CF.MEXISTS",
            false => "BF.MEXISTS",
        };
        let (_, reply) = checker.call(key, &words(&[command, key], added));
        let missing = elements(reply)
            .iter()
            .filter(|found| **found != Reply::Integer(1))
            .count();
        assert_eq!(missing, 0, "of {} in {key}", added.len());
        filters += 1;
        items += added.len();
    }
    eprintln!(
        "{filters} filters, {items} acknowledged, {unacknowledged} batches not, \
         {redirects} redirects"
    );
    assert_eq!(filters, FILTERS);
    assert!(redirects > 100, "{redirects}");
}

/// How far the one replica of a primary has said that it is.
fn acknowledged(client: &mut Client) -> u64 {
    let replica = client.info("slave0");
    let offset = replica.split("offset=").nth(1).unwrap();
    offset.split(',').next().unwrap().parse().unwrap()
}

/// While the keys of a slot are copied, both nodes have the window. The host shows that of the target
/// to nobody, our timer included: otherwise it would forget by the clock, and by what the source sends.
#[test]
fn a_window_that_moves_forgets_nothing_too_early() {
    const WINDOW_SECONDS: u64 = 4;
    let Some(cluster) = Cluster::start() else {
        return;
    };
    if !moves_slots_at_once() {
        return;
    }
    let primaries = cluster.primaries();
    let (from, to) = (primaries[0].0, &primaries[1].1);
    let first = cluster.slots(from).0;
    let mut names = (0..).map(|number| format!("window:{number}"));
    let key = names.find(|name| slot(name) == first).unwrap();
    let mut source = cluster.nodes[from].client();
    source.ok(&format!(
        "BF.RESERVE {key} 0.01 1000 WINDOW SECONDS {WINDOW_SECONDS} GENERATIONS 4"
    ));
    // The copy takes longer than the window.
    for number in 0..120 {
        source.ok(&format!("SET {{{key}}}:{number} value"));
    }
    source.ok("CONFIG SET rdb-key-save-delay 50000");
    begin_to_migrate(&mut source, (first, first), to);
    let began = Instant::now();
    let mut client = ClusterClient::new(&cluster.ports());
    let mut added = Vec::new();
    while !has_migrated(&mut source) {
        assert!(began.elapsed() < PATIENCE, "the migration does not end");
        let (item, at) = (format!("item {}", added.len()), Instant::now());
        client.call(&key, &words(&["BF.ADD", &key, &item], &[]));
        added.push((item, at));
        thread::sleep(Duration::from_millis(20));
    }
    assert!(
        began.elapsed() > Duration::from_secs(WINDOW_SECONDS),
        "it was too fast to show anything"
    );
    let asked = Instant::now();
    let remembered = Duration::from_secs(WINDOW_SECONDS - 1);
    added.retain(|(_, at)| asked - *at < remembered);
    let items: Vec<String> = added.into_iter().map(|(item, _)| item).collect();
    let (port, reply) = client.call(&key, &words(&["BF.MEXISTS", &key], &items));
    assert_ne!(port, cluster.nodes[from].port);
    let found = elements(reply);
    let missing = found
        .iter()
        .filter(|found| **found != Reply::Integer(1))
        .count();
    assert_eq!(missing, 0, "of {} items", items.len());
}
