//! What is copied: all kinds of filters, between all kinds of servers.

use super::*;

/// Copies what `fill` made and looks at it at the other side.
fn copy_all_kinds(from: u16, to: u16) {
    let [mut old, mut new] = [from, to].map(|port| Client::connect(("127.0.0.1", port)));
    fill(&mut old);
    let outcome = copy(from, to, &[]);
    assert_code(&outcome, 0);
    let text = outcome.stdout;
    assert!(
        text.starts_with(&format!("{FILLED} filters copied, ")),
        "{text}"
    );
    assert!(text.ends_with("\n1 key of other types left\n"), "{text}");
    assert_eq!(outcome.stderr, "", "a pipe gets no progress");

    assert_eq!(keys(&mut new).len(), FILLED);
    for key in keys(&mut new) {
        assert_eq!(
            seen(&mut new, &key),
            seen(&mut old, &key),
            "{}",
            key.escape_ascii()
        );
    }
    for item in 0..3000 {
        assert_eq!(new.number(&format!("BF.EXISTS layers item:{item}")), 1);
        for key in ["tables", "keyed"] {
            let line = format!("CF.COUNT {key} item:{item}");
            assert_eq!(new.number(&line), old.number(&line), "{line}");
        }
    }
    assert!((900_000..1_000_001).contains(&new.number("PTTL short")));
    assert_eq!(
        new.number("PTTL one"),
        -1,
        "a temporary key has become an endless one"
    );

    let again = copy(from, to, &[]).success();
    assert!(again.starts_with("0 filters copied, 0 B in "), "{again}");
    assert!(
        again.contains("\n19 filters skipped: equal at the destination\n"),
        "{again}"
    );
    let none = "19 equal, 0 different, 0 only at the old server, 0 only at the new one\n";
    assert_eq!(compare(from, to, &[]).success(), none);
    assert_eq!(copy(from, to, &["--quiet"]).success(), "");
}

#[test]
fn filters_of_all_kinds_between_servers_of_ours() {
    let (old, new) = (server(), server());
    copy_all_kinds(old.port, new.port);
}

#[test]
fn filters_of_all_kinds_from_and_to_redis_with_the_module() {
    let Some(host) = redis(&[]) else { return };
    let ours = server();
    copy_all_kinds(ours.port, host.addr.port());
    host_flush(&host);
    ours.client().ok("FLUSHALL");
    copy_all_kinds(host.addr.port(), ours.port);
}

fn host_flush(host: &Redis) {
    Client::connect(host.addr).ok("FLUSHALL");
}

/// Filters that RedisBloom dumped, old options included.
#[test]
fn recorded_filters_of_redisbloom() {
    let Some(host) = redis(&[]) else { return };
    let mut client = Client::connect(host.addr);
    let files = fs::read_dir(root().join("conformance/golden/scandump")).unwrap();
    let mut count = 0;
    for file in files {
        let json: Json = serde_json::from_slice(&fs::read(file.unwrap().path()).unwrap()).unwrap();
        let name = json["name"].as_str().unwrap();
        let load = match json["family"].as_str() {
            Some("cf") => "CF.LOADCHUNK",
            _ => "BF.LOADCHUNK",
        };
        for chunk in json["chunks"].as_array().unwrap() {
            let data = BASE64_STANDARD
                .decode(chunk["data"].as_str().unwrap())
                .unwrap();
            let iterator = chunk["iter"].to_string();
            let words: [&[u8]; 4] = [load.as_bytes(), name.as_bytes(), iterator.as_bytes(), &data];
            assert_eq!(client.call(&words), Reply::OK);
        }
        count += 1;
    }
    assert!(count > 5);
    let ours = server();
    copy(host.addr.port(), ours.port, &[]).success();
    let mut new = ours.client();
    for key in keys(&mut client) {
        assert_eq!(
            seen(&mut new, &key),
            seen(&mut client, &key),
            "{}",
            key.escape_ascii()
        );
    }
    let text = compare(host.addr.port(), ours.port, &[]).success();
    assert!(text.starts_with(&format!("{count} equal, ")), "{text}");
}

#[test]
fn databases_patterns_and_passwords() {
    let old = Server::with(&["--appendonly", "no", "--requirepass", "s3/cr@t"]);
    let new = server();
    let mut client = old.client();
    client.ok("AUTH s3/cr@t");
    client.ok("SET text value");
    client.ok("SELECT 3");
    client.ok("BF.ADD a:1 x");
    client.ok("BF.ADD b:1 x");
    let from = format!("redis://:s3%2fcr%40t@127.0.0.1:{}/3", old.port);
    let to = format!("redis://127.0.0.1:{}/5", new.port);
    let text = run(&mut command("copy", &from, &to, &["--match", "a:*"])).success();
    assert!(text.starts_with("1 filter copied, "), "{text}");
    let line = "\ndatabase 0 has keys too: copy it with /0 behind the URLs\n";
    assert!(text.ends_with(line), "{text}");
    let mut client = new.client();
    assert_eq!(client.number("DBSIZE"), 0);
    client.ok("SELECT 5");
    assert_eq!(keys(&mut client), [b"a:1"]);
    let differing = run(&mut command("compare", &from, &to, &[]));
    assert_code(&differing, 1);
    let line = format!("\"b:1\": missing at {to}\n");
    assert!(differing.stdout.starts_with(&line), "{differing:?}");
    run(&mut command("compare", &from, &to, &["--match", "a:*"])).success();

    // A pattern with a typing error is no success.
    for (subcommand, more) in [
        ("copy", &[][..]),
        ("copy", &["--quiet"]),
        ("compare", &[]),
        ("compare", &["--json"]),
    ] {
        let flags = [&["--match", "A:*"], more].concat();
        let unmatched = run(&mut command(subcommand, &from, &to, &flags));
        assert_code(&unmatched, 1);
        let line = "everbloom: no filter has a name that matches \"A:*\"\n";
        assert_eq!(unmatched.stderr, line, "{unmatched:?}");
    }
    let flags = ["--match", "A:*", "--quiet"];
    let quiet = run(&mut command("compare", &from, &to, &flags));
    assert_code(&quiet, 1);
    assert_eq!((&*quiet.stdout, &*quiet.stderr), ("", ""));

    // The password of the environment is for the server that has one.
    let from = format!("{}/3", url(old.port));
    run(command("copy", &from, &to, &[]).env("REDISCLI_AUTH", "s3/cr@t")).success();
    assert_eq!(keys(&mut client), [b"a:1", b"b:1"]);
    for login in ["", ":wrong-secret@", ":%@"] {
        let from = format!("redis://{login}127.0.0.1:{}", old.port);
        let outcome = run(&mut command("copy", &from, &to, &[]));
        assert_code(&outcome, 2);
        assert!(outcome.stderr.starts_with("everbloom: "), "{outcome:?}");
        assert!(!outcome.stderr.contains("wrong-secret"), "{outcome:?}");
    }
}

#[test]
fn the_flags_name_the_first_of_two() {
    let (old, new) = (server(), server());
    old.client().ok("BF.ADD k x");
    let (port, to) = (old.port.to_string(), url(new.port));
    let given = |subcommand: &str, words: &[&str]| {
        let flags = [subcommand, "-h", "127.0.0.1", "-p", &port];
        run(Command::new(EVERBLOOM).args([&flags, words].concat()))
    };
    let text = given("copy", &[&to]).success();
    assert!(text.starts_with("1 filter copied, "), "{text}");
    let text = given("compare", &[&to]).success();
    assert!(text.starts_with("1 equal, 0 different, "), "{text}");
    for (outcome, why) in [
        (given("copy", &[]), "name one more"),
        (given("compare", &[&to, &to]), "the first of two"),
        (run(Command::new(EVERBLOOM).args(["copy", &to])), "name two"),
    ] {
        assert_code(&outcome, 2);
        assert!(outcome.stderr.contains(why), "{outcome:?}");
    }
}

/// A Cluster of two as the destination, and each of them as the source.
#[test]
fn clusters() {
    let start = |name: &str| {
        let place = folder(name);
        let place = place.to_str().unwrap();
        redis(&["--cluster-enabled", "yes", "--dir", place])
    };
    let (Some(one), Some(two)) = (start("copy-cluster-1"), start("copy-cluster-2")) else {
        return;
    };
    let [mut first, mut second] = [&one, &two].map(|redis| Client::connect(redis.addr));
    first.ok("CLUSTER ADDSLOTSRANGE 0 8000");
    second.ok("CLUSTER ADDSLOTSRANGE 8001 16383");
    first.ok(&format!("CLUSTER MEET 127.0.0.1 {}", two.addr.port()));
    for client in [&mut first, &mut second] {
        wait_for("the cluster", || {
            client.text("CLUSTER INFO").contains("cluster_state:ok")
        });
    }
    let (old, new) = (server(), server());
    let mut client = old.client();
    for number in 0..50 {
        client.ok(&format!("BF.ADD key{number} x"));
    }
    for name in ["a}b", "{}", "{x}y", ""] {
        client.call(&["BF.ADD", name, "x"]);
    }
    for from in [&one, &two] {
        // From a server to the cluster, and node by node to another one.
        copy(old.port, from.addr.port(), &[]).success();
        compare(old.port, from.addr.port(), &[]).success();
        copy(from.addr.port(), new.port, &[]).success();
    }
    let sizes = [&mut first, &mut second].map(|client| client.number("DBSIZE"));
    assert!(
        sizes[0] > 5 && sizes[1] > 5 && sizes[0] + sizes[1] == 54,
        "{sizes:?}"
    );
    compare(old.port, new.port, &[]).success();
    compare(one.addr.port(), new.port, &[])
        .stdout
        .contains("54 equal");
}
