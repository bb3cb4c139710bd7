//! Steps that chance alone seldom puts in this order.

use super::{CLIENTS, Draw, Fault, Step};
use crate::op::{BloomKind, Family, Op, Shape};

impl Draw {
    /// One of those that any seed may have.
    pub(super) fn story(&mut self) -> Vec<Step> {
        let (client, other) = (0, 1);
        let key = self.key(Family::Text);
        let window = self.key(Family::Window);
        let seconds = self.random.pick(&[1, 2, 5]);
        let reserve = Op::Reserve(
            window.clone(),
            Shape::Window {
                rate: "0.01",
                capacity: 1 + self.random.below(300) as u64,
                seconds,
                generations: 1 + self.random.below(5) as u64,
            },
        );
        let add = |draw: &mut Self, most| {
            let from = draw.random.below(2000) as u32;
            let count = 30 + draw.random.below(most) as u32;
            Step::Send(client, vec![Op::Add(window.clone(), from, count)])
        };
        let span = 1000 * seconds as i64;
        match self.random.below(5) {
            // A key that had expired when it was watched is flushed.
            0 => vec![
                Step::Send(other, vec![Op::Set(key.clone(), b'x', 5)]),
                Step::Send(other, vec![Op::PExpire(key.clone(), 50)]),
                Step::Pass(100),
                Step::Watch(client, key.clone()),
                Step::Send(other, vec![Op::Flush("FLUSHDB")]),
                Step::Transaction(client, vec![Op::Set(key, b'y', 5)]),
            ],
            // A clock was a year ahead for one addition.
            1 => {
                let year = 365 * 86_400_000;
                let begun = vec![Op::Del(window.clone()), reserve];
                vec![
                    Step::Send(client, begun),
                    Step::Pass(year),
                    add(self, 10),
                    Step::Pass(-year),
                    add(self, 100),
                    Step::Pass(4 * span + 1000),
                    Step::Check,
                ]
            }
            2 => self.log_switched_off(),
            3 => self.made_anew_under_readers(),
            // Windows fill the memory, and all that they hold becomes too old.
            _ => vec![
                Step::Send(client, vec![Op::Flush("FLUSHALL"), reserve]),
                Step::Send(
                    client,
                    vec![Op::Config(
                        "maxmemory",
                        (20_000 + self.random.below(20_000)).to_string(),
                    )],
                ),
                add(self, 400),
                add(self, 400),
                add(self, 400),
                Step::Pass(4 * span),
                Step::Expire,
                Step::Send(client, vec![Op::Advance(window, 1)]),
            ],
        }
    }

    /// A log is switched off and on while the disk may be full, and a snapshot may be made meanwhile.
    fn log_switched_off(&mut self) -> Vec<Step> {
        let switch = |to: &str| Step::Send(0, vec![Op::Config("appendonly", to.into())]);
        let mut steps = vec![Step::Thread(0, 200), switch("no"), Step::Log];
        steps.push(Step::Send(1, self.ops(4)));
        if self.random.chance(50) {
            let save = Step::Send(0, vec![Op::Other("BGSAVE")]);
            steps.extend([save, Step::Thread(0, 200)]);
        }
        if self.random.chance(50) {
            if self.random.chance(50) {
                steps.push(Step::Disk(Fault::Full(self.random.below(100) as u64)));
            }
            steps.extend([switch("yes"), Step::Thread(0, 20), Step::Log]);
            steps.extend([Step::Thread(0, 200), Step::Disk(Fault::Heals)]);
            steps.push(Step::Send(2, self.ops(4)));
        }
        if self.random.chance(50) {
            steps.push(Step::Restart(self.end()));
        }
        steps
    }

    /// Filters are made anew while a snapshot reads them, and clients add to them.
    fn made_anew_under_readers(&mut self) -> Vec<Step> {
        let family = self
            .random
            .pick(&[Family::Bloom, Family::Window, Family::Cuckoo]);
        let (to, from) = (self.key(family), self.key(family));
        let job = self.random.pick(&["BGSAVE", "BGREWRITEAOF"]);
        let mut steps = vec![Step::Send(0, vec![Op::Other(job)])];
        for key in [&to, &from, &to] {
            steps.push(Step::Thread(self.random.below(4), 1 + self.random.below(3)));
            let anew = match (self.random.below(3), family) {
                (0, Family::Bloom) => Op::Shrink(key.clone(), 1 + self.random.below(500) as u64),
                (0, Family::Window) => Op::Advance(key.clone(), 1),
                _ => Op::Merge(to.clone(), vec![from.clone()]),
            };
            steps.push(Step::Send(1, vec![anew]));
            let (from, count) = self.items(family);
            steps.push(Step::Send(2, vec![Op::Add(key.clone(), from, count)]));
        }
        steps.extend([Step::Thread(0, 50), Step::Thread(1, 50), Step::Check]);
        steps
    }

    /// Windows whose generations are full are merged, and filled further: a merge counts what is still to come.
    pub(super) fn merged_windows(&mut self) -> Vec<Step> {
        let generations = self.random.pick(&[1, 1, 2]);
        // Each addition is of other items, and those end below 2400.
        let each = 60 + self.random.below(680 / (generations as usize + 1) - 60) as u32;
        let shape = Shape::Window {
            rate: "0.1",
            capacity: (each * generations).into(),
            seconds: 60,
            generations: generations.into(),
        };
        let (to, from) = ("w0".to_owned(), "w1".to_owned());
        let unlimited = Op::Config("maxmemory", "0".into());
        let begun = vec![unlimited, Op::Flush("FLUSHALL")];
        let mut steps = vec![Step::Disk(Fault::Heals), Step::Send(0, begun)];
        let mut item = 0;
        for key in [&to, &from] {
            let mut ops = vec![Op::Reserve(key.clone(), shape.clone())];
            for _ in 0..generations {
                let count = each + self.random.below(each as usize) as u32;
                ops.push(Op::Add(key.clone(), item, count));
                ops.push(Op::Advance(key.clone(), 1));
                item += count;
            }
            steps.push(Step::Send(0, ops));
        }
        let merge = Op::Merge(to.clone(), vec![from]);
        steps.extend([Step::Send(0, vec![merge]), Step::Thread(0, 200)]);
        for _ in 0..3 {
            let add = Op::Add(to.clone(), item, each);
            steps.extend([Step::Send(0, vec![add]), Step::Check]);
            item += each;
        }
        steps
    }

    /// A window drops a large generation while a snapshot reads it.
    pub(super) fn dropped_under_a_reader(&mut self) -> Vec<Step> {
        let shape = Shape::Window {
            rate: "0.01",
            capacity: 200_000 + self.random.below(1_000_000) as u64,
            seconds: 0,
            generations: 1,
        };
        let key = self.key(Family::Window);
        let unlimited = Op::Config("maxmemory", "0".into());
        let begun = vec![
            unlimited,
            Op::Flush("FLUSHALL"),
            Op::Reserve(key.clone(), shape),
        ];
        let (item, count) = self.items(Family::Window);
        let begun = [begun, vec![Op::Add(key.clone(), item, count)]].concat();
        vec![
            Step::Disk(Fault::Heals),
            Step::Thread(0, 1000),
            Step::Send(0, begun),
            Step::Send(0, vec![Op::Other("BGSAVE")]),
            Step::Thread(0, 1 + self.random.below(4)),
            Step::Send(1, vec![Op::Advance(key, 2)]),
            Step::Thread(0, 1000),
        ]
    }

    /// Commands on large values, each alone in its batch, while a snapshot reads.
    pub(super) fn large_work(&mut self) -> Vec<Step> {
        let family = self.random.pick(&[Family::Bloom, Family::Window]);
        let capacity = 200_000 + self.random.below(1_000_000) as u64;
        let shape = match family {
            Family::Bloom => Shape::Bloom {
                rate: "0.01",
                capacity,
                expansion: 2,
                kind: self.random.pick(&[BloomKind::Classic, BloomKind::Blocked]),
            },
            _ => Shape::Window {
                rate: "0.01",
                capacity,
                seconds: 60,
                generations: 2,
            },
        };
        let key = |number| match family {
            Family::Bloom => format!("b{number}"),
            _ => format!("w{number}"),
        };
        let (one, two, copy) = (key(0), key(1), key(2));
        let unlimited = Op::Config("maxmemory", "0".into());
        let begun = [&one, &two].map(|key| Op::Reserve(key.clone(), shape.clone()));
        let begun = [vec![unlimited, Op::Flush("FLUSHALL")], begun.into()].concat();
        let mut steps = vec![Step::Disk(Fault::Heals), Step::Thread(0, 1000)];
        steps.push(Step::Send(0, begun));
        let item = self.random.below(2000) as u32;
        let add = Op::Add(one.clone(), item, 1 + self.random.below(20) as u32);
        steps.push(Step::Send(0, vec![add.clone()]));
        let pauses = 1 + self.random.below(4);
        steps.extend([
            Step::Send(0, vec![Op::Other("BGSAVE")]),
            Step::Thread(0, pauses),
        ]);
        let all = [
            add,
            Op::Copy(one.clone(), copy.clone()),
            Op::Merge(two.clone(), vec![one.clone()]),
            Op::Shrink(two.clone(), 1 + self.random.below(500) as u64),
            Op::Clear(one.clone()),
            Op::DumpRestore(one.clone(), copy.clone()),
            Op::ScanDump(one, copy),
        ];
        for _ in 0..5 {
            let client = self.random.below(CLIENTS);
            let op = all[self.random.below(all.len())].clone();
            steps.push(Step::Send(client, vec![op]));
            let pauses = self.random.pick(&[3, 1000]);
            steps.push(Step::Thread(self.random.below(3), pauses));
        }
        steps.push(Step::Thread(0, 1000));
        steps
    }
}
