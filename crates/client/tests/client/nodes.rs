//! A cluster of redis-servers with the module, without persistence.

use std::collections::BTreeSet;

use everbloom_client::cluster_client;
use everbloom_dev::{Redis, module, wait_for};
use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Connection, Value};
use tempfile::TempDir;

use crate::support::connect;

pub(crate) const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

/// Three primaries, and behind them a replica for each, if it has any.
pub(crate) struct Cluster {
    pub(crate) nodes: Vec<Redis>,
    _dirs: Vec<TempDir>,
}

pub(crate) fn ask(connection: &mut Connection, line: &str) -> Value {
    try_ask(connection, line).unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn try_ask(connection: &mut Connection, line: &str) -> redis::RedisResult<Value> {
    let mut words = line.split(' ');
    let mut command = redis::cmd(words.next().unwrap());
    for word in words {
        command.arg(word);
    }
    command.query(connection)
}

pub(crate) fn text(connection: &mut Connection, line: &str) -> String {
    redis::from_redis_value(ask(connection, line)).unwrap()
}

/// A node as another one sees it: its id, its epoch and its slots.
type Seen = (String, String, Vec<String>);

/// What a node says of all primaries, in order.
fn view(node: &Redis) -> Vec<Seen> {
    let lines = text(&mut connect(node.addr), "CLUSTER NODES");
    let lines = lines.lines().map(|line| line.split(' ').collect());
    let primaries = lines.filter(|words: &Vec<&str>| words[2].contains("master"));
    let mut nodes: Vec<_> = primaries
        .map(|words| {
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
    /// Three primaries.
    pub(crate) fn start() -> Option<Cluster> {
        Cluster::of(3)
    }

    /// Three primaries, and node `3 + n` is the replica of node `n`.
    pub(crate) fn with_replicas() -> Option<Cluster> {
        let cluster = Cluster::of(6)?;
        for (primary, replica) in cluster.nodes.iter().zip(&cluster.nodes[3..]) {
            let id = text(&mut connect(primary.addr), "CLUSTER MYID");
            let mut replica = connect(replica.addr);
            wait_for("the replica to know its primary", || {
                try_ask(&mut replica, &format!("CLUSTER REPLICATE {id}")).is_ok()
            });
            wait_for("the replica", || is_in_sync(&mut replica));
        }
        cluster.settle();
        Some(cluster)
    }

    fn of(count: usize) -> Option<Cluster> {
        let module = module().to_str().unwrap();
        let dirs: Vec<TempDir> = (0..count).map(|_| tempfile::tempdir().unwrap()).collect();
        let nodes = dirs.iter().map(|dir| {
            let dir = dir.path().to_str().unwrap();
            let settings = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
            let more = ["--dir", dir, "--loadmodule", module];
            let replicas = ["--repl-diskless-sync-delay", "0"];
            Redis::start(&[&settings[..], &more, &replicas].concat())
        });
        let nodes = nodes.collect::<Option<Vec<Redis>>>()?;
        for (number, node) in nodes.iter().enumerate() {
            let mut connection = connect(node.addr);
            if let Some((first, last)) = SLOTS.get(number) {
                let slots = format!("CLUSTER ADDSLOTSRANGE {first} {last}");
                ask(&mut connection, &slots);
            }
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
                info.contains("cluster_state:ok")
                    && info.contains(&format!("cluster_known_nodes:{count}"))
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
            views.iter().all(|view| *view == views[0]) && epochs.len() == views[0].len()
        });
    }

    pub(crate) fn client(&self) -> ClusterClient {
        let nodes = self
            .nodes
            .iter()
            .map(|node| format!("redis://{}", node.addr));
        cluster_client(nodes).build().unwrap()
    }

    pub(crate) fn connect(&self) -> ClusterConnection {
        self.client().get_connection().unwrap()
    }

    /// The slot of a key, and the primary that has it.
    pub(crate) fn slot(&self, key: &str) -> (u16, usize) {
        let line = format!("CLUSTER KEYSLOT {key}");
        let slot = ask(&mut connect(self.nodes[0].addr), &line);
        let slot: u16 = redis::from_redis_value(slot).unwrap();
        let mut ranges = SLOTS.iter();
        let owner = ranges.position(|(first, last)| (*first..=*last).contains(&slot));
        (slot, owner.unwrap())
    }

    /// Begins to move a slot to another node, and returns its keys.
    pub(crate) fn begin_move(&self, slot: u16, from: usize, to: usize) -> Vec<String> {
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
        redis::from_redis_value(keys).unwrap()
    }

    pub(crate) fn move_key(&self, key: &str, from: usize, to: usize) {
        let port = self.nodes[to].addr.port();
        let line = format!("MIGRATE 127.0.0.1 {port} {key} 0 10000");
        ask(&mut connect(self.nodes[from].addr), &line);
    }

    /// Ends the move of a slot whose keys have moved.
    pub(crate) fn end_move(&self, slot: u16, from: usize, to: usize) {
        let target = text(&mut connect(self.nodes[to].addr), "CLUSTER MYID");
        // First the target, which takes a new epoch, then the source, and then who only watches.
        let watchers = (0..3).filter(|node| ![from, to].contains(node));
        for node in [to, from].into_iter().chain(watchers) {
            let mut connection = connect(self.nodes[node].addr);
            ask(
                &mut connection,
                &format!("CLUSTER SETSLOT {slot} NODE {target}"),
            );
        }
        self.settle();
    }

    /// Moves a slot and all its keys to another node.
    pub(crate) fn move_slot(&self, slot: u16, from: usize, to: usize) {
        for key in self.begin_move(slot, from, to) {
            self.move_key(&key, from, to);
        }
        self.end_move(slot, from, to);
    }

    /// Waits until a node that was a replica has taken over.
    pub(crate) fn wait_for_primary(&self, node: usize) {
        let mut connection = connect(self.nodes[node].addr);
        wait_for("the replica to take over", || {
            text(&mut connection, "INFO replication").contains("role:master")
        });
    }

    /// Waits until a node is a replica and has everything.
    pub(crate) fn wait_for_replica(&self, node: usize) {
        let mut connection = connect(self.nodes[node].addr);
        wait_for("the replica", || is_in_sync(&mut connection));
    }
}

fn is_in_sync(connection: &mut Connection) -> bool {
    text(connection, "INFO replication").contains("master_link_status:up")
}
