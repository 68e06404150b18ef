//! The loop of generators whose next step follows from what was answered: one
//! request a block, one in flight on each connection.

use std::rc::Rc;

use stillwell_http::RequestTemplate;
use stillwell_metric::{GeneratorShard, Outcome};
use stillwell_payload::BlockSet;
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_worker::{Backoff, Marks, Slice, Wait, Worker};
use tokio::time::sleep;

use crate::call::{CallAnswer, CallConnection, Caller, Head, Outgoing};

/// One side of a conversation.
pub(crate) trait Dialogue {
    /// The worker of the dialogue.
    fn worker(&self) -> &Worker;

    /// `host:port` to dial.
    fn address(&self) -> &str;

    /// The head of every request.
    fn head(&self) -> &RequestTemplate;

    /// An answer came, with this body, to a request of so many `events` that was
    /// sent `again` times before: what is to be done about it. Its outcome is
    /// counted already.
    fn answered(&self, answer: CallAnswer, body: &[u8], events: u64, again: u32) -> After;

    /// Returns true where a request is sent again that was sent `again` times before, and was
    /// answered with `status` now: where [`Self::answered`] gives [`After::Again`].
    fn is_again_after(&self, status: u16, again: u32) -> bool;

    /// Returns true where a request is sent again that was sent `again` times before, and has
    /// no answer now.
    fn unanswered(&self, _again: u32) -> bool {
        false
    }
}

/// The step after an answer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum After {
    /// The next request; this one is finished.
    Next,
    /// The next request; this one is resolved later by another task.
    Later,
    /// The same one, after this pause.
    Again(Nanos),
}

/// One connection, opened again whenever it is lost or has done its last request,
/// until the worker ends.
pub(crate) async fn run_dialogue(dialogue: &impl Dialogue) {
    let worker = dialogue.worker();
    let mut caller = Caller::new();
    let mut backoff = Backoff::new();
    let mut feed = RequestFeed {
        left: None,
        marks: worker.marks(),
    };
    loop {
        let dial = || CallConnection::open(dialogue.address());
        let link = match (worker.connect(&mut backoff, dial).await, &feed.left) {
            (Some(link), _) => Some(link),
            // What was begun is sent again.
            (None, Some(_)) => Some(worker.connect_again(&mut backoff, dial).await),
            (None, None) => None,
        };
        let Some(mut link) = link else {
            return;
        };
        match run_session(dialogue, &mut caller, &mut link, &mut feed, &mut backoff).await {
            ConnectionEnd::Ended => return,
            ConnectionEnd::Agreed => {}
            ConnectionEnd::Lost => {
                if worker.pause(&mut backoff).await.is_none() && feed.left.is_none() {
                    return;
                }
            }
        }
    }
}

/// The way a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ConnectionEnd {
    /// The worker is to end.
    Ended,
    /// The server wanted it, between two requests.
    Agreed,
    /// In the middle of a request.
    Lost,
}

/// A request to send, and the number of times that it was sent before.
#[derive(Clone, Debug)]
struct Task {
    set: Rc<BlockSet>,
    slice: Slice,
    again: u32,
}

/// The next requests of one connection, independent of the socket under it.
#[derive(Debug)]
struct RequestFeed {
    /// Taken, and not finished when the connection ended.
    left: Option<Task>,
    /// The stamps of its events, if they have any. Holds the last request.
    marks: Option<Marks>,
}

/// Sends request after request on one connection. What found the connection closed
/// before it began is left for the next one.
async fn run_session(
    dialogue: &impl Dialogue,
    caller: &mut Caller,
    link: &mut CallConnection,
    feed: &mut RequestFeed,
    backoff: &mut Backoff,
) -> ConnectionEnd {
    let worker = dialogue.worker();
    let mut is_proven = false;
    loop {
        let task = match feed.left.take() {
            Some(task) => task,
            None => match worker.next_block().await {
                Some((set, slice)) => Task {
                    set,
                    slice,
                    again: 0,
                },
                None => return ConnectionEnd::Ended,
            },
        };
        // Servers close connections that were idle too long. On a connection
        // that never answered this is no such thing, but a failure.
        if is_proven && link.is_closed().await {
            feed.left = Some(task);
            return ConnectionEnd::Agreed;
        }
        let answer = match request(dialogue, caller, link, &task, &mut feed.marks).await {
            Ok(answer) => answer,
            Err(outcome) => {
                worker.shard.count(outcome);
                if dialogue.unanswered(task.again) {
                    let again = task.again + 1;
                    feed.left = Some(Task { again, ..task });
                } else {
                    worker.finish_slices(1);
                }
                return ConnectionEnd::Lost;
            }
        };
        worker.shard.count(Outcome::of_status(answer.status));
        backoff.reset();
        is_proven = true;
        let events = events_of(&task);
        match dialogue.answered(answer, caller.body(), events, task.again) {
            After::Next => worker.finish_slices(1),
            After::Later => {}
            After::Again(pause) => {
                let again = task.again + 1;
                feed.left = Some(Task { again, ..task });
                // Also once the worker is to end: what was begun has its grace, which
                // cuts this off.
                let pause = sleep(pause.as_duration());
                worker.wait(Wait::Other, pause).await;
            }
        }
        if !answer.keep_alive {
            return ConnectionEnd::Agreed;
        }
    }
}

/// Events of what was sent: of its own set, which need not be the worker's first.
fn events_of(task: &Task) -> u64 {
    task.set
        .run(task.slice.first, task.slice.last)
        .counts()
        .events
}

async fn request(
    dialogue: &impl Dialogue,
    caller: &mut Caller,
    link: &mut CallConnection,
    task: &Task,
    marks: &mut Option<Marks>,
) -> Result<CallAnswer, Outcome> {
    let worker = dialogue.worker();
    let sent = clock::now();
    if task.again == 0 {
        worker.mark(&task.set, task.slice, marks.as_mut());
    }
    let marks = marks.as_ref();
    let head = Head {
        template: dialogue.head(),
        stamp: marks.and_then(Marks::header),
    };
    let answer = if task.again == 0 {
        let mut sending = worker.sending_of_marked(&task.set, task.slice, marks);
        let answer = caller.call(worker, link, head, &mut sending).await;
        let is_again = match &answer {
            Ok(answer) => dialogue.is_again_after(answer.status, task.again),
            Err(_) => dialogue.unanswered(task.again),
        };
        if is_again {
            // What is acknowledged later counts as sent, and once. Its bytes count as they leave.
            sending.wrote_of(sending.rest().len(), 0);
        }
        answer?
    } else {
        worker.shard.requests.add(1);
        worker.shard.requests_again.add(1);
        // What was sent before, with the numbers that it had.
        let marked = worker.stamping().zip(marks);
        let copy = marked.and_then(|(stamping, marks)| marks.again(stamping));
        let mut again = Again {
            rest: copy.unwrap_or_else(|| task.set.run(task.slice.first, task.slice.last).bytes),
            shard: &worker.shard,
        };
        caller.call(worker, link, head, &mut again).await?
    };
    let now = clock::now();
    let mut state = worker.state.borrow_mut();
    state.record_answer(task.slice.intended, sent, now);
    Ok(answer)
}

/// A request that was sent before and belongs to no schedule any more; its bytes count.
#[derive(Debug)]
struct Again<'w> {
    rest: &'w [u8],
    shard: &'w GeneratorShard,
}

impl Outgoing for Again<'_> {
    fn rest(&self) -> &[u8] {
        self.rest
    }

    fn wrote(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
        self.shard.bytes.add(bytes as u64);
    }
}
