//! Requests the early end of a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use stillwell_scope::Token;

/// Requests the early end of a run; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Interrupt {
    signal: Arc<AtomicI32>,
    token: Token,
}

impl Interrupt {
    /// Not raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the end because of `signal`. The first one counts.
    pub fn raise(&self, signal: i32) {
        // A second signal changes nothing: the run is on its way already.
        if self
            .signal
            .compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
        {
            self.token.cancel();
        }
    }

    /// The signal, if it was raised.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        Some(self.signal.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
    }

    /// Cancelled when it is raised.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_signal_counts() {
        let interrupt = Interrupt::new();
        assert_eq!(interrupt.signal(), None);
        let clone = interrupt.clone();
        clone.raise(15);
        clone.raise(2);
        assert_eq!(interrupt.signal(), Some(15));
        assert!(interrupt.token().is_cancelled());
    }
}
