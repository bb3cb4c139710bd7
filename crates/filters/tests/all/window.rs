//! A filter with a window keeps what it promises: it finds what is within the window, forgets what
//! is older, and keeps its error rate.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use everbloom::host::{Generation, Inserted, Layer, LayeredFilter, Window};
use everbloom::redisbloom::{Check, FilterParts, PartsError, ValkeyBloom};
use everbloom::{BloomView, BuildError, InsertError, Layout, Span};
use everbloom::{UnionError, WindowedBloomFilter};
use proptest::prelude::*;

fn window(capacity: u64, rate: f64, span: Span, generations: u32) -> WindowedBloomFilter {
    let builder = WindowedBloomFilter::builder().capacity(capacity);
    let builder = builder.error_rate(rate).span(span);
    builder.generations(generations).seed(7).build().unwrap()
}

/// The ticks of a generation.
fn generation_of(filter: &WindowedBloomFilter) -> u64 {
    let window = filter.window();
    window.next_generation().unwrap() - window.kept.last().unwrap().began
}

fn layers(filter: &WindowedBloomFilter) -> Vec<Layer> {
    LayeredFilter::from(filter.clone()).layers().to_vec()
}

/// Ten million when everything is tested.
fn additions() -> u64 {
    match std::env::var_os("EVERBLOOM_FULL") {
        Some(_) => 10_000_000,
        None => 300_000,
    }
}

/// Numbers that look random.
fn scramble(number: u64) -> u64 {
    let mixed = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Bursts far above the planned rate, lulls longer than the window, and items that come again:
/// nothing within the window is ever missed, and nothing is found once it is too old for the oldest
/// generation. (At this error rate, an absent item is found once in a thousand such tests.)
#[test]
fn a_window_of_time_misses_nothing_and_forgets_in_time() {
    for (generations, ticks) in [(4, 1000), (1, 100), (6, 997)] {
        let mut seen = window(20_000, 1e-10, Span::Ticks(ticks), generations);
        let longest = ticks + ticks.div_ceil(generations.into()) * 2;
        let mut last = HashMap::new();
        let mut order = VecDeque::new();
        let (mut now, mut forgotten) = (0, 0_u64);
        for number in 0..additions() / 3 {
            let random = scramble(number);
            now += match number / 5000 % 4 {
                0 => u64::from(random.is_multiple_of(100)),
                1 => u64::from(random.is_multiple_of(3)),
                2 => random % 9,
                _ => u64::from(random.is_multiple_of(1000)) * (random >> 32) % (3 * ticks),
            };
            let item = scramble(random % (number + 1)) % 200_000;
            let before = last.insert(item, now);
            let is_new = seen.insert_at(&item, now);
            if before.is_some_and(|before| now - before <= ticks) {
                assert!(!is_new, "{item} is missed at {now}: added at {before:?}");
            }
            order.push_back((item, now));
            while order.front().is_some_and(|(_, at)| now - at > longest) {
                let (old, at) = order.pop_front().unwrap();
                if last.get(&old) == Some(&at) {
                    assert!(
                        !seen.contains_at(&old, now),
                        "{old} of {at} is found at {now}"
                    );
                    last.remove(&old);
                    forgotten += 1;
                }
            }
            let oldest = order.partition_point(|(_, at)| now - at > ticks);
            if let Some((old, at)) = order.get(oldest) {
                assert!(
                    seen.contains_at(old, now),
                    "{old} of {at} is missed at {now}"
                );
            }
        }
        assert!(forgotten > 1000);
    }
}

#[test]
fn a_window_of_items_remembers_exactly_so_many() {
    for (capacity, generations) in [(1000_u64, 4), (999, 4), (64, 64), (10, 1)] {
        let mut seen = window(capacity, 1e-10, Span::Items, generations);
        let longest = capacity.div_ceil(generations.into()) * u64::from(generations + 1);
        for number in 0..additions() / 60 {
            assert!(seen.insert_at(&number, 0));
            let oldest = number.saturating_sub(capacity - 1);
            assert!(seen.contains_at(&oldest, 0), "{oldest} of {number}");
            if let Some(old) = number.checked_sub(longest) {
                assert!(!seen.contains_at(&old, 0), "{old} of {number}");
            }
        }
        let most = usize::try_from(generations).unwrap() + 1;
        assert_eq!(layers(&seen).len(), most);
    }
}

/// At most a quarter later, within a hundredth. Of fewer than four ticks or items, each is a
/// generation, and at most one item more is remembered.
#[test]
fn windows_of_any_length_forget_a_quarter_later() {
    for length in (1..=40_u64).chain([97, 101, 399, 1001]) {
        let (mut ticks, mut items) = (
            window(length, 1e-10, Span::Ticks(length), 4),
            window(length, 1e-10, Span::Items, 4),
        );
        let most = length + (length / 4).max(1) + length / 100;
        for number in 0..4 * length + 9 {
            assert!(ticks.insert_at(&number, number) && items.insert_at(&number, number));
            let oldest = number.saturating_sub(length);
            assert!(ticks.contains_at(&oldest, number), "{oldest} of {number}");
            let oldest = number.saturating_sub(length - 1);
            assert!(items.contains_at(&oldest, number), "{oldest} of {number}");
            if let Some(old) = number.checked_sub(most) {
                let found = [&ticks, &items].map(|seen| seen.contains_at(&old, number));
                assert_eq!(found, [false, false], "{old} of {length} at {number}");
            }
        }
    }
}

/// As many items as its capacity says, evenly in its time.
#[test]
fn a_window_holds_its_capacity_without_growing() {
    for length in [1, 2, 3, 5, 7, 30, 97, 101] {
        let mut seen = window(10_000, 1e-10, Span::Ticks(length), 4);
        for now in 0..3 * length + 5 {
            let part = |now| 10_000 * now / length;
            (part(now)..part(now + 1)).for_each(|item| _ = seen.insert_at(&item, now));
            let kept = seen.window().kept.iter();
            assert!(kept.clone().all(|it| it.layers <= 1), "{length}: {kept:?}");
        }
    }
}

/// More items than planned make the next generation larger, with some room for still more.
#[test]
fn a_window_of_an_uneven_flow_seldom_grows() {
    let capacity = 40_000;
    for over in [-2, 6] {
        let mut seen = window(capacity, 0.01, Span::Ticks(40), 4);
        let plain = seen.memory_usage();
        let mut items = 0_u64..;
        for generation in 0..40_u64 {
            let percent = u64::try_from(98 + over).unwrap() + scramble(generation) % 5;
            let part = capacity / 4 * percent / 100;
            let items = items.by_ref().take(usize::try_from(part).unwrap());
            items.for_each(|item| _ = seen.insert_at(&item, 10 * generation));
            let grown = seen.window().kept.iter().filter(|it| it.layers > 1);
            assert!(
                generation < 8 || grown.count() == 0,
                "{generation}: {seen:?}"
            );
        }
        let most = if over < 0 { 5 * plain } else { 6 * plain };
        assert!(seen.memory_usage() <= most, "{}", seen.memory_usage());
    }
}

/// The rate is worst when all generations are full.
#[test]
fn the_rate_holds_before_a_rotation_and_the_bits_are_those_computed() {
    let probes = if additions() > 1_000_000 {
        10_000_000
    } else {
        1_000_000
    };
    for (generations, rate, bits) in [
        (2, 0.01, 18.8),
        (4, 0.01, 17.3),
        (6, 0.01, 17.1),
        (4, 0.001, 25.0),
    ] {
        let capacity = 60_000;
        let mut seen = window(capacity, rate, Span::Items, generations);
        let each = capacity / u64::from(generations);
        (0..each * u64::from(generations + 1)).for_each(|item| _ = seen.insert_at(&item, 0));
        assert_eq!(
            layers(&seen).len(),
            usize::try_from(generations).unwrap() + 1
        );
        let found = (0..probes).filter(|probe| seen.contains_at(&(probe + (1_u64 << 40)), 0));
        let (found, expected) = (found.count() as f64, rate * probes as f64);
        assert!(
            found < expected + 4.0 * expected.sqrt(),
            "g = {generations}: {found} of {expected}"
        );
        let all: u64 = layers(&seen).iter().map(Layer::bits).sum();
        let per_item = all as f64 / capacity as f64;
        assert!(
            (per_item - bits).abs() < 0.1,
            "g = {generations}: {per_item} bits an item"
        );
    }
}

/// A window of time that gets more than planned keeps its rate as well.
#[test]
fn the_rate_holds_in_a_window_that_grows() {
    for factor in [1, 3, 20] {
        let mut seen = window(20_000, 0.01, Span::Ticks(400), 4);
        for tick in 0..500_u64 {
            let items = tick * 50 * factor..(tick + 1) * 50 * factor;
            seen.insert_each_at(items, tick, drop).unwrap();
        }
        let probes = 1_000_000;
        let found = (0..probes).filter(|probe| seen.contains_at(&(probe + (1_u64 << 40)), 499));
        let (found, expected) = (found.count() as f64, 0.01 * f64::from(probes as u32));
        assert!(
            found < expected + 4.0 * expected.sqrt(),
            "{factor}: {found}"
        );
    }
}

proptest! {
    /// Groups of items do what single ones do, whichever item begins a generation.
    #[test]
    fn groups_are_single_items(
        batches in prop::collection::vec((prop::collection::vec(0..400_u64, 1..90), 0..40_u64), 1..20),
        by_items in any::<bool>(),
        generations in 1..6_u32,
    ) {
        let span = if by_items { Span::Items } else { Span::Ticks(60) };
        let mut grouped = window(100, 0.01, span, generations);
        let (mut single, mut now) = (grouped.clone(), 0);
        for (batch, passed) in batches {
            now += passed;
            let (mut all, mut each) = (Vec::new(), Vec::new());
            grouped.insert_each_at(&batch, now, |new| all.push(new)).unwrap();
            batch.iter().for_each(|item| each.push(single.insert_at(item, now)));
            prop_assert_eq!(all, each);
            prop_assert_eq!(&grouped, &single);
        }
        let filter = LayeredFilter::from(grouped);
        let again = LayeredFilter::from_parts(&filter.parts(), u64::MAX).unwrap();
        prop_assert_eq!(again.parts(), filter.parts());
        let bytes = filter.to_bytes();
        let read = LayeredFilter::from_bytes(&bytes);
        prop_assert_eq!(read.as_ref(), Ok(&filter));
        prop_assert!(BloomView::new(&bytes).unwrap().contains(&1) == filter.contains(&1));
        for at in (0..bytes.len().min(900)).step_by(13) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            prop_assert!(LayeredFilter::from_bytes(&damaged).is_err());
        }
    }

    /// However far the clock is, a lookup finds what it finds once the filter was told of that time.
    #[test]
    fn a_lookup_knows_the_time(steps in prop::collection::vec(0..50_u64, 1..30), later in 0..300_u64) {
        let mut seen = window(1000, 1e-10, Span::Ticks(100), 4);
        let mut now = 0;
        for (item, step) in (0..).zip(&steps) {
            now += step;
            seen.insert_at::<u64>(&item, now);
        }
        let before = seen.clone();
        now += later;
        let mut filter = LayeredFilter::from(seen);
        filter.advance_to(now).unwrap();
        for item in 0..steps.len() as u64 {
            prop_assert_eq!(filter.contains(&item), before.contains_at(&item, now));
        }
        let counts: u64 = before_len(&before, now);
        prop_assert_eq!(counts, filter.len());
    }
}

proptest! {
    /// A window says exactly when it has something to forget. Without new items it gets no new layers
    /// but for the next two generations, and in the end one empty layer is left.
    #[test]
    fn an_idle_window_gives_its_memory_back(
        steps in prop::collection::vec((0..300_u64, 0..70_u64), 1..20),
        generations in 1..6_u32,
    ) {
        let mut seen = window(200, 0.01, Span::Ticks(100), generations);
        let (mut now, mut items) = (0, 0);
        for (more, passed) in steps {
            now += passed;
            seen.insert_each_at(items..items + more, now, drop).unwrap();
            items += more;
        }
        let mut idle = LayeredFilter::from(seen.clone());
        let (mut times, most) = (0, layers(&seen).len() + 2);
        while let Some(at) = idle.outdated_at() {
            let layers = idle.layers().len();
            prop_assert_eq!(idle.layers_at(at - 1).len(), layers);
            prop_assert!(idle.layers_at(at).len() < layers);
            idle.advance_to(at).unwrap();
            times += 1;
            prop_assert!(idle.layers().len() <= layers);
            for item in 0..items {
                prop_assert_eq!(idle.contains(&item), seen.contains_at(&item, at));
            }
            let parts = idle.parts();
            prop_assert!(parts.validate(u64::MAX, Check::DumpHeader).is_ok(), "{:?}", parts);
        }
        prop_assert_eq!((idle.layers().len(), idle.len()), (1, 0));
        prop_assert!(times <= most, "{} of {}", times, most);
    }
}

proptest! {
    /// A clock that jumps ahead loses what is older. When it goes back, what is found then is found
    /// for one window from the next insertion on, and not longer than a generation more.
    #[test]
    fn a_clock_that_was_wrong_holds_nothing_up(
        before in prop::collection::vec(0..60_u64, 0..20),
        ahead in 0..100_000_u64,
        back in 0..200_u64,
        generations in 1_u32..6,
        by_log in any::<bool>(),
    ) {
        let ticks = 120_u64;
        let generation = ticks.div_ceil(u64::from(generations));
        let mut seen = window(1000, 1e-10, Span::Ticks(ticks), generations);
        let mut now = 1000;
        for (item, step) in (0_u64..).zip(&before) {
            now += step;
            seen.insert_at(&item, now);
        }
        match by_log {
            true => seen.advance(1, now + ahead).unwrap(),
            false => _ = seen.insert_at(&500_u64, now + ahead),
        }
        now = (now + back).min(now + ahead);
        let is_ahead = seen.window().is_ahead_of(now);
        let found: Vec<u64> = (0..600).filter(|item| seen.contains_at(item, now)).collect();
        seen.insert_at(&501_u64, now);
        prop_assert!(!seen.window().is_ahead_of(now));
        prop_assert!(seen.contains_at(&501_u64, now + ticks));
        if is_ahead {
            prop_assert!(found.iter().all(|item| seen.contains_at(item, now + ticks - 1)));
            let parts = LayeredFilter::from(seen.clone()).parts();
            prop_assert!(parts.validate(u64::MAX, Check::DumpHeader).is_ok(), "{:?}", parts);
        }
        let longest = now + (u64::from(generations) + 2) * generation;
        prop_assert!((0..600_u64).all(|item| !seen.contains_at(&item, longest)));
    }
}

fn before_len(filter: &WindowedBloomFilter, now: u64) -> u64 {
    let filter = LayeredFilter::from(filter.clone());
    filter.layers_at(now).iter().map(Layer::len).sum()
}

/// A reader that began before a rotation sees the layers that were dropped.
#[test]
fn a_reader_sees_the_generations_of_its_moment() {
    let mut filter = LayeredFilter::from(window(2_000_000, 0.01, Span::Items, 4));
    for round in 0..12_u64 {
        filter.insert_each(round * 250_000..(round + 1) * 250_000, drop);
        filter.begin_capture(round, 0..filter.stream_len());
        let then = filter.clone();
        // One reader before the rotation, one in its middle.
        let mut captured = LayeredFilter::from_parts(&filter.parts(), u64::MAX).unwrap();
        let (mut at, mut pieces, mut piece) = (0, 0, Vec::new());
        while filter.capture_next(round, &mut piece) {
            captured.load_chunk(at, &piece).unwrap();
            at += piece.len() as u64;
            piece.clear();
            pieces += 1;
            if pieces == round {
                filter.advance(1, 0).unwrap();
            }
            filter.insert(&(pieces + (1 << 50)));
        }
        assert!(captured == then, "round {round}");
        filter.capture_mut().end(round);
    }
}

const VALKEY: ValkeyBloom = ValkeyBloom {
    seed: ValkeyBloom::FIXED_SEED,
    tightening: 0.5,
};

#[test]
fn only_windows_that_can_be_are_built() {
    let builder = LayeredFilter::builder();
    let refused = [
        builder.window(Span::Ticks(0), 4, 0),
        builder.window(Span::Items, 0, 0),
        builder.window(Span::Items, 65, 0),
        builder.window(Span::Items, 4, 0).layout(Layout::Classic),
        builder.window(Span::Items, 4, 0).valkey(VALKEY),
    ];
    for builder in refused {
        assert_eq!(builder.build(), Err(BuildError::Window));
    }
    assert!(WindowedBloomFilter::try_from(builder.build().unwrap()).is_err());
    let mut one = LayeredFilter::from(window(100, 0.01, Span::Items, 4));
    assert_eq!(one.clone().union(&one), Err(UnionError::WindowOfItems));
    let mut of_time = window(100, 0.01, Span::Ticks(40), 4);
    for other in [
        window(100, 0.01, Span::Ticks(40), 2),
        window(100, 0.01, Span::Ticks(41), 4),
    ] {
        assert_eq!(of_time.union(&other), Err(UnionError::Window));
    }
    (0..1000).for_each(|item| _ = one.insert(&item));
    let empty = one.empty_like().unwrap();
    one.clear();
    assert_eq!(one.layers().len(), 1);
    assert_eq!(one.parts(), empty.parts());
}

/// A pause, an item and what is done with it.
type Step = (u64, u64, u8);

fn histories() -> impl Strategy<Value = [Vec<Step>; 2]> {
    let step = (0..40_u64, 0..60_u64, 0..9_u8);
    prop::array::uniform2(prop::collection::vec(step, 0..40))
}

/// A filter after a life, and when that ended.
fn lived(history: &[Step], ticks: u64, generations: u32) -> (WindowedBloomFilter, u64) {
    let mut filter = window(30, 1e-9, Span::Ticks(ticks), generations);
    let mut now = 0;
    for (pause, item, action) in history {
        now += pause / 4;
        match action {
            0 => filter.advance(1, now).unwrap(),
            _ => _ = filter.insert_at(item, now),
        }
    }
    (filter, now)
}

proptest! {
    /// After two windows became one, an item stays as long as it would have stayed in its own
    /// filter, and at most one generation longer. (With 1e-9 no absent item is found.)
    #[test]
    fn a_union_of_windows_forgets_what_both_forget(
        histories in histories(),
        generations in 1_u32..6,
        ticks in 1_u64..90,
    ) {
        let lived = |history: &Vec<Step>| lived(history, ticks, generations);
        let [(mut one, a), (other, b)] = histories.each_ref().map(lived);
        let apart = [one.clone(), other.clone()];
        one.union(&other).unwrap();
        prop_assert_eq!(layers(&one).iter().map(Layer::len).sum::<u64>(), one.len());
        let parts = LayeredFilter::from(one.clone()).parts();
        prop_assert!(parts.validate(u64::MAX, Check::DumpHeader).is_ok(), "{:?}", parts);
        let generation = generation_of(&apart[0]);
        for now in a.max(b)..a.max(b) + 2 * ticks + 3 * generation {
            for item in 0..60_u64 {
                let any = |now| apart.iter().any(|filter| filter.contains_at(&item, now));
                let found = one.contains_at(&item, now);
                prop_assert!(found || !any(now), "{} is lost at {}", item, now);
                prop_assert!(!found || any(now.saturating_sub(generation)), "{} stays at {}", item, now);
            }
        }
        // It goes on as a window.
        one.insert_at(&1000, a.max(b));
        prop_assert!(one.contains_at(&1000, a.max(b) + ticks));
    }
}

proptest! {
    /// The clock has gone back by up to a generation when two windows become one. Nothing is lost by
    /// that, and an item stays at most two generations longer.
    #[test]
    fn a_union_waits_for_the_clock(
        histories in histories(),
        generations in 1_u32..6,
        ticks in 1_u64..90,
        back in 0_u64..90,
    ) {
        let lived = |history: &Vec<Step>| lived(history, ticks, generations).0;
        let apart = histories.each_ref().map(lived);
        let generation = generation_of(&apart[0]);
        let began = |filter: &WindowedBloomFilter| filter.window().kept.last().unwrap().began;
        let newest = began(&apart[0]).max(began(&apart[1]));
        let at = newest.saturating_sub(back.min(generation));
        let mut one = apart[0].clone();
        one.union_at(&apart[1], at).unwrap();
        let parts = LayeredFilter::from(one.clone()).parts();
        prop_assert!(parts.validate(u64::MAX, Check::DumpHeader).is_ok(), "{:?}", parts);
        for now in at..at + 2 * ticks + 4 * generation {
            for item in 0..60_u64 {
                let any = |now| apart.iter().any(|filter| filter.contains_at(&item, now));
                let found = one.contains_at(&item, now);
                prop_assert!(found || !any(now), "{} is lost at {}", item, now);
                let before = now.saturating_sub(2 * generation);
                prop_assert!(!found || any(before), "{} stays at {}", item, now);
            }
        }
    }
}

#[test]
fn a_union_keeps_what_the_clock_has_not_ended() {
    let mut one = window(1000, 0.01, Span::Ticks(60), 1);
    let mut other = one.clone();
    one.insert_at("b", 59);
    other.insert_at("a", 120);
    // The clock goes back by a generation.
    assert!(!other.window().is_ahead_of(60));
    one.union_at(&other, 60).unwrap();
    assert!(one.contains_at("b", 60) && one.contains_at("b", 119));
    assert!(one.contains_at("a", 180) && !one.contains_at("b", 180));
}

/// A window of time that may not grow is full until its next generation.
#[test]
fn a_window_that_may_not_grow_is_full_until_the_next_generation() {
    let builder = LayeredFilter::builder().capacity(40).fixed();
    let mut seen = builder.window(Span::Ticks(40), 4, 0).build().unwrap();
    let mut refused = 0;
    let mut add = |seen: &mut LayeredFilter, from: u64| {
        seen.try_insert_each(from..from + 20, u64::MAX, |result| {
            refused += u64::from(result == Err(InsertError::Full));
            ControlFlow::Continue(())
        });
    };
    add(&mut seen, 0);
    assert_eq!(seen.advance_to(9), Ok(None));
    assert_eq!(seen.advance_to(10), Ok(Some((1, 10))));
    add(&mut seen, 100);
    assert_eq!((refused, seen.len()), (20, 20));
}

#[test]
fn forged_windows_are_refused() {
    let mut filter = LayeredFilter::from(window(100, 0.01, Span::Ticks(100), 4));
    for time in 0..8 {
        filter.advance_to(time * 30).unwrap();
        filter.insert(&time);
    }
    let good = filter.parts();
    assert!(LayeredFilter::from_parts(&good, u64::MAX).is_ok());
    let forge = |change: fn(&mut Window)| {
        let mut parts = good.clone();
        change(parts.window.as_mut().unwrap());
        LayeredFilter::from_parts(&parts, u64::MAX).map(drop)
    };
    let forged: [fn(&mut Window); 12] = [
        |window| window.span = Span::Ticks(0),
        |window| window.generations = 0,
        |window| window.generations = u32::MAX,
        |window| window.generations = 1,
        |window| window.capacity = 0,
        |window| window.error_rate = f64::NAN,
        // No layer has such a rate, or so many items.
        |window| window.error_rate = 1e-300,
        |window| window.capacity = u64::MAX,
        |window| window.dropped = 1 << 63,
        |window| window.kept.clear(),
        |window| window.kept[0].layers = u32::MAX,
        |window| window.kept.swap(0, 4),
    ];
    for change in forged {
        assert_eq!(forge(change), Err(PartsError::Window));
    }
    let last = |window: &mut Window| {
        let kept = window.kept.last_mut().unwrap();
        *kept = Generation { layers: 0, ..*kept };
    };
    assert_eq!(forge(last), Err(PartsError::Window));
    let without = FilterParts {
        valkey: None,
        window: None,
        ..good.clone()
    };
    let classic = FilterParts { key: None, ..good };
    for parts in [without, classic] {
        assert!(LayeredFilter::from_parts(&parts, u64::MAX).is_err());
    }
}

/// A header of a few bytes is no reason for a layer of gigabytes.
#[test]
fn the_limit_is_for_the_next_generation_too() {
    let good = LayeredFilter::from(window(100, 0.01, Span::Ticks(100), 4)).parts();
    let limit = 1 << 20;
    let mut parts = good.clone();
    parts.window.as_mut().unwrap().capacity = 40_000_000;
    let refused = Err(PartsError::TooLarge { limit });
    assert_eq!(parts.validate(limit, Check::DumpHeader), refused);
    assert_eq!(parts.validate(1 << 30, Check::DumpHeader), Ok(()));
    // Our own bytes have their length for a limit.
    assert_eq!(parts.validate(limit, Check::RdbValue), Ok(()));
    // A count that its bits have no room for decides nothing.
    let mut parts = good;
    (parts.layers[0].items, parts.items) = (40_000_000, 40_000_000);
    let mut filter = LayeredFilter::from_parts(&parts, limit).unwrap();
    let bytes = filter.stream_len();
    filter.advance(1, 25).unwrap();
    assert_eq!((filter.layers().len(), filter.stream_len()), (2, 2 * bytes));
}

/// The next generation is made for as many items as the last one got, and a twentieth more.
#[test]
fn a_generation_is_as_large_as_the_one_before_has_become() {
    let mut filter = LayeredFilter::from(window(100, 0.01, Span::Ticks(100), 4));
    filter.insert_each(0..700_u64, drop);
    let items = filter.len();
    filter.advance(1, 25).unwrap();
    let capacity = filter.layers().last().unwrap().capacity();
    assert_eq!(capacity, items + items / 20);
}

/// A generation takes memory as growth does.
#[test]
fn a_generation_of_items_is_within_the_limit() {
    let mut filter = LayeredFilter::from(window(4, 1e-6, Span::Items, 4));
    let mut add = |item: u64, limit| {
        let mut reply = None;
        filter.try_insert_each([item], limit, |it| {
            reply = Some(it);
            ControlFlow::Continue(())
        });
        reply.unwrap()
    };
    assert_eq!(add(0, 0), Ok(Inserted::New));
    assert_eq!(add(1, 0), Err(InsertError::CannotGrow));
    assert_eq!(add(0, 0), Ok(Inserted::Known));
    (1..5).for_each(|item| assert_eq!(add(item, 1 << 10), Ok(Inserted::New)));
    // The oldest one makes room for the next.
    assert_eq!(add(5, 0), Ok(Inserted::New));
}
