//! A primary, its replica, and a sentinel that says which is which.

use everbloom_client::BitmapFilter;
use everbloom_dev::{Redis, start_server, wait_for};
use redis::sentinel::{SentinelClient, SentinelServerType};
use std::process::Command;

use crate::support::{connect, replica_of};

#[test]
fn the_filter_is_there_after_a_failover() {
    let Some(mut primary) = Redis::start(&["--repl-diskless-sync-delay", "0"]) else {
        return;
    };
    let (replica, dir) = replica_of(&primary);
    let port = primary.addr.port();
    let (_sentinel, addr) = start_server(dir.path(), |own_port| {
        let settings = format!(
            "port {own_port}\nsentinel monitor main 127.0.0.1 {port} 1\n\
             sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 3000\n"
        );
        std::fs::write(dir.path().join("sentinel.conf"), settings).unwrap();
        let mut command = Command::new("redis-server");
        command.args(["sentinel.conf", "--sentinel"]);
        command
    })
    .unwrap();
    let mut sentinel = connect(addr);
    wait_for("the sentinel to find the replica", || {
        let replicas = redis::cmd("SENTINEL").arg("REPLICAS").arg("main").take();
        replicas
            .query::<Vec<redis::Value>>(&mut sentinel)
            .unwrap()
            .len()
            == 1
    });

    let kind = SentinelServerType::Master;
    let address = vec![format!("redis://{addr}")];
    let client = SentinelClient::build(address, "main".into(), None, kind);
    let mut client = client.unwrap();
    let mut connection = client.get_connection().unwrap();
    let seen = BitmapFilter::create(&mut connection, "seen", 1000, 0.01).unwrap();
    seen.add(&mut connection, "a").unwrap();
    let wait = redis::cmd("WAIT").arg(1).arg(10_000).take();
    assert_eq!(wait.query(&mut connection), Ok(1));
    primary.kill();
    assert!(seen.add(&mut connection, "b").unwrap_err().is_temporary());
    wait_for("a new primary", || {
        let connection = client.get_connection();
        connection.is_ok_and(|mut connection| seen.add(&mut connection, "b").is_ok())
    });
    let mut connection = client.get_connection().unwrap();
    assert!(seen.contains(&mut connection, "a").unwrap());
    assert_eq!(
        BitmapFilter::open(&mut connect(replica.addr), "seen").unwrap(),
        seen
    );
}
