//! The plan as JSON.

use serde_json::{Value, json};

use super::question::Plan;
use super::sizes::{Choice, Size};
use crate::failure::Failure;

pub(super) fn render(plan: &Plan) -> Result<String, Failure> {
    let document = json!({
        "asked": plan.question,
        "filters": plan.filters.iter().map(filter).collect::<Vec<_>>(),
        "others": plan.others.iter().map(|other| json!({
            "name": other.name,
            "bytes": other.bytes.ceil(),
            "assumed": other.assumed,
        })).collect::<Vec<_>>(),
        "around": around(plan),
        "overfill": plan.overfilled().map(|(times, classic, blocked)| json!({
            "times": times,
            "classic": classic,
            "blocked": blocked,
        })),
    });
    let mut text = serde_json::to_string_pretty(&document).map_err(std::io::Error::from)?;
    text.push('\n');
    Ok(text)
}

fn filter(size: &Size) -> Value {
    json!({
        "name": size.kind.name(),
        "capacity": size.capacity,
        "rate": size.rate,
        "expected_rate": size.expected_rate(),
        "bits": size.bits(),
        "bytes": size.bytes,
        "hashes": size.hashes,
        "bits_per_item": size.bits_per_item(),
    })
}

fn around(plan: &Plan) -> Vec<Value> {
    let mut around = Vec::new();
    for capacity in plan.capacities() {
        for rate in plan.rates() {
            let bytes = |kind: Choice| plan.size(kind, capacity, rate).map(|size| size.bytes);
            around.push(json!({
                "capacity": capacity,
                "rate": rate,
                "classic_bytes": bytes(Choice::Classic),
                "blocked_bytes": bytes(Choice::Blocked),
            }));
        }
    }
    around
}
