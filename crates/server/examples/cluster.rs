//! The crawler on a cluster of three nodes: redis-server with our module. A node is killed in the
//! middle and started again on its files.
//!
//! `cargo run --release --example cluster`; `-- --items 20000` makes the web smaller. It needs
//! redis-server from 7.0 on, and builds the module.

mod support;

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use everbloom_dev::{Process, free_port, module, wait_for};
use redis::cluster::{ClusterClient, ClusterConnection, cluster_pipe};
use redis::{Connection, RedisResult};
use support::crawl::{Crawl, ERROR_RATE, Filter, LINKS, WORKERS};
use support::{Outcome, argument, figure, mixed, used_memory};

const NODES: u16 = 3;
/// Filters that the URLs are spread over: several times as many as nodes.
const SHARDS: u64 = 16;
const SLOTS: u16 = 16_384;

/// A redis-server with the module, which writes each change to its log before it replies.
struct Node {
    port: u16,
    process: Process,
}

impl Node {
    fn start(folder: &Path, port: u16) -> Outcome<Node> {
        let folder = folder.join(port.to_string());
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new("redis-server");
        command.args(["--port", &port.to_string(), "--bind", "127.0.0.1"]);
        command.args(["--cluster-enabled", "yes", "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "always"]);
        command.arg("--loadmodule").arg(module());
        let process = Process::start(&mut command, &folder);
        let node = Node { port, process };
        wait_for("a node", || node.is_ready());
        Ok(node)
    }

    fn connect(&self) -> RedisResult<Connection> {
        redis::Client::open(self.address())?.get_connection()
    }

    fn address(&self) -> String {
        format!("redis://127.0.0.1:{}/", self.port)
    }

    fn is_ready(&self) -> bool {
        let ping = |mut connection| redis::cmd("PING").exec(&mut connection);
        self.connect()
            .is_ok_and(|connection| ping(connection).is_ok())
    }

    /// Whether it knows nodes for all slots.
    fn knows_all(&self) -> bool {
        let ask = |mut connection| redis::cmd("CLUSTER").arg("INFO").query(&mut connection);
        let info: RedisResult<String> = self.connect().and_then(ask);
        info.is_ok_and(|info| {
            info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
        })
    }
}

/// Starts three nodes and makes a cluster of them, each with a third of the slots.
fn start_cluster(folder: &Path) -> Outcome<Vec<Node>> {
    let nodes: Outcome<Vec<Node>> = (0..NODES)
        .map(|_| Node::start(folder, free_port()))
        .collect();
    let nodes = nodes?;
    for (number, node) in (0..).zip(&nodes) {
        let mut connection = node.connect()?;
        let mut slots = redis::cmd("CLUSTER");
        let share = SLOTS.div_ceil(NODES);
        let last = SLOTS.min((number + 1) * share) - 1;
        slots.arg("ADDSLOTSRANGE").arg(number * share).arg(last);
        slots.exec(&mut connection)?;
        for other in &nodes {
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET").arg("127.0.0.1").arg(other.port);
            meet.exec(&mut connection)?;
        }
    }
    wait_for("the cluster", || nodes.iter().all(Node::knows_all));
    Ok(nodes)
}

/// One filter over many keys: each URL is in one of them, by a hash.
struct Spread(ClusterClient);

impl Spread {
    fn key(shard: u64) -> String {
        format!("seen:{shard}")
    }

    fn shard(url: &str) -> u64 {
        url.bytes()
            .fold(0, |hash, byte| mixed(hash ^ u64::from(byte)))
            % SHARDS
    }

    fn reserve(&self, items: u64) -> RedisResult<()> {
        let mut connection = self.0.get_connection()?;
        // Some shards have more than their part of the items.
        let capacity = items.div_ceil(SHARDS) * 11 / 10;
        for shard in 0..SHARDS {
            let mut reserve = redis::cmd("BF.RESERVE");
            reserve
                .arg(Spread::key(shard))
                .arg(ERROR_RATE)
                .arg(capacity);
            reserve.exec(&mut connection)?;
        }
        Ok(())
    }
}

impl Filter for Spread {
    type Connection = ClusterConnection;

    fn connect(&self) -> RedisResult<ClusterConnection> {
        self.0.get_connection()
    }

    fn ask(
        &self,
        connection: &mut ClusterConnection,
        command: &str,
        urls: &[String],
    ) -> RedisResult<Vec<bool>> {
        let mut places: Vec<usize> = (0..urls.len()).collect();
        let shard = |place: &usize| urls.get(*place).map(|url| Spread::shard(url));
        places.sort_by_key(shard);
        let mut pipeline = cluster_pipe();
        for some in places.chunk_by(|a, b| shard(a) == shard(b)) {
            let key = Spread::key(some.first().and_then(shard).unwrap_or(0));
            let urls: Vec<&String> = some.iter().filter_map(|place| urls.get(*place)).collect();
            pipeline.cmd(command).arg(key).arg(urls);
        }
        let answers: Vec<Vec<bool>> = pipeline.query(connection)?;
        let mut answers: Vec<(usize, bool)> = places
            .into_iter()
            .zip(answers.into_iter().flatten())
            .collect();
        answers.sort_unstable();
        Ok(answers.into_iter().map(|(_, answer)| answer).collect())
    }
}

fn main() -> Outcome {
    let version = Command::new("redis-server").arg("--version").output();
    version.map_err(|_| "this example needs redis-server")?;
    let folder = std::env::temp_dir().join(format!("cluster-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = run(&folder);
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn run(folder: &Path) -> Outcome {
    let pages = argument("items", 1_000_000)?;
    let mut nodes = start_cluster(folder)?;
    println!("A cluster of {NODES} nodes has {SHARDS} filters, which are one.");
    let addresses: Vec<String> = nodes.iter().map(Node::address).collect();
    let spread = Spread(ClusterClient::new(addresses)?);
    spread.reserve(pages)?;

    println!("{WORKERS} workers crawl {pages} pages with {LINKS} links each.");
    let started = Instant::now();
    let crawl = Crawl::new(pages, spread);
    crawl.run(|fetched| {
        println!("After {fetched} of them a node is killed.");
        let mut node = nodes.pop().ok_or("there is no node")?;
        node.process.kill()?;
        node.process.wait()?;
        nodes.push(Node::start(folder, node.port)?);
        println!("It is started again on its files. The workers go on.");
        Ok(())
    })?;
    let seconds = started.elapsed().as_secs_f64();

    println!("\nFigures");
    crawl.figures();
    for node in &nodes {
        let memory = used_memory(&mut node.connect()?)?;
        figure("memory of a node, bytes", memory);
    }
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
