//! A cluster of three nodes, each a redis-server with the module.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use everbloom_client::{BatchError, BitmapFilter, Error, SpreadFilter};
use everbloom_dev::{Redis, StopOnDrop, module, wait_for, wait_for_ok};
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Connection, Value};
use tempfile::TempDir;

use crate::support::{connect, items, runtime};

const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

struct Cluster {
    nodes: Vec<Redis>,
    _dirs: Vec<TempDir>,
}

fn ask(connection: &mut Connection, line: &str) -> Value {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command
        .query(connection)
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn text(connection: &mut Connection, line: &str) -> String {
    redis::from_redis_value(ask(connection, line)).unwrap()
}

/// What a node says of all nodes: their ids, epochs and slots, in order.
fn view(node: &Redis) -> Vec<(String, String, Vec<String>)> {
    let lines = text(&mut connect(node.addr), "CLUSTER NODES");
    let mut nodes: Vec<_> = lines
        .lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            // A slot on its way stands in brackets.
            let slots = words[8..].iter().filter(|slot| !slot.starts_with('['));
            let slots = slots.map(|slot| slot.to_string()).collect();
            (words[0].to_string(), words[6].to_string(), slots)
        })
        .collect();
    nodes.sort();
    nodes
}

impl Cluster {
    fn start() -> Option<Cluster> {
        let module = module().to_str().unwrap();
        let dirs: Vec<TempDir> = SLOTS.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        let nodes = dirs.iter().map(|dir| {
            let dir = dir.path().to_str().unwrap();
            let settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
            let more = ["--dir", dir, "--loadmodule", module];
            Redis::start(&[settings, more].concat())
        });
        let nodes = nodes.collect::<Option<Vec<Redis>>>()?;
        for (number, (node, (first, last))) in nodes.iter().zip(SLOTS).enumerate() {
            let mut connection = connect(node.addr);
            ask(
                &mut connection,
                &format!("CLUSTER ADDSLOTSRANGE {first} {last}"),
            );
            // Nodes of one epoch settle later who is right, and may take a moved slot back. A node
            // takes an epoch only before it knows another.
            let epoch = number + 1;
            ask(
                &mut connection,
                &format!("CLUSTER SET-CONFIG-EPOCH {epoch}"),
            );
        }
        for node in &nodes {
            let mut connection = connect(node.addr);
            for other in &nodes {
                let port = other.addr.port();
                ask(&mut connection, &format!("CLUSTER MEET 127.0.0.1 {port}"));
            }
        }
        let cluster = Cluster { nodes, _dirs: dirs };
        for node in &cluster.nodes {
            let mut connection = connect(node.addr);
            wait_for("the cluster", || {
                let info = text(&mut connection, "CLUSTER INFO");
                info.contains("cluster_state:ok") && info.contains("cluster_known_nodes:3")
            });
        }
        cluster.settle();
        Some(cluster)
    }

    /// Waits until all nodes have heard the same of each other. A node that takes a new epoch
    /// before it has heard of the last one takes the same, and which of the two is right is then
    /// settled by their names: a slot could go back to a node that has given it away, and each of
    /// the two would send clients to the other for ever.
    fn settle(&self) {
        wait_for("the nodes to agree", || {
            let views: Vec<_> = self.nodes.iter().map(view).collect();
            let epochs: BTreeSet<&str> = views[0].iter().map(|node| node.1.as_str()).collect();
            views.iter().all(|view| *view == views[0]) && epochs.len() == self.nodes.len()
        });
    }

    fn client(&self) -> ClusterClient {
        let nodes = self
            .nodes
            .iter()
            .map(|node| format!("redis://{}", node.addr));
        ClusterClient::new(nodes).unwrap()
    }

    fn connect(&self) -> ClusterConnection {
        self.client().get_connection().unwrap()
    }

    /// Moves the slot of the key `seen` and all its keys to another node.
    fn move_slot(&self, slot: u16, from: usize, to: usize) {
        let mut source = connect(self.nodes[from].addr);
        let mut target = connect(self.nodes[to].addr);
        let source_id = text(&mut source, "CLUSTER MYID");
        let target_id = text(&mut target, "CLUSTER MYID");
        ask(
            &mut target,
            &format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}"),
        );
        ask(
            &mut source,
            &format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}"),
        );
        let keys = ask(&mut source, &format!("CLUSTER GETKEYSINSLOT {slot} 100"));
        let keys: Vec<String> = redis::from_redis_value(keys).unwrap();
        let port = self.nodes[to].addr.port();
        for key in keys {
            ask(
                &mut source,
                &format!("MIGRATE 127.0.0.1 {port} {key} 0 10000"),
            );
        }
        // First the target, which takes a new epoch, then the source, and then who only watches.
        let watcher = 3 - from - to;
        for node in [to, from, watcher] {
            let mut connection = connect(self.nodes[node].addr);
            ask(
                &mut connection,
                &format!("CLUSTER SETSLOT {slot} NODE {target_id}"),
            );
        }
        self.settle();
    }
}

#[test]
fn a_spread_filter_uses_every_node() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut connection = cluster.connect();
    let seen = SpreadFilter::create(&mut connection, "seen", 10_000, 1e-9, 12).unwrap();
    let (first, second) = (items("first", 10_000), items("second", 20_000));
    let new = seen.add_all(&mut connection, &first).unwrap();
    assert!(new.iter().all(|new| *new));
    for node in &cluster.nodes {
        let keys = ask(&mut connect(node.addr), "DBSIZE");
        assert_ne!(keys, Value::Int(0), "a node has no shard");
    }
    // Batches side by side, past the first generation, over a client that is waited for.
    runtime().block_on(async {
        let mut connection = cluster.client().get_async_connection().await.unwrap();
        let seen = SpreadFilter::open_async(&mut connection, "seen")
            .await
            .unwrap();
        let new = seen.add_all_async(&mut connection, &second).await.unwrap();
        assert!(new.iter().all(|new| *new));
        let known = seen
            .contains_all_async(&mut connection, &first)
            .await
            .unwrap();
        assert!(known.iter().all(|known| *known));
    });
    for items in [&first, &second] {
        let known = seen.contains_all(&mut connection, items).unwrap();
        assert!(known.iter().all(|known| *known));
    }
    assert_eq!(seen.count(&mut connection).unwrap(), 30_000);
}

/// Asks until there is an answer, past errors that pass by themselves. A cluster's client may hand
/// on that a slot has moved, and know better at the next call.
fn answered(mut ask: impl FnMut() -> Result<Vec<bool>, BatchError>) -> Vec<bool> {
    wait_for_ok("an answer", || {
        ask().inspect_err(|batch| {
            let passes = batch.error.is_temporary() || matches!(batch.error, Error::Moved { .. });
            assert!(passes, "{batch}");
        })
    })
}

#[test]
fn a_slot_moves_while_items_are_added() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let seen = BitmapFilter::create(&mut cluster.connect(), "seen", 100_000, 1e-9).unwrap();
    let keys = ask(&mut connect(cluster.nodes[0].addr), "CLUSTER KEYSLOT seen");
    let slot: u16 = redis::from_redis_value(keys).unwrap();
    let owner = SLOTS
        .iter()
        .position(|(first, last)| (*first..=*last).contains(&slot))
        .unwrap();
    let done = AtomicBool::new(false);
    let added = thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let adder = scope.spawn(|| {
            let mut connection = cluster.connect();
            let mut added = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let batch = items(&format!("batch{}-", added.len()), 100);
                // A retry is safe, whatever happened.
                answered(|| seen.add_all(&mut connection, &batch));
                added.extend(batch);
            }
            added
        });
        for step in 0..6 {
            cluster.move_slot(slot, (owner + step) % 3, (owner + step + 1) % 3);
        }
        drop(stop);
        adder.join().unwrap()
    });
    let mut connection = cluster.connect();
    assert!(added.len() >= 100);
    let known = answered(|| seen.contains_all(&mut connection, &added));
    assert!(known.iter().all(|known| *known), "of {}", added.len());
}

#[test]
fn a_node_alone_says_where_the_key_is() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    BitmapFilter::create(&mut cluster.connect(), "{tag}seen", 1000, 0.01).unwrap();
    let outcomes = cluster.nodes.iter().map(|node| {
        let outcome = BitmapFilter::open(&mut connect(node.addr), "{tag}seen");
        match outcome {
            Ok(_) => true,
            Err(Error::Moved { node }) => {
                assert!(node.starts_with("127.0.0.1:"), "{node}");
                false
            }
            Err(error) => panic!("{error:?}"),
        }
    });
    assert_eq!(outcomes.filter(|here| *here).count(), 1);
}

#[test]
fn a_node_that_dies_takes_its_shards_and_no_others() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let mut connection = cluster.connect();
    let seen = SpreadFilter::create(&mut connection, "seen", 10_000, 1e-9, 12).unwrap();
    let all = items("item", 3000);
    seen.add_all(&mut connection, &all).unwrap();
    // The others go on only when they are told to.
    for node in &cluster.nodes {
        ask(
            &mut connect(node.addr),
            "CONFIG SET cluster-require-full-coverage no",
        );
    }
    cluster.nodes[1].kill();
    let batch = seen.contains_all(&mut connection, &all).unwrap_err();
    let (unknown, known) = (batch.unknown().count(), batch.answers.iter().flatten());
    assert!((300..2700).contains(&unknown), "{unknown}: {batch}");
    assert!(known.into_iter().all(|known| *known));
}
