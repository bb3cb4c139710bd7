//! What the CF commands refuse: each rule by what breaks it, and nothing has changed then.

use crate::keyspace::Keyspace;
use everbloom::CuckooFilter;
use everbloom_commands::cf::{add, del, dump, insert, reserve};
use everbloom_commands::format::header::cuckoo::decode;
use everbloom_commands::run::Replies;
use everbloom_commands::table::WriteFn;
use everbloom_commands::{Context, LazyContext, Run, Slot};
use everbloom_resp::Reply;

const NOT_FOUND: &str = "-ERR not found";

/// A filter `c` with an item, one that is full, and a string.
fn prepared() -> Keyspace {
    let mut keys = Keyspace::default();
    keys.keys
        .insert(b"text".to_vec(), crate::keyspace::Value::Other);
    keys.say("CF.RESERVE c 8");
    keys.say("CF.ADD c a");
    keys.say("CF.RESERVE full 4 EXPANSION 0");
    keys.say("CF.INSERT full ITEMS foo foo foo foo");
    keys
}

/// Every line is answered with its error, and changes nothing.
fn check(lines: &[(&str, &str)]) {
    let mut keys = prepared();
    let (before, logged) = (keys.keys.clone(), keys.log.clone());
    for (line, expected) in lines {
        assert_eq!(keys.say(line), *expected, "{line}");
        assert_eq!(keys.keys, before, "{line}");
        assert_eq!(keys.log, logged, "{line}");
    }
}

fn arity(name: &str) -> String {
    format!("-ERR wrong number of arguments for '{name}' command")
}

#[test]
fn additions() {
    let range = "-Capacity must be in the range [cf-bucket-size * 2, 1073741824]";
    check(&[
        ("CF.ADD c", &arity("cf.add")),
        ("CF.ADD c a b", &arity("cf.add")),
        ("CF.ADDNX c a b", &arity("cf.addnx")),
        ("CF.ADD full foo", "-Filter is full"),
        ("CF.ADDNX full foo", ":0"),
        ("CF.INSERT new NOCREATE ITEMS a", NOT_FOUND),
        ("CF.INSERTNX new NOCREATE ITEMS a", NOT_FOUND),
        ("CF.INSERT c ITEMS", &arity("cf.insert")),
        ("CF.INSERT c NOCREATE a", "-Unknown argument received"),
        ("CF.INSERT c x ITEMS a", "-Unknown argument received"),
        ("CF.INSERT c CAPACITY x ITEMS a", "-Bad capacity"),
        ("CF.INSERT c CAPACITY 3 ITEMS a", range),
        ("CF.INSERT c CAPACITY -1 ITEMS a", range),
        ("CF.INSERT c CAPACITY 1073741825 ITEMS a", range),
        ("CF.INSERT c CAPACITY 9223372036854775807 ITEMS a", range),
        ("CF.INSERT c CAPACITY 8", &arity("cf.insert")),
        ("CF.INSERTNX c NOCREATE CAPACITY", &arity("cf.insertnx")),
    ]);
}

#[test]
fn reservations() {
    let iterations = "-MAXITERATIONS: value must be in the range [1, 65535]";
    let bucket = "-BUCKETSIZE: value must be in the range [1, 255]";
    let expansion = "-EXPANSION: value must be in the range [0, 32768]";
    let capacity = "-Capacity must be in the range [2 * BUCKETSIZE, 1073741824]";
    check(&[
        ("CF.RESERVE n 100 x", &arity("cf.reserve")),
        ("CF.RESERVE n", &arity("cf.reserve")),
        ("CF.RESERVE n x", "-Bad capacity"),
        ("CF.RESERVE n 100 MAXITERATIONS 0", iterations),
        ("CF.RESERVE n 100 MAXITERATIONS 65536", iterations),
        ("CF.RESERVE n 100 MAXITERATIONS -1", iterations),
        ("CF.RESERVE n 100 BUCKETSIZE 0", bucket),
        ("CF.RESERVE n 1000 BUCKETSIZE 256", bucket),
        ("CF.RESERVE n 100 EXPANSION -1", expansion),
        ("CF.RESERVE n 100 EXPANSION 32769", expansion),
        ("CF.RESERVE n 100 EXPANSION 65536", expansion),
        ("CF.RESERVE n 3", capacity),
        ("CF.RESERVE n 15 BUCKETSIZE 8", capacity),
        ("CF.RESERVE n 0", capacity),
        ("CF.RESERVE n -4", capacity),
        ("CF.RESERVE n 1073741825", capacity),
        ("CF.RESERVE c 100", "-ERR item exists"),
        (
            "CF.RESERVE text 100",
            "-WRONGTYPE Operation against a key holding the wrong kind of value",
        ),
    ]);
}

/// The ends of the ranges are in them.
#[test]
fn the_last_that_is_not_refused() {
    let mut keys = Keyspace::default();
    for line in [
        "CF.RESERVE a 4",
        "CF.RESERVE b 510 BUCKETSIZE 255 MAXITERATIONS 65535 EXPANSION 32768",
        "CF.RESERVE c 2 BUCKETSIZE 1 MAXITERATIONS 1 EXPANSION 0",
        "CF.INSERT d CAPACITY 4 ITEMS x",
    ] {
        assert!(!keys.say(line).starts_with('-'), "{line}");
    }
}

#[test]
fn reads_and_removals() {
    check(&[
        ("CF.EXISTS none a", ":0"),
        ("CF.EXISTS text a", ":0"),
        ("CF.COUNT none a", ":0"),
        ("CF.MEXISTS none a b", "*2 :0 :0"),
        ("CF.DEL none a", "-Not found"),
        ("CF.DEL c b", ":0"),
        ("CF.DEL c a b", &arity("cf.del")),
        ("CF.COMPACT none", "-Cuckoo filter was not found"),
        ("CF.COMPACT c x", &arity("cf.compact")),
        ("CF.COMPACT c", "+OK"),
        ("CF.INFO none", NOT_FOUND),
        ("CF.INFO c x", &arity("cf.info")),
        ("CF.DEBUG none", NOT_FOUND),
        ("CF.STATS none", NOT_FOUND),
        ("CF.EXISTS c a b", &arity("cf.exists")),
        ("CF.COUNT c a b", &arity("cf.count")),
    ]);
}

#[test]
fn dumps_and_chunks() {
    check(&[
        ("CF.SCANDUMP c x", "-Invalid position"),
        ("CF.SCANDUMP c -1", "-Invalid position"),
        ("CF.SCANDUMP none -1", "-Invalid position"),
        ("CF.SCANDUMP none 0", NOT_FOUND),
        ("CF.SCANDUMP c 9", "*2 :0 $-1"),
        ("CF.SCANDUMP c 9223372036854775807", "*2 :0 $-1"),
        ("CF.LOADCHUNK c 0 x", "-Invalid position"),
        ("CF.LOADCHUNK none 0 x", "-Invalid position"),
        ("CF.LOADCHUNK c x x", "-Invalid position"),
        ("CF.LOADCHUNK c 1 x", "-ERR item exists"),
        ("CF.LOADCHUNK none 1 x", "-Invalid header"),
        ("CF.LOADCHUNK none 5 x", NOT_FOUND),
        ("CF.LOADCHUNK none -5 x", NOT_FOUND),
        ("CF.LOADCHUNK c -5 x", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c -1 x", "-Couldn't load chunk!"),
        (
            "CF.LOADCHUNK c -9223372036854775808 x",
            "-Couldn't load chunk!",
        ),
        (
            "CF.LOADCHUNK c 9223372036854775807 x",
            "-Couldn't load chunk!",
        ),
        ("CF.LOADCHUNK c 5 ", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 9 ", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 2 xx", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 10 x", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 10 xx", "-Couldn't load chunk!"),
        ("CF.LOADCHUNK c 100 xxxx", "-Couldn't load chunk!"),
    ]);
    let mut keys = prepared();
    keys.say("CF.RESERVE empty 8");
    // RedisBloom gives nothing of a filter without items.
    for position in [0, 1, 5] {
        assert_eq!(
            keys.say(&format!("CF.SCANDUMP empty {position}")),
            "*2 :0 $-1"
        );
    }
    assert_eq!(keys.say("CF.LOADCHUNK empty 2 x"), "+OK");
    assert_eq!(keys.say("CF.LOADCHUNK empty 9 xxxxxxxx"), "+OK");
}

/// `items buckets removed tables | bucket size, iterations, expansion`, as they lie in a header.
fn header(wide: [u64; 4], narrow: [u16; 3]) -> Vec<u8> {
    let wide = wide.into_iter().flat_map(u64::to_le_bytes);
    wide.chain(narrow.into_iter().flat_map(u16::to_le_bytes))
        .collect()
}

#[test]
fn headers() {
    let mut keys = Keyspace::with_limit(1 << 20);
    let good = header([1, 8, 0, 1], [2, 20, 1]);
    let mut load = |data: &[u8]| {
        let reply = keys.call(&[b"CF.LOADCHUNK", b"k", b"1", data]);
        assert_eq!(keys.keys.is_empty(), reply.is_error());
        assert_eq!(keys.log.is_empty(), reply.is_error());
        (keys.keys, keys.log) = Default::default();
        reply
    };
    let length = Reply::error("Invalid header");
    for end in [0, 1, 37] {
        assert_eq!(load(&good[..end]), length, "{end}");
    }
    let long = [&good[..], b"x"].concat();
    assert_eq!(load(&long), length);
    assert_eq!(decode(&long), None);
    assert_eq!(load(&good), Reply::OK);
    let refused = Reply::error("Couldn't create filter!");
    for (wide, narrow) in [
        // No buckets, buckets that are no power of two, and so many that their slots wrap.
        ([1, 0, 0, 1], [2, 20, 1]),
        ([1, 6, 0, 1], [2, 20, 1]),
        ([1, 1 << 63, 0, 1], [2, 20, 1]),
        ([1, 1 << 56, 0, 1], [255, 20, 1]),
        ([1, 1 << 55, 0, 1], [2, 20, 1]),
        // No tables, tables of a filter that does not grow, and numbers that 16 bits would cut.
        ([1, 8, 0, 0], [2, 20, 1]),
        ([1, 8, 0, 2], [2, 20, 0]),
        ([1, 8, 0, 65536], [2, 20, 1]),
        ([1, 8, 0, 65537], [2, 20, 1]),
        ([1, 8, 0, u64::MAX], [2, 20, 1]),
        // Sizes that wrap: 2^15 to the power of 4 and more, 64 bits of slots, sums of slots.
        ([1, 16, 0, 5], [1, 20, 32768]),
        ([1, 8, 0, 17], [1, 20, 32768]),
        ([1, 1 << 55, 0, 9], [255, 20, 2]),
        ([1, 1 << 55, 0, 512], [1, 20, 1]),
        ([1, 1 << 48, 0, 65535], [1, 20, 1]),
        // No slots, and more than a byte says.
        ([1, 8, 0, 1], [0, 20, 1]),
        ([1, 8, 0, 1], [256, 20, 1]),
        ([1, 8, 0, 1], [258, 20, 1]),
        ([1, 8, 0, 1], [2, 0, 1]),
        ([1, 8, 0, 1], [2, 20, 32769]),
        ([1, 8, 0, 1], [2, 20, 65535]),
        // More than the limit, with what many small tables take.
        ([1, 1 << 20, 0, 1], [2, 20, 1]),
        ([1, 1, 0, 65535], [1, 20, 1]),
    ] {
        assert_eq!(load(&header(wide, narrow)), refused, "{wide:?} {narrow:?}");
    }
    for (wide, narrow) in [
        ([u64::MAX, 8, u64::MAX, 1], [255, 65535, 32768]),
        ([0, 1, 0, 1], [1, 1, 0]),
        ([0, 1 << 20, 0, 1], [1, 1, 0]),
        ([0, 8, 0, 100], [1, 20, 1]),
        ([0, 8, 0, 5], [1, 20, 3]),
    ] {
        assert_eq!(
            load(&header(wide, narrow)),
            Reply::OK,
            "{wide:?} {narrow:?}"
        );
    }
}

/// Free memory is a limit for what is made, whatever a filter may have.
#[test]
fn new_filters_stay_within_the_limits() {
    let limits: [fn(&mut Context); 2] = [
        |context| context.max_filter_bytes = 1000,
        |context| context.free_bytes = 1000,
    ];
    for limit in limits {
        let mut keys = Keyspace::default();
        limit(&mut keys.context);
        let why = "-ERR Insufficient memory to create filter";
        for line in [
            "CF.ADD a x",
            "CF.ADDNX a x",
            "CF.RESERVE a 1024",
            "CF.INSERT a CAPACITY 1001 ITEMS x",
        ] {
            assert_eq!(keys.say(line), why, "{line}");
        }
        let large = header([0, 512, 0, 1], [2, 20, 1]);
        let reply = keys.call(&[b"CF.LOADCHUNK", b"a", b"1", &large]);
        assert_eq!(reply, Reply::error("Couldn't create filter!"));
        assert!(keys.keys.is_empty() && keys.log.is_empty());
        assert_eq!(keys.say("CF.RESERVE a 512"), "+OK");
    }
}

/// A filter that was made just now has used free memory before it grows.
#[test]
fn a_filter_that_is_made_and_grows_counts_as_a_whole() {
    let items = vec![&b"a"[..]; 30];
    let most = 16 + CuckooFilter::BYTES_BESIDE_SLOTS;
    for (free, tables) in [(most, 2), (most - 1, 1)] {
        let mut keys = Keyspace::default();
        keys.context.cuckoo.initial_size = 8;
        keys.context.free_bytes = free;
        keys.call(&[&[&b"CF.INSERT"[..], b"c", b"ITEMS"], &items[..]].concat());
        let mut filter = None;
        let requests = items.iter().map(|item| [b"CF.ADD", &b"c"[..], item]);
        let words: Vec<&[u8]> = requests.flatten().collect();
        add::add::<false>(
            &keys.context.into(),
            &mut Run::of(&words, 3),
            &mut Slot::Vacant(&mut filter),
            &mut Replies::default(),
            &mut (),
        );
        assert_eq!(filter.unwrap().tables(), tables);
        let debug = keys.say("CF.DEBUG c");
        assert!(debug.contains(&format!("filters:{tables} ")), "{debug}");
    }
}

/// A filter that the commands of a transaction or of a batch have made is there for the next ones.
#[test]
fn what_was_just_made_is_there() {
    let context = LazyContext::default();
    let mut made = Some(CuckooFilter::new(8));
    let mut run = |function: WriteFn<CuckooFilter>, args: &[&[u8]]| {
        let (mut slot, mut replies) = (Slot::Vacant(&mut made), Replies::default());
        let mut run = Run::one(args);
        function(&context, &mut run, &mut slot, &mut replies, &mut ());
        assert!(run.is_empty());
        replies.into_last().unwrap()
    };
    let exists = Reply::error("ERR item exists");
    let reserve = run(reserve::reserve, &[b"CF.RESERVE", b"c", b"100"]);
    assert_eq!(reserve, exists);
    let good = header([0, 8, 0, 1], [2, 20, 1]);
    let load = run(dump::loadchunk, &[b"CF.LOADCHUNK", b"c", b"1", &good]);
    assert_eq!(load, exists);
    let added = run(add::add::<false>, &[b"CF.ADD", b"c", b"a"]);
    assert_eq!(added, Reply::Boolean(true));
    let words: [&[u8]; 5] = [b"CF.INSERT", b"c", b"NOCREATE", b"ITEMS", b"b"];
    let inserted = run(insert::insert::<false>, &words).into_elements();
    assert_eq!(inserted.unwrap().len(), 1);
    let removed = run(del::del, &[b"CF.DEL", b"c", b"a"]);
    assert_eq!(removed, Reply::Boolean(true));
}

/// Requests of a batch are answered, and logged, as one by one; each counts the tables anew.
#[test]
fn batches_are_refused_item_by_item() {
    let items: Vec<&[u8]> = vec![b"a"; 40];
    for (max_expansions, room) in [(3, u64::MAX), (1, u64::MAX), (100, 40), (100, 150)] {
        for first in [&b"CF.RESERVE c 8"[..], b"CF.RESERVE c 8 EXPANSION 0", b""] {
            let mut single = Keyspace::default();
            single.context.cuckoo.initial_size = 8;
            if !first.is_empty() {
                single.say(std::str::from_utf8(first).unwrap());
            }
            single.context.cuckoo.max_expansions = max_expansions;
            single.context.max_filter_bytes = room;
            let mut batch = single.clone();
            let mut replies = batch.pipeline("CF.ADD", b"c", &items);
            let more = [&items[..], &[b"nobody"]].concat();
            replies.extend(batch.pipeline("CF.DEL", b"c", &more));
            let adds = items.iter().map(|item| [&b"CF.ADD"[..], b"c", item]);
            let dels = more.iter().map(|item| [&b"CF.DEL"[..], b"c", item]);
            let calls = adds.chain(dels).map(|args| single.call(&args));
            assert_eq!(replies, calls.collect::<Vec<_>>());
            assert_eq!(batch.keys, single.keys);
            let removals = [&batch, &single].map(|keys| {
                let removals = keys.log.iter().filter(|words| words[0] == b"CF.DEL");
                removals.count()
            });
            assert_eq!(removals[0], removals[1]);
            let mut replica = Keyspace::default();
            replica.replay(&batch.log);
            assert_eq!(replica.dumps(), single.dumps());
        }
    }
}

/// The limit is counted for a command that adds, also where there are free slots.
#[test]
fn tables_are_counted_before_anything_is_added() {
    let mut keys = prepared();
    keys.say("CF.INSERT c ITEMS a a a a");
    assert!(keys.say("CF.DEBUG c").contains("filters:3 "));
    let why = "-Maximum expansions reached";
    for (max, expected) in [(3, why), (2, why), (4, ":0")] {
        keys.context.cuckoo.max_expansions = max;
        assert_eq!(keys.say("CF.ADDNX c a"), expected, "{max}");
        let insert = keys.say("CF.INSERTNX c ITEMS a");
        assert_eq!(insert == why, expected == why, "{max}: {insert}");
    }
    keys.context.cuckoo.max_expansions = 3;
    let logged = keys.log.len();
    assert_eq!(keys.say("CF.ADD c free"), why);
    assert_eq!(keys.log.len(), logged);
}
