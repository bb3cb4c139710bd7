//! The crawler on a cluster of three nodes, over a `SpreadFilter`: redis-server with our module. A
//! node is killed in the middle and started again on its files.
//!
//! `cargo run --release --example cluster`; `-- --items 20000` makes the web smaller. It needs
//! redis-server from 7.0 on, and builds the module.

mod support;

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use everbloom_client::SpreadFilter;
use everbloom_dev::{Process, free_port, module, wait_for};
use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::cluster_async::ClusterConnection;
use redis::{Connection, RedisResult};
use support::crawl::{Crawl, ERROR_RATE, LINKS, Seen, WORKERS};
use support::{Outcome, argument, figure, used_memory};
use tokio::runtime::Runtime;

const NODES: u16 = 3;
/// Filters that the URLs are spread over: several times as many as nodes.
const SHARDS: u32 = 16;
/// How long a node may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
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

/// What the workers share: one filter over many keys, whose parts are asked side by side.
struct Spread {
    cluster: ClusterClient,
    seen: SpreadFilter,
    runtime: Runtime,
}

impl Spread {
    fn create(nodes: &[Node], capacity: u64) -> Outcome<Spread> {
        let cluster = ClusterClientBuilder::new(nodes.iter().map(Node::address))
            .response_timeout(PATIENCE)
            .build()?;
        let mut connection = cluster.get_connection()?;
        let seen = SpreadFilter::create(&mut connection, "seen", capacity, ERROR_RATE, SHARDS)?;
        let runtime = Runtime::new()?;
        Ok(Spread {
            cluster,
            seen,
            runtime,
        })
    }
}

impl Seen for Spread {
    type Connection = ClusterConnection;

    fn connect(&self) -> Outcome<ClusterConnection> {
        Ok(self.runtime.block_on(self.cluster.get_async_connection())?)
    }

    fn known(&self, connection: &mut ClusterConnection, urls: &[String]) -> Outcome<Vec<bool>> {
        let known = self.seen.contains_all_async(connection, urls);
        Ok(self.runtime.block_on(known)?)
    }

    fn add(&self, connection: &mut ClusterConnection, urls: &[String]) -> Outcome<Vec<bool>> {
        let new = self.seen.add_all_async(connection, urls);
        Ok(self.runtime.block_on(new)?)
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
    let spread = Spread::create(&nodes, pages)?;

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
