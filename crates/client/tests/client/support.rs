//! Servers, and connections to them.

use std::net::SocketAddr;
use std::time::Duration;

use everbloom_client::cluster_client;
use everbloom_client::redis::cluster::{ClusterClient, ClusterConnection};
use everbloom_client::redis::{Client, Connection};
use everbloom_dev::{Cluster, Redis};
use everbloom_server::{Running, Server, Settings};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};

/// A server that runs until it is dropped.
pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) addr: SocketAddr,
    redis: Option<Redis>,
    _serve: Option<Running>,
}

impl Host {
    fn redis() -> Option<Host> {
        let redis = Redis::start(&[])?;
        Some(Host {
            name: "redis-server",
            addr: redis.addr,
            redis: Some(redis),
            _serve: None,
        })
    }

    pub(crate) fn serve() -> Host {
        let serve = Server::start(Settings {
            port: 0,
            ..Settings::default()
        });
        let serve = serve.unwrap();
        Host {
            name: "everbloom serve",
            addr: serve.addr().unwrap(),
            redis: None,
            _serve: Some(serve),
        }
    }

    /// Whether it has lists, hashes and `CLIENT PAUSE`, which `everbloom serve` has not.
    pub(crate) fn is_redis(&self) -> bool {
        self.redis.is_some()
    }

    pub(crate) fn connect(&self) -> Connection {
        connect(self.addr)
    }
}

/// The servers with the commands on bitmaps.
pub(crate) fn with_bitmaps() -> Vec<Host> {
    Host::redis().into_iter().chain([Host::serve()]).collect()
}

/// The servers with the `BF` commands.
pub(crate) fn with_filters() -> Vec<Host> {
    vec![Host::serve()]
}

/// A replica of a redis-server, and its folder.
pub(crate) fn replica_of(primary: &Redis) -> (Redis, TempDir) {
    let port = primary.addr.port().to_string();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let replica = Redis::start(&["--replicaof", "127.0.0.1", &port, "--dir", path]);
    (replica.unwrap(), dir)
}

/// The runtime of a test.
pub(crate) fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn connect(addr: SocketAddr) -> Connection {
    let client = Client::open(format!("redis://{addr}")).unwrap();
    let connection = client.get_connection().unwrap();
    let patience = Some(Duration::from_secs(60));
    connection.set_read_timeout(patience).unwrap();
    connection
}

pub(crate) fn client_of(cluster: &Cluster) -> ClusterClient {
    cluster_client(cluster.addresses()).build().unwrap()
}

pub(crate) fn connect_to(cluster: &Cluster) -> ClusterConnection {
    client_of(cluster).get_connection().unwrap()
}

/// Different items: `first0`, `first1`, ...
pub(crate) fn items(first: &str, count: usize) -> Vec<String> {
    (0..count).map(|i| format!("{first}{i}")).collect()
}
