//! The crawler on a cluster of three nodes, over a `SpreadFilter`: redis-server with our module. A
//! node is killed in the middle and started again on its files.
//!
//! `cargo run --release --example cluster`; `-- --items 20000` makes the web smaller. It needs
//! redis-server from 7.0 on, and builds the module.

mod support;

use std::time::Instant;

use everbloom_client::{SpreadFilter, cluster_client};
use everbloom_dev::{Redis, module, wait_for};
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::{Connection, RedisResult};
use support::crawl::{Crawl, ERROR_RATE, LINKS, Seen, WORKERS};
use support::{Outcome, argument, figure, used_memory};
use tokio::runtime::Runtime;

const NODES: u16 = 3;
/// Filters that the URLs are spread over: several times as many as nodes.
const SHARDS: u32 = 16;
const SLOTS: u16 = 16_384;

/// Starts a redis-server with the module, which writes each change to its log before it replies.
fn start_node() -> Outcome<Redis> {
    let module = module().to_str().ok_or("the module's path is no text")?;
    let cluster = ["--cluster-enabled", "yes", "--loadmodule", module];
    let log = ["--appendonly", "yes", "--appendfsync", "always"];
    let node = Redis::start(&[cluster, log].concat());
    Ok(node.ok_or("this example needs redis-server")?)
}

fn address(node: &Redis) -> String {
    format!("redis://{}/", node.addr)
}

fn connect(node: &Redis) -> RedisResult<Connection> {
    redis::Client::open(address(node))?.get_connection()
}

/// Whether a node knows nodes for all slots.
fn knows_all(node: &Redis) -> bool {
    let ask = |mut connection| redis::cmd("CLUSTER").arg("INFO").query(&mut connection);
    let info: RedisResult<String> = connect(node).and_then(ask);
    info.is_ok_and(|info| {
        info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
    })
}

/// Starts three nodes and makes a cluster of them, each with a third of the slots.
fn start_cluster() -> Outcome<Vec<Redis>> {
    let nodes: Outcome<Vec<Redis>> = (0..NODES).map(|_| start_node()).collect();
    let nodes = nodes?;
    for (number, node) in (0..).zip(&nodes) {
        let mut connection = connect(node)?;
        let mut slots = redis::cmd("CLUSTER");
        let share = SLOTS.div_ceil(NODES);
        let last = SLOTS.min((number + 1) * share) - 1;
        slots.arg("ADDSLOTSRANGE").arg(number * share).arg(last);
        slots.exec(&mut connection)?;
        for other in &nodes {
            let mut meet = redis::cmd("CLUSTER");
            meet.arg("MEET").arg("127.0.0.1").arg(other.addr.port());
            meet.exec(&mut connection)?;
        }
    }
    wait_for("the cluster", || nodes.iter().all(knows_all));
    Ok(nodes)
}

/// What the workers share: one filter over many keys, whose parts are asked side by side.
struct Spread {
    cluster: ClusterClient,
    seen: SpreadFilter,
    runtime: Runtime,
}

impl Spread {
    fn create(nodes: &[Redis], capacity: u64) -> Outcome<Spread> {
        let cluster = cluster_client(nodes.iter().map(address)).build()?;
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

impl Seen for &Spread {
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
    let pages = argument("items", 1_000_000)?;
    let mut nodes = start_cluster()?;
    println!("A cluster of {NODES} nodes has {SHARDS} filters, which are one.");
    let spread = Spread::create(&nodes, pages)?;

    println!("{WORKERS} workers crawl {pages} pages with {LINKS} links each.");
    let started = Instant::now();
    let crawl = Crawl::new(pages, &spread);
    crawl.run(|fetched| {
        println!("After {fetched} of them a node is killed.");
        let mut node = nodes.pop().ok_or("there is no node")?;
        node.kill();
        node.start_again();
        nodes.push(node);
        println!("It is started again on its files. The workers go on.");
        Ok(())
    })?;
    let seconds = started.elapsed().as_secs_f64();

    let mut connection = spread.cluster.get_connection()?;
    let fresh = SpreadFilter::open(&mut connection, "seen")?;
    let mut forgotten_by = |filter: &SpreadFilter| {
        crawl.forgotten(|urls| Ok(filter.contains_all(&mut connection, urls)?))
    };
    let forgotten = [forgotten_by(&spread.seen)?, forgotten_by(&fresh)?];

    println!("\nFigures");
    crawl.figures();
    figure("fetched, and forgotten by this program", forgotten[0]);
    figure("fetched, and forgotten by a new one", forgotten[1]);
    for node in &nodes {
        let memory = used_memory(&mut connect(node)?)?;
        figure("memory of a node, bytes", memory);
    }
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
