//! Leaves out steps as long as the failure stays (Zeller's delta debugging).

use crate::plan::{Plan, Step};

/// A shorter plan that fails, too. `fails` is called at most `most` times.
pub fn shrink(plan: &Plan, most: usize, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut steps = plan.steps.clone();
    let (mut size, mut tries) = (steps.len().div_ceil(2), 0);
    while size > 0 && tries < most {
        let mut from = 0;
        let before = steps.len();
        while from < steps.len() && tries < most {
            let to = steps.len().min(from + size);
            let fewer: Vec<Step> = [&steps[..from], &steps[to..]].concat();
            tries += 1;
            if fails(&plan.with(fewer.clone())) {
                steps = fewer;
            } else {
                from = to;
            }
        }
        size = match size {
            1 if steps.len() == before => 0,
            size => size.div_ceil(2).min(size.max(2) - 1).max(1),
        };
    }
    let shorter = plan.with(shorter_batches(plan, steps, &mut fails));
    ordinary_limits(shorter, &mut fails)
}

/// Gives each limit its ordinary value that has nothing to do with the failure.
fn ordinary_limits(mut plan: Plan, fails: &mut impl FnMut(&Plan) -> bool) -> Plan {
    let mut next = 0;
    while let Some(limits) = plan.limits.more_ordinary().into_iter().nth(next) {
        let other = Plan {
            limits,
            ..plan.clone()
        };
        match fails(&other) {
            true => plan = other,
            false => next += 1,
        }
    }
    plan
}

/// Leaves out commands of each batch.
fn shorter_batches(
    plan: &Plan,
    mut steps: Vec<Step>,
    fails: &mut impl FnMut(&Plan) -> bool,
) -> Vec<Step> {
    for at in 0..steps.len() {
        let mut op = 0;
        loop {
            let mut fewer = steps.clone();
            let (Step::Send(_, ops) | Step::Transaction(_, ops) | Step::Second(_, ops, _)) =
                &mut fewer[at]
            else {
                break;
            };
            if ops.len() < 2 || op >= ops.len() {
                break;
            }
            ops.remove(op);
            match fails(&plan.with(fewer.clone())) {
                true => steps = fewer,
                false => op += 1,
            }
        }
    }
    steps
}
