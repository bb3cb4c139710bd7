//! Inputs of the target `cuckoo_vs_model`, and what must be true of them: any sequence of inserts,
//! removals, compactions, chunks and captures of a cuckoo filter goes as a model says that is slow
//! and obvious. After each step all slots and counts are the same, and a capture is the filter as
//! it was when it began.

use arbitrary::{Arbitrary, Unstructured};
use everbloom::CuckooFilter;

use crate::slow::Slow;

#[derive(Arbitrary, Debug)]
pub(crate) struct Input {
    capacity: u8,
    bucket_size: u8,
    max_kicks: u8,
    expansion: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Insert(u8),
    InsertIfAbsent(u8),
    Remove(u8),
    Compact,
    Load(u16, Vec<u8>),
    Capture,
}

fn slots(filter: &CuckooFilter) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some(chunk) = filter.stream_chunk(out.len() as u64, usize::MAX) {
        out.extend_from_slice(&chunk);
    }
    out
}

impl Input {
    /// The input of these bytes, read as libFuzzer's macro does.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        Self::arbitrary_take_rest(Unstructured::new(bytes)).ok()
    }

    pub(crate) fn check(self) {
        let builder = CuckooFilter::builder()
            .slots(self.capacity.into())
            .bucket_size(self.bucket_size % 8 + 1)
            .max_kicks(u16::from(self.max_kicks) + 1)
            .expansion((self.expansion % 3).into());
        let mut filter = builder.build().unwrap();
        let mut slow = Slow::new(&filter);
        let mut capture: Option<(CuckooFilter, CuckooFilter, u64)> = None;
        for step in self.steps {
            match step {
                // More tables would only be slow.
                Step::Insert(_) | Step::InsertIfAbsent(_) if filter.tables() > 12 => {}
                Step::Insert(item) => {
                    let item = u16::from(item);
                    assert_eq!(
                        filter.insert(&item.to_le_bytes()).is_ok(),
                        slow.insert(item)
                    );
                }
                Step::InsertIfAbsent(item) => {
                    let item = u16::from(item);
                    let absent = slow.count(item) == 0;
                    let expected = (!absent).then_some(false);
                    let expected = expected.or_else(|| slow.insert(item).then_some(true));
                    assert_eq!(filter.insert_if_absent(&item.to_le_bytes()).ok(), expected);
                }
                Step::Remove(item) => {
                    let item = u16::from(item);
                    assert_eq!(filter.remove(&item.to_le_bytes()), slow.remove(item));
                }
                Step::Compact => {
                    filter.compact();
                    slow.compact(true);
                }
                Step::Load(at, data) => {
                    let at = u64::from(at) % (filter.slots() + 8);
                    assert_eq!(filter.load_chunk(at, &data).is_ok(), slow.load(at, &data));
                }
                Step::Capture => match &mut capture {
                    None => {
                        filter.begin_capture(1, 0..filter.slots());
                        let parts = filter.parts();
                        let captured = CuckooFilter::from_parts(&parts, u64::MAX).unwrap();
                        capture = Some((captured, filter.clone(), 0));
                    }
                    Some((captured, then, at)) => {
                        let mut piece = Vec::new();
                        if filter.capture_next(1, &mut piece) {
                            captured.load_chunk(*at, &piece).unwrap();
                            *at += piece.len() as u64;
                        } else {
                            assert!(captured == then);
                            capture = None;
                        }
                    }
                },
            }
            assert_eq!(slots(&filter), slow.tables.concat());
            assert_eq!((filter.len(), filter.removed()), (slow.items, slow.removed));
        }
    }
}
