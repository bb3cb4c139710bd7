//! Connections that are killed or sent away, SHUTDOWN, and what is not there.

use std::io::Read;
use std::net::TcpStream;

use socket2::{Domain, Socket, Type};

use super::*;

#[test]
fn connections_are_killed_from_outside() {
    let running = server(Settings::default());
    let mut killer = Client::of(&running);
    let id = |client: &mut Client| client.line("CLIENT ID").as_integer().unwrap();
    let mut victims: Vec<Client> = (0..5).map(|_| Client::of(&running)).collect();
    let ids: Vec<i64> = victims.iter_mut().map(id).collect();
    let addr = victims[1].stream.local_addr().unwrap();
    assert_eq!(
        killer.line(&format!("CLIENT KILL ID {}", ids[0])),
        Reply::Integer(1)
    );
    assert_eq!(killer.line(&format!("CLIENT KILL {addr}")), Reply::OK);
    let addr = victims[2].stream.local_addr().unwrap();
    assert_eq!(
        killer.line(&format!("CLIENT KILL ADDR {addr} SKIPME yes")),
        Reply::Integer(1)
    );
    for victim in &mut victims[..3] {
        assert_eq!(victim.try_reply(), None);
    }
    let listed = text(&killer.line(&format!("CLIENT LIST ID {} {}", ids[3], ids[4])));
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let listed = text(&killer.line("CLIENT LIST TYPE normal"));
    assert_eq!(listed.lines().count(), 3, "{listed}");
    assert_eq!(killer.line("CLIENT KILL TYPE replica"), Reply::Integer(0));
    assert_eq!(killer.line("CLIENT KILL TYPE normal"), Reply::Integer(2));
    // Not itself, unless it says so; then the reply comes first.
    assert_eq!(text(&killer.line("CLIENT LIST")).lines().count(), 1);
    let me = id(&mut killer);
    assert_eq!(
        killer.line(&format!("CLIENT KILL ID {me} SKIPME no")),
        Reply::Integer(1)
    );
    assert_eq!(killer.try_reply(), None);
}

#[test]
fn silent_clients_and_clients_too_many_are_sent_away() {
    let running = server(Settings {
        maxclients: 2,
        ..Settings::default()
    });
    let (mut first, mut second) = (Client::of(&running), Client::of(&running));
    assert_eq!(first.line("PING"), Reply::simple("PONG"));
    assert_eq!(second.line("PING"), Reply::simple("PONG"));
    assert_eq!(
        Client::of(&running).reply(),
        Reply::error("ERR max number of clients reached")
    );
    assert_eq!(first.line("CONFIG SET timeout 1"), Reply::OK);
    let begun = Instant::now();
    assert_eq!(second.try_reply(), None);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

/// It reads more than the system buffers, for longer than the timeout.
#[test]
fn a_client_that_reads_a_long_reply_slowly_is_not_idle() {
    const BYTES: usize = 12 << 20;
    let running = server(Settings {
        timeout: 1,
        ..Settings::default()
    });
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(64 << 10).unwrap();
    socket.connect(&running.addr().unwrap().into()).unwrap();
    let mut stream = TcpStream::from(socket);
    let lines = format!("SETRANGE k {} x\r\nGET k\r\n", BYTES - 1);
    stream.write_all(lines.as_bytes()).unwrap();
    let head = format!(":{BYTES}\r\n${BYTES}\r\n");
    let mut left = head.len() + BYTES + 2;
    let mut part = vec![0; 256 << 10];
    while left > 0 {
        let room = left.min(part.len());
        stream.read_exact(&mut part[..room]).unwrap();
        left -= room;
        std::thread::sleep(Duration::from_millis(60));
    }
}

#[test]
fn shutdown_ends_the_server_without_a_reply() {
    let running = server(Settings::default());
    let mut other = Client::of(&running);
    other.line("PING");
    let mut client = Client::of(&running);
    client.send(&["SHUTDOWN", "NOSAVE"]);
    assert_eq!(client.try_reply(), None);
    assert_eq!(other.try_reply(), None);
    running.wait().unwrap();
}

/// Tools send these to any server.
#[test]
fn clusters_and_replicas_are_answered_with_what_to_do() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    // Redis's own words where it has no cluster.
    for line in ["CLUSTER INFO", "cluster slots", "READONLY"] {
        let error = client.error(line);
        assert_eq!(error, "ERR This instance has cluster support disabled");
    }
    for line in ["SYNC", "psync ? -1", "REPLCONF capa eof"] {
        let error = client.error(line);
        assert!(error.contains("everbloom copy"), "{error}");
    }
}

/// What Redis has and this server does not, the module has.
#[test]
fn commands_of_redis_that_are_not_here_are_answered_with_where_they_are() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    for (line, lacks) in [
        ("EVAL return 0", "no scripts"),
        ("LPUSH l a", "filters, strings and bitmaps only"),
        ("sadd s a", "filters, strings and bitmaps only"),
        ("HSET h f v", "filters, strings and bitmaps only"),
        ("ZADD z 1 a", "filters, strings and bitmaps only"),
        ("XADD x * f v", "filters, strings and bitmaps only"),
        ("PFADD p a", "filters, strings and bitmaps only"),
        ("SUBSCRIBE c", "no channels"),
        ("PUBLISH c m", "no channels"),
        ("ACL SETUSER u on", "one user"),
        ("ACL LIST", "one user"),
        ("MIGRATE host 6379 k 0 10", "moves no keys"),
        ("REPLICAOF host 6379", "no replicas"),
        ("SLAVEOF NO ONE", "no replicas"),
        (
            "CONFIG SET notify-keyspace-events KEA",
            "no keyspace events",
        ),
    ] {
        let error = client.error(line);
        let names = error.starts_with("ERR this server")
            && error.contains(lacks)
            && error.contains("module in Valkey or Redis");
        assert!(names, "{line}: {error}");
    }
    let error = client.error("NOSUCH a");
    assert!(error.starts_with("ERR unknown command 'NOSUCH'"), "{error}");
}

/// The page about the server names every command.
#[test]
fn the_guide_lists_the_commands() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    let page = include_str!("../../../../../docs/guide/server.md");
    let Reply::Array(commands) = client.line("COMMAND LIST") else {
        panic!("no list");
    };
    assert!(commands.len() > 50);
    for command in commands {
        let name = String::from_utf8_lossy(command.as_bytes().unwrap()).to_uppercase();
        let is_elsewhere = name.contains('|') || name.starts_with("BF.") || name.starts_with("CF.");
        assert!(
            is_elsewhere || page.contains(&format!("`{name}`")),
            "{name}"
        );
    }
}
