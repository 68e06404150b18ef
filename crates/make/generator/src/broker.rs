//! Producers for message brokers: a block is a post of one or more messages, and many
//! posts wait for their answers on one connection.
//!
//! Each connection is one task with two halves that are polled together: one takes what
//! is due and writes it ([`BrokerExchange::write`]), the other reads what is said and settles what
//! it answers ([`BrokerExchange::read`]). What the connection was about to write when it was lost
//! is written on the next; what was written and not answered is not, since it may have
//! arrived. A block that was partly written when the broker refused it is not written again,
//! either: the broker would refuse it on each new connection.

mod amqp;
mod encoded;
mod exchange;
mod in_flight;
mod kafka;
mod link;
mod nats;

use std::fmt::Debug;
use std::future::Future;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use stillwell_broker::Malformed;
use stillwell_metric::Outcome;
use stillwell_plan::GeneratorPlan;
use stillwell_plan::generator::{MessageOf, ProducerPlan};
use stillwell_scope::Tasks;
use stillwell_worker::{Backoff, Opener, Wait, Walk, Worker};
use tokio::time::timeout;

use encoded::{Cut, Pieces};
use exchange::{BrokerFeed, SessionEnd, run_session};
use link::Link;

pub(crate) use amqp::Amqp;
pub(crate) use kafka::Kafka;
pub(crate) use nats::Nats;

/// One kind of broker, and how it is spoken to.
pub(crate) trait Broker: 'static {
    type Session: Session;

    /// The common part of producers for all brokers.
    fn producer(&self) -> &ProducerPlan;

    /// Opens a connection on which messages may be written at once; else what that
    /// counts as. May be cut off. `place` is the number of the connection among those of its
    /// generator, from 0, and stays the same when it is opened again.
    fn open(&self, place: usize) -> impl Future<Output = Result<(Link, Self::Session), Outcome>>;
}

/// One connection's words. Does no I/O.
pub(crate) trait Session {
    /// Returns true where posts are answered.
    fn is_answered(&self) -> bool;

    /// Appends a post of the messages that `cuts` are of `bytes`, and notes where its
    /// pieces end that a broker can understand by themselves. Gives how many answers
    /// it will get, each with the next number.
    fn write(
        &mut self,
        bytes: &[u8],
        cuts: &[Cut],
        out: &mut Vec<u8>,
        pieces: &mut Pieces,
    ) -> Result<u64, Outcome>;

    /// Reads the first word in `input`, and appends what must be said to it; gives how
    /// long it was, or `None` where more must come first.
    fn read(
        &mut self,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<(Option<BrokerMessage>, usize)>, Loss>;

    /// Returns true once no further post may be written: the session reads the answers of those
    /// in flight, and then ends with a loss.
    fn is_leaving(&self) -> bool {
        false
    }

    /// Appends what makes the broker answer once all before is taken in, if there is
    /// such a word.
    fn write_goodbye(&mut self, out: &mut Vec<u8>) -> bool;
}

/// A message of a broker.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BrokerMessage {
    /// Of the oldest post: whether it is refused.
    Oldest(Option<Outcome>),
    /// Of the messages with this number, and where it says so all before.
    Messages {
        number: u64,
        and_before: bool,
        refusal: Option<Outcome>,
    },
    /// A message of this number has no subscriber; it will be answered all the same.
    Returned(u64),
    /// Something was refused; which, it does not say.
    Refused(Outcome),
    /// All before the goodbye is taken in.
    Goodbye,
}

/// Reason why a connection is given up.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Loss {
    /// Outcome of the posts without an answer.
    pub(crate) outcome: Outcome,
    /// True where it is a failure even if none waits.
    pub(crate) is_failure: bool,
}

impl Loss {
    pub(crate) const fn failure(outcome: Outcome) -> Self {
        Self {
            outcome,
            is_failure: true,
        }
    }
}

/// The broker's message is malformed.
impl From<Malformed> for Loss {
    fn from(_: Malformed) -> Self {
        Self::failure(Outcome::Malformed)
    }
}

/// A broker that all connections of a generator go to, and how blocks become messages.
#[derive(Debug)]
pub(crate) struct Producer<B> {
    broker: B,
    cutting: Cutting,
    /// Number of connections of all workers so far.
    connections: Arc<AtomicUsize>,
}

impl<B: Clone> Clone for Producer<B> {
    fn clone(&self) -> Self {
        Self {
            broker: self.broker.clone(),
            cutting: self.cutting,
            connections: Arc::clone(&self.connections),
        }
    }
}

/// Rules that make messages of blocks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Cutting {
    pub(crate) message: MessageOf,
    /// True where the line feed at an event's end is not sent.
    pub(crate) drops_line_feeds: bool,
}

impl<B: Broker> Producer<B> {
    pub(crate) fn new(plan: &GeneratorPlan, broker: B) -> Self {
        let message = broker.producer().message;
        let is_event = message == MessageOf::Event;
        Self {
            broker,
            cutting: Cutting {
                message,
                drops_line_feeds: is_event && plan.payload.format.ends_lines(),
            },
            connections: Arc::default(),
        }
    }
}

impl<B: Broker + Clone + Debug + Send + Sync> Opener for Producer<B> {
    fn answers_blocks(&self) -> bool {
        true
    }

    fn open(&self, worker: &Rc<Worker>, connections: u16, tasks: &mut Tasks) {
        let producer = Rc::new(self.clone());
        for _ in 0..connections {
            let place = producer.connections.fetch_add(1, Ordering::Relaxed);
            tasks.spawn(send(Rc::clone(worker), Rc::clone(&producer), place));
        }
    }
}

/// The connection with number `place`, opened again whenever it is lost, until the worker ends.
async fn send<B: Broker>(worker: Rc<Worker>, producer: Rc<Producer<B>>, place: usize) {
    let mut feed = BrokerFeed::new(Walk::new(&worker.sets), worker.marks());
    let mut backoff = Backoff::new();
    let plan = producer.broker.producer();
    loop {
        let open = timeout(plan.timeout.as_duration(), producer.broker.open(place));
        let opened = worker.wait(Wait::Other, worker.unless_ending(open)).await;
        let opened = match opened {
            None => return,
            Some(Err(_)) => Err(Outcome::ConnectTimedOut),
            Some(Ok(opened)) => opened,
        };
        match opened {
            Ok((link, session)) => {
                worker.shard.connections.add(1);
                let how = (producer.cutting, plan);
                let end = run_session(&worker, how, (link, session), &mut feed, &mut backoff);
                match end.await {
                    SessionEnd::Ended => return,
                    SessionEnd::Lost => {}
                }
            }
            Err(outcome) => worker.shard.count(outcome),
        }
        if worker.pause(&mut backoff).await.is_none() {
            return;
        }
    }
}
