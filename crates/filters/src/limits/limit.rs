//! A threshold at which code takes another way, which tests draw anew.

#[cfg(feature = "drawn-limits")]
use core::sync::atomic::{AtomicUsize, Ordering};

/// A threshold at which code takes another way: a length above which a value is read in pieces, or
/// how many items are taken together. Both ways give the same answers.
///
/// It has its ordinary value, which is a constant to the compiler. With the feature `drawn-limits`
/// a test can give it another one, so that a small value goes the way of a large one. All threads
/// of the process then have that value.
#[derive(Debug)]
pub struct Limit {
    name: &'static str,
    least: usize,
    ordinary: usize,
    #[cfg(feature = "drawn-limits")]
    drawn: AtomicUsize,
}

impl Limit {
    /// A limit. It may have any value from the least to the ordinary one.
    #[must_use]
    pub const fn new(name: &'static str, least: usize, ordinary: usize) -> Limit {
        Limit {
            name,
            least,
            ordinary,
            #[cfg(feature = "drawn-limits")]
            drawn: AtomicUsize::new(ordinary),
        }
    }

    /// The value.
    #[inline]
    #[must_use]
    pub fn get(&self) -> usize {
        #[cfg(feature = "drawn-limits")]
        return self.drawn.load(Ordering::Relaxed);
        #[cfg(not(feature = "drawn-limits"))]
        self.ordinary
    }

    /// The value, as a length in a file.
    #[inline]
    #[must_use]
    pub fn get_u64(&self) -> u64 {
        self.get() as u64
    }

    /// What it limits.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The least value that it may have.
    #[must_use]
    pub fn least(&self) -> usize {
        self.least
    }

    /// The value that it has in a program.
    #[must_use]
    pub fn ordinary(&self) -> usize {
        self.ordinary
    }

    /// Gives it another value, or the nearest that it may have. Nothing else uses it meanwhile.
    /// False without the feature `drawn-limits`, unless it has that value.
    pub fn set(&self, value: usize) -> bool {
        let value = value.clamp(self.least, self.ordinary);
        #[cfg(feature = "drawn-limits")]
        self.drawn.store(value, Ordering::Relaxed);
        self.get() == value
    }
}
