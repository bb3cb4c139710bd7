//! CONFIG SET is in force at once.

use super::*;

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

/// No system allows as many open files as the setting allows clients.
#[test]
fn clients_leave_room_for_other_files() {
    let running = server(Settings::default());
    let mut client = Client::of(&running);
    let refusal = client.error("CONFIG SET maxclients 4294967295");
    let (words, most) = refusal.rsplit_once(' ').unwrap();
    assert_eq!(
        words,
        "ERR CONFIG SET failed (possibly related to argument 'maxclients') - The operating system \
         is not able to handle the specified number of clients, try with"
    );
    let set = format!("CONFIG SET maxclients {most}");
    assert_eq!(client.line(&set), Reply::OK);
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
