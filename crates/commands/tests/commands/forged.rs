//! Filters whose numbers a client chose. Whatever BF.LOADCHUNK, CF.LOADCHUNK or RESTORE has taken
//! can be saved and loaded again after any command.

use crate::keyspace::fields::Row;
use crate::keyspace::{Keyspace, Value, read};
use everbloom::Span;
use everbloom::hash::Key;
use everbloom::host::{Generation, Window};
use everbloom::redisbloom::{
    CuckooParts, FilterParts, KeyedParts, LayerParts, Options, ValkeyBloom,
};
use everbloom::sizing::LayerSize;
use everbloom_commands::Parts;
use everbloom_commands::format::header;
use everbloom_commands::format::value::{FieldWriter, save_array_head, save_array_tail, save_head};
use everbloom_resp::Reply;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;

/// The most bytes of a filter on the host that is attacked.
const LIMIT: u64 = 1 << 17;

fn number() -> impl Strategy<Value = u64> {
    let middle = [1 << 31, (1 << 32) - 1, 1 << 32, 1_700_000_000_000];
    let large = [1 << 62, 1 << 63, 0xfffe << 48];
    let large = large
        .into_iter()
        .flat_map(|number| [number - 1, number, number + 1]);
    let numbers = (0..5)
        .chain(middle)
        .chain(large)
        .chain(u64::MAX - 2..=u64::MAX);
    select(numbers.collect::<Vec<u64>>())
}

fn rate() -> impl Strategy<Value = f64> {
    let rates = [5e-324, 1e-323, f64::MIN_POSITIVE, 1e-300, 1e-13, 2e-13];
    let ordinary = [0.001, 0.01, 0.25, 0.5, 1.0_f64.next_down()];
    select([&rates[..], &ordinary].concat())
}

/// A layer of any kind but for what its layout asks for.
fn layer() -> impl Strategy<Value = LayerParts> {
    let capacity = prop_oneof![number(), 1..20_u64];
    let shape = (select(vec![64_u64, 128, 640]), 0..40_u32, 0..8_u8);
    let items = prop_oneof![Just(0), 0..20_u64, number()];
    (shape, items, capacity, rate()).prop_map(|((bytes, hashes, log2), items, capacity, rate)| {
        LayerParts {
            bytes,
            bits: 8 * bytes,
            items,
            error_rate: rate,
            hashes,
            capacity,
            log2_bits: log2,
            ..LayerParts::default()
        }
    })
}

fn window(layers: usize) -> impl Strategy<Value = Window> {
    let began = prop::collection::vec(number(), layers);
    let capacity = prop_oneof![3 => 1..1000_u64, 1 => number()];
    let error_rate = prop_oneof![3 => Just(0.01), 1 => rate()];
    let generations = select(vec![1_u32, 2, 4, 63, 64]);
    let dropped = prop_oneof![Just(1 << 62), number()];
    (number(), generations, capacity, error_rate, dropped, began).prop_map(
        move |(ticks, generations, capacity, error_rate, dropped, mut began)| {
            began.sort_unstable();
            let kept = layers.min(generations as usize + 1);
            let kept = began.into_iter().take(kept).enumerate();
            let generation = |(number, began)| Generation {
                // The first one has the layers that are left over.
                layers: match number {
                    0 => (layers - (layers.min(generations as usize + 1) - 1)) as u32,
                    _ => 1,
                },
                began,
            };
            Window {
                span: Span::of_ticks(ticks),
                generations,
                capacity,
                error_rate,
                dropped,
                kept: kept.map(generation).collect(),
            }
        },
    )
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Classic,
    Blocked,
    Window,
    Valkey,
    Cuckoo,
}

/// The parts of a Bloom filter. Those of a classic one may say that it has other items than its
/// layers have: a value may say so, a header may not.
fn bloom() -> impl Strategy<Value = FilterParts> {
    use Kind::{Blocked, Classic, Valkey};
    let kind = select(vec![Classic, Blocked, Kind::Window, Kind::Window, Valkey]);
    let layers = prop::collection::vec(layer(), 1..4);
    let grown = layers.prop_flat_map(|layers| (window(layers.len()), Just(layers)));
    let skewed = prop_oneof![9 => Just(None), 1 => number().prop_map(Some)];
    (kind, grown, number(), 0..256_u32, rate(), skewed).prop_map(
        |(kind, (window, layers), expansion, options, tightening, skewed)| {
            let mut parts = FilterParts {
                expansion: expansion as u32,
                options: match skewed {
                    None => options & 15,
                    Some(_) => options,
                },
                layers,
                ..FilterParts::default()
            };
            let ours = 5 | options & Options::NO_SCALING;
            match kind {
                Kind::Classic | Kind::Cuckoo => {}
                Kind::Blocked => parts.options = ours,
                Kind::Window => {
                    parts.options = ours | Options::WINDOW;
                    parts.window = Some(window);
                }
                Kind::Valkey => {
                    parts.options = ours | Options::VALKEY;
                    parts.valkey = Some(ValkeyBloom {
                        tightening,
                        ..ValkeyBloom::default()
                    });
                }
            }
            if matches!(kind, Kind::Blocked | Kind::Window) {
                parts.key = Some(Key::from_seed(1));
            }
            for layer in &mut parts.layers {
                layer.items = layer.items.min(u64::MAX - parts.items);
                parts.items += layer.items;
                match kind {
                    Kind::Classic => {
                        let size = LayerSize::from_bits(layer.bits, layer.hashes.max(1), Some(1));
                        layer.bits_per_entry = size.unwrap().bits_per_entry;
                        layer.hashes = layer.hashes.max(1);
                    }
                    _ => {
                        layer.log2_bits = 0;
                        layer.hashes = layer.hashes.clamp(2, 32);
                    }
                }
            }
            if matches!(kind, Kind::Classic) {
                parts.items = skewed.unwrap_or(parts.items);
            }
            parts
        },
    )
}

fn cuckoo() -> impl Strategy<Value = CuckooParts> {
    let shape = (select(vec![1_u64, 2, 8]), 1..5_u8, 1..4_u16);
    let expansion = select(vec![0_u16, 1, 1, 2, 3, 32768]);
    let kicks = select(vec![1_u16, 20, u16::MAX]);
    (shape, number(), number(), kicks, expansion).prop_map(
        |((buckets, bucket_size, tables), items, removed, max_kicks, expansion)| CuckooParts {
            items,
            removed,
            buckets,
            tables: if expansion == 0 { 1 } else { tables },
            bucket_size,
            max_kicks,
            expansion,
            keyed: None,
        },
    )
}

/// The parts of a filter with a chosen error rate. Its widths are as good as the rate, or better.
fn keyed_cuckoo() -> impl Strategy<Value = CuckooParts> {
    let widths = (
        select(vec![7_u8, 10, 16, 55, 56]),
        select(vec![0_u8, 1, 9, 40]),
    );
    let rate = select(vec![0.5, 0.13, 1e-9]);
    (cuckoo(), select(vec![2_u64, 6, 8]), widths, rate).prop_map(
        |(parts, buckets, (width, step), error_rate)| {
            let keyed = KeyedParts {
                key: Key::from_seed(7),
                error_rate,
                width,
                step,
            };
            let last = keyed.width_of(usize::from(parts.tables) - 1);
            CuckooParts {
                buckets,
                tables: last.map_or(1, |_| parts.tables),
                bucket_size: 4,
                expansion: parts.expansion & !3 | parts.expansion.min(2),
                keyed: Some(keyed),
                ..parts
            }
        },
    )
}

#[derive(Clone, Debug)]
enum Step {
    Say(String),
    Clock(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let item = || "[a-e]{1,2}";
    let count = || select(vec![1_u64, 2, 5, 100, i64::MAX as u64]);
    let items = prop::collection::vec(item(), 1..30);
    let fixed = [
        "BF.ADVANCE k",
        "BF.CLEAR k",
        "BF.SHRINK k 1",
        "BF.MERGE k k",
        "BF.MERGE k k k",
        "BF.MERGE new k",
        "BF.MERGE k new",
        "CF.COMPACT k",
        "CF.MERGE k k",
        "CF.MERGE new k",
        "CF.MERGE k new",
    ];
    let line = prop_oneof![
        2 => item().prop_map(|item| format!("BF.ADD k {item}")),
        2 => items.prop_map(|items| format!("BF.INSERT k ITEMS {}", items.join(" "))),
        2 => (count(), number()).prop_map(|(count, at)| format!("BF.ADVANCE k {count} AT {at}")),
        1 => count().prop_map(|count| format!("BF.ADVANCE k {count}")),
        4 => item().prop_map(|item| format!("CF.ADD k {item}")),
        2 => item().prop_map(|item| format!("CF.ADDNX k {item}")),
        3 => item().prop_map(|item| format!("CF.DEL k {item}")),
        6 => select(fixed.map(str::to_owned).to_vec()),
    ];
    let clock = number().prop_map(|now| now.clamp(1, i64::MAX as u64));
    prop_oneof![8 => line.prop_map(Step::Say), 1 => clock.prop_map(Step::Clock)]
}

/// The value of a filter of these parts, whose arrays are filled with a byte.
fn value_of(parts: &Parts, filled: u8) -> Row {
    let mut row = Row::default();
    let Ok(()) = save_head(parts, &mut row);
    for number in 0..parts.arrays() {
        let Ok(()) = save_array_head(parts, number, &mut row);
        let Ok(()) = row.bytes(&array(parts, number, filled));
        let Ok(()) = save_array_tail(parts, number, &mut row);
    }
    row
}

fn array(parts: &Parts, number: usize, filled: u8) -> Vec<u8> {
    vec![filled; parts.array_bytes(number).unwrap() as usize]
}

/// All filters can be kept, and are those of a replica that began with `first`.
fn check(keys: &Keyspace, first: &Keyspace) -> Result<(), TestCaseError> {
    keys.check_kept();
    let mut replica = first.clone();
    replica.context.cuckoo.max_expansions = u32::MAX;
    replica.replay(&keys.log);
    prop_assert_eq!(replica.dumps(), keys.dumps());
    Ok(())
}

/// Loads the parts from a header and chunks; whether they were taken.
fn load_chunks(keys: &mut Keyspace, parts: &Parts, filled: u8) -> Result<bool, TestCaseError> {
    let (name, header, first) = match parts {
        Parts::Bloom(parts) => (
            "BF.LOADCHUNK",
            header::encode_parts(parts),
            parts.stream_start(),
        ),
        Parts::Cuckoo(parts) => ("CF.LOADCHUNK", header::cuckoo::encode(parts), 0),
    };
    let word = |at: u64| at.to_string().into_bytes();
    let mut at = first.saturating_add(1);
    let reply = keys.call(&[name.as_bytes(), b"k", &word(at), &header]);
    if reply != Reply::OK {
        prop_assert!(reply.is_error() && keys.keys.is_empty());
        return Ok(false);
    }
    for number in 0..parts.arrays() {
        let array = array(parts, number, filled);
        at += array.len() as u64;
        let reply = keys.call(&[name.as_bytes(), b"k", &word(at), &array]);
        prop_assert_eq!(reply, Reply::OK);
    }
    Ok(true)
}

/// Loads the parts, with arrays that are filled with a byte, and runs the commands. Whether the
/// parts were taken from a header, and from a value.
fn run(parts: &Parts, filled: u8, steps: &[Step]) -> Result<[bool; 2], TestCaseError> {
    let mut start = Keyspace::default();
    let bytes = (0..parts.arrays()).filter_map(|number| parts.array_bytes(number));
    let by_value = match bytes.fold(0, u64::saturating_add) <= LIMIT {
        true => read(parts.kind(), &value_of(parts, filled), LIMIT),
        false => Err("too large".to_owned()),
    };
    if let Ok(filter) = &by_value {
        start
            .keys
            .insert(b"k".to_vec(), Value::Filter(filter.clone()));
        run_steps(start.clone(), &start, steps)?;
    }
    let mut keys = Keyspace::with_limit(LIMIT);
    let by_header = load_chunks(&mut keys, parts, filled)?;
    if by_header {
        run_steps(keys, &Keyspace::default(), steps)?;
    }
    Ok([by_header, by_value.is_ok()])
}

fn run_steps(mut keys: Keyspace, first: &Keyspace, steps: &[Step]) -> Result<(), TestCaseError> {
    keys.context.max_filter_bytes = LIMIT;
    keys.context.now_ms = 1_700_000_000_000;
    check(&keys, first)?;
    for step in steps {
        match step {
            Step::Say(line) => drop(keys.say(line)),
            Step::Clock(now) => keys.context.now_ms = *now,
        }
        check(&keys, first)?;
    }
    Ok(())
}

/// What BF.LOADCHUNK or CF.LOADCHUNK answers to a header of so many layers or tables.
fn announced(keys: &mut Keyspace, kind: Kind, arrays: usize) -> Reply {
    keys.keys.clear();
    let tables = CuckooParts {
        buckets: 1,
        tables: u16::try_from(arrays).unwrap_or(0),
        bucket_size: 1,
        max_kicks: 1,
        expansion: 1,
        ..CuckooParts::default()
    };
    let layer = LayerParts {
        bytes: 64,
        error_rate: 0.01,
        hashes: 5,
        capacity: 1,
        ..LayerParts::default()
    };
    let layers = FilterParts {
        expansion: 1,
        options: 5,
        layers: vec![layer; arrays],
        key: Some(Key::from_seed(1)),
        ..FilterParts::default()
    };
    match kind {
        Kind::Cuckoo => {
            let header = header::cuckoo::encode(&tables);
            keys.call(&[b"CF.LOADCHUNK", b"k", b"1", &header])
        }
        _ => keys.call(&[b"BF.LOADCHUNK", b"k", b"1", &header::encode_parts(&layers)]),
    }
}

/// Each item of a command takes a step for each layer or table.
#[test]
fn a_client_loads_no_filter_of_very_many_arrays() {
    let mut keys = Keyspace::default();
    let error = |text: &'static str| Reply::error(text);
    let tables = error("Maximum expansions reached");
    let layers = error("ERR a filter of more than 16384 layers is not loaded");
    // A log has no clock, and repeats what was accepted.
    assert_eq!(announced(&mut keys, Kind::Cuckoo, 65_535), Reply::OK);
    assert_eq!(announced(&mut keys, Kind::Blocked, 20_000), Reply::OK);
    keys.context.now_ms = 1_700_000_000_000;
    assert_eq!(announced(&mut keys, Kind::Cuckoo, 1024), Reply::OK);
    assert_eq!(announced(&mut keys, Kind::Cuckoo, 1025), tables);
    assert!(keys.keys.is_empty());
    assert_eq!(announced(&mut keys, Kind::Blocked, 16_384), Reply::OK);
    assert_eq!(announced(&mut keys, Kind::Blocked, 16_385), layers);
    assert!(keys.keys.is_empty());
    // Filters that may have more tables here may also be loaded.
    keys.context.cuckoo.max_expansions = 5000;
    assert_eq!(announced(&mut keys, Kind::Cuckoo, 5000), Reply::OK);
    assert_eq!(announced(&mut keys, Kind::Cuckoo, 5001), tables);
}

/// Loads a filter of so many layers with one item each, of capacities from this one on.
fn load_layers(keys: &mut Keyspace, name: &[u8], layers: usize, capacity: u64) {
    let layer = |number: usize| LayerParts {
        bytes: 64,
        items: 1,
        // The first one says what rate was asked for.
        error_rate: if number == 0 { 0.01 } else { 1e-9 },
        hashes: 5,
        capacity: capacity + number as u64,
        ..LayerParts::default()
    };
    let parts = FilterParts {
        expansion: 1,
        options: 5,
        items: layers as u64,
        layers: (0..layers).map(layer).collect(),
        key: Some(Key::from_seed(1)),
        ..FilterParts::default()
    };
    let header = header::encode_parts(&parts);
    let loaded = keys.call(&[b"BF.LOADCHUNK", name, b"1", &header]);
    assert_eq!(loaded, Reply::OK);
}

/// What is refused to a client that loads is not made of filters that may be loaded.
#[test]
fn a_merge_makes_no_filter_of_very_many_layers() {
    let mut keys = Keyspace::default();
    keys.context.now_ms = 1_700_000_000_000;
    load_layers(&mut keys, b"half", 8192, 1);
    load_layers(&mut keys, b"other half", 8192, 10_000);
    load_layers(&mut keys, b"more", 8193, 10_000);
    let too_many = [b"BF.MERGE" as &[u8], b"whole", b"half", b"more"];
    let refused = keys.call(&too_many);
    let text = "ERR the merged filter would have more than 16384 layers";
    assert_eq!(refused, Reply::error(text));
    let merged = keys.call(&[b"BF.MERGE", b"whole", b"half", b"other half"]);
    assert_eq!(merged, Reply::OK);
    // A log has no clock, and repeats what was accepted.
    keys.context.now_ms = 0;
    assert_eq!(keys.call(&too_many), Reply::OK);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_was_taken_is_saved_and_loaded_after_any_command(
        bloom in bloom(), cuckoo in cuckoo(), keyed in keyed_cuckoo(),
        filled in select(vec![0_u8, 1, 8, 255]),
        steps in prop::collection::vec(step(), 0..12),
    ) {
        run(&Parts::Bloom(bloom), filled, &steps)?;
        run(&Parts::Cuckoo(cuckoo), filled, &steps)?;
        run(&Parts::Cuckoo(keyed), filled, &steps)?;
    }
}

/// Most of these filters must be taken, or nothing is tested.
#[test]
fn most_forged_filters_are_taken() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut current = |kind: BoxedStrategy<Parts>| {
        let mut taken = [0; 2];
        for _ in 0..200 {
            let parts = kind.new_tree(&mut runner).unwrap().current();
            let run = run(&parts, 0, &[]).unwrap();
            taken = [0, 1].map(|way| taken[way] + usize::from(run[way]));
        }
        assert!(taken.iter().all(|taken| *taken > 100), "{taken:?} of 200");
    };
    current(bloom().prop_map(Parts::Bloom).boxed());
    current(keyed_cuckoo().prop_map(Parts::Cuckoo).boxed());
}
