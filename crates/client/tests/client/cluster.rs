//! Filters in a cluster, whose nodes fail over, move slots, die and come back empty.

use std::collections::BTreeSet;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use everbloom_client::{BatchError, BitmapFilter, Error, SpreadFilter};
use everbloom_dev::{Cluster, StopOnDrop, wait_for, wait_for_ok};
use redis::Cmd;
use redis::cluster::ClusterConnection;

use crate::support::{client_of, connect, connect_to, items, runtime};

#[test]
fn a_spread_filter_uses_every_node() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut connection = connect_to(&cluster);
    let seen = SpreadFilter::create(&mut connection, "seen", 10_000, 1e-9, 12).unwrap();
    let (first, second) = (items("first", 10_000), items("second", 20_000));
    let new = seen.add_all(&mut connection, &first).unwrap();
    assert!(new.iter().all(|new| *new));
    for node in &cluster.nodes {
        assert_ne!(node.client().number("DBSIZE"), 0, "a node has no shard");
    }
    // Batches side by side, past the first generation, over a client that is waited for.
    runtime().block_on(async {
        let mut connection = client_of(&cluster).get_async_connection().await.unwrap();
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

/// Asks until there is an answer, past errors that pass by themselves.
fn answered(ask: impl FnMut() -> Result<Vec<bool>, BatchError>) -> Vec<bool> {
    lasting(ask).unwrap_or_else(|batch| panic!("{batch}"))
}

/// Asks until there is an answer, or an error that stays.
fn lasting(
    mut ask: impl FnMut() -> Result<Vec<bool>, BatchError>,
) -> Result<Vec<bool>, BatchError> {
    wait_for_ok("an answer", || match ask() {
        Err(batch) if batch.error.is_temporary() => Err(batch),
        lasts => Ok(lasts),
    })
}

#[track_caller]
fn assert_known(known: &[bool]) {
    let missing = known.iter().filter(|known| !**known).count();
    assert_eq!(missing, 0, "of {}", known.len());
}

#[test]
fn a_slot_moves_while_items_are_added() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let seen = BitmapFilter::create(&mut connect_to(&cluster), "seen", 100_000, 1e-9).unwrap();
    let (slot, owner) = cluster.slot("seen");
    let done = AtomicBool::new(false);
    let added = thread::scope(|scope| {
        let stop = StopOnDrop(&done);
        let adder = scope.spawn(|| {
            let mut connection = connect_to(&cluster);
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
    let mut connection = connect_to(&cluster);
    assert!(added.len() >= 100);
    assert_known(&answered(|| seen.contains_all(&mut connection, &added)));
}

#[test]
fn a_filter_whose_keys_are_on_two_nodes_is_asked_and_grows() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut connection = connect_to(&cluster);
    let seen = SpreadFilter::create(&mut connection, "seen", 40, 1e-6, 1).unwrap();
    let mut added = items("item", 300);
    seen.add_all(&mut connection, &added).unwrap();
    let (slot, from) = cluster.slot("{seen:0}");
    let to = (from + 1) % 3;
    let keys = cluster.begin_move(slot, from, to);
    assert!(keys.len() >= 4, "{keys:?}");
    let runtime = runtime();
    let client = client_of(&cluster);
    let mut waiting = runtime.block_on(client.get_async_connection()).unwrap();
    for key in keys {
        cluster.move_key(&key, from, to);
        let more = items(&format!("{key}-"), 100);
        let (first, second) = more.split_at(50);
        let new = seen.add_all(&mut connection, first).unwrap();
        assert_eq!(new.len(), 50);
        let adding = seen.add_all_async(&mut waiting, second);
        assert_eq!(runtime.block_on(adding).unwrap().len(), 50);
        added.extend(more);
        let fresh = SpreadFilter::open(&mut connection, "seen").unwrap();
        for filter in [&seen, &fresh] {
            assert_known(&filter.contains_all(&mut connection, &added).unwrap());
            let known = filter.contains_all_async(&mut waiting, &added);
            assert_known(&runtime.block_on(known).unwrap());
        }
    }
    // The generations that were made meanwhile are on the new node.
    cluster.end_move(slot, from, to);
    assert_known(&answered(|| seen.contains_all(&mut connection, &added)));
}

/// What adders share with the test.
struct Adding {
    seen: SpreadFilter,
    done: AtomicBool,
    batches: AtomicUsize,
    /// How many adders have met the loss of a key.
    warned: AtomicUsize,
    /// The filter after its repair.
    restored: OnceLock<SpreadFilter>,
}

impl Adding {
    /// Adds batches until it is told to stop, and returns what was acknowledged. After a loss it
    /// adds all of that once more.
    fn add(
        &self,
        name: &str,
        mut add: impl FnMut(&SpreadFilter, &[String]) -> Result<Vec<bool>, BatchError>,
    ) -> Vec<String> {
        let (mut seen, mut added) = (&self.seen, Vec::new());
        while !self.done.load(Ordering::Relaxed) {
            let batch = items(&format!("{name}{}-", added.len()), 50);
            if let Err(batch) = lasting(|| add(seen, &batch)) {
                let is_loss = matches!(batch.error, Error::MissingKeys { .. });
                assert!(is_loss && self.restored.get().is_none(), "{batch}");
                self.warned.fetch_add(1, Ordering::Relaxed);
                wait_for("the repair", || self.restored.get().is_some());
                seen = self.restored.get().unwrap();
                answered(|| add(seen, &added));
                continue;
            }
            added.extend(batch);
            self.batches.fetch_add(1, Ordering::Relaxed);
        }
        added
    }

    fn go_on(&self) {
        let before = self.batches.load(Ordering::Relaxed);
        wait_for("more batches", || {
            self.batches.load(Ordering::Relaxed) > before + 4
        });
    }

    /// Deletes a generation of a shard, and repairs the filter once every adder has noticed.
    fn lose_a_generation(&self, connection: &mut ClusterConnection) {
        let key = "{seen:0}:1";
        let delete = Cmd::del(key);
        wait_for("a second generation", || {
            delete.query(connection).unwrap_or(0) == 1
        });
        wait_for("the adders to notice", || {
            self.warned.load(Ordering::Relaxed) == 2
        });
        let (seen, lost) = SpreadFilter::restore(connection, "seen", 400, 1e-4, 12).unwrap();
        assert_eq!(lost, [key]);
        let seen = seen.with_replicas(1, Duration::from_secs(1));
        self.restored.set(seen).unwrap();
    }
}

#[test]
fn what_replicas_have_survives_moved_slots_failovers_and_a_repair() {
    let Some(mut cluster) = Cluster::with_replicas() else {
        return;
    };
    let mut connection = connect_to(&cluster);
    let seen = SpreadFilter::create(&mut connection, "seen", 400, 1e-4, 12).unwrap();
    let adding = Adding {
        seen: seen.with_replicas(1, Duration::from_secs(1)),
        done: AtomicBool::new(false),
        batches: AtomicUsize::new(0),
        warned: AtomicUsize::new(0),
        restored: OnceLock::new(),
    };
    let runtime = runtime();
    let (client, (slot, owner)) = (client_of(&cluster), cluster.slot("{seen:0}"));
    let added = thread::scope(|scope| {
        let stop = StopOnDrop(&adding.done);
        let blocking = scope.spawn(|| {
            let mut connection = client.get_connection().unwrap();
            adding.add("blocking", |seen, batch| {
                seen.add_all(&mut connection, batch)
            })
        });
        let waiting = scope.spawn(|| {
            let connection = runtime.block_on(client.get_async_connection());
            let mut connection = connection.unwrap();
            adding.add("waiting", |seen, batch| {
                runtime.block_on(seen.add_all_async(&mut connection, batch))
            })
        });
        adding.go_on();
        for step in 0..3 {
            cluster.move_slot(slot, (owner + step) % 3, (owner + step + 1) % 3);
        }
        adding.go_on();
        cluster.take_over(3);
        cluster.wait_for_replica(0);
        adding.go_on();
        cluster.kill(1);
        adding.go_on();
        // The crate redis goes on to answer "broken pipe" to single commands, once a node of a
        // blocking connection was killed.
        connection = client.get_connection().unwrap();
        adding.lose_a_generation(&mut connection);
        adding.go_on();
        drop(stop);
        [blocking, waiting]
            .map(|adder| adder.join().unwrap())
            .concat()
    });
    let fresh = SpreadFilter::open(&mut connection, "seen").unwrap();
    for filter in [adding.restored.get().unwrap(), &fresh] {
        assert_known(&answered(|| filter.contains_all(&mut connection, &added)));
    }
}

#[test]
fn an_addition_without_its_replicas_is_an_error_that_passes() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    let mut connection = connect_to(&cluster);
    let seen = SpreadFilter::create(&mut connection, "seen", 40, 1e-6, 2).unwrap();
    let wants = seen.clone().with_replicas(1, Duration::from_millis(5));
    // Of one generation, and of several.
    for items in [items("few", 10), items("many", 300)] {
        let errors = [
            wants.add_all(&mut connection, &items).unwrap_err(),
            runtime().block_on(async {
                let mut connection = client_of(&cluster).get_async_connection().await.unwrap();
                let adding = wants.add_all_async(&mut connection, &items);
                adding.await.unwrap_err()
            }),
        ];
        for batch in errors {
            let is_alone = matches!(
                &batch.error,
                Error::Replicas {
                    reached: 0,
                    wanted: 1
                }
            );
            assert!(is_alone, "{batch}");
            assert!(batch.error.is_temporary() && batch.unknown().count() == items.len());
        }
        // No answer counts before the replicas have everything, and look-ups need none.
        seen.add_all(&mut connection, &items).unwrap();
        assert_known(&wants.contains_all(&mut connection, &items).unwrap());
    }
}

#[test]
fn a_node_that_comes_back_empty_is_noticed_and_restored() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    let mut connection = connect_to(&cluster);
    let seen = SpreadFilter::create(&mut connection, "g2", 400, 0.001, 16).unwrap();
    let before = items("before", 4000);
    seen.add_all(&mut connection, &before).unwrap();
    cluster.nodes[1].kill();
    cluster.nodes[1].start_again();
    let shards = (0..16).map(|shard| format!("{{g2:{shard}}}"));
    let of_node: BTreeSet<String> = shards.filter(|key| cluster.slot(key).1 == 1).collect();

    // The process that runs, and one that begins.
    let after = items("after", 2000);
    let batch = wait_for_not_temporary(|| seen.add_all(&mut connection, &after).unwrap_err());
    let Error::MissingKeys { keys, .. } = &batch.error else {
        panic!("{batch}");
    };
    assert!(
        of_node.iter().any(|key| keys[0].starts_with(key)),
        "{keys:?}"
    );
    let error = SpreadFilter::open(&mut connection, "g2").unwrap_err();
    let Error::MissingKeys { keys, .. } = error else {
        panic!("{error}");
    };
    let first: BTreeSet<String> = keys.into_iter().filter(|key| key.ends_with('}')).collect();
    assert_eq!(first, of_node);
    let restore = |connection| SpreadFilter::restore(connection, "g2", 400, 0.001, 16);
    let (restored, lost) = restore(&mut connection).unwrap();
    assert!(of_node.iter().all(|key| lost.contains(key)), "{lost:?}");

    // A process that remembers more than there is learns of the loss, whoever has restored it.
    let error = seen.add_all(&mut connection, &after).unwrap_err().error;
    assert!(matches!(error, Error::MissingKeys { .. }), "{error}");
    restored.add_all(&mut connection, &after).unwrap();
    let fresh = SpreadFilter::open(&mut connection, "g2").unwrap();
    let of_batch = after.iter().zip(&batch.answers);
    let acknowledged = of_batch.filter(|(_, answer)| answer.is_some()).count();
    assert!((500..2000).contains(&acknowledged), "{acknowledged}");
    for filter in [&restored, &fresh] {
        assert_known(&filter.contains_all(&mut connection, &after).unwrap());
        let known = filter.contains_all(&mut connection, &before).unwrap();
        let known = known.iter().filter(|known| **known).count();
        assert!((2000..3500).contains(&known), "{known}");
    }
}

fn wait_for_not_temporary(mut fail: impl FnMut() -> BatchError) -> BatchError {
    let mut last = None;
    wait_for("the node", || {
        let batch = fail();
        let is_last = !batch.error.is_temporary();
        last = Some(batch);
        is_last
    });
    last.unwrap()
}

#[test]
fn a_call_ends_while_the_cluster_is_down() {
    let Some(mut cluster) = Cluster::start() else {
        return;
    };
    // Of a node that lives, and only answers that the cluster is down.
    let mut names = (0..).map(|number| format!("seen{number}"));
    let name = names.find(|name| cluster.slot(&format!("{{{name}:0}}")).1 == 0);
    let seen = SpreadFilter::create(&mut connect_to(&cluster), &name.unwrap(), 1000, 0.01, 1);
    let seen = seen.unwrap();
    let mut connection = connect_to(&cluster);
    cluster.nodes[1].kill();
    let mut other = cluster.nodes[0].client();
    wait_for("the cluster to be down", || {
        other.text("CLUSTER INFO").contains("cluster_state:fail")
    });
    let call = thread::spawn(move || seen.add(&mut connection, "a").unwrap_err());
    wait_for("the end of the call", || call.is_finished());
    let error = call.join().unwrap();
    assert!(error.is_temporary(), "{error:?}");
}

#[test]
fn a_node_alone_says_where_the_key_is() {
    let Some(cluster) = Cluster::start() else {
        return;
    };
    BitmapFilter::create(&mut connect_to(&cluster), "{tag}seen", 1000, 0.01).unwrap();
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
    let mut connection = connect_to(&cluster);
    let seen = SpreadFilter::create(&mut connection, "seen", 10_000, 1e-9, 12).unwrap();
    let all = items("item", 3000);
    seen.add_all(&mut connection, &all).unwrap();
    // The others go on only when they are told to.
    for node in &cluster.nodes {
        let mut client = node.client();
        client.ok("CONFIG SET cluster-require-full-coverage no");
    }
    cluster.nodes[1].kill();
    let batch = seen.contains_all(&mut connection, &all).unwrap_err();
    let (unknown, known) = (batch.unknown().count(), batch.answers.iter().flatten());
    assert!((300..2700).contains(&unknown), "{unknown}: {batch}");
    assert!(known.into_iter().all(|known| *known));
}
