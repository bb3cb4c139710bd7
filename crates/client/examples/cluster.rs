//! The crawler on a cluster of three nodes with a replica each, over a `SpreadFilter`: redis-server
//! with our module. While it crawls, a slot moves, a replica takes over, a node is killed, and a
//! part of the filter is lost.
//!
//! `cargo run --release --example cluster`; `-- --items 20000` makes the web smaller. It needs
//! redis-server from 7.0 on, and builds the module.

mod support;

use std::sync::{PoisonError, RwLock};
use std::time::{Duration, Instant};

use everbloom_client::{BatchError, Error, SpreadFilter, cluster_client};
use everbloom_dev::Cluster;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use support::crawl::{Crawl, ERROR_RATE, Event, LINKS, Seen, WORKERS};
use support::{Outcome, Problem, argument, figure};
use tokio::runtime::Runtime;

/// Filters that the URLs are spread over: several times as many as nodes.
const SHARDS: u32 = 16;
/// How long an add waits for a replica.
const REPLICA_TIME: Duration = Duration::from_secs(1);

/// What happens while the workers crawl. Node `3 + n` begins as the replica of node `n`.
const EVENTS: [Event<Cluster>; 4] = [move_a_slot, take_over, kill_a_node, lose_a_filter];

fn move_a_slot(cluster: &mut Cluster, fetched: u64) -> Outcome {
    println!("After {fetched} of them the slot of a filter moves to another node.");
    let (slot, from) = cluster.slot("{seen:0}");
    cluster.move_slot(slot, from, (from + 1) % 3);
    Ok(())
}

fn take_over(cluster: &mut Cluster, fetched: u64) -> Outcome {
    println!("After {fetched} of them a replica takes over in order.");
    cluster.take_over(3);
    cluster.wait_for_replica(0);
    Ok(())
}

fn kill_a_node(cluster: &mut Cluster, fetched: u64) -> Outcome {
    println!("After {fetched} of them a node is killed.");
    cluster.kill(1);
    println!("Its replica has taken over. It is started again as the replica.");
    Ok(())
}

fn lose_a_filter(cluster: &mut Cluster, fetched: u64) -> Outcome {
    println!("After {fetched} of them one of the filters is deleted.");
    let mut connection = cluster_client(cluster.addresses())
        .build()?
        .get_connection()?;
    redis::cmd("DEL").arg("{seen:3}").exec(&mut connection)?;
    Ok(())
}

/// What the workers share: one filter over many keys, whose parts are asked side by side.
struct Spread {
    cluster: ClusterClient,
    seen: RwLock<SpreadFilter>,
    capacity: u64,
    runtime: Runtime,
}

impl Spread {
    fn create(nodes: &Cluster, capacity: u64) -> Outcome<Spread> {
        let cluster = cluster_client(nodes.addresses()).build()?;
        let mut connection = cluster.get_connection()?;
        let seen = SpreadFilter::create(&mut connection, "seen", capacity, ERROR_RATE, SHARDS)?;
        let seen = RwLock::new(seen.with_replicas(1, REPLICA_TIME));
        let runtime = Runtime::new()?;
        Ok(Spread {
            cluster,
            seen,
            capacity,
            runtime,
        })
    }

    fn filter(&self) -> SpreadFilter {
        let seen = self.seen.read().unwrap_or_else(PoisonError::into_inner);
        seen.clone()
    }
}

impl Seen for &Spread {
    type Connection = ClusterConnection;

    fn connect(&self) -> Outcome<ClusterConnection> {
        Ok(self.runtime.block_on(self.cluster.get_async_connection())?)
    }

    fn known(&self, connection: &mut ClusterConnection, urls: &[String]) -> Outcome<Vec<bool>> {
        let seen = self.filter();
        let known = seen.contains_all_async(connection, urls);
        Ok(self.runtime.block_on(known)?)
    }

    fn add(&self, connection: &mut ClusterConnection, urls: &[String]) -> Outcome<Vec<bool>> {
        let seen = self.filter();
        let new = seen.add_all_async(connection, urls);
        Ok(self.runtime.block_on(new)?)
    }

    fn is_loss(error: &Problem) -> bool {
        let batch: Option<&BatchError> = error.downcast_ref();
        batch.is_some_and(|batch| matches!(batch.error, Error::MissingKeys { .. }))
    }

    fn restore(&self, connection: &mut ClusterConnection) -> Outcome {
        let restore =
            SpreadFilter::restore_async(connection, "seen", self.capacity, ERROR_RATE, SHARDS);
        let (restored, lost) = self.runtime.block_on(restore)?;
        println!("The filter has lost {lost:?}. All fetched pages are added again.");
        let mut seen = self.seen.write().unwrap_or_else(PoisonError::into_inner);
        *seen = restored.with_replicas(1, REPLICA_TIME);
        Ok(())
    }
}

fn main() -> Outcome {
    let pages = argument("items", 1_000_000)?;
    let mut cluster = Cluster::with_replicas().ok_or("this example needs redis-server")?;
    println!("A cluster of 3 nodes with replicas has {SHARDS} filters, which are one.");
    let spread = Spread::create(&cluster, pages)?;

    println!("{WORKERS} workers crawl {pages} pages with {LINKS} links each.");
    let started = Instant::now();
    let crawl = Crawl::new(pages, &spread);
    crawl.run(&mut cluster, &EVENTS)?;
    let seconds = started.elapsed().as_secs_f64();

    let mut connection = spread.cluster.get_connection()?;
    let fresh = SpreadFilter::open(&mut connection, "seen")?;
    let mut forgotten_by = |filter: &SpreadFilter| {
        crawl.forgotten(|urls| Ok(filter.contains_all(&mut connection, urls)?))
    };
    let forgotten = [forgotten_by(&spread.filter())?, forgotten_by(&fresh)?];

    println!("\nFigures");
    crawl.figures();
    figure("fetched, and forgotten by this program", forgotten[0]);
    figure("fetched, and forgotten by a new one", forgotten[1]);
    for node in &cluster.nodes {
        let memory = node.client().info("used_memory");
        figure("memory of a node, bytes", memory);
    }
    figure("seconds", format!("{seconds:.2}"));
    Ok(())
}
