//! Passwords, HELLO, what clients send at connect, and who is no client.

use super::*;

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
    // A wrong option behind AUTH logs nobody in, as in Redis 7.4 and not in 7.0.
    let mut refused = Client::of(&running);
    assert!(refused.line("HELLO 3 AUTH default secret X").is_error());
    assert!(refused.line("PING").is_error());
    // A password that is set later holds for connections that come later.
    let mut old = Client::of(&running);
    old.line("AUTH secret");
    assert_eq!(old.line("CONFIG SET requirepass other"), Reply::OK);
    assert_eq!(old.line("PING"), Reply::simple("PONG"));
    assert!(Client::of(&running).line("AUTH secret").is_error());
    assert_eq!(Client::of(&running).line("AUTH other"), Reply::OK);
    // Without a password, who has not given one need not.
    let mut waiting = Client::of(&running);
    assert!(waiting.line("PING").is_error());
    assert_eq!(old.call(&["CONFIG", "SET", "requirepass", ""]), Reply::OK);
    assert_eq!(waiting.line("PING"), Reply::simple("PONG"));
    assert!(!waiting.line("HELLO").is_error());
    assert_eq!(old.line("CONFIG SET requirepass again"), Reply::OK);
    assert!(waiting.line("PING").is_error());
    assert_eq!(old.line("QUIT"), Reply::OK);
    assert_eq!(old.try_reply(), None);
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
