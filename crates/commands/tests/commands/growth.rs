//! Filters that must grow, and for which there is no memory.

use crate::keyspace::{Keyspace, wire};

/// What fills a filter of about 100 items, and what adds one item to it.
const FILTERS: [(&str, &str, &str); 7] = [
    ("BF.RESERVE k 1e-9 100", "BF.MADD k", "BF.ADD k"),
    ("BF.RESERVE k 1e-9 100", "BF.INSERT k ITEMS", "BF.MADD k"),
    (
        "BF.RESERVE k 1e-9 100 LAYOUT blocked",
        "BF.MADD k",
        "BF.ADD k",
    ),
    (
        "BF.RESERVE k 1e-9 100 WINDOW SECONDS 9",
        "BF.MADD k",
        "BF.ADD k",
    ),
    (
        "BF.RESERVE k 1e-9 100 WINDOW ITEMS",
        "BF.INSERT k ITEMS",
        "BF.ADD k",
    ),
    ("CF.RESERVE k 100", "CF.INSERT k ITEMS", "CF.ADD k"),
    (
        "CF.RESERVE k 100 BUCKETSIZE 8",
        "CF.INSERT k ITEMS",
        "CF.INSERT k ITEMS",
    ),
];

fn is_refusal(reply: &str) -> bool {
    reply.contains("-ERR problem inserting into filter")
        || reply.contains("-ERR Insufficient memory")
        || reply.ends_with(":-1")
}

#[test]
fn an_item_without_room_is_refused_until_there_is_memory() {
    for (reserve, fill, add) in FILTERS {
        let mut keys = Keyspace::default();
        assert_eq!(keys.say(reserve), "+OK", "{reserve}");
        keys.context.free_bytes = 0;
        let items: Vec<String> = (0..400).map(|item| item.to_string()).collect();
        let words: Vec<&[u8]> = fill
            .split(' ')
            .chain(items.iter().map(String::as_str))
            .map(str::as_bytes)
            .collect();
        let replies = keys.call(&words).into_elements().unwrap();
        assert_eq!(replies.len(), items.len(), "{fill}");
        let mut refused = Vec::new();
        for (item, reply) in items.iter().zip(replies) {
            let reply = wire(&reply, keys.context.protocol);
            match is_refusal(&reply) {
                true => refused.push(item),
                false => assert_eq!(reply, ":1", "{fill}: {item}"),
            }
        }
        assert!((100..400).contains(&refused.len()), "{fill}: {refused:?}");

        let (before, logged) = (keys.keys.clone(), keys.log.len());
        for item in &refused {
            let reply = keys.say(&format!("{add} {item}"));
            assert!(is_refusal(&reply), "{add} {item}: {reply}");
        }
        assert!(keys.keys == before, "{add}");
        assert_eq!(keys.log.len(), logged, "{add}");

        keys.context.free_bytes = u64::MAX;
        for item in &refused {
            let reply = keys.say(&format!("{add} {item}"));
            assert!(reply.ends_with(":1"), "{add} {item}: {reply}");
        }
    }
}
