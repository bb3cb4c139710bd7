//! What was done of a batch.

/// What was done of a batch, or of a stretch of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Requests that were executed.
    pub requests: usize,
    /// How many of them were answered with an error.
    pub failed: u64,
    /// Whether the batch is to end here.
    pub ends: bool,
}

impl Done {
    /// All of these requests.
    pub fn all<T>(requests: &[T], failed: u64) -> Self {
        Done {
            requests: requests.len(),
            failed,
            ends: false,
        }
    }

    /// Adds what was done of the next stretch.
    pub fn add(&mut self, next: Done) {
        self.requests += next.requests;
        self.failed += next.failed;
        self.ends = next.ends;
    }
}
