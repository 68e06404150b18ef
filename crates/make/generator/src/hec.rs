//! Splunk's HTTP event collector: a block a request, each connection a channel of its
//! own; where acknowledgements are enabled, a second connection queries the state of the
//! events.

mod answer;
mod pending;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stillwell_http::{RequestTemplate, Target};
use stillwell_metric::Outcome;
use stillwell_plan::generator::{AcknowledgedPlan, HecAcknowledgements};
use stillwell_plan::payload::HecEncoding;
use stillwell_plan::{GeneratorPlan, PayloadFormat};
use stillwell_scope::{Tasks, Token, clock};
use stillwell_units::{Nanos, Seed};
use stillwell_worker::{GRACE, Opener, TransportError, Wait, Worker};
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::acknowledged::Rules;
use crate::call::{CallAnswer, CallConnection, Caller, Unscheduled, post};
use crate::dialogue::{self, After, Dialogue};
use pending::{Kept, Pending};

/// Path for lines of text.
const RAW_PATH: &str = "/services/collector/raw";
/// Path for JSON objects.
const EVENT_PATH: &str = "/services/collector/event";
/// Path for queries of acknowledgements.
const ACK_PATH: &str = "/services/collector/ack";

/// Maximum interval of the queries, once all is sent.
const POLL_INTERVAL_AT_THE_END: Nanos = Nanos::from_millis(50);

/// The common part of all channels of a generator.
#[derive(Clone, Debug)]
pub(crate) struct Hec {
    shared: Arc<HecShared>,
    /// Maximum number of times that a refused request is sent again.
    retries: u32,
    /// Time to query acknowledgements after the last request.
    end_timeout: Nanos,
}

#[derive(Debug)]
struct HecShared {
    /// `host:port` to dial.
    address: String,
    channels: Vec<Channel>,
    /// Number of channels that were taken.
    taken: AtomicUsize,
    acknowledgements: Option<HecAcknowledgements>,
}

/// The heads of one channel's requests.
#[derive(Debug)]
struct Channel {
    events: RequestTemplate,
    questions: RequestTemplate,
}

impl Channel {
    fn new(target: &Target, token: &str, id: &str, path: &str) -> Result<Self, TransportError> {
        let authorization = format!("Splunk {token}");
        let headers = [
            ("authorization", authorization.as_str()),
            ("x-splunk-request-channel", id),
        ];
        Ok(Self {
            events: post(target, path, &headers)?,
            questions: post(target, &format!("{ACK_PATH}?channel={id}"), &headers)?,
        })
    }
}

impl Hec {
    pub(crate) fn new(
        plan: &GeneratorPlan,
        url: &str,
        token: &str,
        acknowledgements: Option<HecAcknowledgements>,
    ) -> Result<Self, TransportError> {
        let target: Target = url.parse()?;
        let path = match plan.payload.format {
            PayloadFormat::SplunkHec {
                encoding: HecEncoding::Json,
            } => EVENT_PATH,
            _ => RAW_PATH,
        };
        let channels = (0..plan.concurrency.connections())
            .map(|number| Channel::new(&target, token, &channel_id(&plan.seed, number), path))
            .collect::<Result<_, _>>()?;
        Ok(Self {
            shared: Arc::new(HecShared {
                address: target.dial_address(),
                channels,
                taken: AtomicUsize::new(0),
                acknowledgements,
            }),
            retries: 0,
            end_timeout: Nanos::ZERO,
        })
    }

    /// The same, which sends requests again that were refused for a while or got no
    /// answer.
    pub(crate) fn acknowledged(self, plan: &AcknowledgedPlan) -> Self {
        Self {
            retries: plan.retries,
            end_timeout: plan.end_timeout,
            ..self
        }
    }

    /// Starts the tasks of one more connection.
    fn open_one(&self, worker: &Rc<Worker>, tasks: &mut Tasks) {
        let taken = self.shared.taken.fetch_add(1, Ordering::Relaxed);
        let session = Rc::new(HecSession {
            worker: Rc::clone(worker),
            shared: Arc::clone(&self.shared),
            channel: taken % self.shared.channels.len(),
            retries: self.retries,
            pending: RefCell::default(),
            crowded: Notify::new(),
            sent_all: Token::new(),
        });
        if let Some(how) = self.shared.acknowledgements {
            tasks.spawn(poll_acks(Rc::clone(&session), how));
        }
        tasks.spawn(send(session));
    }
}

impl Opener for Hec {
    fn grace(&self) -> Nanos {
        self.end_timeout.max(GRACE)
    }

    fn tasks_of(&self, connections: u16) -> usize {
        usize::from(connections) * (1 + usize::from(self.shared.acknowledgements.is_some()))
    }

    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        worker.shard.requests_max.add(u64::from(connections));
        for _ in 0..connections {
            self.open_one(worker, tasks);
        }
    }
}

/// An identifier as Splunk wants them: a UUID of version 4.
fn channel_id(seed: &Seed, number: u16) -> String {
    let seed = seed.derive("channel", u64::from(number));
    let mut bytes: [u8; 16] = std::array::from_fn(|at| seed.bytes()[at]);
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

/// One channel.
#[derive(Debug)]
struct HecSession {
    worker: Rc<Worker>,
    shared: Arc<HecShared>,
    channel: usize,
    retries: u32,
    pending: RefCell<Pending>,
    /// Number of waiting events at which acknowledgements are polled.
    crowded: Notify,
    /// Nothing more will be sent.
    sent_all: Token,
}

impl HecSession {
    fn channel(&self) -> &Channel {
        &self.shared.channels[self.channel]
    }

    /// A request of so many events is taken whose acknowledgement is `id`.
    fn taken(&self, id: u64, events: u64) {
        let mut pending = self.pending.borrow_mut();
        let lost = pending.add(id, events, clock::now());
        if pending.is_crowded() {
            self.crowded.notify_one();
        }
        drop(pending);
        self.worker.shard.acks_pending.add(1);
        self.ended(lost, Kept::default());
    }

    /// So many wait no more, since they are lost or acknowledged.
    fn ended(&self, lost: u64, kept: Kept) {
        let shard = &self.worker.shard;
        shard.acks_lost.add(lost);
        shard.acks_received.add(kept.requests);
        shard.events_acknowledged.add(kept.events);
        let ended = lost + kept.requests;
        shard.acks_pending.set(shard.acks_pending.total() - ended);
        self.worker.finish_slices(ended);
    }

    /// Waits until it is time to poll; whether nothing more will be sent.
    async fn until_poll(&self, every: Nanos) -> bool {
        let crowded = async {
            while !self.pending.borrow().is_crowded() {
                self.crowded.notified().await;
            }
        };
        // All arms are cancel-safe: they wait and do nothing else.
        tokio::select! {
            biased;
            () = self.sent_all.cancelled() => true,
            () = crowded => false,
            () = sleep(every.as_duration()) => false,
        }
    }
}

impl Dialogue for HecSession {
    fn worker(&self) -> &Worker {
        &self.worker
    }

    fn address(&self) -> &str {
        &self.shared.address
    }

    fn head(&self) -> &RequestTemplate {
        &self.channel().events
    }

    /// Notes what is to be acknowledged.
    fn answered(&self, answer: CallAnswer, body: &[u8], events: u64, again: u32) -> After {
        let is_taken = Outcome::of_status(answer.status) == Outcome::Ok;
        let shard = &self.worker.shard;
        if !is_taken {
            let rules = Rules::acknowledged(self.retries);
            if let Some(pause) = rules.again_after(answer.status, again) {
                return After::Again(pause);
            }
            shard.events_refused.add(events);
            return After::Next;
        }
        if self.shared.acknowledgements.is_none() {
            return After::Next;
        }
        let Some(id) = answer::ack_id(body) else {
            // Its state will never be known.
            shard.acks_lost.add(1);
            return After::Next;
        };
        self.taken(id, events);
        After::Later
    }

    fn is_again_after(&self, status: u16, again: u32) -> bool {
        let rules = Rules::acknowledged(self.retries);
        rules.again_after(status, again).is_some()
    }

    fn unanswered(&self, again: u32) -> bool {
        again < self.retries
    }
}

/// One connection, until the worker ends.
async fn send(session: Rc<HecSession>) {
    let _at_the_end = session.sent_all.clone().drop_guard();
    dialogue::run_dialogue(session.as_ref()).await;
}

/// Queries the state of the requests at an interval; once all are sent, over and over
/// until none waits or the worker has no more time. Requests that wait then are neither
/// acknowledged nor lost.
async fn poll_acks(session: Rc<HecSession>, how: HecAcknowledgements) {
    let worker = &session.worker;
    let mut poller = AckPoller {
        caller: Caller::new(),
        link: None,
        question: Vec::new(),
    };
    let mut is_last = false;
    loop {
        if is_last {
            let pause = how.every.min(POLL_INTERVAL_AT_THE_END);
            worker.wait(Wait::Other, sleep(pause.as_duration())).await;
        } else {
            is_last = worker
                .wait(Wait::Other, session.until_poll(how.every))
                .await;
        }
        let lost = session
            .pending
            .borrow_mut()
            .expire(clock::now(), how.timeout);
        session.ended(lost, Kept::default());
        poller.round(&session).await;
        if is_last && session.pending.borrow().is_empty() {
            return;
        }
    }
}

/// Buffers and the connection that queries use again.
#[derive(Debug)]
struct AckPoller {
    caller: Caller,
    /// The connection, where it was kept.
    link: Option<CallConnection>,
    question: Vec<u8>,
}

impl AckPoller {
    /// Queries all requests that wait when it begins, unless a query has no answer.
    async fn round(&mut self, session: &HecSession) {
        let shard = &session.worker.shard;
        let mut round = session.pending.borrow_mut().round();
        loop {
            let question = session.pending.borrow().question(&round);
            let Some(question) = question else {
                return;
            };
            answer::write_question(session.pending.borrow().ids(&question), &mut self.question);
            let kept = put(session, &mut self.caller, &mut self.link, &self.question).await;
            let kept = match kept {
                Ok(kept) => kept,
                Err(Outcome::TimedOut) => return shard.ack_questions_late.add(1),
                Err(_) => return shard.ack_questions_failed.add(1),
            };
            let kept = session.pending.borrow_mut().acknowledge(&question, &kept);
            session.ended(0, kept);
            shard.ack_questions_ok.add(1);
            round.start = question.end;
        }
    }
}

/// Puts `question`, over the connection that was kept or a new one; gives the
/// requests that are kept, or the outcome of a query without an answer.
async fn put(
    session: &HecSession,
    caller: &mut Caller,
    kept: &mut Option<CallConnection>,
    question: &[u8],
) -> Result<Vec<u64>, Outcome> {
    let mut link = kept.take();
    if let Some(before) = &mut link
        && before.is_closed().await
    {
        link = None;
    }
    let mut link = match link {
        Some(link) => link,
        None => {
            let dial = CallConnection::open(&session.shared.address);
            let dialled = session.worker.wait(Wait::Other, dial).await;
            dialled.map_err(|_| Outcome::ConnectFailed)?
        }
    };
    let questions = &session.channel().questions;
    let mut body = Unscheduled(question);
    let call = caller.call(&session.worker, &mut link, questions, &mut body);
    let answer = call.await?;
    if answer.keep_alive {
        *kept = Some(link);
    }
    (answer.status == 200)
        .then(|| answer::acknowledged(caller.body()))
        .flatten()
        .ok_or(Outcome::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_uuids_and_differ() {
        let seed = Seed::from_number(1);
        let id = channel_id(&seed, 0);
        assert_ne!(id, channel_id(&seed, 1));
        let lengths: Vec<usize> = id.split('-').map(str::len).collect();
        assert_eq!(lengths, [8, 4, 4, 4, 12]);
        assert!(
            id[14..].starts_with('4') && "89ab".contains(&id[19..20]),
            "{id}"
        );
    }
}
