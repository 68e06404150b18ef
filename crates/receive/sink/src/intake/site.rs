//! The contract between an intake and its connections; it knows no service.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::SinkShard;
use stillwell_plan::step::Refusal;
use stillwell_units::{Moment, Nanos};

use super::memory::BodyMemory;
use super::recorded::Recorded;
use super::service::{Answer, Service};
use crate::ledger::Stamps;
use crate::steering::{Active, Steering};

/// State that all connections of an intake share.
#[derive(Debug)]
pub(crate) struct Intake {
    pub(super) service: Box<dyn Service>,
    /// Between the end of a request and its answer.
    pub(super) delay: Nanos,
    /// Series that it records, if it does.
    pub(super) recorded: Option<Arc<Recorded>>,
    /// Memory for bodies that are not whole yet.
    pub(super) memory: BodyMemory,
}

impl Intake {
    /// Series that it records, if it does.
    pub(crate) fn recorded(&self) -> Option<Arc<Recorded>> {
        self.recorded.clone()
    }
}

/// State that a connection needs besides its own bytes.
#[derive(Clone, Debug)]
pub(super) struct Site {
    pub(super) intake: Arc<Intake>,
    pub(super) shard: Arc<SinkShard>,
    /// Looks through bodies.
    pub(super) stamps: Rc<RefCell<Stamps>>,
    /// Changes of the answers, if there are any.
    pub(super) steering: Option<Arc<Steering>>,
    /// Set where the connection is to be closed without another word.
    pub(super) is_cut: Rc<Cell<bool>>,
}

/// When an answer is due; until then its request counts as active.
#[derive(Debug)]
pub(super) struct Due {
    pub(super) moment: Moment,
    _active: Option<Active>,
}

impl Site {
    pub(super) fn service(&self) -> &dyn Service {
        self.intake.service.as_ref()
    }

    /// Enters the stamps of a request or message that the service has not refused: those in its
    /// `body`, which is without compression, and `token`, the header for stamps. That header is
    /// empty where there is none.
    pub(super) fn arrived(&self, token: &[u8], body: &[u8]) {
        let mut stamps = self.stamps.borrow_mut();
        stamps.feed(body);
        stamps.end();
        stamps.header(token, body);
    }

    /// When the answer to what came `now` is due.
    pub(super) fn due(&self, now: Moment) -> Due {
        let active = self.steering.as_ref().map(|steering| steering.begin(1));
        let delay = self.steering.as_ref().and_then(|steering| steering.delay());
        Due {
            moment: now + delay.unwrap_or(self.intake.delay),
            _active: active,
        }
    }

    /// Returns the refusal of the request that begins now, if there is one.
    pub(super) fn refusal(&self) -> Option<Refusal> {
        self.steering.as_ref()?.refusal()
    }

    /// The answer to a request that was refused; none where the connection is closed.
    pub(super) fn refused(&self, with: Refusal) -> Answer {
        self.shard.messages.add(1);
        self.shard.refused.add(1);
        match with {
            Refusal::Status {
                status,
                retry_after,
            } => {
                let answer = Answer::status(status);
                match retry_after {
                    Some(seconds) => answer.header("retry-after", seconds.to_string()),
                    None => answer,
                }
            }
            Refusal::Close => {
                self.is_cut.set(true);
                Answer::status(503)
            }
        }
    }
}

impl Due {
    /// Of an answer to no request, or to one that is active already.
    pub(super) const fn at(moment: Moment) -> Self {
        Self {
            moment,
            _active: None,
        }
    }
}
