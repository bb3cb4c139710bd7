//! What users do with keys, around the commands and between them.

use everbloom::Layout;
use everbloom::host::LayeredFilter;
use everbloom_commands::synopsis::{self, Argument, ArgumentKind};
use everbloom_resp::Reply;

use crate::support::{
    Client, Host, elements, from_redis_7, host_program, is_valkey, text_of, version, wait_for,
};

#[test]
fn commands_are_registered_as_the_table_says() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for row in everbloom_commands::COMMANDS {
        let info = elements(client.line(&format!("COMMAND INFO {}", row.name)));
        let info = elements(info[0].clone());
        assert_eq!(info[0].as_bytes(), Some(row.name.as_bytes()));
        if from_redis_7() {
            assert_eq!(info[1].as_integer(), Some(row.arity.into()), "{}", row.name);
        }
        let mut flags: Vec<String> = elements(info[2].clone()).iter().map(text_of).collect();
        flags.retain(|flag| flag != "module");
        let wanted: Vec<&str> = row.flags.names().collect();
        assert_eq!(flags, wanted, "{}", row.name);
        let keys: Vec<_> = info[3..6].iter().map(Reply::as_integer).collect();
        let specified = [row.keys.first, row.keys.last, row.keys.step];
        assert_eq!(keys, specified.map(|at| Some(at.into())), "{}", row.name);
        let words = [row.name, "the-key", "a", "b", "c", "d"];
        let words = words.map(str::as_bytes);
        if row.accepts(words.len()) {
            let getkeys = [&[&b"COMMAND"[..], b"GETKEYS"], &words[..]].concat();
            let found = elements(client.call(&getkeys)).len();
            assert_eq!(found, row.keys.of(&words).count(), "{}", row.name);
        }
    }
}

/// A client needs permission to write only for what it changes, and permission to read only for
/// what it learns.
#[test]
fn keys_need_the_permissions_that_their_use_needs() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for row in everbloom_commands::COMMANDS {
        let info = elements(client.line(&format!("COMMAND INFO {}", row.name)));
        let specs = elements(elements(info[0].clone())[8].clone());
        let flags = |spec: &Reply| {
            let flags = elements(field(spec, "flags").unwrap());
            flags.iter().map(text_of).collect::<Vec<String>>()
        };
        let wanted = row.key_specs().map(|(_, key_use)| key_use.names());
        let wanted: Vec<Vec<&str>> = wanted.map(Iterator::collect).collect();
        assert_eq!(
            specs.iter().map(flags).collect::<Vec<_>>(),
            wanted,
            "{}",
            row.name
        );
    }
    client.ok("ACL SETUSER u on nopass +@all %R~src:* %W~log:* %RW~dst:*");
    for key in ["src:a", "src:b", "dst:a", "log:a"] {
        client.ok(&format!("BF.RESERVE {key} 0.01 100"));
        client.ok(&format!("BF.ADD {key} {key}"));
    }
    client.ok("CF.ADD log:c x");
    client.ok("CF.ADD src:c x");
    client.ok("AUTH u x");
    for line in [
        "BF.MERGE dst:a src:a src:b",
        "BF.MERGE dst:new src:a dst:a",
        "BF.EXISTS src:a x",
        "BF.ADD log:a y",
        "BF.INSERT log:b ITEMS y",
        "BF.CLEAR log:a",
        "CF.DEL log:c x",
        "CF.MERGE dst:c src:c",
    ] {
        client.ok(line);
    }
    for line in [
        "BF.MERGE src:a dst:a",
        "BF.MERGE log:a src:a",
        "BF.MERGE dst:a log:a",
        "BF.MERGE dst:a src:a other",
        "CF.MERGE src:c dst:c",
        "BF.ADD src:a y",
        "BF.CLEAR src:a",
        "BF.EXISTS log:a y",
        "BF.SCANDUMP log:a 0",
        "CF.DEL src:a x",
    ] {
        let error = client.error(line);
        assert!(
            error.contains("NOPERM") || error.contains("No permissions"),
            "{line}: {error}"
        );
    }
}

/// COMMAND DOCS has all that the table says, arguments within arguments included.
#[test]
fn commands_are_documented_as_the_table_says() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let mut nested = 0;
    for row in everbloom_commands::COMMANDS {
        let docs = elements(client.ok(&format!("COMMAND DOCS {}", row.name)));
        assert_eq!(docs[0].as_bytes(), Some(row.name.as_bytes()));
        for (label, text) in [
            ("summary", row.docs.summary),
            ("since", row.docs.since),
            ("complexity", row.docs.complexity),
        ] {
            let found = field(&docs[1], label).map(|found| text_of(&found));
            assert_eq!(found.as_deref(), Some(text), "{} {label}", row.name);
        }
        let shown = field(&docs[1], "arguments").unwrap();
        nested += check_arguments(row.name, shown, &synopsis::arguments(row.docs.usage));
    }
    assert!(nested > 0, "no argument of arguments was compared");
}

/// Compares arguments, and answers how many lists of arguments there were in them.
fn check_arguments(name: &str, shown: Reply, wanted: &[Argument]) -> usize {
    let shown = elements(shown);
    assert_eq!(shown.len(), wanted.len(), "{name}: {shown:?}");
    let pairs = shown.iter().zip(wanted);
    let nested = pairs.map(|(shown, wanted)| {
        let text = |label| field(shown, label).map(|text| text_of(&text));
        assert_eq!(text("name").as_deref(), Some(&*wanted.name), "{name}");
        let kind = wanted.kind.name();
        assert_eq!(
            text("type").as_deref(),
            Some(kind),
            "{name} {}",
            wanted.name
        );
        let number = field(shown, "key_spec_index");
        match wanted.kind {
            ArgumentKind::Key(wanted) => {
                let number = number.and_then(|number| number.as_integer());
                assert_eq!(number, Some(wanted.into()), "{name}");
            }
            _ => assert!(number.is_none(), "{name}"),
        }
        let token = text("token");
        assert_eq!(token.as_deref(), wanted.token, "{name} {}", wanted.name);
        let flags = field(shown, "flags").map_or_else(Vec::new, elements);
        let flags: Vec<String> = flags.iter().map(text_of).collect();
        for (flag, is_set) in [("optional", wanted.optional), ("multiple", wanted.multiple)] {
            let found = flags.iter().any(|found| found == flag);
            assert_eq!(found, is_set, "{name} {} {flag}", wanted.name);
        }
        match (field(shown, "arguments"), &wanted.kind) {
            (Some(shown), ArgumentKind::OneOf(wanted)) => 1 + check_arguments(name, shown, wanted),
            (None, kind) if !matches!(kind, ArgumentKind::OneOf(_)) => 0,
            (shown, _) => panic!("{name} {}: {shown:?}", wanted.name),
        }
    });
    nested.sum()
}

/// What is behind a label in a list of labels and values.
fn field(list: &Reply, label: &str) -> Option<Reply> {
    let list = elements(list.clone());
    let mut pairs = list.chunks(2);
    let pair = pairs.find(|pair| pair[0].as_bytes() == Some(label.as_bytes()))?;
    Some(pair[1].clone())
}

#[test]
fn keys_are_renamed_copied_expired_and_deleted() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    for layout in ["CLASSIC", "BLOCKED"] {
        check_life_of_a_key(&mut client, layout);
        client.ok("FLUSHALL");
        client.ok("SELECT 0");
    }
}

fn check_life_of_a_key(client: &mut Client, layout: &str) {
    client.ok(&format!("BF.RESERVE f 0.001 10 LAYOUT {layout}"));
    for i in 0..100 {
        client.ok(&format!("BF.ADD f item:{i}"));
    }
    let stats = client.ok("BF.STATS f");
    assert_eq!(client.number("COPY f copy"), 1);
    assert_eq!(client.ok("BF.STATS copy"), stats);
    let kind = client.ok("TYPE f");
    assert_eq!(client.ok("TYPE copy"), kind);
    let digest = client.ok("DEBUG DIGEST-VALUE f");
    assert_eq!(client.ok("DEBUG DIGEST-VALUE copy"), digest);
    // A copy is a value of its own.
    assert_eq!(client.number("BF.ADD copy other"), 1);
    assert_eq!(client.number("BF.EXISTS f other"), 0);
    client.ok("RENAME f g");
    assert_eq!(client.ok("BF.STATS g"), stats);
    assert_eq!(client.number("BF.CARD f"), 0);
    assert_eq!(client.number("COPY g copy REPLACE"), 1);
    assert_eq!(client.ok("BF.STATS copy"), stats);
    client.ok("MOVE g 3");
    client.ok("SELECT 3");
    assert_eq!(client.ok("BF.STATS g"), stats);
    client.ok("PEXPIRE g 30");
    assert_eq!(client.number("BF.EXISTS g item:1"), 1);
    wait_for("the key to expire", || {
        client.number("BF.EXISTS g item:1") == 0
    });
    // A key that expired is another one when it comes back.
    assert_eq!(client.number("BF.ADD g item:1"), 1);
    assert_eq!(client.number("PTTL g"), -1);
    assert_eq!(client.number("UNLINK g"), 1);
    assert_eq!(client.number("DBSIZE"), 0);
}

/// Every command on a filter in the blocked layout, which is bit for bit the library's.
#[test]
fn the_blocked_layout_has_a_type_of_its_own() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    client.ok("BF.RESERVE k 0.01 1000 LAYOUT BLOCKED SEED 7");
    client.ok("BF.RESERVE classic 0.01 1000");
    let mut filter = LayeredFilter::builder()
        .layout(Layout::Blocked)
        .error_rate(0.01)
        .capacity(1000)
        .seed(7)
        .build()
        .unwrap();
    for i in 0..1500 {
        let item = format!("item:{i}");
        let added = filter.insert(item.as_bytes());
        assert_eq!(client.number(&format!("BF.ADD k {item}")), i64::from(added));
    }
    assert_eq!(client.ok("TYPE k"), Reply::simple("everbloom"));
    assert_eq!(client.ok("TYPE classic"), Reply::simple("MBbloom--"));
    assert_eq!(
        client.ok("OBJECT ENCODING k"),
        client.ok("OBJECT ENCODING classic")
    );
    let stats = client.ok("BF.STATS k");
    let value = |label| field(&stats, label).unwrap();
    assert_eq!(text_of(&value("layout")), "blocked");
    let key = filter
        .key()
        .unwrap()
        .to_bytes()
        .map(|byte| format!("{byte:02x}"));
    assert_eq!(text_of(&value("key")), key.concat());
    let items = i64::try_from(filter.len()).unwrap();
    assert_eq!(value("items"), Reply::Integer(items));
    assert_eq!(value("layers"), Reply::Integer(2));
    assert_eq!(client.number("BF.CARD k"), items);
    assert!(client.number("MEMORY USAGE k") > client.number("MEMORY USAGE classic"));
    let (mut iterator, mut bits) = (1, Vec::new());
    while iterator > 0 {
        let piece = elements(client.ok(&format!("BF.SCANDUMP k {iterator}")));
        iterator = piece[0].as_integer().unwrap();
        bits.extend_from_slice(piece[1].as_bytes().unwrap());
    }
    let layers = filter.layers().iter();
    let wanted: Vec<u8> = layers.flat_map(|layer| layer.as_bytes().to_vec()).collect();
    assert!(bits == wanted, "the bits differ");
    let error = client.error("BF.RESERVE k 0.01 1000 LAYOUT CLASSIC");
    assert!(error.contains("item exists"), "{error}");
    for line in ["GET k", "LPUSH k x"] {
        assert!(client.error(line).starts_with("WRONGTYPE"), "{line}");
    }
}

/// A digest tells filters apart that differ in one bit, and in their parameters.
#[test]
fn digests_are_of_everything() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let mut digests = Vec::new();
    for (expansion, item) in [("2", "x"), ("2", "y"), ("3", "x")] {
        client.ok(&format!("BF.RESERVE f 0.01 100 EXPANSION {expansion}"));
        client.ok(&format!("BF.ADD f {item}"));
        digests.push(client.digest());
        client.ok("DEL f");
    }
    client.ok("BF.RESERVE f 0.01 100");
    client.ok("BF.ADD f x");
    assert_eq!(client.digest(), digests[0]);
    for (seed, item) in [("7", "x"), ("7", "y"), ("8", "x")] {
        client.ok("DEL f");
        client.ok(&format!("BF.RESERVE f 0.01 100 LAYOUT BLOCKED SEED {seed}"));
        client.ok(&format!("BF.ADD f {item}"));
        digests.push(client.digest());
    }
    client.ok("DEL f");
    client.ok("BF.RESERVE f 0.01 100 LAYOUT BLOCKED SEED 7");
    client.ok("BF.ADD f x");
    assert_eq!(client.digest(), digests[3]);
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 6);
}

#[test]
fn transactions_and_watches() {
    let Some(host) = Host::start(&[]) else { return };
    let (mut client, mut other) = (host.client(), host.client());
    client.ok("MULTI");
    assert_eq!(client.line("BF.ADD f a"), Reply::simple("QUEUED"));
    assert_eq!(client.line("BF.MEXISTS f a b"), Reply::simple("QUEUED"));
    // Wrong arity is known where the host knows arities.
    let replies = elements(client.ok("EXEC"));
    assert_eq!(replies[0], Reply::Integer(1));
    assert_eq!(
        elements(replies[1].clone()),
        [Reply::Integer(1), Reply::Integer(0)]
    );

    // Whoever watches a key hears of a change, and not of bad arguments.
    for (line, dirty) in [
        ("BF.ADD f new", true),
        ("BF.ADD f new", false),
        ("BF.MADD f new a", false),
        ("BF.MADD f a other", true),
        ("BF.INSERT f ITEMS a", false),
        ("BF.RESERVE f x 1", false),
        ("BF.RESERVE f 0.1 1", false),
        ("BF.EXISTS f a", false),
        ("CF.ADDNX f a", false),
        ("BF.CLEAR f", true),
        ("BF.ADD f a", true),
    ] {
        client.ok("WATCH f");
        other.line(line);
        client.ok("MULTI");
        client.ok("PING");
        assert_eq!(client.line("EXEC").is_null(), dirty, "{line}");
    }
}

/// Clients that cache a filter's answers hear of changes, and not of adds that changed nothing.
#[test]
fn clients_that_track_a_filter_hear_of_changes() {
    let Some(host) = Host::start(&[]) else { return };
    let (mut client, mut other, mut listener) = (host.client(), host.client(), host.client());
    let id = listener.number("CLIENT ID");
    listener.ok("SUBSCRIBE __redis__:invalidate");
    client.ok(&format!("CLIENT TRACKING ON REDIRECT {id}"));
    for line in ["BF.ADD f a", "CF.ADD g a", "SET h 1"] {
        other.ok(line);
    }
    // What is invalidated, up to the key `h`, which is changed at last.
    let mut invalidated = |line: &str| -> Vec<String> {
        for line in ["BF.EXISTS f a", "CF.EXISTS g a", "GET h"] {
            client.ok(line);
        }
        other.line(line);
        other.ok("SET h 2");
        let mut keys = Vec::new();
        loop {
            let message = elements(listener.reply());
            let Some(key) = message[2].clone().into_elements() else {
                panic!("{message:?}");
            };
            match text_of(&key[0]) {
                key if key == "h" => return keys,
                key => keys.push(key),
            }
        }
    };
    for (line, wanted) in [
        ("BF.ADD f a", &[][..]),
        ("BF.MADD f a a", &[]),
        ("BF.ADD f b", &["f"]),
        ("CF.ADDNX g a", &[]),
        ("CF.DEL g b", &[]),
        ("CF.ADD g a", &["g"]),
        ("CF.DEL g a", &["g"]),
        ("BF.RESERVE f 0.01 9", &[]),
        ("BF.CLEAR f", &["f"]),
    ] {
        assert_eq!(invalidated(line), wanted, "{line}");
    }
}

#[test]
fn scripts_call_the_commands() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let script = "for i = 1, 300 do redis.call('BF.ADD', KEYS[1], 'item:' .. i) end \
                  return {redis.call('BF.CARD', KEYS[1]), \
                  redis.call('BF.MEXISTS', KEYS[1], 'item:7', 'x')}";
    let replies = elements(client.call(&["EVAL", script, "1", "f"]));
    assert!(replies[0].as_integer().unwrap() > 290, "{replies:?}");
    assert_eq!(
        elements(replies[1].clone()),
        [Reply::Integer(1), Reply::Integer(0)]
    );
    let failing = "return redis.call('BF.RESERVE', KEYS[1], '2', '1')";
    let reply = client.call(&["EVAL", failing, "1", "g"]);
    assert!(
        reply
            .as_error()
            .unwrap()
            .contains("error rate must be in the range")
    );
}

#[test]
fn access_control_lists_apply() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    client.ok("BF.ADD f a");
    let program = host_program().unwrap();
    // Redis 7.2 and Valkey know commands of modules by their categories.
    let read = if version(&program) >= (7, 2) {
        "+@read"
    } else {
        "+bf.exists"
    };
    client.ok(&format!(
        "ACL SETUSER reader on nopass ~f* -@all {read} +auth"
    ));
    client.ok("ACL SETUSER adder on nopass ~f* -@all +bf.add +bf.exists");
    client.ok("AUTH reader x");
    assert_eq!(client.number("BF.EXISTS f a"), 1);
    assert!(client.error("BF.ADD f b").starts_with("NOPERM"));
    assert!(client.error("BF.EXISTS g a").starts_with("NOPERM"));
    let mut client = host.client();
    client.ok("AUTH adder x");
    assert_eq!(client.number("BF.ADD f b"), 1);
    assert!(client.error("BF.MADD f c").starts_with("NOPERM"));
    // Redis 7.4 and Valkey 8 know categories of modules.
    let mut client = host.client();
    let since = if is_valkey(&program) { (8, 0) } else { (7, 4) };
    if version(&program) >= since {
        client.ok("ACL SETUSER bloomer on nopass ~* -@all +@bloom");
        client.ok("AUTH bloomer x");
        assert_eq!(client.number("BF.ADD f z"), 1);
        assert!(client.error("GET f").starts_with("NOPERM"));
    }
}

#[test]
fn memory_over_its_limit_refuses_writes_only() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    client.ok("BF.ADD f a");
    client.ok("CONFIG SET maxmemory 1");
    for line in [
        "BF.ADD f b",
        "BF.MADD f b",
        "BF.INSERT f ITEMS b",
        "BF.RESERVE g 0.1 1",
        "BF.LOADCHUNK g 1 x",
    ] {
        assert!(client.error(line).starts_with("OOM"), "{line}");
    }
    assert_eq!(client.number("BF.EXISTS f a"), 1);
    assert_eq!(client.number("BF.CARD f"), 1);
    // With a policy, filters go like other keys.
    client.ok("CONFIG SET maxmemory-policy allkeys-random");
    client.line("BF.ADD f b");
    assert_eq!(client.number("DBSIZE"), 0);
}

/// 193 GB, which an allocator may well promise.
#[test]
fn memory_that_is_not_there_is_an_error() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    let refused = client.error("BF.RESERVE f 1e-300 1073741824");
    assert!(refused.contains("Insufficient memory"), "{refused}");
    assert_eq!(client.number("DBSIZE"), 0);
    assert_eq!(client.number("BF.ADD f a"), 1);
}
