//! Pauses that come back.

use std::cell::Cell;
use std::io;

use stillwell_scope::{Token, clock};
use stillwell_wire::Timer;
use tokio::select;
use tokio::sync::Notify;

use crate::options::Stall;

/// Lets processing pass, save while it is stalled.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: Cell<bool>,
    opened: Notify,
}

impl Gate {
    /// Waits while processing is stalled.
    pub(crate) async fn pass(&self) {
        while self.closed.get() {
            self.opened.notified().await;
        }
    }

    /// Closes and opens the gate as `stall` says until `token` is cancelled, and leaves it
    /// open.
    pub(crate) async fn keep(&self, stall: Stall, token: &Token) -> io::Result<()> {
        let mut timer = Timer::new()?;
        let schedule = async {
            let mut begin = clock::now() + stall.every();
            loop {
                timer.until(begin).await;
                self.closed.set(true);
                timer.until(begin + stall.length()).await;
                self.open();
                begin = begin + stall.every();
            }
        };
        select! {
            () = token.cancelled() => {}
            () = schedule => {}
        }
        self.open();
        Ok(())
    }

    fn open(&self) {
        self.closed.set(false);
        self.opened.notify_waiters();
    }
}
