//! Traces for Datadog's agent: a block a request, sent again where the agent says
//! that it has too much to do.

use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::{RequestTemplate, Target};
use stillwell_plan::{GeneratorPlan, PayloadFormat, TraceEncoding};
use stillwell_units::Nanos;

use crate::call::{Answer, post};
use crate::talk::{After, Dialogue, talk};
use crate::transport::LineError;
use crate::worker::Worker;

/// Where the agent takes traces of this version.
const PATH: &str = "/v0.4/traces";

/// The pause before a request is sent again first; each later one is twice as
/// long.
const PAUSE_FIRST: Nanos = Nanos::from_millis(100);
const PAUSE_LONGEST: Nanos = Nanos::from_millis(6400);

/// What all connections of a generator have in common.
#[derive(Clone, Debug)]
pub(crate) struct TraceAgent {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    /// `host:port` to dial.
    address: String,
    head: RequestTemplate,
    retries: u32,
}

impl TraceAgent {
    pub(crate) fn new(plan: &GeneratorPlan, url: &str, retries: u32) -> Result<Self, LineError> {
        let target: Target = url.parse()?;
        let content_type = match &plan.payload.format {
            PayloadFormat::TraceAgent(traces) if traces.encoding == TraceEncoding::Json => {
                "application/json"
            }
            _ => "application/msgpack",
        };
        let headers = [
            ("content-type", content_type),
            // Else it says 200 to whatever it drops.
            ("datadog-send-real-http-status", "true"),
        ];
        Ok(Self {
            shared: Arc::new(Shared {
                address: target.dial_address(),
                head: post(&target, PATH, &headers)?,
                retries,
            }),
        })
    }
}

/// One connection, until the worker ends.
pub(crate) async fn send(worker: Rc<Worker>, agent: TraceAgent) {
    let talking = Talk {
        worker,
        shared: agent.shared,
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

    fn answered(&self, answer: Answer, _body: &[u8], _events: u64, again: u32) -> After {
        let is_busy = matches!(answer.status, 429 | 503);
        if is_busy && again < self.shared.retries {
            After::Again(pause(again))
        } else {
            After::Next
        }
    }
}

/// How long to wait before a request that was sent `again` times before.
fn pause(again: u32) -> Nanos {
    let doubled = PAUSE_FIRST.as_u64().saturating_mul(1 << again.min(16));
    Nanos::new(doubled).min(PAUSE_LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let pauses: Vec<u64> = (0..8)
            .map(|again| pause(again).as_u64() / 1_000_000)
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 6400]);
    }
}
