//! What INFO says of the filters.

use everbloom_resp::Reply;

use crate::support::{Client, Host, elements, host_program, version, wait_for};

fn sums(client: &mut Client) -> Vec<u64> {
    let fields = [
        "total_memory_bytes",
        "num_objects",
        "num_filters_across_objects",
        "num_items_across_objects",
        "capacity_across_objects",
    ];
    fields
        .iter()
        .map(|field| client.info(&format!("bf_bloom_{field}")).parse().unwrap())
        .collect()
}

/// The filters that INFO names: their states and keys.
fn named(client: &mut Client) -> Vec<(String, String)> {
    let text = client.text("INFO everything");
    let lines = text
        .lines()
        .filter(|line| line.starts_with("bf_bloom_filter_"));
    let value = |line: &str, name: &str| {
        let fields = line.split_once(':').unwrap().1.split(',');
        let mut pairs = fields.filter_map(|field| field.split_once('='));
        pairs.find(|(key, _)| *key == name).unwrap().1.to_owned()
    };
    lines
        .map(|line| (value(line, "state"), value(line, "key")))
        .collect()
}

#[test]
fn info_names_filters_that_grow_soon_or_err() {
    let Some(mut host) = Host::start(&[]) else {
        return;
    };
    let mut client = host.client();
    let pair = |state: &str, key: &str| (state.to_owned(), key.to_owned());
    client.ok("BF.RESERVE half 0.01 1000");
    client.ok("BF.RESERVE grows 0.01 1000 LAYOUT BLOCKED");
    client.ok("BF.RESERVE fixed,a=b 0.01 100 NONSCALING");
    let fill = |client: &mut Client, key: &str, items: std::ops::Range<u32>| {
        let items: Vec<String> = items.map(|item| item.to_string()).collect();
        client.line(&format!("BF.MADD {key} {}", items.join(" ")));
    };
    fill(&mut client, "half", 0..500);
    fill(&mut client, "grows", 0..500);
    assert!(named(&mut client).is_empty());
    fill(&mut client, "grows", 500..950);
    fill(&mut client, "fixed,a=b", 0..95);
    let (grows, fixed) = (pair("grows_soon", "grows"), "fixed\\x2ca\\x3db");
    let wanted = [pair("full_soon", fixed), grows.clone()];
    assert_eq!(named(&mut client), wanted);
    fill(&mut client, "fixed,a=b", 95..200);
    assert_eq!(named(&mut client)[0], pair("full", fixed));
    // It has grown.
    fill(&mut client, "grows", 950..1100);
    assert_eq!(named(&mut client), [pair("full", fixed)]);
    // Every bit is set: any item seems to be there.
    client.ok("BF.RESERVE bad 0.01 1000");
    let bytes = elements(client.ok("BF.SCANDUMP bad 0"));
    let header = bytes[1].as_bytes().unwrap().to_vec();
    let piece = elements(client.ok("BF.SCANDUMP bad 1"));
    let iterator = piece[0].as_integer().unwrap().to_string();
    let ones = vec![0xff; piece[1].as_bytes().unwrap().len()];
    client.ok("DEL bad");
    for (at, data) in [("1", &header), (&*iterator, &ones)] {
        let words: [&[u8]; 4] = [b"BF.LOADCHUNK", b"bad", at.as_bytes(), data];
        assert_eq!(client.call(&words), Reply::OK);
    }
    let wanted = [pair("errs", "bad"), pair("full", fixed)];
    assert_eq!(named(&mut client), wanted);
    host.restart("SAVE");
    let mut client = host.client();
    if host_program().is_none_or(|program| version(&program) < (7, 0)) {
        // An older host does not say the keys of what it loads. The next adds do.
        assert!(named(&mut client).is_empty());
        client.error("BF.ADD fixed,a=b refused");
        client.ok("BF.ADD bad x");
    }
    assert_eq!(named(&mut client), wanted);
    for key in 0..40 {
        client.ok(&format!("BF.RESERVE f{key} 0.01 10"));
        fill(&mut client, &format!("f{key}"), 0..10);
    }
    assert_eq!(named(&mut client).len(), 20);
    client.ok("DEL bad");
    assert_eq!(named(&mut client)[0], pair("full", fixed));
    // Others follow when some leave.
    for (_, key) in &named(&mut client)[1..] {
        client.ok(&format!("DEL {key}"));
    }
    assert_eq!(named(&mut client).len(), 20);
    client.ok("FLUSHALL");
    wait_for("an empty list", || named(&mut client).is_empty());
}

#[test]
fn info_sums_over_all_filters() {
    let Some(host) = Host::start(&[]) else { return };
    let mut client = host.client();
    assert_eq!(sums(&mut client), [0; 5]);
    client.ok("BF.RESERVE a 0.01 10");
    client.ok("BF.RESERVE b 0.01 1000 NONSCALING");
    for i in 0..11 {
        client.ok(&format!("BF.ADD a {i}"));
    }
    client.ok("COPY a c");
    client.ok("BF.RESERVE d 0.01 500 LAYOUT BLOCKED");
    client.ok("BF.MADD d x y z");
    let found = sums(&mut client);
    assert_eq!(found[1..], [4, 6, 25, 1560]);
    let parts = ["a", "b", "c", "d"].map(|key| client.number(&format!("MEMORY USAGE {key}")));
    let used = u64::try_from(parts.iter().sum::<i64>()).unwrap();
    // The host counts the names, too.
    assert!(
        found[0] < used && used < found[0] + 800,
        "{used} and {found:?}"
    );
    client.ok("DEL a b");
    client.ok("FLUSHALL");
    // Valkey frees in the background from 8.0 on.
    wait_for("the sums to be zero", || sums(&mut client) == [0; 5]);
}
