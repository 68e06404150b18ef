//! A block a request, again where the answer says so: until it is acknowledged or
//! refused permanently, or as long as the receiver is busy.

use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::{RequestTemplate, Target};
use stillwell_metric::Outcome;
use stillwell_plan::generator::AcknowledgedPlan;
use stillwell_scope::Tasks;
use stillwell_units::Nanos;
use stillwell_worker::{GRACE, Opener, TransportError, Worker};

use crate::call::{CallAnswer, post};
use crate::dialogue::{After, Dialogue, run_dialogue};

/// The answers after which a request is sent again, and the pauses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Statuses after which it may be taken later.
    pub(crate) may_pass: fn(u16) -> bool,
    /// Maximum number of times that it is sent again.
    pub(crate) retries: u32,
    /// The pause before it is sent again first; each later one is twice as long.
    pub(crate) pause_first: Nanos,
    pub(crate) pause_longest: Nanos,
    /// True where events count as acknowledged or refused, and requests without an answer are
    /// sent again.
    pub(crate) keeps_account: bool,
}

impl Rules {
    /// Sends again after every temporary refusal, and counts acknowledgements.
    pub(crate) const fn acknowledged(retries: u32) -> Self {
        Self {
            may_pass: |status| matches!(status, 408 | 429 | 500..=599),
            retries,
            pause_first: Nanos::from_millis(10),
            pause_longest: Nanos::from_secs(1),
            keeps_account: true,
        }
    }

    /// Returns the pause before a request is sent again that was sent `again` times before and
    /// answered with `status`; `None` where it is not.
    pub(crate) fn again_after(&self, status: u16, again: u32) -> Option<Nanos> {
        let is_again = (self.may_pass)(status) && again < self.retries;
        let duplicated = self.pause_first.as_u64().saturating_mul(1 << again.min(16));
        is_again.then(|| Nanos::new(duplicated).min(self.pause_longest))
    }
}

/// The common part of all connections of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Posts {
    shared: Arc<PostShared>,
}

#[derive(Debug)]
struct PostShared {
    /// `host:port` to dial.
    address: String,
    head: RequestTemplate,
    rules: Rules,
    /// Time to wait for answers after the last request.
    end_timeout: Nanos,
}

impl Posts {
    /// Requests with these `headers` that are to be acknowledged.
    pub(crate) fn new(
        plan: &AcknowledgedPlan,
        headers: &[(String, String)],
    ) -> Result<Self, TransportError> {
        let target: Target = plan.url.parse()?;
        let headers = headers.iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let rules = Rules::acknowledged(plan.retries);
        let head = post(&target, target.path_and_query(), &headers)?;
        Ok(Self::with(&target, head, rules, plan.end_timeout))
    }

    /// Requests for `path`, sent again by `rules`.
    pub(crate) fn by_rules(
        target: &Target,
        path: &str,
        headers: &[(&str, &str)],
        rules: Rules,
    ) -> Result<Self, TransportError> {
        let head = post(target, path, headers)?;
        Ok(Self::with(target, head, rules, Nanos::ZERO))
    }

    fn with(target: &Target, head: RequestTemplate, rules: Rules, end_timeout: Nanos) -> Self {
        Self {
            shared: Arc::new(PostShared {
                address: target.dial_address(),
                head,
                rules,
                end_timeout,
            }),
        }
    }
}

impl Opener for Posts {
    fn grace(&self) -> Nanos {
        self.shared.end_timeout.max(GRACE)
    }

    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        for _ in 0..connections {
            tasks.spawn(send(Rc::clone(worker), self.clone()));
        }
    }
}

/// One connection, until the worker ends.
async fn send(worker: Rc<Worker>, posts: Posts) {
    let dialogue = PostDialogue {
        worker,
        shared: posts.shared,
    };
    run_dialogue(&dialogue).await;
}

#[derive(Debug)]
struct PostDialogue {
    worker: Rc<Worker>,
    shared: Arc<PostShared>,
}

impl Dialogue for PostDialogue {
    fn worker(&self) -> &Worker {
        &self.worker
    }

    fn address(&self) -> &str {
        &self.shared.address
    }

    fn head(&self) -> &RequestTemplate {
        &self.shared.head
    }

    fn answered(&self, answer: CallAnswer, _body: &[u8], events: u64, again: u32) -> After {
        let (shard, rules) = (&self.worker.shard, &self.shared.rules);
        if let Some(pause) = rules.again_after(answer.status, again) {
            return After::Again(pause);
        }
        if rules.keeps_account {
            let is_taken = Outcome::of_status(answer.status) == Outcome::Ok;
            let count = match is_taken {
                true => &shard.events_acknowledged,
                false => &shard.events_refused,
            };
            count.add(events);
        }
        After::Next
    }

    fn is_again_after(&self, status: u16, again: u32) -> bool {
        self.shared.rules.again_after(status, again).is_some()
    }

    fn unanswered(&self, again: u32) -> bool {
        let rules = &self.shared.rules;
        rules.keeps_account && again < rules.retries
    }
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
            let pause = Rules::acknowledged(10).again_after(status, again);
            let expected = milliseconds.map(Nanos::from_millis);
            assert_eq!(pause, expected, "{status} {again}");
        }
    }
}
