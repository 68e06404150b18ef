//! No service at all: everything is answered alike.

use super::service::{Answer, Reply, Request, Service};
use crate::events::BodyEvents;

/// Answers every request as configured, and every message of a call with an empty one.
#[derive(Debug)]
pub(super) struct Plain {
    answer: Answer,
}

impl Plain {
    pub(super) fn new(status: u16, headers: &[(String, String)], body: &[u8]) -> Self {
        let headers = headers.iter().cloned();
        let headers = headers.map(|(name, value)| (name.into(), value.into()));
        Self {
            answer: Answer {
                headers: headers.collect(),
                body: body.to_vec().into(),
                ..Answer::status(status)
            },
        }
    }
}

impl Service for Plain {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let mut events = BodyEvents::new(Some(request.content_type), None);
        events.take(request.body);
        self.answer.clone().taking(events.finish())
    }

    fn takes_all(&self) -> bool {
        true
    }

    /// A message is an event, with any content.
    fn message(&self, _method: &str, _message: &[u8]) -> Result<Reply, u32> {
        Ok(Reply {
            events: 1,
            ..Reply::default()
        })
    }
}
