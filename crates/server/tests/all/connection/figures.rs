//! INFO, SLOWLOG, and the names of commands.

use super::*;

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
