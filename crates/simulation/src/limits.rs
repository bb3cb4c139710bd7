//! The thresholds at which the code takes another way, drawn for each seed.

use std::fmt::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};

use everbloom::host::{Instructions, Limit};
use everbloom_dev::Random;

/// The limits belong to the whole process, so one plan is played at a time.
static PLAYING: Mutex<()> = Mutex::new(());

/// The value of each limit, in the order of `all`, and the instructions for blocked filters.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits(Vec<usize>, Kernel);

/// Instructions, by their number among those that the processor has, the fastest first.
type Kernel = usize;

fn kernel(number: Kernel) -> Instructions {
    let all: Vec<Instructions> = Instructions::available().collect();
    all[number % all.len()]
}

/// All limits of all crates.
fn all() -> impl Iterator<Item = &'static Limit> {
    let lists: [&[&'static Limit]; 5] = [
        &everbloom::limits::ALL,
        &everbloom_commands::limits::ALL,
        &everbloom_files::limits::ALL,
        &everbloom_store::limits::ALL,
        &everbloom_server::internals::LIMITS,
    ];
    lists.into_iter().flatten().copied()
}

impl Default for Limits {
    /// The values that they have in a program.
    fn default() -> Self {
        Limits(all().map(Limit::ordinary).collect(), 0)
    }
}

impl Limits {
    /// Draws most of them anew: the least value, an odd one, or the ordinary one. With `big` values
    /// there are no more than some thousand pieces of each.
    pub fn draw(random: &mut Random, big: bool) -> Self {
        if random.chance(20) {
            return Limits::default();
        }
        let mut drawn = |limit: &Limit| {
            let least = match big {
                true => limit.least().max(limit.ordinary() >> 8),
                false => limit.least(),
            };
            let room = limit.ordinary() - least;
            let value = match random.below(6) {
                0 => 0,
                1 => random.below(8),
                2 => random.below(1000),
                3 => random.below(room + 1) >> random.below(16),
                _ => room,
            };
            least + value.min(room)
        };
        let limits = all().map(&mut drawn).collect();
        Limits(limits, random.below(12))
    }

    /// The same with another value of one of them.
    pub fn with(mut self, name: &str, value: usize) -> Self {
        let at = all().position(|limit| limit.name() == name);
        self.0[at.expect("the name of a limit")] = value;
        self
    }

    /// Sets all of them until the guard is dropped.
    pub fn set(&self) -> Set {
        let guard = PLAYING.lock().unwrap_or_else(PoisonError::into_inner);
        for (limit, value) in all().zip(&self.0) {
            assert!(limit.set(*value), "the feature drawn-limits is missing");
        }
        assert!(kernel(self.1).select());
        Set { _guard: guard }
    }

    /// The same with one of them at its ordinary value, for each that is not.
    pub fn more_ordinary(&self) -> Vec<Limits> {
        let ordinary = Limits::default();
        let other = |at: &usize| self.0[*at] != ordinary.0[*at];
        let changed = (0..self.0.len()).filter(other);
        let changed = changed.map(|at| {
            let mut limits = self.clone();
            limits.0[at] = ordinary.0[at];
            limits
        });
        changed.collect()
    }

    /// Those that are not ordinary, as comments.
    pub fn text(&self) -> String {
        let mut text = format!("# {} instructions\n", kernel(self.1).name());
        for (limit, value) in all().zip(&self.0) {
            if *value != limit.ordinary() {
                let _ = writeln!(text, "# {}: {value}", limit.name());
            }
        }
        text
    }
}

/// While it lives, the limits have their values.
#[derive(Debug)]
pub struct Set {
    _guard: MutexGuard<'static, ()>,
}

impl Drop for Set {
    fn drop(&mut self) {
        all().for_each(|limit| {
            limit.set(limit.ordinary());
        });
        assert!(kernel(0).select());
    }
}
