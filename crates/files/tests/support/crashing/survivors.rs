//! What could be there after a power cut.

use std::collections::BTreeMap;

use everbloom_dev::Random;
use everbloom_files::storage::parent;

use super::{DirChange, DirState, FileChange, FileState, Node, State, apply, apply_names, last};

impl State {
    pub(super) fn survivors(&self, choice: &mut Choice) -> State {
        let kept = self.kept_changes(choice);
        let files = self.files.iter().map(|file| {
            let bytes = file.survivor(choice);
            FileState {
                lasting: bytes.clone(),
                current: bytes,
                unsynced: Vec::new(),
            }
        });
        let mut survivors = State {
            files: files.collect(),
            ..State::default()
        };
        // A path comes behind the one of the directory it is in.
        for (path, dir) in &self.dirs {
            let mut names = dir.lasting.clone();
            for change in &dir.unsynced[..kept[path]] {
                apply_names(&mut names, &change.names);
            }
            let there = path.is_empty()
                || survivors
                    .dirs
                    .get(parent(path))
                    .is_some_and(|dir| dir.current.get(last(path)) == Some(&Node::Dir));
            if there {
                let dir = DirState {
                    lasting: names.clone(),
                    current: names,
                    unsynced: Vec::new(),
                };
                survivors.dirs.insert(path.clone(), dir);
            }
        }
        survivors
    }

    /// How many of the unsynced changes of each directory survive.
    fn kept_changes(&self, choice: &mut Choice) -> BTreeMap<String, usize> {
        let mut kept = BTreeMap::new();
        for (path, dir) in &self.dirs {
            kept.insert(path.clone(), choice.up_to(dir.unsynced.len()));
        }
        // A change that waits for one that is lost is lost, and all behind it, which others may
        // have waited for: until nothing changes.
        loop {
            let before = kept.clone();
            for (path, dir) in &self.dirs {
                let lost = |change: &DirChange| {
                    change.after.as_ref().is_some_and(|(other, id)| {
                        let unsynced = &self.dirs[other].unsynced;
                        unsynced[before[other]..]
                            .iter()
                            .any(|change| change.id == *id)
                    })
                };
                if let Some(first) = dir.unsynced.iter().position(lost) {
                    let count = kept.get_mut(path).unwrap();
                    *count = first.min(*count);
                }
            }
            if kept == before {
                return kept;
            }
        }
    }
}

impl FileState {
    /// What could be there after a power cut.
    fn survivor(&self, choice: &mut Choice) -> Vec<u8> {
        let mut bytes = self.lasting.clone();
        let kept = choice.up_to(self.unsynced.len());
        for change in &self.unsynced[..kept] {
            apply(&mut bytes, change);
        }
        if let Some(FileChange::Write { at, bytes: written }) = self.unsynced.get(kept) {
            let torn = choice.up_to(written.len());
            if torn > 0 {
                apply(
                    &mut bytes,
                    &FileChange::Write {
                        at: *at,
                        bytes: written[..torn].to_vec(),
                    },
                );
            }
        }
        bytes
    }
}

/// A seeded series of choices.
pub(super) struct Choice {
    seed: u64,
    random: Random,
}

impl Choice {
    pub(super) fn new(seed: u64) -> Self {
        let random = Random(seed);
        Choice { seed, random }
    }

    /// A number from 0 to `max`; the ends are likely.
    fn up_to(&mut self, max: usize) -> usize {
        match self.seed {
            0 => return 0,
            1 => return max,
            _ => {}
        }
        match self.random.number() % 4 {
            0 => 0,
            1 => max,
            _ => self.random.below(max + 1),
        }
    }
}
