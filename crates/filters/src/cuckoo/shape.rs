//! The size of a table.

use core::num::{NonZeroU8, NonZeroU64};

use super::place::FINGERPRINTS;

/// How many buckets a table has, and how large they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) buckets: NonZeroU64,
    /// Slots of a bucket, at least 1.
    pub(crate) bucket_size: u8,
    /// Of packed slots, in a filter with a chosen error rate. `None` in a filter of RedisBloom's
    /// kind, where a slot is a byte.
    pub(crate) packing: Option<Packing>,
}

/// How slots are packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packing {
    /// The bits of a slot.
    pub(crate) width: NonZeroU8,
    /// How many of them a slot of the filter's first table does not have.
    pub(crate) more: u8,
    /// The binary logarithm of how many times the buckets of the first table there are.
    pub(crate) shift: u8,
}

impl Shape {
    /// The slots, if they are countable.
    pub(crate) fn slots(self) -> Option<u64> {
        self.buckets.get().checked_mul(self.bucket_size.into())
    }

    /// The bytes of the slots, if they are countable.
    pub(crate) fn bytes(self) -> Option<u64> {
        let slots = self.slots()?;
        match self.packing {
            None => Some(slots),
            // Packed tables have an even number of buckets of 4 slots, so nothing is left over.
            Some(packing) => Some(slots.checked_mul(packing.width.get().into())? / 8),
        }
    }

    /// The most slots in use. With a chosen error rate it is 19 of 20, because the rate follows
    /// from the load.
    pub(crate) fn capacity(self) -> u64 {
        // Only tables that are in memory are asked.
        let slots = self.slots().unwrap_or(u64::MAX);
        match self.packing {
            None => slots,
            Some(_) => slots - slots.div_ceil(20),
        }
    }

    /// How many fingerprints there are.
    pub(crate) fn fingerprints(self) -> u64 {
        match self.packing {
            None => FINGERPRINTS,
            Some(packing) => packing.first_fingerprints() << packing.more,
        }
    }
}

impl Packing {
    /// How many fingerprints the first table of the filter has.
    pub(crate) fn first_fingerprints(self) -> u64 {
        (1 << (self.width.get() - self.more)) - 1
    }
}
