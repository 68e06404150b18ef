//! Requests that one connection can begin, and its places in the pool.

use super::Http2Session;

impl Http2Session {
    /// Number of requests that can begin now. Places that the server does not admit yet belong
    /// to other connections.
    pub(super) fn room(&self) -> usize {
        if self.is_refused {
            return 0;
        }
        let left = usize::try_from(self.left).unwrap_or(usize::MAX);
        let streams = self.streams.saturating_sub(self.in_flight);
        // None once the server goes away.
        self.client.requests_available().min(streams).min(left)
    }

    pub(super) fn has_room(&self) -> bool {
        self.room() > 0
    }

    /// Returns true if no more requests will begin here.
    pub(super) fn is_closing(&self) -> bool {
        self.left == 0 || self.is_refused || self.client.going_away().is_some()
    }

    /// Withdraws the declared places for which there is no room any more. A place that was
    /// assigned a request is declared until the request is accepted.
    pub(super) fn withdraw_surplus(&mut self) {
        let surplus = self.declared.saturating_sub(self.room());
        if surplus > 0 {
            let mut slots = self.pool.slots.borrow_mut();
            self.declared -= slots.withdraw_places(self.slot, surplus);
        }
    }
}
