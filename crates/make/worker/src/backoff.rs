//! Pauses before a connection is tried again.

use stillwell_units::Nanos;

const FIRST: Nanos = Nanos::from_millis(10);
const LONGEST: Nanos = Nanos::SECOND;

/// Pauses that double from 10 ms to 1 s.
#[derive(Debug)]
pub struct Backoff {
    next: Nanos,
}

impl Default for Backoff {
    fn default() -> Self {
        Self::new()
    }
}

impl Backoff {
    /// The first pause comes next.
    #[must_use]
    pub const fn new() -> Self {
        Self { next: FIRST }
    }

    /// The connection proved good: the next pause is the first again.
    pub const fn reset(&mut self) {
        self.next = FIRST;
    }

    /// Returns the next pause.
    pub fn pause(&mut self) -> Nanos {
        let pause = self.next;
        self.next = (pause + pause).min(LONGEST);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_to_a_second_and_begin_again() {
        let mut backoff = Backoff::new();
        let pauses: Vec<u64> = (0..9)
            .map(|_| backoff.pause().as_u64() / 1_000_000)
            .collect();
        assert_eq!(pauses, [10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        backoff.reset();
        assert_eq!(backoff.pause(), FIRST);
    }
}
