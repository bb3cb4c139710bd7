//! What a connection, its settings and the server as a whole answer, beside redis-server's answers.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    missing_docs
)]

use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::{Client, OfRunning, Redis, server};
use everbloom_resp::{Reply, encode_request};
use everbloom_server::Settings;

/// Sends both servers the same lines, in which `~` is a space within a word; the replies must have
/// the same bytes.
fn compare(lines: &[&str]) {
    let Some(redis) = Redis::start(&[]) else {
        return;
    };
    let running = server(Settings::default());
    let (mut theirs, mut ours) = (Client::connect(redis.addr), Client::of(&running));
    for line in lines {
        let words: Vec<String> = line
            .split(' ')
            .map(|w| {
                if w == "''" {
                    "".into()
                } else {
                    w.replace('~', " ")
                }
            })
            .collect();
        theirs.send(&words);
        ours.send(&words);
        let show = |reply: Option<(Reply, Vec<u8>)>| {
            reply.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned())
        };
        assert_eq!(show(ours.raw_reply()), show(theirs.raw_reply()), "{line}");
    }
}

#[test]
fn connection_commands_answer_as_redis_does() {
    compare(&[
        "PING",
        "PING a",
        "PING a b",
        "ECHO",
        "ECHO a",
        "SELECT x",
        "SELECT 99",
        "SELECT -1",
        "SELECT 99999999999",
        "SELECT 1",
        "SELECT 0",
        "HELLO 4",
        "HELLO x",
        "HELLO 2 foo",
        "HELLO 2 AUTH x",
        "HELLO 2 AUTH x y",
        "HELLO 2 SETNAME a\tb",
        "HELLO 2 SETNAME",
        "AUTH",
        "AUTH x",
        "AUTH a b",
        "AUTH a b c",
        "AUTH default b",
        "CLIENT SETNAME a\nb",
        "CLIENT SETNAME name",
        "CLIENT GETNAME",
        "CLIENT SETNAME ''",
        "CLIENT GETNAME",
        "CLIENT KILL 1.2.3.4:5",
        "CLIENT KILL ID 99",
        "CLIENT KILL ID x",
        "CLIENT KILL ID 0",
        "CLIENT KILL foo bar",
        "CLIENT KILL TYPE x",
        "CLIENT KILL TYPE pubsub",
        "CLIENT KILL TYPE replica",
        "CLIENT LIST TYPE x",
        "CLIENT LIST TYPE pubsub",
        "CLIENT KILL SKIPME x",
        "CLIENT KILL ID",
        "CLIENT KILL",
        "CLIENT KILL ID 1 ADDR",
        "CLIENT KILL LADDR 1.2.3.4:5",
        "CLIENT LIST ID x",
        "CLIENT LIST ID 998 999",
        "CLIENT LIST foo",
        "CLIENT LIST ID",
        "CLIENT foo",
        "CLIENT",
        "CLIENT ID x",
        "CLIENT HELP x",
        "RESET",
        "RESET x",
        "QUIT",
    ]);
}

#[test]
fn of_client_kill_options_given_twice_the_last_counts_as_in_redis() {
    let running = server(Settings::default());
    let redis = Redis::start(&[]);
    let addresses = [running.addr(), redis.as_ref().map(|redis| redis.addr)];
    for address in addresses.into_iter().flatten() {
        let mut client = Client::connect(address);
        for option in ["ID", "ADDR"] {
            let (mut spared, mut killed) = (Client::connect(address), Client::connect(address));
            let value = |client: &mut Client| match option {
                "ID" => client.number("CLIENT ID").to_string(),
                _ => client.stream.local_addr().unwrap().to_string(),
            };
            // A connection that is not accepted yet has no address to be found by.
            spared.ok("PING");
            killed.ok("PING");
            let (first, last) = (value(&mut spared), value(&mut killed));
            let line = format!("CLIENT KILL {option} {first} {option} {last}");
            assert_eq!(client.number(&line), 1, "{line}");
            assert_eq!(killed.try_reply(), None, "{line}");
            spared.ok("PING");
            spared.line("QUIT");
        }
        assert_eq!(client.number("CLIENT KILL TYPE normal TYPE pubsub"), 0);
        assert_eq!(client.number("CLIENT KILL ID 9999 SKIPME no SKIPME yes"), 0);
    }
}

#[test]
fn config_answers_as_redis_does() {
    compare(&[
        "CONFIG",
        "CONFIG GET",
        "CONFIG foo",
        "CONFIG GET maxmemory",
        "CONFIG GET MaxMem[o]ry",
        "CONFIG GET MAXMEMORY",
        "CONFIG GET TimeOut timeout TIME*",
        "CONFIG GET nosuch",
        "CONFIG GET save",
        "CONFIG GET appendonly",
        "CONFIG GET maxmemory-policy",
        "CONFIG GET timeout",
        "CONFIG SET timeout 5",
        "CONFIG GET timeout",
        "CONFIG SET TIMEOUT 0",
        "CONFIG SET maxmemory x",
        "CONFIG SET maxmemory -1",
        "CONFIG SET maxmemory 1xb",
        "CONFIG SET maxmemory 100mb",
        "CONFIG GET maxmemory",
        "CONFIG SET maxmemory 0",
        "CONFIG SET maxclients x",
        "CONFIG SET maxclients 0",
        "CONFIG SET timeout -1",
        "CONFIG SET hz abc",
        "CONFIG SET hz 1000",
        "CONFIG GET hz",
        "CONFIG SET protected-mode x",
        "CONFIG SET protected-mode YES",
        "CONFIG GET protected-mode",
        "CONFIG SET nosuch 1",
        "CONFIG SET maxclients",
        "CONFIG SET timeout 1 timeout 2",
        "CONFIG SET timeout 1 nosuch 2",
        "CONFIG SET timeout 1 maxclients 0",
        "CONFIG SET timeout 1 maxclients",
        "CONFIG GET timeout",
        "CONFIG SET proto-max-bulk-len 1",
        "CONFIG SET slowlog-log-slower-than -5",
        "CONFIG SET slowlog-max-len -1",
        "CONFIG SET client-query-buffer-limit 1",
        "CONFIG GET client-output-buffer-limit",
        "CONFIG SET client-output-buffer-limit normal~0~0",
        "CONFIG SET client-output-buffer-limit master~0~0~0",
        "CONFIG SET client-output-buffer-limit normal~0~0~-1",
        "CONFIG SET client-output-buffer-limit normal~x~0~0",
        "CONFIG SET client-output-buffer-limit Normal~1mb~2kb~3~replica~1~2~3",
        "CONFIG GET client-output-buffer-limit",
        "CONFIG SET tcp-backlog 1",
        "CONFIG SET databases 2",
        "CONFIG SET io-threads 3",
        "CONFIG SET logfile x",
        "CONFIG SET save ''",
        "CONFIG SET requirepass ''",
        "CONFIG REWRITE",
        "CONFIG RESETSTAT",
        "CONFIG RESETSTAT x",
        "CONFIG HELP x",
    ]);
}

#[test]
fn server_commands_answer_as_redis_does() {
    compare(&[
        "SHUTDOWN x",
        "SHUTDOWN nosave save",
        "SHUTDOWN abort now",
        "SHUTDOWN nosave abort",
        "SLOWLOG GET x",
        "SLOWLOG GET -2",
        "SLOWLOG foo",
        "SLOWLOG GET 1 2",
        "SLOWLOG RESET",
        "SLOWLOG LEN",
        "SLOWLOG GET",
        "WAIT x 0",
        "WAIT 0 -1",
        "WAIT 0 x",
        "WAIT x -1",
        "WAIT 0 0",
        "ROLE",
        "ROLE x",
        "ACL WHOAMI",
        "ACL foo",
        "COMMAND GETKEYS",
        "COMMAND GETKEYS GET k",
        "COMMAND GETKEYS PING x",
        "COMMAND GETKEYS GET x y",
        "COMMAND GETKEYS foo x y",
        "COMMAND GETKEYS EXISTS a b c",
        "COMMAND COUNT x",
        "COMMAND LIST x",
        "COMMAND INFO nosuch",
        "COMMAND INFO echo",
        "COMMAND INFO select auth hello quit reset",
        "COMMAND DOCS nosuch",
        "COMMAND foo",
        "TIME x",
    ]);
}

#[test]
fn a_password_is_asked_for() {
    let Some(redis) = Redis::start(&["--requirepass", "secret"]) else {
        return;
    };
    let running = server(Settings {
        requirepass: "secret".into(),
        ..Settings::default()
    });
    let lines = [
        "PING",
        "HELLO",
        "HELLO 3",
        "HELLO 2 SETNAME x",
        "NOSUCH",
        "GET",
        "AUTH wrong",
        "AUTH default wrong",
        "AUTH other secret",
        "HELLO 2 AUTH default wrong",
        "PING",
        "AUTH secret",
        "PING",
        "RESET",
        "PING",
        "AUTH default secret",
        "PING",
    ];
    let (mut theirs, mut ours) = (Client::connect(redis.addr), Client::of(&running));
    for line in lines {
        assert_eq!(ours.line(line), theirs.line(line), "{line}");
    }
    let mut fresh = Client::of(&running);
    let hello = fresh.line("HELLO 3 AUTH default secret SETNAME me");
    assert!(matches!(hello, Reply::Map(_)), "{hello:?}");
    assert_eq!(fresh.line("CLIENT GETNAME"), Reply::bulk("me"));
    // A password that is set later holds for connections that come later.
    let mut old = Client::of(&running);
    old.line("AUTH secret");
    assert_eq!(old.line("CONFIG SET requirepass other"), Reply::OK);
    assert_eq!(old.line("PING"), Reply::simple("PONG"));
    assert!(Client::of(&running).line("AUTH secret").is_error());
    assert_eq!(Client::of(&running).line("AUTH other"), Reply::OK);
    assert_eq!(old.line("QUIT"), Reply::OK);
    assert_eq!(old.try_reply(), None);
}

fn field(reply: &Reply, name: &str) -> Reply {
    let pairs: Vec<(Reply, Reply)> = match reply {
        Reply::Map(pairs) => pairs.clone(),
        Reply::Array(flat) => flat
            .chunks(2)
            .map(|p| (p[0].clone(), p[1].clone()))
            .collect(),
        other => panic!("{other:?}"),
    };
    let found = pairs.into_iter().find(|(key, _)| *key == Reply::bulk(name));
    found.unwrap_or_else(|| panic!("no {name} in {reply:?}")).1
}

fn text(reply: &Reply) -> String {
    String::from_utf8(
        reply
            .as_bytes()
            .unwrap_or_else(|| panic!("{reply:?}"))
            .to_vec(),
    )
    .unwrap()
}

#[test]
fn hello_says_who_we_are() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    for (line, proto) in [("HELLO", 2), ("HELLO 3", 3), ("HELLO", 3), ("HELLO 2", 2)] {
        let hello = client.line(line);
        assert_eq!(matches!(hello, Reply::Map(_)), proto == 3);
        assert_eq!(field(&hello, "proto"), Reply::Integer(proto));
        assert_eq!(field(&hello, "server"), Reply::bulk("redis"));
        let Reply::Array(modules) = field(&hello, "modules") else {
            panic!("{hello:?}")
        };
        assert_eq!(field(&modules[0], "name"), Reply::bulk("bf"));
        assert_eq!(field(&hello, "id"), client.line("CLIENT ID"));
    }
}

/// What is executed as a run is the last command no less than what is executed by itself.
#[test]
fn the_last_command_is_that_of_a_run_too() {
    let running = server(Settings::default());
    let (mut client, mut other) = (Client::of(&running), Client::of(&running));
    let id = client.line("CLIENT ID").as_integer().unwrap();
    let mut last = |client: &mut Client, lines: &[&str]| {
        let mut out = Vec::new();
        for line in lines {
            encode_request(&line.split(' ').collect::<Vec<_>>(), &mut out);
        }
        client.stream.write_all(&out).unwrap();
        for line in lines {
            assert!(!client.reply().is_error(), "{line}");
        }
        let list = text(&other.line(&format!("CLIENT LIST ID {id}")));
        let (_, rest) = list.split_once(" cmd=").unwrap();
        rest.split(' ').next().unwrap().to_owned()
    };
    for (lines, name) in [
        (&["BF.ADD f a"][..], "bf.add"),
        (&["BF.EXISTS f a"], "bf.exists"),
        (&["BF.ADD f a", "BF.ADD f b", "BF.ADD f c"], "bf.add"),
        (&["PING", "BF.EXISTS f a", "BF.EXISTS f b"], "bf.exists"),
        (&["BF.EXISTS f a", "BF.EXISTS f b", "BF.ADD f b"], "bf.add"),
        (&["BF.ADD f a", "BF.ADD f b", "PING"], "ping"),
        // Not a run: each is queued by itself.
        (&["MULTI", "BF.ADD f d", "BF.ADD f e"], "bf.add"),
        (&["EXEC"], "exec"),
    ] {
        assert_eq!(last(&mut client, lines), name, "{lines:?}");
    }
}

#[test]
fn what_clients_send_at_connect() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    assert_eq!(client.line("CLIENT SETINFO LIB-NAME redis-py"), Reply::OK);
    assert_eq!(client.line("CLIENT SETINFO lib-ver 5.0"), Reply::OK);
    assert_eq!(client.line("CLIENT SETNAME me"), Reply::OK);
    let info = text(&client.line("CLIENT INFO"));
    for part in [
        " name=me ",
        " cmd=client|info ",
        " lib-name=redis-py lib-ver=5.0\n",
        " resp=2 ",
    ] {
        assert!(info.contains(part), "{info}");
    }
    assert_eq!(
        client.line("CLIENT SETINFO foo bar"),
        Reply::error("ERR Unrecognized option 'foo'")
    );
    assert_eq!(
        client.line("CLIENT SETINFO lib-ver a\tb"),
        Reply::error("ERR lib-ver cannot contain spaces, newlines or special characters.")
    );
    let Reply::Array(docs) = client.line("COMMAND DOCS") else {
        panic!()
    };
    assert_eq!(
        Reply::Integer(i64::try_from(docs.len() / 2).unwrap()),
        client.line("COMMAND COUNT")
    );
    let add = client.line("COMMAND DOCS bf.insert");
    let insert = field(&add, "bf.insert");
    assert!(!text(&field(&insert, "summary")).is_empty());
    let Reply::Array(arguments) = field(&insert, "arguments") else {
        panic!()
    };
    assert_eq!(field(&arguments[0], "type"), Reply::bulk("key"));
    let Reply::Array(commands) = client.line("COMMAND") else {
        panic!()
    };
    assert_eq!(commands.len(), docs.len() / 2);
    let listed = client.line("COMMAND LIST");
    assert!(matches!(listed, Reply::Array(names) if names.contains(&Reply::bulk("bf.add"))));
    let modules = client.line("MODULE LIST");
    assert!(matches!(modules, Reply::Array(list) if list.len() == 1));
    let Reply::Array(time) = client.line("TIME") else {
        panic!()
    };
    assert!(text(&time[0]).parse::<u64>().unwrap() > 1_600_000_000);
    let Reply::Array(help) = client.line("CLIENT HELP") else {
        panic!()
    };
    assert!(help.contains(&Reply::simple("ID")));
}

/// A page in a browser can send a request to any server on its machine, with what it likes as body.
#[test]
fn a_browser_is_hung_up_on() {
    let running = server(Settings::default());
    let redis = Redis::start(&[]);
    let ours = running.addr().unwrap();
    for addr in [Some(ours), redis.as_ref().map(|redis| redis.addr)]
        .into_iter()
        .flatten()
    {
        let mut client = Client::connect(addr);
        assert_eq!(client.line("SET precious 1"), Reply::OK);
        for head in [
            "POST / HTTP/1.1\r\n",
            "pOsT\r\n",
            "hOST: 127.0.0.1:6379\r\n",
        ] {
            let mut page = Client::connect(addr);
            let request = format!("{head}Content-Length: 10\r\n\r\nFLUSHALL\r\n");
            page.stream.write_all(request.as_bytes()).unwrap();
            assert_eq!(page.try_reply(), None, "{addr} {head}");
        }
        assert_eq!(client.line("GET precious"), Reply::bulk("1"), "{addr}");
    }
}

#[test]
fn settings_are_in_force_for_the_next_request_of_a_pipeline() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.send(&["CONFIG", "SET", "bf-initial-size", "1000"]);
    client.send(&["BF.ADD", "k", "a"]);
    client.send(&["MULTI"]);
    client.send(&["CONFIG", "SET", "bf-initial-size", "3000"]);
    client.send(&["BF.ADD", "l", "a"]);
    client.send(&["EXEC"]);
    client.send(&["BF.ADD", "m", "a"]);
    for _ in 0..7 {
        assert!(!client.reply().is_error());
    }
    for (key, capacity) in [("k", 1000), ("l", 3000), ("m", 3000)] {
        assert_eq!(
            client.line(&format!("BF.INFO {key} CAPACITY")),
            Reply::Array(vec![Reply::Integer(capacity)]),
            "{key}"
        );
    }
}

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

#[test]
fn above_maxmemory_writes_are_refused_and_reads_are_not() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    assert_eq!(client.line("BF.RESERVE k 0.01 1000"), Reply::OK);
    assert_eq!(client.line("CONFIG SET maxmemory 1"), Reply::OK);
    let oom = Reply::error("OOM command not allowed when used memory > 'maxmemory'.");
    assert_eq!(client.line("BF.ADD k a"), oom);
    assert_eq!(client.line("BF.EXISTS k a"), Reply::Integer(0));
    assert_eq!(client.line("CONFIG SET maxmemory 0"), Reply::OK);
    assert_eq!(client.line("BF.ADD k a"), Reply::Integer(1));
}

#[test]
fn settings_of_filters_are_in_force_at_once() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    assert_eq!(
        client.line("CONFIG SET bf-error-rate 0.30 bf-initial-size 1000 bf.bf-expansion-factor 4"),
        Reply::OK
    );
    assert_eq!(
        client.line("CONFIG GET bf-error-rate"),
        Reply::Array(vec![Reply::bulk("bf-error-rate"), Reply::bulk("0.30")])
    );
    assert_eq!(
        client.line("CONFIG GET bf.bf-initial-size"),
        Reply::Array(vec![Reply::bulk("bf.bf-initial-size"), Reply::bulk("1000")])
    );
    client.line("BF.ADD k a");
    assert_eq!(
        client.line("BF.INFO k CAPACITY"),
        Reply::Array(vec![Reply::Integer(1000)])
    );
    assert_eq!(
        client.line("BF.INFO k EXPANSION"),
        Reply::Array(vec![Reply::Integer(4)])
    );
    assert_eq!(
        client.line("CONFIG SET bf-initial-size 0"),
        Reply::error(
            "ERR CONFIG SET failed (possibly related to argument 'bf-initial-size') - \
             Value for `bf-initial-size` must be in the range [1, 1073741824]"
        )
    );
}

#[test]
fn the_default_layout_is_in_force_at_once() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    let get = |client: &mut Client| client.line("CONFIG GET bf-default-layout");
    let shown =
        |word: &str| Reply::Array(vec![Reply::bulk("bf-default-layout"), Reply::bulk(word)]);
    assert_eq!(get(&mut client), shown("classic"));
    client.line("BF.ADD a x");
    assert_eq!(
        client.line("CONFIG SET bf-default-layout BLOCKED"),
        Reply::OK
    );
    assert_eq!(get(&mut client), shown("blocked"));
    // A run of adds to a key that is not there, and one alone.
    let adds = b"BF.ADD b x\r\nBF.ADD b y\r\nBF.ADD b x\r\nBF.ADD c x\r\n";
    client.stream.write_all(adds).unwrap();
    for new in [1, 1, 0, 1] {
        assert_eq!(client.reply(), Reply::Integer(new));
    }
    client.line("BF.MADD d x y");
    client.line("BF.RESERVE e 0.01 10");
    client.line("BF.RESERVE f 0.01 10 LAYOUT CLASSIC");
    let types = ["a", "b", "c", "d", "e", "f"].map(|key| client.line(&format!("TYPE {key}")));
    let (classic, blocked) = (Reply::simple("MBbloom--"), Reply::simple("everbloom"));
    assert_eq!(types[0], classic);
    assert!(types[1..5].iter().all(|name| *name == blocked), "{types:?}");
    assert_eq!(types[5], classic);
    assert_eq!(
        client.line("CONFIG SET bf-default-layout scattered"),
        Reply::error(
            "ERR CONFIG SET failed (possibly related to argument 'bf-default-layout') - \
             argument(s) must be one of the following: classic, blocked"
        )
    );
    // MEMORY USAGE is the filter's and its key's, and all of it is given back.
    let Reply::Integer(usage) = client.line("MEMORY USAGE e") else {
        panic!("no number")
    };
    assert!((128..1000).contains(&usage), "{usage}");
    client.line("FLUSHALL");
    assert_eq!(running.server().store.keyspace.memory(), 0);
}

/// The first message of a TLS connection. Its session id is 32 bytes that somebody chose.
fn tls_hello(session: &[u8; 32]) -> Vec<u8> {
    let mut hello = vec![1, 0, 0, 75, 3, 3];
    hello.extend([0xaa; 32]);
    hello.push(32);
    hello.extend(session);
    hello.extend([0, 2, 0x13, 1, 1, 0, 0, 0]);
    let mut record = vec![0x16, 3, 1, 0, 79];
    record.extend(hello);
    record
}

#[test]
fn commands_inside_a_tls_hello_are_not_executed() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.ok("SET k v");
    let mut stranger = Client::of(&running);
    let hello = tls_hello(b"\r\nFLUSHALL\r\nFLUSHALL\r\nFLUSHALL\r\n");
    stranger.stream.write_all(&hello).unwrap();
    assert_eq!(
        stranger.reply(),
        Reply::error("ERR Protocol error: control character in inline request")
    );
    assert_eq!(stranger.try_reply(), None);
    assert_eq!(client.text("GET k"), "v");
}

#[test]
fn info_has_real_figures() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    client.line("BF.RESERVE k 0.01 100000");
    client.line("BF.ADD k a");
    client.line("BF.ADD");
    let info = text(&client.line("INFO everything"));
    let value = |name: &str| -> String {
        let line = info
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("no {name} in {info}"))
            .to_owned()
    };
    assert_eq!(value("db0"), "keys=1,expires=0,avg_ttl=0");
    assert_eq!(value("connected_clients"), "1");
    assert_eq!(value("role"), "master");
    assert_eq!(
        value("tcp_port"),
        running.addr().unwrap().port().to_string()
    );
    assert!(value("used_memory").parse::<u64>().unwrap() > 100_000);
    assert!(value("total_commands_processed").parse::<u64>().unwrap() >= 2);
    assert!(value("cmdstat_bf.add").starts_with("calls=1,"), "{info}");
    assert!(
        value("cmdstat_bf.add").ends_with("rejected_calls=1,failed_calls=0"),
        "{info}"
    );
    assert_eq!(value("errorstat_ERR"), "count=1");
    let sections = |line: &str, client: &mut Client| -> Vec<String> {
        let info = text(&client.line(line));
        let titles = info.lines().filter_map(|line| line.strip_prefix("# "));
        titles.map(str::to_owned).collect()
    };
    assert_eq!(
        sections("INFO keyspace CPU", &mut client),
        ["CPU", "Keyspace"]
    );
    assert_eq!(sections("INFO nosuch", &mut client), [""; 0]);
    assert!(!sections("INFO", &mut client).contains(&"Commandstats".to_owned()));
    // Inside a transaction everything is locked already.
    client.line("MULTI");
    client.line("INFO keyspace");
    client.line("SCAN 0");
    client.line("BF.ADD k b");
    assert!(matches!(client.line("EXEC"), Reply::Array(replies) if replies.len() == 3));
    assert_eq!(client.line("CONFIG RESETSTAT"), Reply::OK);
    let info = text(&client.line("INFO commandstats"));
    assert!(!info.contains("cmdstat_bf.add"), "{info}");
}

#[test]
fn slow_commands_are_logged() {
    let running = server(Settings {
        slowlog_log_slower_than: 0,
        ..Settings::default()
    });
    let mut client = Client::of(&running);
    client.line("CLIENT SETNAME me");
    client.line("BF.ADD k a");
    let Reply::Array(entries) = client.line("SLOWLOG GET 1") else {
        panic!()
    };
    let Reply::Array(entry) = &entries[0] else {
        panic!()
    };
    assert_eq!(
        entry[3],
        Reply::Array(["BF.ADD", "k", "a"].map(Reply::bulk).into())
    );
    assert_eq!(
        entry[4],
        Reply::bulk(client.stream.local_addr().unwrap().to_string())
    );
    assert_eq!(entry[5], Reply::bulk("me"));
    assert_eq!(client.line("SLOWLOG RESET"), Reply::OK);
    assert!(matches!(client.line("SLOWLOG LEN"), Reply::Integer(n) if n <= 1));
}

/// The arguments of the slow log's entries, oldest first.
fn slow_log(client: &mut Client) -> Vec<Reply> {
    let Reply::Array(entries) = client.line("SLOWLOG GET") else {
        panic!("an array")
    };
    let args = entries.into_iter().rev().map(|entry| match entry {
        Reply::Array(mut fields) => fields.swap_remove(3),
        other => panic!("{other:?}"),
    });
    args.collect()
}

/// Redis enters the commands of a transaction, but not EXEC, which has their times together.
#[test]
fn slow_commands_of_a_transaction_are_logged_and_timed_as_in_redis() {
    let running = server(Settings::default());
    let redis = Redis::start(&[]);
    let redis = redis.as_ref().map(|redis| Client::connect(redis.addr));
    let mut logs = Vec::new();
    for mut client in [Some(Client::of(&running)), redis].into_iter().flatten() {
        for line in [
            "CONFIG SET slowlog-log-slower-than 0",
            "SLOWLOG RESET",
            "MULTI",
            "SET k 1",
            "CONFIG GET appendonly",
            "EXEC",
        ] {
            assert!(!client.line(line).is_error(), "{line}");
        }
        logs.push(slow_log(&mut client));
        let info = text(&client.line("INFO commandstats"));
        for name in ["set", "config|get", "exec"] {
            let found = info.lines().any(|line| {
                let rest = line.strip_prefix(&format!("cmdstat_{name}:calls=1,usec="));
                rest.is_some_and(|rest| !rest.starts_with("0,usec_per_call=0.00,"))
            });
            assert!(found, "{name} in {info}");
        }
    }
    let words = |line: &str| Reply::Array(line.split(' ').map(Reply::bulk).collect());
    let wanted = ["SLOWLOG RESET", "MULTI", "SET k 1", "CONFIG GET appendonly"];
    for log in logs {
        assert_eq!(log, wanted.map(words));
    }
}

#[test]
fn subcommands_have_names_and_figures_of_their_own() {
    let running = server(Settings::default());
    let (mut client, mut other) = (Client::of(&running), Client::of(&running));
    let id = client.line("CLIENT ID").as_integer().unwrap();
    for (line, name) in [
        ("CLIENT SETNAME me", "client|setname"),
        ("config SET hz 20", "config|set"),
        ("CONFIG GET", "config|get"),
        ("OBJECT ENCODING k", "object|encoding"),
        ("COMMAND", "command"),
        ("COMMAND COUNT", "command|count"),
    ] {
        client.line(line);
        let list = text(&other.line(&format!("CLIENT LIST ID {id}")));
        assert!(list.contains(&format!(" cmd={name} ")), "{line}: {list}");
    }
    let info = text(&client.line("INFO commandstats"));
    for part in [
        "cmdstat_client|list:calls=6,",
        "cmdstat_config|set:calls=1,",
        "cmdstat_config|get:calls=0,usec=0,usec_per_call=0.00,rejected_calls=1,",
        "cmdstat_command|count:calls=1,",
    ] {
        assert!(info.contains(part), "{part} in {info}");
    }
    assert!(!info.contains("cmdstat_client:"), "{info}");
    // Redis refuses it when it is queued, too.
    client.line("MULTI");
    let unknown = Reply::error("ERR unknown subcommand 'NOPE'. Try CLIENT HELP.");
    assert_eq!(client.line("CLIENT NOPE"), unknown);
    assert!(client.line("EXEC").is_error());
}

#[test]
fn commands_are_listed_by_module_category_and_pattern() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    let mut list = |by: &str| {
        let Reply::Array(names) = client.line(format!("COMMAND LIST {by}").trim_end()) else {
            panic!("{by}")
        };
        names
    };
    for name in ["get", "client|list", "config|set", "bf.add"] {
        assert!(list("").contains(&Reply::bulk(name)), "{name}");
    }
    assert_eq!(
        list("FILTERBY PATTERN client|?et*"),
        ["client|getname", "client|setinfo", "client|setname"].map(Reply::bulk)
    );
    let of_module = list("filterby module bf");
    assert!(of_module.contains(&Reply::bulk("bf.add")));
    assert!(!of_module.contains(&Reply::bulk("get")));
    let dangerous = list("FILTERBY ACLCAT dangerous");
    assert!(dangerous.contains(&Reply::bulk("config|set")));
    assert!(!dangerous.contains(&Reply::bulk("get")));
    assert_eq!(
        client.line("COMMAND LIST FILTERBY NOPE x"),
        Reply::error("ERR syntax error")
    );
}

/// Fields of redis-server 7.0 about what is not here.
const OTHER_FIELDS: &str = "allocator_ rss_overhead_ used_cpu_sys_main_thread \
    used_cpu_user_main_thread current_save_keys_ expire_cycle_cpu_milliseconds \
    total_reads_processed total_writes_processed";

#[test]
fn info_has_the_fields_of_redis() {
    let Some(redis) = Redis::start(&[]) else {
        return;
    };
    let names = |client: &mut Client| -> Vec<String> {
        let info = text(&client.line("INFO"));
        let names = info.lines().filter_map(|line| line.split_once(':'));
        names.map(|(name, _)| name.to_owned()).collect()
    };
    let running = server(Settings::default());
    let ours = names(&mut Client::of(&running));
    let lacking: Vec<String> = names(&mut Client::connect(redis.addr))
        .into_iter()
        .filter(|name| !OTHER_FIELDS.split(' ').any(|other| name.starts_with(other)))
        .filter(|name| !ours.contains(name))
        .collect();
    assert_eq!(lacking, [""; 0]);
}

#[test]
fn the_file_is_rewritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bloom.conf");
    std::fs::write(&path, "# mine\ntimeout 5\n").unwrap();
    let running = server(Settings {
        timeout: 5,
        config_file: Some(path.clone()),
        ..Settings::default()
    });
    let mut client = Client::of(&running);
    assert_eq!(client.line("CONFIG SET timeout 6 maxmemory 1gb"), Reply::OK);
    assert_eq!(client.line("CONFIG REWRITE"), Reply::OK);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("# mine\ntimeout 6\n"), "{text}");
    assert!(text.contains("\nmaxmemory 1073741824\n"), "{text}");
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
