//! What a person reads of a failure.

use std::fmt::Write;

use crate::plan::Plan;
use crate::shrink::shrink;
use crate::world::play;

/// How often a plan is played to shorten it.
const MAX_TRIES: usize = 400;

/// The steps of a plan: commands as redis-cli takes them, everything else as comments.
pub fn trace(plan: &Plan) -> String {
    let mut text = format!("# seed {}, settings {:?}\n", plan.seed, plan.settings);
    text.push_str(&plan.limits.text());
    for step in &plan.steps {
        let _ = writeln!(text, "{step}");
    }
    text
}

/// The shortened trace of a seed that fails, and what goes wrong at its end.
pub fn failure(seed: u64) -> String {
    let plan = Plan::of(seed);
    let Err(first) = play(&plan) else {
        return format!("seed {seed} passes");
    };
    let mut cut = plan.with(plan.steps[..=first.step].to_vec());
    cut = shrink(&cut, MAX_TRIES, |plan| play(plan).is_err());
    let last = play(&cut).map_or_else(|failure| failure.what, |()| "it passes now".into());
    format!(
        "seed {seed} fails at step {}: {}\nshortened:\n{}-> {last}",
        first.step,
        first.what,
        trace(&cut)
    )
}
