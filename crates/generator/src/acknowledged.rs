//! A block a request, again until it is acknowledged or refused for good.

use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::{RequestTemplate, Target};
use stillwell_metric::Outcome;
use stillwell_units::Nanos;

use crate::call::{Answer, post};
use crate::talk::{After, Dialogue, talk};
use crate::transport::LineError;
use crate::worker::Worker;

/// The pause before a request is sent again first; each later one is twice as
/// long.
const PAUSE_FIRST: Nanos = Nanos::from_millis(10);
const PAUSE_LONGEST: Nanos = Nanos::from_secs(1);

/// What all connections of a generator have in common.
#[derive(Clone, Debug)]
pub(crate) struct Posts {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `host:port` to dial.
    address: String,
    head: RequestTemplate,
    retries: u32,
}

impl Posts {
    pub(crate) fn new(
        url: &str,
        headers: &[(String, String)],
        retries: u32,
    ) -> Result<Self, LineError> {
        let target: Target = url.parse()?;
        let headers = headers.iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        Ok(Self {
            shared: Arc::new(Shared {
                address: target.dial_address(),
                head: post(&target, target.path_and_query(), &headers)?,
                retries,
            }),
        })
    }
}

/// One connection, until the worker ends.
pub(crate) async fn send(worker: Rc<Worker>, posts: Posts) {
    let talking = Talk {
        worker,
        shared: posts.shared,
    };
    talk(&talking).await;
}

#[derive(Debug)]
struct Talk {
    worker: Rc<Worker>,
    shared: Arc<Shared>,
}

impl Dialogue for Talk {
    fn worker(&self) -> &Worker {
        &self.worker
    }

    fn address(&self) -> &str {
        &self.shared.address
    }

    fn head(&self) -> &RequestTemplate {
        &self.shared.head
    }

    fn answered(&self, answer: Answer, _body: &[u8], events: u64, again: u32) -> After {
        let shard = &self.worker.shard;
        if Outcome::of_status(answer.status) == Outcome::Ok {
            shard.events_acknowledged.add(events);
            return After::Next;
        }
        if let Some(pause) = again_after(answer.status, again, self.shared.retries) {
            return After::Again(pause);
        }
        shard.events_refused.add(events);
        After::Next
    }

    fn unanswered(&self, again: u32) -> bool {
        again < self.shared.retries
    }
}

/// How long to wait before a request is sent again that was sent `again` times
/// before and answered with `status`; `None` where it is not.
pub(crate) fn again_after(status: u16, again: u32, retries: u32) -> Option<Nanos> {
    let may_pass = matches!(status, 408 | 429 | 500..=599);
    (may_pass && again < retries).then(|| pause(again))
}

fn pause(again: u32) -> Nanos {
    let doubled = PAUSE_FIRST.as_u64().saturating_mul(1 << again.min(16));
    Nanos::new(doubled).min(PAUSE_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_sent_again_and_only_so_often() {
        for (status, again, milliseconds) in [
            (503, 0, Some(10)),
            (429, 1, Some(20)),
            (408, 2, Some(40)),
            (500, 9, Some(1000)),
            (503, 10, None),
            (400, 0, None),
            (413, 0, None),
            (301, 0, None),
        ] {
            let pause = again_after(status, again, 10);
            let wanted = milliseconds.map(Nanos::from_millis);
            assert_eq!(pause, wanted, "{status} {again}");
        }
    }
}
