//! Rotations of a log while it is written, by a step of the timeline.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use stillwell_plan::generator::WhenFull;

/// Moves or empties the log that a generator writes, while it writes.
#[derive(Clone, Debug, Default)]
pub struct FileControl {
    requests: Arc<Requests>,
}

#[derive(Debug, Default)]
struct Requests {
    latest: Mutex<Option<WhenFull>>,
    count: AtomicU64,
}

impl FileControl {
    /// Has the log moved or emptied before the next block.
    pub fn rotate(&self, how: WhenFull) {
        let latest = self.requests.latest.lock();
        *latest.unwrap_or_else(PoisonError::into_inner) = Some(how);
        self.requests.count.fetch_add(1, Ordering::Release);
    }

    /// Number of requests so far.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.requests.count.load(Ordering::Acquire)
    }

    /// The latest request, if there was one.
    #[must_use]
    pub fn latest(&self) -> Option<WhenFull> {
        let latest = self.requests.latest.lock();
        *latest.unwrap_or_else(PoisonError::into_inner)
    }
}
