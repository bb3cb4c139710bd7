//! Headers and chunks of anyone's making for CF.LOADCHUNK, then commands on what came out: no
//! panic, no memory beyond the limit, an error changes nothing, what is dumped loads again the
//! same, and the log makes the same filter.
#![no_main]

use everbloom::CuckooFilter;
use everbloom_commands::Filter;
use everbloom_commands::cf::dump::piece;
use everbloom_commands::format::header::cuckoo as header;
use everbloom_resp::Reply;
use inputs::{Input, Step, ends};
use keyspace::{Keyspace, Value};
use libfuzzer_sys::fuzz_target;

#[allow(dead_code, reason = "shared with the tests that replay the corpus")]
#[path = "../inputs/cuckoo_loadchunk.rs"]
mod inputs;

#[allow(dead_code, reason = "shared with the tests of the commands")]
#[path = "../../crates/commands/tests/commands/keyspace.rs"]
mod keyspace;

fuzz_target!(|input: Input| {
    let limit = [300, 1 << 14, 1 << 18][usize::from(input.limit % 3)];
    let mut keys = Keyspace::with_limit(limit);
    let header = input.header.bytes();
    let reply = keys.call(&[b"CF.LOADCHUNK", b"k", b"1", &header]);
    assert_eq!(reply.is_error(), keys.keys.is_empty());
    if reply.is_error() {
        return;
    }
    assert_eq!(header::encode(&filter(&keys).parts()), header);
    for step in &input.steps {
        run(&mut keys, step);
    }
    check_dump(&keys);
    keys.check_kept();
    let mut replica = Keyspace::default();
    replica.context.cuckoo.max_expansions = u32::MAX;
    replica.replay(&keys.log);
    assert_eq!(filter(&replica), filter(&keys));
});

fn filter(keys: &Keyspace) -> &CuckooFilter {
    match &keys.keys[&b"k"[..]] {
        Value::Filter(Filter::Cuckoo(filter)) => filter,
        other => panic!("{other:?}"),
    }
}

fn run(keys: &mut Keyspace, step: &Step) {
    if let Step::Free(bytes) = step {
        keys.context.free_bytes = bytes.get();
    }
    let Some(request) = step.request(&ends(&filter(keys).parts())) else {
        return;
    };
    let args: Vec<&[u8]> = request.iter().map(Vec::as_slice).collect();
    let (before, logged) = (filter(keys).clone(), keys.log.len());
    let reply = keys.call(&args);
    let after = filter(keys);
    let changed = *after != before;
    assert!(!changed || keys.log.len() > logged, "a change is logged");
    assert!(!changed || !reply.is_error(), "an error changes nothing");
    let grew = after.table_bytes().saturating_sub(before.table_bytes());
    assert!(grew <= keys.context.free_bytes, "{grew} bytes");
    assert_eq!(
        after.parts().validate(keys.context.max_filter_bytes),
        Ok(())
    );
    let used = (0..)
        .map_while(|at| after.stream_chunk(at, 1))
        .filter(|slot| slot[0] != 0);
    if after.slots() < 1000 {
        assert_eq!(after.used(), used.count() as u64);
    }
    if let Step::Count(_) = step {
        assert!(matches!(reply, Reply::Integer(0..)), "{reply:?}");
    }
}

fn check_dump(keys: &Keyspace) {
    let mut other = Keyspace::with_limit(keys.context.max_filter_bytes);
    let mut position = 0;
    while let Some((next, data)) = piece(filter(keys), position) {
        let reply = other.call(&[b"CF.LOADCHUNK", b"k", next.to_string().as_bytes(), &data]);
        assert_eq!(reply, Reply::OK);
        position = next.unsigned_abs();
    }
    assert_eq!(filter(&other), filter(keys));
}
