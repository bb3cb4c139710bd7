//! The disk is full from one operation to another.

use super::*;

/// With `everysec`, the disk takes `room` more bytes and is healed later.
fn fill_and_heal(room: u64) {
    let place = format!("{room} bytes of room");
    let mut start = Now::read();
    start.ms += AHEAD;
    let disk = CrashingDisk::new();
    let mut machine = Machine::start(&disk, settings(true, Fsync::EverySecond)).unwrap();
    let mut numbers = Numbers(room + 10);
    let mut states = vec![machine.state()];
    let mut send = |machine: &mut Machine, states: &mut Vec<State>| {
        let before = states.last().unwrap().clone();
        let refused = is_refused(&machine.run(&[words(&numbers.line())], start));
        states.push(machine.state());
        assert!(!refused || *states.last().unwrap() == before, "{place}");
    };
    for _ in 0..30 {
        send(&mut machine, &mut states);
    }
    disk.fail_writes_after(room);
    let until = Instant::now() + Duration::from_secs(30);
    while !is_refused(&machine.run(&[words("INCR full")], start)) {
        states.push(machine.state());
        send(&mut machine, &mut states);
        assert!(Instant::now() < until, "{place}: writes are refused");
        thread::sleep(Duration::from_millis(1));
    }
    let reply = machine.run(&[words("BF.EXISTS f1 i1")], start);
    assert!(!reply[0].is_error(), "{place}: {reply:?}");
    check_survivors(&disk, 0..8, &states, &format!("{place}, full"));
    // A rewrite fails, and costs nothing.
    jobs::rewrite_in_background(&machine.server.store).unwrap();
    machine.settle();
    let figures = |machine: &Machine| {
        let figures = &machine.server.store.persistence().unwrap().figures;
        figures.rewrite.done.load(Ordering::Relaxed)
    };
    assert_eq!(figures(&machine), 0, "{place}");
    disk.heal();
    let until = Instant::now() + Duration::from_secs(30);
    while is_refused(&machine.run(&[words("INCR healed")], start)) {
        assert!(Instant::now() < until, "{place}: writes are taken again");
        thread::sleep(Duration::from_millis(1));
    }
    states.push(machine.state());
    for _ in 0..10 {
        send(&mut machine, &mut states);
    }
    // What was written of a failed write is not in the way of what came after it.
    assert!(machine.acknowledged(), "{place}: it is written at last");
    check_survivors(&disk, 0..8, &states, &format!("{place}, healed"));
    let before = states.len() - 1;
    jobs::rewrite_in_background(&machine.server.store).unwrap();
    for _ in 0..10 {
        send(&mut machine, &mut states);
    }
    machine.settle();
    assert_eq!(figures(&machine), 1, "{place}");
    check_survivors(
        &disk,
        0..8,
        &states[before..],
        &format!("{place}, rewritten"),
    );
    let last = states.split_off(states.len() - 1);
    machine.stop();
    check_survivors(&disk, 0..3, &last, &format!("{place}, at the end"));
}

#[test]
fn a_full_disk_refuses_writes_and_loses_none_that_was_accepted() {
    thread::scope(|scope| {
        for room in [0, 1, 40, 300, 2000] {
            scope.spawn(move || fill_and_heal(room));
        }
    });
}

#[test]
fn with_always_a_write_that_does_not_reach_the_disk_is_never_acknowledged() {
    let mut start = Now::read();
    start.ms += AHEAD;
    for room in [None, Some(0), Some(1), Some(40), Some(300), Some(2000)] {
        let disk = CrashingDisk::new();
        let mut machine = Machine::start(&disk, settings(true, Fsync::Always)).unwrap();
        let mut numbers = Numbers(room.unwrap_or(1) + 20);
        let mut states = vec![machine.state()];
        let mut acknowledged = 0;
        loop {
            if states.len() == 30 {
                room.map_or_else(|| disk.fail_syncs(), |room| disk.fail_writes_after(room));
            }
            machine.run(&[words(&numbers.line())], start);
            states.push(machine.state());
            if !machine.acknowledged() {
                break;
            }
            acknowledged = states.len() - 1;
            assert!(states.len() < 2000, "{room:?}: the server fails at last");
        }
        assert!(machine.server.store.failure().is_some());
        machine.stop();
        let place = format!("{room:?} bytes of room");
        check_survivors(&disk, 0..20, &states[acknowledged..], &place);
    }
}

/// What happens to the disk and to the log in a life with a full disk.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// So many commands of the mix, each by itself.
    Send(usize),
    /// From now on there is room for so many bytes more.
    Fill(usize),
    /// Changes of one small value, until writes are refused.
    Pile,
    /// There is room again.
    Heal,
    /// Waits until writes are taken.
    Taken,
    /// The log is switched on or off.
    Log(bool),
    /// A rewrite, and its end.
    Rewrite,
}

use Event::{Fill, Heal, Log, Pile, Rewrite, Send as Sent, Taken};

const FULL_DISKS: [(&str, &[Event]); 4] = [
    (
        "a full disk that comes back",
        &[
            Sent(6),
            Fill(30),
            Sent(4),
            Rewrite,
            Heal,
            Taken,
            Sent(4),
            Rewrite,
            Sent(2),
        ],
    ),
    (
        "a log switched off on a full disk",
        &[
            Sent(6),
            Fill(30),
            Sent(3),
            Log(false),
            Sent(3),
            Heal,
            Log(true),
            Sent(3),
            Rewrite,
        ],
    ),
    (
        "a disk that its own log has filled",
        &[Sent(3), Fill(20_000), Pile, Rewrite, Taken, Sent(3)],
    ),
    (
        "a log switched off while all is well",
        &[
            Sent(6),
            Log(false),
            Sent(3),
            Fill(0),
            Sent(1),
            Heal,
            Log(true),
            Sent(4),
        ],
    ),
];

/// A life with a full disk, with `everysec`.
struct Full {
    disk: CrashingDisk,
    machine: Machine,
    now: Now,
    numbers: Numbers,
    states: Vec<State>,
    /// How many commands at least must survive the end of the process.
    safe: usize,
    logging: bool,
}

impl Full {
    /// Sends a command, and sees whether it is acknowledged and logged.
    fn send(&mut self, line: &str) -> bool {
        let refused = is_refused(&self.machine.run(&[words(line)], self.now));
        self.states.push(self.machine.state());
        let last = self.states.len() - 1;
        if refused {
            assert!(self.states[last] == self.states[last - 1], "{line}");
            return false;
        }
        let logged = self.machine.acknowledged() && !self.disk.crashed();
        if logged && self.logging {
            self.safe = last;
        }
        logged
    }

    fn happen(&mut self, event: Event) {
        let store = Arc::clone(&self.machine.server);
        let store = &store.store;
        match event {
            Sent(count) => {
                for _ in 0..count {
                    let line = self.numbers.line();
                    self.send(&line);
                }
            }
            Fill(bytes) => self.disk.limit(bytes),
            Pile => {
                let line = format!("SET piled {}", "v".repeat(3000));
                while self.send(&line) {}
            }
            Heal => self.disk.heal(),
            Taken => self.wait_for("writes are taken", |full| {
                full.machine.server.store.can_log()
            }),
            Log(on) => {
                // A command that it has refused is none that was ever acknowledged.
                self.wait_for("the one before has ended", |full| !full.is_busy());
                self.logging = false;
                jobs::turn_log(store, on).unwrap();
                self.wait_for("it is on or off", |full| !full.is_busy());
                let begun = on && store.journal.is_logging() && !self.disk.crashed();
                if begun {
                    (self.logging, self.safe) = (true, self.states.len() - 1);
                }
            }
            Rewrite => {
                jobs::rewrite_in_background(store).unwrap();
                self.wait_for("the rewrite ends", |full| !full.is_busy());
            }
        }
    }

    fn is_busy(&self) -> bool {
        self.machine.server.store.persistence().unwrap().is_busy()
    }

    fn wait_for(&self, what: &str, done: impl Fn(&Full) -> bool) {
        let until = Instant::now() + Duration::from_secs(30);
        while !done(self) && !self.disk.crashed() {
            assert!(Instant::now() < until, "{what}");
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// A life that ends at operation `n`; false when it came to its end before.
fn cross_full((name, events): (&str, &[Event]), n: u64) -> bool {
    let disk = CrashingDisk::new();
    disk.crash_at(n);
    let place = format!("{name}, operation {n}");
    let Ok(machine) = Machine::start(&disk, settings(true, Fsync::EverySecond)) else {
        assert!(disk.crashed(), "{place}");
        return true;
    };
    let mut now = Now::read();
    now.ms += AHEAD;
    let states = vec![machine.state()];
    let mut full = Full {
        disk: disk.clone(),
        machine,
        now,
        numbers: Numbers(30),
        states,
        safe: 0,
        logging: true,
    };
    for event in events {
        full.happen(*event);
        if disk.crashed() {
            break;
        }
    }
    let Full {
        machine,
        states,
        safe,
        ..
    } = full;
    let crashed = disk.crashed();
    // Before the end of the server in good order.
    let killed = disk.after_kill();
    killed.heal();
    for (disk, states) in [
        (killed.survivors(0), &states[..]),
        (killed, &states[safe..]),
    ] {
        let machine = restart(&disk, &place);
        let found = machine.state();
        let last = difference(&found, states.last().unwrap());
        assert!(
            states.contains(&found),
            "{place}, {safe} are safe; the last:{last}"
        );
        go_on(machine, &disk, n, &place);
    }
    machine.stop();
    crashed
}

const FULL_AT_ONCE: usize = 4;

#[test]
fn a_full_disk_and_a_log_switched_off_are_crash_points() {
    thread::scope(|scope| {
        for life in FULL_DISKS {
            // They wait more than they work.
            for first in 1..=FULL_AT_ONCE {
                scope.spawn(move || {
                    let numbers = (first..).step_by(FULL_AT_ONCE);
                    let crossed = numbers.take_while(|n| cross_full(life, *n as u64)).count();
                    assert!(
                        crossed > 5,
                        "{}: {crossed} operations of each {FULL_AT_ONCE}",
                        life.0
                    );
                });
            }
        }
    });
}
