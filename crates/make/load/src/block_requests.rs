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
use stillwell_pacer::Share;
use stillwell_plan::{BodyPlan, EndpointPlan, IdleStrategy, LoadPlan, RequestPlan};
use stillwell_scope::{Tasks, Token, clock};
use stillwell_units::Moment;
use stillwell_wire::stream_outcome;
use stillwell_wire::tls::ClientTls;
use stillwell_worker::{Opener, Sending, TransportError, Worker as Generator};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;

use super::answer::ResponseReader;
use super::blocks::Blocks;
use super::build::{self, Endpoint, Head, Request};
use super::connection::{self, ConnectionEnd, ConnectionSlot};
use super::pool::{Limits, Pool, Timing, pace};
use super::recorder::Ticket;
use super::slots::Slots;
use super::worker::{Worker, WorkerSetup};

/// Destination of blocks and their heads; for any number of workers.
#[derive(Clone, Debug)]
pub struct BlockRequests {
    plan: Arc<LoadPlan>,
    tls: Option<ClientTls>,
    head: Head,
    requests: Arc<[Request]>,
}

impl BlockRequests {
    /// Requests as the only one of the only endpoint of `plan` describes, whose
    /// own body does not count, nor when the plan would send it.
    ///
    /// # Errors
    /// [`TransportError`] where they would not arrive as they are given.
    pub fn new(plan: LoadPlan) -> Result<Self, TransportError> {
        let tls = build::tls(&plan)?;
        let (endpoint, request) = only_request(&plan);
        let head = Head::new(&plan, endpoint, request)?;
        Ok(Self {
            plan: Arc::new(plan),
            tls,
            head,
            requests: Arc::new([]),
        })
    }

    /// Sends the requests of the only endpoint of `plan` in turn, one for each block. The
    /// generator's schedule replaces the plan's pace; blocks only pace.
    ///
    /// # Errors
    /// [`TransportError`] if the requests cannot be sent as they are given.
    pub fn of_requests(plan: LoadPlan) -> Result<Self, TransportError> {
        let tls = build::tls(&plan)?;
        let endpoint = &plan.endpoints[0];
        let head = Head::new(&plan, endpoint, &endpoint.requests[0])?;
        let built = build::endpoints(&plan);
        let built = built.map_err(|error| TransportError::new("prepare the requests", error))?;
        let requests = built.into_iter().flat_map(|endpoint| endpoint.requests);
        let requests = requests.collect();
        Ok(Self {
            plan: Arc::new(plan),
            tls,
            head,
            requests,
        })
    }

    fn worker(&self, plan: LoadPlan, blocks: &Rc<Blocks>) -> Worker {
        let endpoint = &plan.endpoints[0];
        let endpoint = Endpoint {
            address: endpoint.address.clone(),
            ask: None,
            tls_host: endpoint.tls_host.clone(),
            requests: Vec::new(),
        };
        let (shard, recorders) = LoadShard::pair();
        let (_, start) = watch::channel(None);
        Worker::of_blocks(
            WorkerSetup {
                plan: Arc::new(plan),
                endpoints: Arc::new([endpoint]),
                tls: self.tls.as_ref().map(ClientTls::for_worker),
                proxy: None,
                share: Share::WHOLE,
                shard: Arc::new(shard),
                shards: Vec::new(),
                recorders,
                start,
                stop: Token::new(),
                tracer: None,
                supply: None,
                listener: None,
            },
            Rc::clone(blocks),
        )
    }
}

impl Opener for BlockRequests {
    /// Tasks of all connections, and the one that says when.
    fn tasks_of(&self, connections: u16) -> usize {
        usize::from(connections) + 1
    }

    fn open(&self, generator: &Rc<Generator>, connections: u16, tasks: &mut Tasks) {
        let blocks = Rc::new(Blocks::new(generator, &self.head, &self.requests));
        let mut plan = LoadPlan::clone(&self.plan);
        if generator.is_reserved() {
            plan = plan.with_idle(IdleStrategy::Spin);
        }
        let worker = Rc::new(self.worker(plan, &blocks));
        let connecting = &worker.plan.connecting;
        let count = usize::from(connections);
        let slots = Slots::new(count, connecting.streams, connecting.reuse);
        let pool = Rc::new(Pool::new(0, 1, 0, slots));
        pool.begin(Timing::Blocks(blocks), Limits::default());
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

fn only_request(plan: &LoadPlan) -> (&EndpointPlan, &RequestPlan) {
    let endpoint = &plan.endpoints[0];
    debug_assert!(
        endpoint.requests[0].body == BodyPlan::None,
        "blocks are the bodies"
    );
    (endpoint, &endpoint.requests[0])
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
        ticket: Ticket,
        now: &mut Moment,
    ) -> Result<(), ConnectionEnd> {
        let worker = Rc::clone(&self.worker);
        let Some((blocks, block)) = worker.block(ticket) else {
            return Err(ConnectionEnd::Ended);
        };
        let (mut marks, mut head) = (self.marks.pop(), std::mem::take(&mut self.head));
        let sent = *now;
        self.alarm.deadline = sent + worker.plan.timeout;
        let mut sending = blocks.sending(&block, marks.as_mut());
        blocks.write_head(sending.rest().len(), sending.header(), &mut head);
        let written = self.write_block(stream, &head, &mut sending).await;
        self.marks.extend(marks);
        self.head = head;
        let answer = match written {
            // It may answer before it has read all, and want no more.
            Ok(refused) => match self.read(stream, reader, &blocks.request, sent).await {
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

    /// Writes head and block. Gives an outcome where the kernel refused: there may
    /// still be an answer that says why.
    async fn write_block<S: AsyncWrite + Unpin>(
        &mut self,
        stream: &mut S,
        mut head: &[u8],
        sending: &mut Sending<'_>,
    ) -> Result<Option<Outcome>, Outcome> {
        while !(head.is_empty() && sending.rest().is_empty()) {
            let parts = [IoSlice::new(head), IoSlice::new(sending.rest())];
            let written = self
                .alarm
                .wait(|context| Pin::new(&mut *stream).poll_write_vectored(context, &parts))
                .await?;
            match written {
                Ok(0) => return Ok(Some(Outcome::SendFailed)),
                Ok(count) => {
                    let of_head = count.min(head.len());
                    head = &head[of_head..];
                    if count > of_head {
                        sending.wrote(count - of_head);
                    }
                }
                Err(error) => return Ok(Some(stream_outcome(&error))),
            }
        }
        // Nothing where there is no TLS.
        let flushed = self
            .alarm
            .wait(|context| Pin::new(&mut *stream).poll_flush(context))
            .await?;
        Ok(flushed.err().map(|error| stream_outcome(&error)))
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
