//! The events that commands publish.

use everbloom::Span;
use everbloom::host::LayeredFilter;
use everbloom_files::Value;
use everbloom_files::rdb::dump;
use everbloom_resp::Reply;

use crate::support::{Host, elements, from_redis_7, text_of};

/// The events that a command publishes, each with its key.
fn events(host: &Host, line: &str) -> Vec<(String, String)> {
    let (mut client, mut listener) = (host.client(), host.client());
    listener.ok("PSUBSCRIBE __keyevent@0__:bloom.*");
    client.ok(line);
    client.ok("PUBLISH __keyevent@0__:bloom.end x");
    let mut events = Vec::new();
    loop {
        let message = elements(listener.reply());
        let channel = text_of(&message[2]);
        let event = channel.rsplit(':').next().unwrap().to_owned();
        if event == "bloom.end" {
            return events;
        }
        events.push((event, text_of(&message[3])));
    }
}

#[test]
fn events_are_published() {
    let Some(host) = Host::start(&["--notify-keyspace-events", "Eg"]) else {
        return;
    };
    let (made, added, merged) = ("bloom.reserve", "bloom.add", "bloom.merge");
    for (line, wanted) in [
        ("BF.RESERVE a 0.1 10", &[made][..]),
        ("BF.ADD a x", &[added]),
        ("BF.ADD a x", &[]),
        ("BF.MADD b x x", &[made, added]),
        ("BF.INSERT b ITEMS x", &[]),
        ("BF.INSERT b ITEMS x y", &[added]),
        ("BF.EXISTS a x", &[]),
        ("BF.RESERVE c 0.1 10 LAYOUT BLOCKED", &[made]),
        ("BF.ADD c x", &[added]),
        ("BF.ADD c x", &[]),
        // A generation has room for four. The ninth item begins one, and four are forgotten.
        ("BF.RESERVE w 1e-6 4 WINDOW ITEMS GENERATIONS 1", &[made]),
        ("BF.MADD w 1 2 3 4", &[added]),
        ("BF.MADD w 5 6 7 8", &[added]),
        ("BF.ADD w 9", &[added]),
        // Only an older generation has it, so it is added to the newest.
        ("BF.ADD w 5", &[]),
        ("BF.ADVANCE w", &["bloom.advance"]),
        ("BF.MERGE m a", &[made, merged]),
        ("BF.MERGE m a", &[merged]),
        ("BF.CLEAR m", &["bloom.clear"]),
        ("BF.RESERVE s 0.01 100000 LAYOUT BLOCKED", &[made]),
        ("BF.SHRINK s 1000", &["bloom.shrink"]),
        ("CF.ADD u x", &[made, added]),
        ("CF.INSERT u ITEMS x", &[added]),
        ("CF.ADDNX u x", &[]),
        ("CF.DEL u x", &["bloom.del"]),
        ("CF.DEL u y", &[]),
        ("CF.MERGE t u", &[made, merged]),
        ("CF.COMPACT u", &[]),
    ] {
        let key = line.split(' ').nth(1).unwrap().to_owned();
        let wanted: Vec<_> = wanted
            .iter()
            .map(|event| ((*event).to_owned(), key.clone()))
            .collect();
        assert_eq!(events(&host, line), wanted, "{line}");
    }
}

#[test]
fn an_add_that_begins_a_generation_publishes_it() {
    if !from_redis_7() {
        return;
    }
    let Some(host) = Host::start(&["--notify-keyspace-events", "Eg"]) else {
        return;
    };
    let mut client = host.client();
    let time = elements(client.ok("TIME"));
    let hour_ago = (text_of(&time[0]).parse::<u64>().unwrap() - 3600) * 1000;
    // Generations of half an hour, none of which is to be forgotten before the add.
    let builder = LayeredFilter::builder().capacity(100);
    let span = Span::Ticks(2 * 3_600_000);
    let filter = builder.window(span, 4, hour_ago).build().unwrap();
    let payload = dump(&Value::Filter(filter.into()), true, usize::MAX).unwrap();
    for add in ["BF.ADD w b", "BF.MADD w b", "BF.INSERT w ITEMS b"] {
        client.ok("FLUSHALL");
        let words: [&[u8]; 4] = [b"RESTORE", b"w", b"0", &payload];
        assert_eq!(client.call(&words), Reply::OK);
        let advance = ("bloom.advance".to_owned(), "w".to_owned());
        assert!(events(&host, add).contains(&advance), "{add}");
        // The generation has begun.
        let added = ("bloom.add".to_owned(), "w".to_owned());
        assert_eq!(events(&host, "BF.ADD w c"), [added], "{add}");
    }
}
