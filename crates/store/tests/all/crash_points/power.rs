//! The power goes at every single operation of a scripted run.

use super::*;

/// Lets the power go at operation `n`; returns how many points that were, 0 when the script came
/// to its end before.
fn cross(script: &Script, states: &[State], n: u64) -> u64 {
    let disk = script.disk();
    disk.crash_at(n);
    let life = script.play(&disk);
    if !disk.crashed() {
        assert_eq!(life.sent + 1, states.len());
        assert_eq!(life.acknowledged, life.sent);
    }
    for seed in [0, 1, 2 * n, 2 * n + 1] {
        let place = format!("{}, operation {n}, seed {seed}", script.name);
        let disk = disk.survivors(seed);
        let recovering = disk.survivors(0);
        let machine = restart(&disk, &place);
        life.check(&machine.state(), states, &place);
        if seed == 1 {
            go_on(machine, &disk, n, &place);
        } else if seed > 1 {
            drop(machine);
            // The power goes during the start.
            recovering.crash_at(1 + n % 16);
            drop(Machine::start(&recovering, settings(true, Fsync::Always)));
            let place = format!("{place}, and operation {} of the start", 1 + n % 16);
            let machine = restart(&recovering.survivors(seed), &place);
            life.check(&machine.state(), states, &place);
        }
    }
    let place = format!("{}, process killed at operation {n}", script.name);
    let killed = disk.after_kill();
    let machine = restart(&killed, &place);
    life.check(&machine.state(), states, &place);
    go_on(machine, &killed, n, &place);
    if disk.crashed() { 5 } else { 0 }
}

/// Crosses all operations of a script, on all processors; returns how many there were, and points.
fn cross_all(script: &Script) -> (u64, u64) {
    let states = script.states();
    let (next, end) = (AtomicU64::new(1), AtomicU64::new(u64::MAX));
    let points = AtomicU64::new(0);
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= end.load(Ordering::Relaxed) {
                        break;
                    }
                    match cross(script, &states, n) {
                        0 => drop(end.fetch_min(n, Ordering::Relaxed)),
                        crossed => drop(points.fetch_add(crossed, Ordering::Relaxed)),
                    }
                }
            });
        }
    });
    let (operations, points) = (end.into_inner() - 1, points.into_inner());
    println!(
        "{}: {} commands, {operations} operations, {points} points crossed",
        script.name,
        states.len() - 1
    );
    (operations, points)
}

fn with_log() -> Script {
    let mut script = Script::new("a log from the start", true);
    let mut numbers = Numbers(1);
    script.send("BF.RESERVE big 0.01 60000");
    script.send("CF.RESERVE cuckoo 4000");
    script.send("CF.INSERT cuckoo ITEMS a a a a a a a a");
    numbers.mix(&mut script, 80);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 60);
    script.steps.push(Step::Settle);
    let cuckoo = load_chunks("CF", "loaded-cuckoo");
    assert!(cuckoo.len() > 5, "{}", cuckoo.len());
    for command in load_chunks("BF", "loaded").into_iter().chain(cuckoo) {
        script.steps.push(Step::Send(vec![command]));
    }
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 40);
    script.steps.push(Step::SaveInBackground);
    numbers.mix(&mut script, 30);
    script.steps.push(Step::Settle);
    script.send("FLUSHDB");
    script.send("BF.RESERVE big 0.01 60000");
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Rewrite);
    // What the snapshot captures goes away under it.
    for line in [
        "COPY big other",
        "BF.MADD big a b c",
        "CF.DEL cuckoo a",
        "CF.INSERT cuckoo CAPACITY 4 ITEMS a b c d e f",
        "CF.COMPACT cuckoo",
        "RENAME cuckoo moved-cuckoo",
        "RENAME big moved",
        "DEL moved",
    ] {
        script.send(line);
    }
    script.send("SWAPDB 0 1");
    script.send("FLUSHDB");
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Settle);
    script.steps.push(Step::Rewrite);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 10);
    script
}

fn with_log_begun_later() -> Script {
    let mut script = Script::new("a log begun at run time", false);
    let mut numbers = Numbers(2);
    script.send("BF.RESERVE big 0.01 60000");
    numbers.mix(&mut script, 30);
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Begin);
    numbers.mix(&mut script, 30);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 20);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 5);
    script
}

/// What is newer is read: the log that has ended, or a snapshot that was made since.
fn with_log_switched_off() -> Script {
    let mut script = Script::new("a log switched off and on again", true);
    let mut numbers = Numbers(4);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 5);
    script.steps.push(Step::End);
    numbers.mix(&mut script, 3);
    for _ in 0..2 {
        script.steps.push(Step::Save);
        numbers.mix(&mut script, 3);
    }
    script.steps.push(Step::Begin);
    numbers.mix(&mut script, 5);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 5);
    script.steps.push(Step::End);
    numbers.mix(&mut script, 3);
    script.steps.push(Step::Save);
    numbers.mix(&mut script, 3);
    script
}

fn with_log_of_old_style() -> Script {
    let mut script = Script::new("a log of the old style, with a torn end", true);
    let mut numbers = Numbers(3);
    let mut old = Vec::new();
    for line in [
        "SELECT 1",
        "SET s1 old",
        "BF.ADD f1 old",
        "SELECT 0",
        "SET n1 5",
    ] {
        encode_request(&words(line), &mut old);
    }
    old.extend_from_slice(b"*3\r\n$3\r\nSET\r\n$1");
    script.files.push(("appendonly.aof", old));
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Settle);
    script
}

/// Other programs may begin a log with an increment.
fn with_log_without_base() -> Script {
    let mut script = Script::new("a log without a base", true);
    let mut numbers = Numbers(5);
    let mut increment = Vec::new();
    encode_request(&words("SELECT 0"), &mut increment);
    encode_request(&words("SET n1 5"), &mut increment);
    let manifest = b"file appendonly.aof.1.incr.aof seq 1 type i\n".to_vec();
    script.files.extend([
        ("appendonlydir/appendonly.aof.1.incr.aof", increment),
        ("appendonlydir/appendonly.aof.manifest", manifest),
    ]);
    numbers.mix(&mut script, 3);
    script.steps.push(Step::Rewrite);
    numbers.mix(&mut script, 10);
    script.steps.push(Step::Settle);
    numbers.mix(&mut script, 2);
    script
}

#[test]
fn nothing_acknowledged_is_lost_at_any_operation() {
    let started = Instant::now();
    let (mut operations, mut points) = (0, 0);
    for script in [
        with_log(),
        with_log_begun_later(),
        with_log_switched_off(),
        with_log_of_old_style(),
        with_log_without_base(),
    ] {
        let crossed = cross_all(&script);
        operations += crossed.0;
        points += crossed.1;
    }
    let took = started.elapsed().as_secs_f64();
    println!("{operations} operations, {points} points crossed in {took:.1} s");
    assert!(points >= 2000, "{points} points are too few to speak of");
}
