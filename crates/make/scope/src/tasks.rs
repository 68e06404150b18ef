//! Tasks of one worker, such as one per connection.

use std::future::Future;

use tokio::task::{AbortHandle, JoinError, JoinSet};

/// The tasks that one worker has started, at most `limit` at a time. Dropping it
/// ends them all.
#[derive(Debug)]
pub struct Tasks {
    set: JoinSet<()>,
    limit: usize,
}

impl Tasks {
    /// No tasks yet, and never more than `limit` at a time.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            set: JoinSet::new(),
            limit,
        }
    }

    /// Returns true if one more task may be started.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.set.len() < self.limit
    }

    /// Returns the number of tasks whose end was not seen yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.set.len()
    }

    /// Returns true if no task is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.set.is_empty()
    }

    /// Starts `task` on the calling worker's thread. The handle aborts this task alone.
    ///
    /// # Panics
    /// If called outside a worker of a [`crate::Scope`].
    #[expect(
        clippy::disallowed_methods,
        reason = "tasks of all crates start through this function"
    )]
    pub fn spawn(&mut self, task: impl Future<Output = ()> + 'static) -> AbortHandle {
        self.set.spawn_local(task)
    }

    /// Waits until one has ended; at once if there is none. Cancel-safe.
    pub async fn next_end(&mut self) {
        if let Some(ended) = self.set.join_next().await {
            pass_panic_on(ended);
        }
    }

    /// Forgets those that have ended.
    pub fn reap(&mut self) {
        while let Some(ended) = self.set.try_join_next() {
            pass_panic_on(ended);
        }
    }

    /// Aborts all tasks.
    pub async fn cut(&mut self) {
        self.set.shutdown().await;
    }

    /// Waits until all have ended. Cancel-safe.
    pub async fn all_ended(&mut self) {
        while !self.set.is_empty() {
            self.next_end().await;
        }
    }
}

fn pass_panic_on(ended: Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        std::panic::resume_unwind(error.into_panic());
    }
}
