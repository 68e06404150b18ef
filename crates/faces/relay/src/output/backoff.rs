//! Waiting longer after each failure.

use std::time::Duration;

use tokio::time::sleep;

const FIRST: Duration = Duration::from_millis(20);
const LONGEST: Duration = Duration::from_secs(2);

/// The pause before the next try. A task that waits is dropped when the relay ends.
#[derive(Debug)]
pub(super) struct Backoff {
    next: Duration,
}

impl Backoff {
    pub(super) const fn new() -> Self {
        Self { next: FIRST }
    }

    /// Waits, and doubles the next wait.
    pub(super) async fn wait(&mut self) {
        sleep(self.next).await;
        self.next = (self.next * 2).min(LONGEST);
    }

    /// Something worked.
    pub(super) const fn reset(&mut self) {
        self.next = FIRST;
    }
}
