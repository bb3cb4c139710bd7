//! The crate `redis` on cuckoo filters. It has no functions for CF.*: its users name the commands.

use std::net::SocketAddr;

use everbloom_dev::{Redis, module};
use redis::{Connection, ErrorKind, RedisResult, Value, cmd, pipe};

use crate::support::Server;

/// The state of a filter, by the names of CF.INFO.
fn info(connection: &mut Connection, key: &str) -> Vec<u64> {
    let info: Value = cmd("CF.INFO").arg(key).query(connection).unwrap();
    let pairs: Vec<(String, u64)> = redis::from_redis_value(info).unwrap();
    pairs.into_iter().map(|(_, number)| number).collect()
}

fn cuckoo_filters(address: SocketAddr, protocol: &str) {
    let url = format!("redis://{address}/13?protocol={protocol}");
    let mut connection = redis::Client::open(url).unwrap().get_connection().unwrap();
    let redis = &mut connection;
    cmd("FLUSHDB").exec(redis).unwrap();

    cmd("CF.RESERVE").arg("k").arg(1000).exec(redis).unwrap();
    assert_eq!(info(redis, "k"), [1080, 512, 1, 0, 0, 2, 1, 20]);
    let answers: Vec<bool> = pipe()
        .cmd("CF.ADD")
        .arg("k")
        .arg("a")
        .cmd("CF.ADDNX")
        .arg("k")
        .arg("a")
        .cmd("CF.EXISTS")
        .arg("k")
        .arg("b")
        .query(redis)
        .unwrap();
    assert_eq!(answers, [true, false, false]);
    let mut insert = cmd("CF.INSERT");
    let inserted: Vec<bool> = insert
        .arg("k")
        .arg("ITEMS")
        .arg(&["a", "b"])
        .query(redis)
        .unwrap();
    assert_eq!(inserted, [true, true]);
    let count: u64 = cmd("CF.COUNT").arg("k").arg("a").query(redis).unwrap();
    assert_eq!(count, 2);
    let mut mexists = cmd("CF.MEXISTS");
    let found: Vec<bool> = mexists.arg("k").arg(&["a", "b", "c"]).query(redis).unwrap();
    assert_eq!(found, [true, true, false]);
    let (first, second, third): (bool, bool, bool) = pipe()
        .atomic()
        .cmd("CF.DEL")
        .arg("k")
        .arg("a")
        .cmd("CF.DEL")
        .arg("k")
        .arg("a")
        .cmd("CF.DEL")
        .arg("k")
        .arg("a")
        .query(redis)
        .unwrap();
    assert_eq!((first, second, third), (true, true, false));

    let mut position = 0;
    loop {
        let mut scan = cmd("CF.SCANDUMP");
        let piece: (u64, Option<Vec<u8>>) = scan.arg("k").arg(position).query(redis).unwrap();
        let (next, Some(data)) = piece else { break };
        position = next;
        let mut load = cmd("CF.LOADCHUNK");
        load.arg("copy")
            .arg(position)
            .arg(data)
            .exec(redis)
            .unwrap();
    }
    assert_eq!(info(redis, "copy"), info(redis, "k"));

    let refused: RedisResult<bool> = cmd("CF.DEL").arg("absent").arg("a").query(redis);
    assert_eq!(refused.unwrap_err().to_string(), "\"Not\": found");
    let refused: RedisResult<bool> = cmd("BF.ADD").arg("k").arg("a").query(redis);
    assert_ne!(refused.unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn redis_rs_against_serve() {
    let server = Server::start();
    for protocol in ["resp2", "resp3"] {
        cuckoo_filters(([127, 0, 0, 1], server.port).into(), protocol);
    }
}

#[test]
fn redis_rs_against_the_module() {
    let load = ["--loadmodule", module().to_str().unwrap()];
    if let Some(redis) = Redis::start(&load) {
        for protocol in ["resp2", "resp3"] {
            cuckoo_filters(redis.addr, protocol);
        }
    }
}
