//! What was done of a batch.

/// What was done of a batch, or of a stretch of it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Done {
    /// Requests that were executed.
    pub requests: usize,
    /// How many of them were answered with an error.
    pub failed: u64,
}

impl Done {
    /// All of these requests.
    pub fn all<T>(requests: &[T], failed: u64) -> Self {
        Done {
            requests: requests.len(),
            failed,
        }
    }

    /// Adds what was done of the next stretch, which has so many requests; whether all of it was.
    pub fn add(&mut self, next: Done, requests: usize) -> bool {
        self.requests += next.requests;
        self.failed += next.failed;
        next.requests == requests
    }
}
