//! Lateness of a send.

use stillwell_units::{Moment, Nanos};

/// Time from the intended to the sent moment; zero when early.
#[must_use]
pub const fn lateness(intended: Moment, sent: Moment) -> Nanos {
    sent.since(intended)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_early_send_is_not_late() {
        let lateness_ns = |intended, sent| lateness(Moment::new(intended), Moment::new(sent));
        assert_eq!(lateness_ns(5, 9), Nanos::new(4));
        assert_eq!(lateness_ns(9, 5), Nanos::ZERO);
    }
}
