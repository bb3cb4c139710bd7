//! Settings and load arguments.

use std::path::Path;
use std::process::Command;

use everbloom_resp::Reply;

use crate::support::{
    Client, Host, elements, free_port, from_redis_7, host_program, is_valkey, module, set, version,
    wait_for,
};

/// A setting's value, under the name that the host gives it.
pub fn setting(client: &mut Client, name: &str) -> String {
    let found = elements(client.line(&format!("CONFIG GET *{name}")));
    assert_eq!(found.len(), 2, "{name}: {found:?}");
    String::from_utf8(found[1].as_bytes().unwrap().to_vec()).unwrap()
}

/// The name under which the host has it.
fn full_name(client: &mut Client, name: &str) -> String {
    let found = elements(client.line(&format!("CONFIG GET *{name}")));
    String::from_utf8(found[0].as_bytes().unwrap().to_vec()).unwrap()
}

#[test]
fn settings_have_two_names_and_one_value() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let pairs = [
        ("bf-error-rate", "bloom-fp-rate", "0.01", "1e-4"),
        ("bf-initial-size", "bloom-capacity", "100", "7000"),
        ("bf-expansion-factor", "bloom-expansion", "2", "5"),
        (
            "bf-max-filter-bytes",
            "bloom-memory-usage-limit",
            "0",
            "1048576",
        ),
    ];
    for (name, alias, default, other) in pairs {
        assert_eq!(setting(&mut client, name), default);
        assert_eq!(setting(&mut client, alias), default);
        let full = full_name(&mut client, alias);
        client.ok(&format!("CONFIG SET {full} {other}"));
        assert_eq!(setting(&mut client, name), other);
    }
    let layout = full_name(&mut client, "bf-default-layout");
    assert_eq!(setting(&mut client, "bf-default-layout"), "classic");
    client.ok("BF.ADD f x");
    assert_eq!(client.ok("TYPE f"), Reply::simple("MBbloom--"));
    client.ok(&format!("CONFIG SET {layout} Blocked"));
    assert_eq!(setting(&mut client, "bf-default-layout"), "blocked");
    for line in ["BF.ADD g x", "BF.INSERT h ITEMS x", "BF.RESERVE i 0.1 9"] {
        client.ok(line);
        let key = line.split(' ').nth(1).unwrap();
        assert_eq!(
            client.ok(&format!("TYPE {key}")),
            Reply::simple("everbloom")
        );
    }
    client.ok("BF.RESERVE j 0.1 9 LAYOUT CLASSIC");
    assert_eq!(client.ok("TYPE j"), Reply::simple("MBbloom--"));
    let debug = elements(client.ok("BF.DEBUG f"));
    let layer = String::from_utf8(debug[1].as_bytes().unwrap().to_vec()).unwrap();
    assert!(
        layer.contains("capacity:7000 size:1 ratio:5e-05"),
        "{layer}"
    );
    assert_eq!(
        elements(client.ok("BF.INFO f EXPANSION")),
        [Reply::Integer(5)]
    );
}

#[test]
fn values_out_of_range_are_refused() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let name = full_name(&mut client, "bf-error-rate");
    for (value, words) in [
        ("x", "Invalid value for `bf-error-rate`"),
        ("nan", "Invalid value for `bf-error-rate`"),
        (
            "0",
            "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)",
        ),
        ("1", "must be in the range"),
    ] {
        let error = client.error(&format!("CONFIG SET {name} {value}"));
        assert!(error.contains(words), "{error}");
    }
    assert_eq!(setting(&mut client, "bf-error-rate"), "0.01");
    for (name, value) in [
        ("bf-initial-size", "0"),
        ("bf-initial-size", "1073741825"),
        ("bf-expansion-factor", "32769"),
        ("bf-expansion-factor", "-1"),
    ] {
        let full = full_name(&mut client, name);
        client.error(&format!("CONFIG SET {full} {value}"));
    }
    let full = full_name(&mut client, "bf-default-layout");
    let error = client.error(&format!("CONFIG SET {full} block"));
    let words = "must be one of the following: classic, blocked";
    assert!(error.contains(words), "{error}");
    assert_eq!(setting(&mut client, "bf-default-layout"), "classic");
}

/// A file has one of the two names; the default of the other must not undo it.
#[test]
fn a_file_sets_them_by_either_name_and_a_rewrite_keeps_them() {
    if !from_redis_7() {
        return;
    }
    let Some(program) = host_program() else {
        return;
    };
    // Redis has them without the module's name in front from 8.0 on, but for the other names.
    let bare = !is_valkey(&program) && version(&program) >= (8, 0);
    let ours = if bare { "" } else { "bf." };
    for (prefix, names) in [
        (
            ours,
            ["bf-error-rate", "bf-initial-size", "bf-expansion-factor"],
        ),
        (
            "bf.",
            ["bloom-fp-rate", "bloom-capacity", "bloom-expansion"],
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("redis.conf");
        let [rate, size, expansion] = names;
        let text = format!(
            "loadmodule {}\n{prefix}{rate} 0.002\n{prefix}{size} 123\n{prefix}{expansion} 3\n\
             {ours}bf-default-layout blocked\n",
            module().display()
        );
        std::fs::write(&file, text).unwrap();
        let mut ours = Host::on_file(dir, &program);
        for round in 0..2 {
            let mut client = ours.client();
            assert_eq!(
                setting(&mut client, "bf-error-rate"),
                "0.002",
                "{names:?} {round}"
            );
            assert_eq!(setting(&mut client, "bf-initial-size"), "123");
            assert_eq!(setting(&mut client, "bf-expansion-factor"), "3");
            assert_eq!(setting(&mut client, "bf-default-layout"), "blocked");
            client.ok("CONFIG REWRITE");
            ours.restart("NOSAVE");
        }
    }
}

/// The names of the settings, as Redis 8 has them, those of RedisBloom before, and any case.
#[test]
fn load_arguments_have_the_names_of_the_settings() {
    for (words, size, expansions) in [
        (
            "bf-error-rate 0.02 bf-initial-size 200 bf-expansion-factor 4 cf-max-expansions 3",
            200,
            3,
        ),
        (
            "Error_Rate 0.02 INITIAL_SIZE 201 EXPANSION 4 CF_MAX_EXPANSIONS 5",
            201,
            5,
        ),
        (
            "BF-Error-Rate 0.02 BF-INITIAL-SIZE 202 bloom-expansion 4 CF-MAX-EXPANSIONS 6",
            202,
            6,
        ),
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let Some(host) = Host::with_args(&[], &words) else {
            return;
        };
        let mut client = host.client();
        client.ok("BF.ADD f x");
        let field = |client: &mut Client, name| {
            elements(client.ok(&format!("BF.INFO f {name}")))[0].clone()
        };
        assert_eq!(field(&mut client, "CAPACITY"), Reply::Integer(size));
        assert_eq!(field(&mut client, "EXPANSION"), Reply::Integer(4));
        if from_redis_7() {
            let found = setting(&mut client, "cf-max-expansions");
            assert_eq!(found, expansions.to_string());
        }
        assert!(!host.log().contains("one setting"), "{}", host.log());
    }
}

/// Each name that the guide lists for a load.
#[test]
fn every_setting_is_a_load_argument() {
    for words in [
        "bf-error-rate 0.02 bf-initial-size 7 bf-expansion-factor 3 bf-default-layout blocked \
         bf-max-filter-bytes 1mb bf-redisbloom-compatible no cf-initial-size 99 cf-bucket-size 3 \
         cf-max-iterations 9 cf-expansion-factor 2 cf-max-expansions 4",
        "ERROR_RATE 0.02 INITIAL_SIZE 7 EXPANSION 3 LAYOUT blocked REDISBLOOM_COMPATIBLE no \
         CF_INITIAL_SIZE 99 CF_BUCKET_SIZE 3 CF_MAX_ITERATIONS 9 CF_EXPANSION_FACTOR 2 \
         CF_MAX_EXPANSIONS 4 bloom-memory-usage-limit 1mb",
    ] {
        let words: Vec<&str> = words.split(' ').collect();
        let Some(host) = Host::with_args(&[], &words) else {
            return;
        };
        let mut client = host.client();
        client.ok("BF.ADD f x");
        client.ok("CF.ADD g x");
        assert_eq!(client.ok("TYPE f"), Reply::simple("everbloom"));
        let info = elements(client.ok("CF.INFO g"));
        let has = |name, value| {
            info.windows(2)
                .any(|it| it == [Reply::simple(name), Reply::Integer(value)])
        };
        assert!(
            has("Bucket size", 3) && has("Max iterations", 9),
            "{info:?}"
        );
        let refused = client.error("BF.RESERVE h 0.01 10000000");
        assert!(refused.contains("Insufficient memory"), "{refused}");
        if from_redis_7() {
            for (name, value) in [
                ("bf-error-rate", "0.02"),
                ("bf-initial-size", "7"),
                ("bf-expansion-factor", "3"),
                ("bf-max-filter-bytes", "1048576"),
                ("cf-initial-size", "99"),
                ("cf-expansion-factor", "2"),
                ("cf-max-expansions", "4"),
            ] {
                assert_eq!(setting(&mut client, name), value);
            }
        }
    }
}

#[test]
fn two_load_arguments_for_one_setting_are_a_warning() {
    let words = [
        "INITIAL_SIZE",
        "5",
        "bf-initial-size",
        "6",
        "bf-error-rate",
        "0.01",
    ];
    let Some(host) = Host::with_args(&[], &words) else {
        return;
    };
    let line = "the arguments INITIAL_SIZE and bf-initial-size are one setting, with two values: \
                6 is used";
    assert_eq!(host.log().matches(line).count(), 1, "{}", host.log());
    assert_eq!(host.log().matches("one setting").count(), 1);
}

/// RedisBloom accepts such a word, so the client is not told.
#[test]
fn the_first_word_that_says_nothing_is_logged() {
    let Some(host) = Host::with_args(&[], &[]) else {
        return;
    };
    let mut client = host.client();
    client.ok("CF.RESERVE c 100 BUCKETS 2");
    client.ok("BF.RESERVE k 0.01 100 NOSCALING");
    let line = "CF.RESERVE ignored the word 'BUCKETS', as RedisBloom does";
    assert_eq!(host.log().matches(line).count(), 1, "{}", host.log());
    assert_eq!(host.log().matches("ignored the word").count(), 1);
}

#[test]
fn load_arguments_of_redisbloom_set_the_defaults() {
    let words = [
        "ERROR_RATE",
        "0.003",
        "initial_size",
        "321",
        "EXPANSION",
        "4",
        "CF_BUCKET_SIZE",
        "3",
        "Layout",
        "BLOCKED",
    ];
    let Some(host) = Host::with_args(&[], &words) else {
        return;
    };
    let mut client = host.client();
    if from_redis_7() {
        assert_eq!(setting(&mut client, "bf-error-rate"), "0.003");
        assert_eq!(setting(&mut client, "bf-initial-size"), "321");
        assert_eq!(setting(&mut client, "bf-expansion-factor"), "4");
        assert_eq!(setting(&mut client, "bf-default-layout"), "blocked");
    }
    client.ok("BF.ADD f x");
    assert_eq!(client.ok("TYPE f"), Reply::simple("everbloom"));
    assert_eq!(
        elements(client.ok("BF.INFO f CAPACITY")),
        [Reply::Integer(321)]
    );
    client.ok("CF.ADD g x");
    let info = elements(client.ok("CF.INFO g"));
    assert!(
        info.windows(2)
            .any(|it| it == [Reply::simple("Bucket size"), Reply::Integer(3)])
    );
}

#[test]
fn the_guide_has_every_setting() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else {
        return;
    };
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/module.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let pairs = elements(host.client().ok("CONFIG GET *"));
    let names = pairs.iter().step_by(2).map(|name| name.as_bytes().unwrap());
    let names = names.map(|name| String::from_utf8_lossy(name).into_owned());
    let ours = |name: &String| {
        ["bf-", "cf-", "bloom-"]
            .iter()
            .any(|part| name.contains(part))
    };
    let names: Vec<String> = names.filter(ours).collect();
    assert!(names.len() >= 11, "{names:?}");
    for name in names {
        assert!(guide.contains(&format!("| `{name}` |")), "{name}");
    }
}

/// As a file of Valkey with valkey-bloom has them.
#[test]
fn load_arguments_of_valkey_bloom_are_understood() {
    let Some(program) = host_program() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let load = format!(
        "loadmodule {} bloom-capacity 321 bloom-fp-rate 0.02 bloom-expansion 3 \
         bloom-memory-usage-limit 134217728 bloom-use-random-seed no\n",
        module().display()
    );
    std::fs::write(dir.path().join("redis.conf"), load).unwrap();
    let host = Host::on_file(dir, &program);
    let mut client = host.client();
    client.ok("BF.ADD f x");
    for (field, value) in [("CAPACITY", 321), ("EXPANSION", 3)] {
        let reply = elements(client.ok(&format!("BF.INFO f {field}")));
        assert_eq!(reply, [Reply::Integer(value)]);
    }
    assert!(
        host.log()
            .contains("bloom-use-random-seed has no effect here")
    );
    // The limit is that of valkey-bloom, so this is what it answers, too.
    client.ok("BF.INSERT theirs CAPACITY 100 ERROR 0.01 TIGHTENING 0.5 EXPANSION 2");
    assert_eq!(
        client.number("BF.INFO theirs MAXSCALEDCAPACITY"),
        26_214_300
    );
}

#[test]
fn wrong_load_arguments_stop_the_start() {
    let Some(program) = host_program() else {
        return;
    };
    for words in [
        &["ERROR_RATE", "2"][..],
        &["INITIAL_SIZE"],
        &["INITIAL_SIZE", "0"],
        &["CF_MAX_EXPANSIONS", "0"],
        &["CF_NONSENSE", "1"],
        &["cf-nonsense", "1"],
        &["bf-error_rate", "0.1"],
        &["bf-initial-size"],
        &["bf-initial-size", "0"],
        &["bf-max-filter-bytes", "1xb"],
        &["bloom-memory-usage-limit", "-1"],
        &["LAYOUT"],
        &["LAYOUT", "block"],
        &["REDISBLOOM_COMPATIBLE", "1"],
        &["NONSENSE", "1"],
    ] {
        let output = Command::new(&program)
            .args(["--port", &free_port().to_string(), "--loadmodule"])
            .arg(module())
            .args(words)
            .output()
            .unwrap();
        assert!(!output.status.success(), "{words:?}");
        let log = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(log.contains("<bf>"), "{words:?}\n{log}");
    }
}

#[test]
fn a_second_module_of_that_name_is_refused() {
    // Redis 7.0 on, which is where it must be asked for.
    let more = ["--enable-module-command", "yes"];
    let settings: &[&str] = if from_redis_7() { &more } else { &[] };
    let Some(host) = Host::start(settings) else {
        return;
    };
    let mut client = host.client();
    client.ok("BF.ADD f x");
    client.error(&format!("MODULE LOAD {}", module().display()));
    // Its types keep it where it is.
    client.error("MODULE UNLOAD bf");
    assert_eq!(client.number("BF.EXISTS f x"), 1);
}

/// A host that runs loads the module, once it is asked in the right words.
#[test]
fn a_load_that_failed_can_be_repeated() {
    if !from_redis_7() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("redis.conf");
    std::fs::write(file, "enable-module-command yes\n").unwrap();
    let host = Host::on_file(dir, &host_program().unwrap());
    let mut client = host.client();
    let load = format!("MODULE LOAD {}", module().display());
    for wrong in [
        "ERROR_RATE 7",
        "NONSENSE 1",
        "EXPANSION 9 LAYOUT BLOCKED X 1",
        "INITIAL_SIZE",
    ] {
        client.error(&format!("{load} {wrong}"));
    }
    client.ok(&format!("{load} INITIAL_SIZE 77"));
    client.ok("BF.ADD f x");
    assert_eq!(
        elements(client.ok("BF.INFO f CAPACITY")),
        [Reply::Integer(77)]
    );
    // Nothing is left of what was refused.
    assert_eq!(client.ok("TYPE f"), Reply::simple("MBbloom--"));
    assert_eq!(
        elements(client.ok("BF.INFO f EXPANSION")),
        [Reply::Integer(2)]
    );
    client.ok("SAVE");
    assert_eq!(client.number("COPY f g"), 1);
    assert_eq!(client.number("BF.EXISTS g x"), 1);
}

/// The host does not forget what a module that failed to load has asked it to tell.
#[test]
fn a_load_with_a_wrong_setting_can_be_repeated() {
    if !from_redis_7() {
        return;
    }
    let program = host_program().unwrap();
    let bare = !is_valkey(&program) && version(&program) >= (8, 0);
    let name = if bare {
        "bf-initial-size"
    } else {
        "bf.bf-initial-size"
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("redis.conf");
    std::fs::write(file, "enable-module-command yes\n").unwrap();
    let host = Host::on_file(dir, &program);
    let mut client = host.client();
    let load = format!("MODULE LOADEX {} CONFIG {name}", module().display());
    for _ in 0..2 {
        client.error(&format!("{load} 0"));
        client.ok("CONFIG SET maxmemory 1gb");
        client.ok("PING");
    }
    client.ok(&format!("{load} 77"));
    client.ok("BF.ADD f x");
    let capacity = elements(client.ok("BF.INFO f CAPACITY"));
    assert_eq!(capacity, [Reply::Integer(77)]);
    // Loaded, it is told.
    client.ok("CONFIG SET maxmemory 60mb");
    let refused = client.error("BF.RESERVE large 0.01 750000000");
    assert!(refused.contains("memory"), "{refused}");
}

/// With a policy of eviction the host would remove every key for such a filter.
#[test]
fn a_filter_may_not_be_larger_than_the_memory_of_the_host() {
    if !from_redis_7() {
        return;
    }
    let settings = ["--maxmemory", "60mb", "--maxmemory-policy", "allkeys-lru"];
    let Some(host) = Host::start(&settings) else {
        return;
    };
    let mut client = host.client();
    for key in 0..50 {
        client.ok(&format!("SET key{key} x"));
    }
    let large = "BF.RESERVE large 0.01 750000000";
    let cuckoo = "CF.RESERVE large 750000000";
    for line in [large, cuckoo] {
        let refused = client.error(line);
        assert!(refused.contains("memory"), "{line}: {refused}");
        client.ok("SET another x");
        assert_eq!(client.number("DBSIZE"), 51, "{line}");
    }
    // A limit of the operator's own decides alone.
    set(&mut client, "bf-max-filter-bytes", "1gb");
    client.ok("CONFIG SET maxmemory-policy noeviction");
    client.ok(large);
    client.ok("DEL large");
    set(&mut client, "bf-max-filter-bytes", "0");
    client.error(large);
    client.ok("CONFIG SET maxmemory 0");
    client.ok(large);
    client.ok("DEL large");
    // Valkey frees in the background.
    wait_for("memory", || {
        client.info("used_memory").parse::<u64>().unwrap() < 40_000_000
    });
    client.ok("CONFIG SET maxmemory 50mb");
    let refused = client.error(large);
    assert!(refused.contains("Insufficient memory"), "{refused}");
    client.ok("BF.RESERVE small 0.01 1000000");
}

#[test]
fn a_filter_may_not_be_larger_than_its_limit() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&["--bf.bloom-memory-usage-limit", "2kb"]) else {
        return;
    };
    let mut client = host.client();
    assert!(
        client
            .error("BF.RESERVE f 0.01 2000")
            .contains("Insufficient memory")
    );
    client.ok("BF.RESERVE f 0.01 1000");
    for i in 0..1000 {
        client.ok(&format!("BF.ADD f {i}"));
    }
    let mut refused = 0;
    for i in 1000..1100 {
        let reply = client.line(&format!("BF.ADD f {i}"));
        refused += i32::from(reply.as_error() == Some("ERR problem inserting into filter"));
    }
    assert!(refused > 50, "{refused}");
}
