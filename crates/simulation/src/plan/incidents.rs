//! What operators, attackers and losses of power do between the steps of a seed.

use super::{CLIENTS, Draw, Fault, Step};
use crate::damage::Damage;
use crate::op::{Asking, Family, Op, ReplyLimit};

impl Draw {
    /// Puts some incidents between the steps.
    pub(super) fn put_incidents(&mut self, steps: &mut Vec<Step>) {
        while self.random.chance(40) {
            let at = self.random.below(steps.len() + 1);
            let incident = self.incident();
            steps.splice(at..at, incident);
        }
    }

    /// Lets the disk hang for some time between the steps.
    pub(super) fn put_hangs(&mut self, steps: &mut Vec<Step>) {
        while self.random.chance(25) {
            let at = self.random.below(steps.len() + 1);
            let hang = self.hang();
            steps.splice(at..at, hang);
        }
    }

    /// The disk hangs for seconds or minutes while clients read and write, and goes on, or the server ends.
    fn hang(&mut self) -> Vec<Step> {
        let always = Op::Config("appendfsync", "always".into());
        let mut steps = match self.random.chance(25) {
            true => vec![Step::Send(0, vec![always]), Step::Log],
            false => Vec::new(),
        };
        steps.extend([Step::Pass(1100), Step::Send(0, self.ops(3))]);
        if self.random.chance(50) {
            steps.push(Step::Log);
        }
        steps.push(Step::Disk(Fault::Hangs));
        if self.random.chance(10) {
            let save = self.random.pick(&["SAVE", "BGSAVE", "BGREWRITEAOF"]);
            steps.push(Step::Send(1, vec![Op::Other(save)]));
        }
        let most = self.random.pick(&[3000, 60_000]);
        for _ in 0..2 + self.random.below(3) {
            steps.push(Step::Send(self.random.below(CLIENTS), self.ops(4)));
            if self.random.chance(70) {
                steps.push(Step::Log);
            }
            if self.random.chance(30) {
                steps.push(Step::Thread(
                    self.random.below(8),
                    1 + self.random.below(30),
                ));
            }
            steps.push(Step::Attend);
            steps.push(Step::Pass(self.random.below(most) as i64));
            steps.push(Step::Attend);
        }
        match self.random.chance(30) {
            true => steps.push(Step::Restart(self.end())),
            false => steps.extend([Step::Disk(Fault::Heals), Step::Attend, Step::Log]),
        }
        steps
    }

    /// Lets a client ask for a string many times.
    pub(super) fn put_large_replies(&mut self, steps: &mut Vec<Step>) {
        if self.random.chance(15) {
            let at = self.random.below(steps.len() + 1);
            let asking = self.large_replies();
            steps.splice(at..at, asking);
        }
    }

    fn large_replies(&mut self) -> Vec<Step> {
        let key = self.key(Family::Text);
        let most = if self.big { 1 << 20 } else { 3000 };
        let set = Op::Set(key.clone(), b'r', 1 + self.random.below(most));
        let mut steps = vec![Step::Send(0, vec![set])];
        for _ in 0..3 {
            let how = self.random.pick(&[
                Asking::Get,
                Asking::MGet,
                Asking::MGet,
                Asking::Pipeline,
                Asking::ExecOfGets,
                Asking::ExecOfMGets,
            ]);
            // One string is refused, or several.
            let bytes = match how {
                Asking::Get | Asking::Pipeline => 1 + self.random.below(2 * most),
                _ => 1000 + self.random.below(10 * most),
            } as u64;
            let limit = match self.random.below(5) {
                0..2 => ReplyLimit::Output(bytes),
                2..4 => ReplyLimit::Clients(bytes),
                _ => ReplyLimit::Memory,
            };
            let percent = self.random.pick(&[50, 90, 100, 101, 120, 1000]);
            let op = Op::ReadMany(key.clone(), how, limit, percent);
            steps.push(Step::Send(self.random.below(CLIENTS), vec![op]));
        }
        steps
    }

    /// Lets a second thread run commands between those of the first.
    pub(super) fn put_second_thread(&mut self, steps: &mut Vec<Step>) {
        while self.random.chance(50) {
            let at = self.random.below(steps.len() + 1);
            let both = self.second_thread();
            steps.splice(at..at, both);
        }
    }

    fn second_thread(&mut self) -> Vec<Step> {
        let key = self.key(Family::Text);
        let is_transaction = self.random.chance(40);
        let (mut steps, mut ops) = (Vec::new(), self.ops(4));
        if is_transaction && self.random.chance(50) {
            steps.push(Step::Watch(0, key.clone()));
            ops.insert(0, Op::Append(key.clone(), b'z', 3));
        }
        steps.push(Step::Second(0, ops, is_transaction));
        for _ in 0..1 + self.random.below(4) {
            let mut ops = self.ops(2);
            if self.random.chance(25) {
                ops.push(Op::SetRange(key.clone(), 0, b'y', 2));
            }
            if self.random.chance(10) {
                let to = self.random.pick(&["yes", "no"]);
                ops = vec![Op::Config("appendonly", to.into())];
            }
            steps.push(Step::Send(1, ops));
            steps.push(Step::Thread(self.random.below(4), 1));
        }
        steps
    }

    fn incident(&mut self) -> Vec<Step> {
        match self.random.below(16) {
            11.. => self.forged(),
            0..5 => vec![Step::Damage(self.damage())],
            // A transaction is the last but one in the log.
            5..7 => {
                let ops = [0, 1].map(|_| self.text_op());
                let bit = self.random.below(8) as u8;
                vec![
                    Step::Transaction(0, ops.into()),
                    Step::Send(1, vec![self.text_op()]),
                    Step::Log,
                    Step::Damage(Damage::Flipped(0, self.random.below(1000), bit)),
                ]
            }
            7..9 => self.failed_save(),
            _ => self.removed_log(),
        }
    }

    /// A snapshot fails, and there is room later.
    fn failed_save(&mut self) -> Vec<Step> {
        let save = self.random.pick(&["SAVE", "BGSAVE"]);
        let full = Fault::Full(self.random.below(40) as u64);
        vec![
            Step::Log,
            Step::Disk(full),
            Step::Send(0, vec![Op::Other(save)]),
            Step::Thread(0, 200),
            Step::Disk(Fault::Heals),
            Step::Send(1, vec![self.text_op()]),
            Step::Pass(8000),
            Step::Attend,
            Step::Thread(0, 200),
            Step::Send(1, vec![self.text_op()]),
        ]
    }

    /// A client loads a filter with a forged header, and works with it.
    fn forged(&mut self) -> Vec<Step> {
        let family = self.random.pick(&[
            Family::Bloom,
            Family::Window,
            Family::Window,
            Family::Cuckoo,
        ]);
        let from = self.key(family);
        let keys = match family {
            Family::Cuckoo => ["x0", "x0"],
            _ => ["f0", "f1"],
        };
        let (item, count) = self.items(family);
        let mut steps = vec![
            Step::Send(0, vec![Op::Reserve(from.clone(), self.shape(family))]),
            Step::Send(0, vec![Op::Add(from.clone(), item, count)]),
        ];
        for _ in 0..10 {
            let count = self.random.pick(&[1, 1, 2]);
            let changes = (0..count).map(|_| (self.random.below(1000), self.random.below(1000)));
            let forge = Op::Forge(from.clone(), keys[0].into(), changes.collect());
            steps.push(Step::Send(0, vec![forge]));
            if family == Family::Window && self.random.chance(50) {
                steps.push(Step::Send(0, vec![Op::Advance(keys[0].into(), 70)]));
            }
            for _ in 0..1 + self.random.below(3) {
                let op = self.op_on_forged(family, keys);
                steps.push(Step::Send(self.random.below(CLIENTS), vec![op]));
            }
        }
        if self.random.chance(50) {
            steps.push(Step::Restart(self.end()));
        }
        steps
    }

    fn op_on_forged(&mut self, family: Family, keys: [&str; 2]) -> Op {
        let key = self.random.pick(&keys).to_owned();
        let other = self.random.pick(&keys).to_owned();
        let item = self.random.below(2000) as u32;
        match (self.random.below(12), family) {
            (0..4, _) => Op::Add(key, item, 1),
            (4, Family::Bloom | Family::Window) => {
                Op::Add(key, item, 1 + self.random.below(400) as u32)
            }
            (5, _) => Op::Copy(key, other),
            (6, _) => Op::DumpRestore(key, other),
            (7, _) => Op::ScanDump(key, other),
            (8..11, Family::Window) => Op::Advance(key, self.random.pick(&[1, 2, 70])),
            (8, Family::Bloom | Family::Cuckoo) => Op::Merge(key, vec![other]),
            (9, Family::Bloom) => Op::Clear(key),
            _ => Op::Other(self.random.pick(&["BGSAVE", "BGREWRITEAOF"])),
        }
    }

    /// A file of the log is removed, and some time passes.
    fn removed_log(&mut self) -> Vec<Step> {
        vec![
            Step::Send(0, self.ops(3)),
            Step::Remove(self.random.below(10)),
            Step::Send(1, self.ops(3)),
            Step::Pass(2000 + self.random.below(4000) as i64),
            Step::Log,
            Step::Send(2, self.ops(3)),
        ]
    }

    fn damage(&mut self) -> Damage {
        let random = &mut self.random;
        match random.below(12) {
            0 => Damage::Emptied(random.below(2)),
            1 => Damage::Removed(random.below(10)),
            2..7 => Damage::Flipped(
                random.below(1000),
                random.below(1000),
                random.below(8) as u8,
            ),
            7 => Damage::Hole(random.below(1000), random.below(10_000)),
            8..10 => Damage::ZerosAtEnd(
                random.pick(&[0, 1, 3, 100, 10_000]) + random.below(3),
                random.pick(&[0, 1, 7, 4096]),
            ),
            _ => Damage::TornOnFullDisk(random.below(1000)),
        }
    }
}
