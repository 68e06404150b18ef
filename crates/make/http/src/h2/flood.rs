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
    unread_replies: UnreadReplies,
}

/// Replies that the peer may not have read, at most. They are counted in two parts, because the output is
/// rarely empty while much is sent.
#[derive(Debug, Default)]
struct UnreadReplies {
    /// Those before the mark.
    earlier: u32,
    /// Those behind it.
    later: u32,
    /// A position in the output of the connection.
    mark: u64,
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
            unread_replies: UnreadReplies::default(),
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
        let unread = &mut self.unread_replies;
        unread.later = unread.later.saturating_add(1);
        if unread.earlier.saturating_add(unread.later) > UNREAD_REPLIES_MAX {
            let what = "frames whose responses it does not read";
            return Err(H2ConnectionError::Flood { what });
        }
        Ok(())
    }

    /// The output was sent up to the position `sent` of `written`.
    pub(super) const fn output_was_sent(&mut self, sent: u64, written: u64) {
        let unread = &mut self.unread_replies;
        if sent >= unread.mark {
            unread.earlier = if sent == written { 0 } else { unread.later };
            unread.later = 0;
            unread.mark = written;
        }
    }

    /// An exchange was completed.
    pub(super) const fn relax(&mut self) {
        self.nuisances = self.nuisances.saturating_sub(1);
        self.resets = self.resets.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that is sent in parts and refilled is never empty.
    #[test]
    fn replies_that_were_sent_do_not_count_although_more_output_waits() {
        let mut flood = Flood::new(&Limits::default());
        let (mut sent, mut written) = (0, 1_000);
        for _ in 0..100_000 {
            flood.reply().unwrap();
            written += 100;
            sent += 100;
            flood.output_was_sent(sent, written);
        }
    }

    #[test]
    fn replies_that_are_not_sent_are_limited() {
        let mut flood = Flood::new(&Limits::default());
        flood.output_was_sent(0, 1_000);
        for _ in 0..UNREAD_REPLIES_MAX {
            flood.output_was_sent(0, 1_000);
            flood.reply().unwrap();
        }
        flood.reply().unwrap_err();
    }
}
