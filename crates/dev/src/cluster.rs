//! A cluster of redis-servers with the module, without persistence.

use std::collections::BTreeSet;

use everbloom_resp::Reply;

use crate::module::module;
use crate::process::Redis;
use crate::wait::wait_for;

const SLOTS: [(u16, u16); 3] = [(0, 5460), (5461, 10_922), (10_923, 16_383)];

/// Three primaries, and behind them a replica for each, if it has any.
#[derive(Debug)]
pub struct Cluster {
    /// The servers.
    pub nodes: Vec<Redis>,
}

/// A node as another one sees it: its id, its epoch and its slots.
type Seen = (String, String, Vec<String>);

/// What a node says of all primaries, in order.
fn view(node: &Redis) -> Vec<Seen> {
    let lines = node.client().text("CLUSTER NODES");
    let lines = lines.lines().map(|line| line.split(' ').collect());
    let primaries = lines.filter(|words: &Vec<&str>| words[2].contains("master"));
    let mut nodes: Vec<_> = primaries
        .map(|words| {
            // A slot on its way stands in brackets.
            let slots = words[8..].iter().filter(|slot| !slot.starts_with('['));
            let slots = slots.map(|slot| (*slot).to_owned()).collect();
            (words[0].to_owned(), words[6].to_owned(), slots)
        })
        .collect();
    nodes.sort();
    nodes
}

impl Cluster {
    /// Three primaries; without redis-server, the test is to skip.
    pub fn start() -> Option<Cluster> {
        Cluster::of(3)
    }

    /// Three primaries, and node `3 + n` is the replica of node `n`.
    pub fn with_replicas() -> Option<Cluster> {
        let cluster = Cluster::of(6)?;
        for (primary, replica) in cluster.nodes.iter().zip(&cluster.nodes[3..]) {
            let id = primary.client().text("CLUSTER MYID");
            let mut replica = replica.client();
            wait_for("the replica to know its primary", || {
                !replica.line(&format!("CLUSTER REPLICATE {id}")).is_error()
            });
            replica.until("master_link_status", "up");
        }
        cluster.settle();
        Some(cluster)
    }

    fn of(count: usize) -> Option<Cluster> {
        let module = module().to_str().unwrap();
        let cluster = ["--cluster-enabled", "yes", "--cluster-node-timeout", "1000"];
        let more = ["--loadmodule", module, "--repl-diskless-sync-delay", "0"];
        let nodes = (0..count).map(|_| Redis::start(&[&cluster[..], &more].concat()));
        let nodes = nodes.collect::<Option<Vec<Redis>>>()?;
        for (number, node) in nodes.iter().enumerate() {
            let mut client = node.client();
            if let Some((first, last)) = SLOTS.get(number) {
                client.ok(&format!("CLUSTER ADDSLOTSRANGE {first} {last}"));
            }
            // Nodes of one epoch settle later who is right, and may take a moved slot back. A node
            // takes an epoch only before it knows another.
            client.ok(&format!("CLUSTER SET-CONFIG-EPOCH {}", number + 1));
        }
        for node in &nodes {
            let mut client = node.client();
            for other in &nodes {
                let port = other.addr.port();
                client.ok(&format!("CLUSTER MEET 127.0.0.1 {port}"));
            }
        }
        let cluster = Cluster { nodes };
        for node in &cluster.nodes {
            let mut client = node.client();
            wait_for("the cluster", || {
                let info = client.text("CLUSTER INFO");
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

    /// Where its nodes are, for a client of a cluster.
    pub fn addresses(&self) -> Vec<String> {
        let nodes = self.nodes.iter();
        nodes.map(|node| format!("redis://{}", node.addr)).collect()
    }

    /// The slot of a key, and the primary that had it at first.
    pub fn slot(&self, key: &str) -> (u16, usize) {
        let slot = self.nodes[0]
            .client()
            .number(&format!("CLUSTER KEYSLOT {key}"));
        let slot = u16::try_from(slot).unwrap();
        let mut ranges = SLOTS.iter();
        let owner = ranges.position(|(first, last)| (*first..=*last).contains(&slot));
        (slot, owner.unwrap())
    }

    /// Begins to move a slot to another primary, and returns its keys.
    pub fn begin_move(&self, slot: u16, from: usize, to: usize) -> Vec<String> {
        let [mut source, mut target] = [from, to].map(|node| self.nodes[node].client());
        let [source_id, target_id] = [&mut source, &mut target].map(|it| it.text("CLUSTER MYID"));
        target.ok(&format!("CLUSTER SETSLOT {slot} IMPORTING {source_id}"));
        source.ok(&format!("CLUSTER SETSLOT {slot} MIGRATING {target_id}"));
        let keys = source.ok(&format!("CLUSTER GETKEYSINSLOT {slot} 100"));
        let key = |key: &Reply| String::from_utf8(key.as_bytes().unwrap().to_vec()).unwrap();
        keys.into_elements().unwrap().iter().map(key).collect()
    }

    /// Moves a key of such a slot.
    pub fn move_key(&self, key: &str, from: usize, to: usize) {
        let port = self.nodes[to].addr.port();
        let mut source = self.nodes[from].client();
        source.ok(&format!("MIGRATE 127.0.0.1 {port} {key} 0 10000"));
    }

    /// Ends the move of a slot whose keys have moved.
    pub fn end_move(&self, slot: u16, from: usize, to: usize) {
        let target = self.nodes[to].client().text("CLUSTER MYID");
        // First the target, which takes a new epoch, then the source, and then who only watches.
        let watchers = (0..3).filter(|node| ![from, to].contains(node));
        for node in [to, from].into_iter().chain(watchers) {
            let mut client = self.nodes[node].client();
            client.ok(&format!("CLUSTER SETSLOT {slot} NODE {target}"));
        }
        self.settle();
    }

    /// Moves a slot and all its keys to another primary.
    pub fn move_slot(&self, slot: u16, from: usize, to: usize) {
        for key in self.begin_move(slot, from, to) {
            self.move_key(&key, from, to);
        }
        self.end_move(slot, from, to);
    }

    /// Lets a replica take over from its primary, in order.
    pub fn take_over(&self, replica: usize) {
        self.nodes[replica].client().ok("CLUSTER FAILOVER");
        self.wait_for_primary(replica);
    }

    /// Kills a primary, lets its replica take over, and starts it again as the replica.
    pub fn kill(&mut self, primary: usize) {
        self.nodes[primary].kill();
        self.wait_for_primary(primary + 3);
        self.nodes[primary].start_again();
        self.wait_for_replica(primary);
    }

    /// Waits until a node that was a replica has taken over.
    pub fn wait_for_primary(&self, node: usize) {
        self.nodes[node].client().until("role", "master");
    }

    /// Waits until a node is a replica and has everything.
    pub fn wait_for_replica(&self, node: usize) {
        let mut client = self.nodes[node].client();
        client.until("role", "slave");
        client.until("master_link_status", "up");
    }
}
