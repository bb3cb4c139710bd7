//! Files that import each other in a circle.

use std::collections::{BTreeMap, BTreeSet};

use super::arrows::Arrow;

/// Sets of files of which each reaches all others along arrows; each sorted, and they too.
pub fn circles(arrows: &[Arrow]) -> Vec<Vec<&str>> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for arrow in arrows {
        next.entry(&arrow.from).or_default().insert(&arrow.to);
    }
    let reached: BTreeMap<&str, BTreeSet<&str>> = next
        .keys()
        .map(|file| (*file, reached_from(file, &next)))
        .collect();
    let mut circles: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (file, reaches) in &reached {
        let back = |other: &&&str| {
            reached
                .get(**other)
                .is_some_and(|there| there.contains(file))
        };
        let circle: Vec<&str> = reaches.iter().filter(back).copied().collect();
        if !circle.is_empty() {
            circles.insert(circle);
        }
    }
    circles.into_iter().collect()
}

fn reached_from<'a>(file: &str, next: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = next.get(file).into_iter().flatten().copied().collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(next.get(file).into_iter().flatten());
        }
    }
    reached
}
