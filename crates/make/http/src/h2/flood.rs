//! Peers that make work and give none.

use super::{H2ConnectionError, Limits};

/// Answers that are laid out while the peer reads none of them.
const UNREAD_REPLIES_MAX: u32 = 1_000;

/// Counts what costs us something and is of no use. There is no clock here: what
/// is useful is what pays.
#[derive(Debug)]
pub(super) struct Flood {
    nuisances: u32,
    nuisances_max: u32,
    resets: u32,
    resets_max: u32,
    unread_replies: u32,
}

impl Flood {
    pub(super) fn new(limits: &Limits) -> Self {
        // A client that stops may reset all that is under way.
        let under_way = limits.concurrent_streams_max.saturating_mul(2);
        Self {
            nuisances: 0,
            nuisances_max: limits.nuisances_max,
            resets: 0,
            resets_max: limits.resets_max.max(under_way),
            unread_replies: 0,
        }
    }

    /// A frame without use.
    pub(super) const fn nuisance(&mut self, what: &'static str) -> Result<(), H2ConnectionError> {
        self.nuisances = self.nuisances.saturating_add(1);
        if self.nuisances > self.nuisances_max {
            return Err(H2ConnectionError::Flood { what });
        }
        Ok(())
    }

    /// A stream that came to nothing.
    pub(super) const fn reset(&mut self) -> Result<(), H2ConnectionError> {
        self.resets = self.resets.saturating_add(1);
        if self.resets > self.resets_max {
            let what = "streams that it resets or that must be reset";
            return Err(H2ConnectionError::Flood { what });
        }
        Ok(())
    }

    /// A frame that has to be answered.
    pub(super) const fn reply(&mut self) -> Result<(), H2ConnectionError> {
        self.unread_replies += 1;
        if self.unread_replies > UNREAD_REPLIES_MAX {
            let what = "frames whose responses it does not read";
            return Err(H2ConnectionError::Flood { what });
        }
        Ok(())
    }

    pub(super) const fn replies_were_sent(&mut self) {
        self.unread_replies = 0;
    }

    /// An exchange was completed.
    pub(super) const fn relax(&mut self) {
        self.nuisances = self.nuisances.saturating_sub(1);
        self.resets = self.resets.saturating_sub(1);
    }
}
