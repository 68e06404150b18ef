//! Sends the blocks of a generator as bodies of requests.
//!
//! The worker of the generator decides when a block is due, stamps it and accounts for time.
//! The load engine manages connections, writes requests and reads responses. Unlike in a
//! load, a request without a connection waits for one, because a generator keeps every event,
//! and the time of each wait is accounted exactly.

use std::future::{Future, pending};
use std::io::IoSlice;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use stillwell_metric::{LoadShard, Outcome};
use stillwell_plan::generator::RequestsPlan;
use stillwell_plan::load::{BodyPlan, IdleStrategy};
use stillwell_scope::{Tasks, clock};
use stillwell_units::Moment;
use stillwell_wire::stream_outcome;
use stillwell_wire::tls::ClientTls;
use stillwell_worker::{Opener, Sending, TransportError, Worker as Generator};
use tokio::io::{AsyncRead, AsyncWrite};

use super::answer::ResponseReader;
use super::blocks::Blocks;
use super::build::{self, Endpoint, Head, Request, RequestEncoder};
use super::connection::{self, ConnectionEnd, ConnectionSlot};
use super::http1::{PartialAnswer, Transfer};
use super::pool::{Pool, pace};
use super::recorder::Ticket;
use super::routes::RouteTally;
use super::slots::Slots;
use super::worker::{Worker, WorkerSetup};

/// Destination of blocks and their heads; for any number of workers.
#[derive(Clone, Debug)]
pub struct BlockRequests {
    plan: RequestsPlan,
    tls: Option<ClientTls>,
    head: Head,
    requests: Arc<[Request]>,
}

impl BlockRequests {
    /// Sends blocks as the bodies of the first request of `plan`, whose own body does not
    /// count.
    ///
    /// # Errors
    /// [`TransportError`] where they would not arrive as they are given.
    pub fn new(plan: &RequestsPlan) -> Result<Self, TransportError> {
        let first = &plan.endpoint().requests[0];
        debug_assert!(first.body == BodyPlan::None, "blocks are the bodies");
        Self::with(plan, Arc::new([]))
    }

    /// Sends the requests of `plan` in turn, one for each block; blocks only pace.
    ///
    /// # Errors
    /// [`TransportError`] if the requests cannot be sent as they are given.
    pub fn of_requests(plan: &RequestsPlan) -> Result<Self, TransportError> {
        let built = RequestEncoder::of_generator(plan.client()).endpoint(plan.endpoint());
        let built = built.map_err(|error| TransportError::new("prepare the requests", error))?;
        Self::with(plan, built.requests.into())
    }

    fn with(plan: &RequestsPlan, requests: Arc<[Request]>) -> Result<Self, TransportError> {
        let (client, endpoint) = (plan.client(), plan.endpoint());
        let encoder = RequestEncoder::of_generator(client);
        Ok(Self {
            tls: build::tls(client, std::slice::from_ref(endpoint))?,
            head: encoder.head(endpoint, &endpoint.requests[0])?,
            plan: plan.clone(),
            requests,
        })
    }

    fn worker(&self, generator: &Rc<Generator>) -> Worker {
        let mut client = self.plan.client().clone();
        if generator.is_reserved() {
            client.idle = IdleStrategy::Spin;
        }
        let (shard, recorders) = LoadShard::pair();
        let setup = WorkerSetup {
            client,
            endpoints: Arc::new([Endpoint::bare(self.plan.endpoint())]),
            tls: self.tls.as_ref().map(ClientTls::for_worker),
            shard: Arc::new(shard),
            recorders,
            routes: RouteTally::default(),
        };
        let built = Arc::clone(&self.requests);
        let blocks = Blocks::new(generator, &self.head, built, self.plan.routes());
        Worker::of_blocks(setup, Rc::new(blocks))
    }
}

impl Opener for BlockRequests {
    /// Tasks of all connections, and the one that says when.
    fn tasks_of(&self, connections: u16) -> usize {
        usize::from(connections) + 1
    }

    fn open(&self, generator: &Rc<Generator>, connections: u16, tasks: &mut Tasks) {
        let worker = Rc::new(self.worker(generator));
        let connecting = &worker.client.connecting;
        let count = usize::from(connections);
        let slots = Slots::new(count, connecting.streams, connecting.reuse);
        let pool = Rc::new(Pool::new(0, (1, 0), slots, &worker.source));
        for slot in 0..count {
            let run = connection::run(Rc::clone(&worker), Rc::clone(&pool), slot);
            tasks.spawn(AccountedTask {
                generator: Rc::clone(generator),
                inner: Box::pin(run),
            });
        }
        tasks.spawn(direct(Rc::clone(generator), worker, pool));
    }
}

/// Says when, until the generator is to end; then says so.
async fn direct(generator: Rc<Generator>, worker: Rc<Worker>, pool: Rc<Pool>) {
    let pacing = pace(Rc::clone(&worker), Rc::clone(&pool));
    // The pacer may end by itself where it has no timer.
    if generator.unless_ending(pacing).await.is_some() {
        generator.unless_ending(pending::<()>()).await;
    }
    worker.finish();
    pool.slots.borrow_mut().wake_all();
}

impl ConnectionSlot {
    /// Posts the block of `ticket`; `now` is when, and becomes when its answer had
    /// come. An error is how the connection came to its end.
    pub(super) async fn post<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        reader: &mut ResponseReader,
        mut ticket: Ticket,
        now: &mut Moment,
    ) -> Result<(), ConnectionEnd> {
        let worker = Rc::clone(&self.worker);
        let Some((blocks, block)) = worker.block(ticket) else {
            return Err(ConnectionEnd::Ended);
        };
        let (mut marks, mut head) = (self.marks.pop(), std::mem::take(&mut self.head));
        let sent = *now;
        self.alarm.deadline = sent + worker.client.timeout;
        let mut sending = blocks.sending((&mut ticket, sent), &block, marks.as_mut());
        blocks.write_head(sending.rest().len(), sending.header(), &mut head);
        let mut partial = PartialAnswer::new(reader, blocks.request.answer_body);
        let writing = self.write_block(stream, &head, &mut sending, &mut partial);
        let written = writing.await;
        self.marks.extend(marks);
        self.head = head;
        let answer = match written {
            // It may answer before it has read all, and want no more.
            Ok(refused) => match self.read(stream, partial, sent).await {
                Ok(mut answer) => {
                    answer.whole.keep_alive &= refused.is_none();
                    Ok(answer)
                }
                Err(outcome) => Err(refused.unwrap_or(outcome)),
            },
            Err(outcome) => Err(outcome),
        };
        match answer {
            Ok(answer) => {
                *now = answer.end;
                worker.answered(ticket, &answer);
                self.backoff.reset();
                if answer.whole.keep_alive {
                    Ok(())
                } else {
                    Err(ConnectionEnd::Agreed)
                }
            }
            Err(outcome) => {
                worker.end_request(ticket, outcome);
                Err(ConnectionEnd::Lost)
            }
        }
    }

    /// Writes head and block, unless the answer says that the peer wants no more. Gives an outcome
    /// where the kernel refused: there may still be an answer that says why.
    async fn write_block<S: AsyncRead + AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        mut head: &[u8],
        sending: &mut Sending<'_>,
        answer: &mut PartialAnswer<'_>,
    ) -> Result<Option<Outcome>, Outcome> {
        loop {
            let is_written = head.is_empty() && sending.rest().is_empty();
            let parts = [IoSlice::new(head), IoSlice::new(sending.rest())];
            let transfer = self.write_or_read(stream, answer, |stream, context| {
                if is_written {
                    // Nothing where there is no TLS.
                    stream.poll_flush(context).map_ok(|()| 0)
                } else {
                    stream.poll_write_vectored(context, &parts)
                }
            });
            match transfer.await? {
                Transfer::Written(Ok(_)) if is_written => {
                    answer.request_sent();
                    return Ok(None);
                }
                Transfer::Written(Ok(0)) => return Ok(Some(Outcome::SendFailed)),
                Transfer::Written(Ok(count)) => {
                    let of_head = count.min(head.len());
                    head = &head[of_head..];
                    if count > of_head {
                        sending.wrote(count - of_head);
                    }
                }
                Transfer::Written(Err(error)) => return Ok(Some(stream_outcome(&error))),
                Transfer::Read(arrived) => {
                    if self.receive_early(arrived, answer)? {
                        return Ok(None);
                    }
                }
            }
        }
    }
}

/// A connection whose running and waiting the generator's worker accounts for.
struct AccountedTask<F> {
    generator: Rc<Generator>,
    inner: Pin<Box<F>>,
}

impl<F: Future> Future for AccountedTask<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        self.generator.enter(clock::now());
        let polled = self.inner.as_mut().poll(context);
        self.generator.leave(clock::now());
        polled
    }
}
