//! Numbers at the ends of a type's range, in the arguments of commands.

use super::{CLIENTS, Draw, Step};
use crate::op::{Family, Op};

/// The numbers around which sums, products and conversions overflow.
const NUMBERS: [&str; 16] = [
    "0",
    "-1",
    "1",
    "2147483648",
    "-2147483649",
    "4294967296",
    "4294967297",
    "9223372036854774807",
    "9223372036854775",
    "9223372036854775806",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "18446744073709551616",
];

/// On strings, `$` is a key and `N` a number. No offset makes a long string.
const TEXTS: [&str; 16] = [
    "PEXPIRE $ N",
    "EXPIRE $ N",
    "PEXPIREAT $ N",
    "EXPIREAT $ N",
    "PEXPIRE $ N GT",
    "SET $ 7 PX N",
    "SET $ 7 EXAT N",
    "SET $ N",
    "GETEX $ EX N",
    "INCRBY $ N",
    "DECRBY $ N",
    "SETRANGE $ N x",
    "SETBIT $ N0 1",
    "GETRANGE $ N N",
    "BITCOUNT $ N N",
    "BITFIELD $ SET u8 #N00 7 INCRBY i64 0 N",
];

/// On Bloom filters and windows.
const BLOOMS: [&str; 14] = [
    "BF.RESERVE $ 0.01 100 EXPANSION N",
    "BF.RESERVE $ 0.01 100 WINDOW SECONDS N GENERATIONS 3",
    "BF.RESERVE $ 0.01 100 WINDOW SECONDS 5 GENERATIONS N",
    "BF.RESERVE $ 0.01 100 WINDOW ITEMS GENERATIONS 3 SEED N",
    "BF.RESERVE $ 0.01 100 LAYOUT BLOCKED SEED N",
    "BF.ADVANCE $ N",
    "BF.ADVANCE $ N",
    "BF.ADVANCE $ N",
    "BF.SHRINK $ N",
    "BF.SCANDUMP $ N",
    "BF.LOADCHUNK $ N x",
    "PEXPIRE $ N",
    "EXPIREAT $ N",
    "DEL $",
];

/// On cuckoo filters.
const CUCKOOS: [&str; 8] = [
    "CF.RESERVE $ 100 BUCKETSIZE N",
    "CF.RESERVE $ 100 MAXITERATIONS N",
    "CF.RESERVE $ 100 EXPANSION N",
    "CF.RESERVE $ 100 BUCKETSIZE 2 EXPANSION N",
    "CF.SCANDUMP $ N",
    "CF.LOADCHUNK $ N x",
    "PEXPIRE $ N",
    "DEL $",
];

impl Draw {
    /// Puts some commands with such numbers between the steps.
    pub(super) fn put_extremes(&mut self, steps: &mut Vec<Step>) {
        while self.random.chance(40) {
            let at = self.random.below(steps.len() + 1);
            let some = self.extremes();
            steps.splice(at..at, some);
        }
    }

    fn extremes(&mut self) -> Vec<Step> {
        let family = self
            .random
            .pick(&[Family::Text, Family::Window, Family::Cuckoo]);
        let (keys, lines): (&[&str], &[&str]) = match family {
            Family::Text => (&["s0", "s1"], &TEXTS),
            Family::Cuckoo => (&["x0"], &CUCKOOS),
            _ => (&["f0", "f1"], &BLOOMS),
        };
        let mut steps = Vec::new();
        for _ in 0..2 + self.random.below(8) {
            let key = self.random.pick(keys).to_owned();
            let line = self.random.pick(lines);
            let line = line.replace('$', &key);
            let op = match self.random.below(3) {
                0 if family != Family::Text => Op::Add(key, self.random.below(50) as u32, 1),
                _ => Op::Extreme(key, self.with_numbers(&line)),
            };
            steps.push(Step::Send(self.random.below(CLIENTS), vec![op]));
        }
        if self.random.chance(30) {
            steps.push(Step::Restart(self.end()));
        }
        steps
    }

    /// The words that stand for a number are replaced.
    fn with_numbers(&mut self, line: &str) -> String {
        let mut number = |word: &str| {
            let is_number = word.trim_start_matches('#').starts_with('N')
                && word.chars().all(|char| "#N0".contains(char));
            match is_number {
                true => word.replace('N', self.random.pick(&NUMBERS)),
                false => word.to_owned(),
            }
        };
        let words: Vec<String> = line.split(' ').map(&mut number).collect();
        words.join(" ")
    }
}
