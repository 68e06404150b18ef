//! One connection: a half that writes and a half that reads, polled together.
//!
//! Both live on one task, so what one half does, the other sees when it is polled
//! next, and that is at once: neither needs to be woken by the other.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use stillwell_metric::Outcome;
use stillwell_payload::BlockSet;
use stillwell_plan::RateUnit;
use stillwell_plan::generator::ProducerPlan;
use stillwell_scope::clock;
use stillwell_wire::Connection;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep, timeout};

use super::encoded::{Cut, Pieces, cut};
use super::in_flight::{Answered, InFlight, Post};
use super::{BrokerMessage, Cutting, Link, Loss, Session};
use stillwell_wire::stream_outcome;
use stillwell_worker::{
    Backoff, Marks, Most, Sending, Slice, Wait, Walk, Worker, between, units, watched,
};

/// Maximum number of bytes taken and written at once, save that one block always may be.
const SLICE_BYTES_MAX: usize = 128 << 10;

const READ_BYTES: usize = 16 << 10;

/// Interval of the checks for late answers.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Maximum wait of the writing half for the reason of a closed connection. It arrived before the
/// close, if the server gave one.
const REASON_WAIT_MAX: Duration = Duration::from_millis(100);

/// The way a connection ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SessionEnd {
    /// The worker is to end.
    Ended,
    Lost,
}

/// The next bytes of one connection, independent of the socket under it.
#[derive(Debug)]
pub(super) struct BrokerFeed {
    walk: Walk,
    /// Taken and not begun when the connection was lost, and what it is of.
    left: Option<(Rc<BlockSet>, Slice)>,
    /// The stamps of its events, if they have any.
    marks: Option<Marks>,
    /// Used again.
    slice: Encoded,
}

impl BrokerFeed {
    pub(super) fn new(walk: Walk, marks: Option<Marks>) -> Self {
        Self {
            walk,
            left: None,
            marks,
            slice: Encoded::default(),
        }
    }
}

/// A slice as messages.
#[derive(Debug, Default)]
struct Encoded {
    cuts: Vec<Cut>,
    pieces: Pieces,
    posts: Vec<EncodedPost>,
    /// Number of blocks that were begun.
    begun: usize,
}

/// A block of a slice as messages.
#[derive(Clone, Copy, Debug)]
struct EncodedPost {
    /// Start of its bytes in the output.
    start: usize,
    /// Number of pieces that have left once it is begun.
    pieces: usize,
    post: Post,
}

impl Encoded {
    /// Returns the first block without a whole message in the first `written` bytes of the output,
    /// if a part of it is among them.
    fn cut_post(&self, written: usize) -> Option<Post> {
        let next = self.posts.get(self.begun)?;
        (next.start < written).then_some(next.post)
    }
}

/// Bytes on their way out.
#[derive(Debug, Default)]
struct Out {
    bytes: Vec<u8>,
    written: usize,
}

/// State that both halves share.
struct BrokerExchange<'w, S> {
    worker: &'w Worker,
    how: (Cutting, &'w ProducerPlan),
    is_answered: bool,
    connection: RefCell<Connection>,
    session: RefCell<S>,
    out: RefCell<Out>,
    in_flight: RefCell<InFlight>,
    /// True while the writing half is in the middle of a slice.
    is_writing: Cell<bool>,
    /// The writing half is through, in good order or not.
    has_written: Cell<bool>,
    /// The server has answered the goodbye, before which nothing is under way.
    has_goodbye: Cell<bool>,
    /// The session ends once all is answered, and nothing new is written.
    is_leaving: Cell<bool>,
    /// True once anything was answered or, where nothing is, written.
    is_proven: Cell<bool>,
    lost: Cell<Option<Loss>>,
}

/// Sends post after post on one connection, until the worker ends and all is answered,
/// or the connection is lost.
pub(super) async fn run_session<S: Session>(
    worker: &Worker,
    how: (Cutting, &ProducerPlan),
    (link, session): (Link, S),
    feed: &mut BrokerFeed,
    backoff: &mut Backoff,
) -> SessionEnd {
    let exchange = BrokerExchange {
        worker,
        how,
        is_answered: session.is_answered(),
        connection: RefCell::new(link.connection),
        session: RefCell::new(session),
        out: RefCell::default(),
        in_flight: RefCell::new(InFlight::new()),
        is_writing: Cell::new(false),
        has_written: Cell::new(false),
        has_goodbye: Cell::new(false),
        is_leaving: Cell::new(false),
        is_proven: Cell::new(false),
        lost: Cell::new(None),
    };
    exchange.both(feed, link.input).await;
    if exchange.is_proven.get() {
        backoff.reset();
    }
    match exchange.lost.get() {
        None => SessionEnd::Ended,
        Some(loss) => {
            exchange.lose(loss);
            SessionEnd::Lost
        }
    }
}

impl<S: Session> BrokerExchange<'_, S> {
    /// Polls both halves until both are through: the reading one first, and again after each
    /// step of the writing one.
    async fn both(&self, feed: &mut BrokerFeed, input: Vec<u8>) {
        let mut read = pin!(self.read(input));
        let mut write = pin!(async {
            self.write(feed).await;
            self.has_written.set(true);
        });
        let (mut has_read, mut has_written) = (false, false);
        poll_fn(|context| {
            has_read = has_read || read.as_mut().poll(context).is_ready();
            has_written = has_written || write.as_mut().poll(context).is_ready();
            if has_written {
                has_read = has_read || read.as_mut().poll(context).is_ready();
            }
            match has_read && has_written {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
    }

    /// Gives up; the first reason is the one that counts. After the goodbye there is nothing to
    /// lose: a server may close at once.
    fn give_up(&self, loss: Loss) {
        if self.lost.get().is_none() && !self.has_goodbye.get() {
            self.lost.set(Some(loss));
        }
    }

    /// Everything that waits has no answer any more.
    fn lose(&self, loss: Loss) {
        let waiting = self.in_flight.borrow().len() as u64;
        let shard = &self.worker.shard;
        let failures = waiting.max(u64::from(loss.is_failure));
        shard.outcomes[loss.outcome.index()].add(failures);
        self.worker.finish_slices(waiting);
    }

    /// Waits for `what`; `None` once the connection is lost.
    async fn unless_lost<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        let mut what = pin!(what);
        poll_fn(|context| match self.lost.get() {
            Some(_) => Poll::Ready(None),
            None => what.as_mut().poll(context).map(Some),
        })
        .await
    }

    /// Waits for `what`; `None` once the connection is lost or the session is leaving.
    async fn unless_leaving<T>(&self, what: impl Future<Output = T>) -> Option<T> {
        let mut what = pin!(what);
        let unless = poll_fn(|context| match self.is_leaving.get() {
            true => Poll::Ready(None),
            false => what.as_mut().poll(context).map(Some),
        });
        self.unless_lost(unless).await.flatten()
    }

    /// Waits until `is_so`, or the connection is lost: then `None`.
    async fn until(&self, is_so: impl Fn() -> bool) -> Option<()> {
        let is_so = |_: &mut Context<'_>| match is_so() {
            true => Poll::Ready(()),
            false => Poll::Pending,
        };
        self.unless_lost(watched(self.worker, Wait::Other, is_so))
            .await
    }

    /// Takes what is due and writes it, until the worker ends or the session is leaving, and all
    /// is answered; or until the connection is lost.
    async fn write(&self, feed: &mut BrokerFeed) {
        while !self.worker.is_ending() {
            let Some(most) = self.room().await else {
                return;
            };
            if self.is_leaving.get() {
                break;
            }
            let (set, slice) = match feed.left.take() {
                Some(left) => left,
                None => {
                    let next_block = self.worker.next_block_of(&mut feed.walk, most);
                    match self.unless_leaving(next_block).await.flatten() {
                        None => break,
                        Some(taken) => taken,
                    }
                }
            };
            let mut sending = match &mut feed.marks {
                Some(marks) => self.worker.sending_marked(&set, slice, Some(marks)),
                None => self.worker.sending_of(&set, slice),
            };
            let written = self.write_slice(&set, slice, &mut sending, &mut feed.slice);
            if written.await.is_none() {
                let left = self.left_after_loss(&set, sending.untouched(), &mut feed.slice);
                let posts = slice.last - slice.first - feed.slice.begun;
                // What is left counts as one that was taken.
                self.worker.finish_slices((posts as u64).saturating_sub(1));
                feed.left = left.map(|left| (set, left));
                return;
            }
            if self.is_answered {
                // However busy this half is, answers are taken when they come.
                let yielding = tokio::task::yield_now();
                self.worker.wait(Wait::Other, yielding).await;
            }
        }
        self.send_goodbye().await;
    }

    /// Returns the blocks of `left` that the next connection sends. A broker that refused a block
    /// while it was written would refuse it again: this block counts as in flight.
    fn left_after_loss(
        &self,
        set: &BlockSet,
        left: Option<Slice>,
        encoded: &mut Encoded,
    ) -> Option<Slice> {
        let loss = self.lost.get();
        let is_refused = loss.is_some_and(|loss| loss.outcome == Outcome::Status4xx);
        let cut = encoded.cut_post(self.out.borrow().written);
        let Some(post) = cut.filter(|_| is_refused) else {
            return left;
        };
        self.begin(encoded);
        self.in_flight.borrow_mut().push(post);
        without_first(set, left?, self.worker.unit())
    }

    /// Waits until another post may be under way; how much then may be.
    async fn room(&self) -> Option<Most> {
        let in_flight_max = self.how.1.in_flight as usize;
        let is_free = || !self.is_answered || self.in_flight.borrow().len() < in_flight_max;
        if !is_free() {
            self.until(|| is_free() || self.worker.is_ending()).await?;
        }
        let blocks = match self.is_answered {
            true => in_flight_max.saturating_sub(self.in_flight.borrow().len()),
            false => usize::MAX,
        };
        Some(Most {
            bytes: SLICE_BYTES_MAX,
            blocks: blocks.max(1),
        })
    }

    /// Writes `slice` of `set`, of which `sending` has the bytes; `None` where the
    /// connection is lost by that.
    async fn write_slice(
        &self,
        set: &BlockSet,
        slice: Slice,
        sending: &mut Sending<'_>,
        encoded: &mut Encoded,
    ) -> Option<()> {
        let encoding = self.encode(set, slice, sending.rest(), encoded);
        let more = (slice.last - slice.first - 1) as u64;
        self.worker.expect_answers(more);
        if let Err(outcome) = encoding {
            self.give_up(Loss::failure(outcome));
            return None;
        }
        self.is_writing.set(true);
        let drained = self.drain(true, |written| self.passed(written, sending, encoded));
        let drained = self.unless_lost(drained).await.flatten();
        self.is_writing.set(false);
        drained
    }

    /// Makes messages of `bytes`, which are those of `slice`, or a marked copy.
    fn encode(
        &self,
        set: &BlockSet,
        slice: Slice,
        bytes: &[u8],
        encoded: &mut Encoded,
    ) -> Result<(), Outcome> {
        encoded.cuts.clear();
        encoded.pieces.clear();
        encoded.posts.clear();
        encoded.begun = 0;
        let mut session = self.session.borrow_mut();
        let mut out = self.out.borrow_mut();
        let sent = clock::now();
        let unit = self.worker.unit();
        let passed = |block| units(set, slice.first, block, unit);
        let whole = passed(slice.last - 1);
        let mut start = 0;
        for index in slice.first..slice.last {
            let block = set.block(index);
            encoded.cuts.clear();
            cut(self.how.0, &block, bytes, start, &mut encoded.cuts);
            start += block.bytes.len();
            let (written, pieces) = (out.bytes.len(), encoded.pieces.len());
            let answers =
                session.write(bytes, &encoded.cuts, &mut out.bytes, &mut encoded.pieces)?;
            let post = Post {
                answers,
                events: block.counts().events,
                intended: between(slice.intended, slice.intended_last, passed(index), whole),
                sent,
            };
            encoded.posts.push(EncodedPost {
                start: written,
                pieces: pieces + 1,
                post,
            });
        }
        Ok(())
    }

    /// All that was encoded up to `written` has left.
    fn passed(&self, written: usize, sending: &mut Sending<'_>, encoded: &mut Encoded) {
        let (source, sent, pieces) = encoded.pieces.pass(written);
        if source == 0 {
            return;
        }
        sending.wrote_of(source, sent);
        while let Some(next) = encoded.posts.get(encoded.begun).copied()
            && next.pieces <= pieces
        {
            self.begin(encoded);
            if self.is_answered {
                self.in_flight.borrow_mut().push(next.post);
            } else {
                self.is_proven.set(true);
                self.worker.shard.count(Outcome::Ok);
                self.worker.finish_slices(1);
            }
        }
    }

    /// Counts the next block of a slice as begun.
    fn begin(&self, encoded: &mut Encoded) {
        encoded.begun += 1;
        // The first of a slice was counted when it was taken; what is not begun on
        // this connection will be on another.
        let is_more = encoded.begun > 1;
        self.worker.shard.requests.add(u64::from(is_more));
    }

    /// Writes all pending bytes, and reports the progress to `passed`; `None` where the
    /// connection is lost. The writing half also sends the bytes of the reading half, where it
    /// is in the middle of a slice.
    async fn drain(&self, is_slice: bool, mut passed: impl FnMut(usize)) -> Option<()> {
        let written = watched(self.worker, Wait::Room, |context| {
            if !is_slice && self.is_writing.get() {
                return Poll::Ready(Ok(()));
            }
            let mut connection = self.connection.borrow_mut();
            let mut out = self.out.borrow_mut();
            while out.written < out.bytes.len() {
                let rest = &out.bytes[out.written..];
                match ready!(Pin::new(&mut *connection).poll_write(context, rest)) {
                    Ok(0) => return Poll::Ready(Err(Outcome::PeerClosed)),
                    Ok(bytes) => {
                        out.written += bytes;
                        passed(out.written);
                    }
                    Err(error) => return Poll::Ready(Err(stream_outcome(&error))),
                }
            }
            out.bytes.clear();
            out.written = 0;
            let flushed = Pin::new(&mut *connection).poll_flush(context);
            flushed.map_err(|error| stream_outcome(&error))
        });
        match written.await {
            Ok(()) => Some(()),
            Err(outcome) => {
                if is_slice && outcome == Outcome::PeerClosed {
                    // The reading half reaches the end of the connection, too. It reads the
                    // server's reason first.
                    let closed = self.until(|| self.has_goodbye.get());
                    timeout(REASON_WAIT_MAX, closed).await.unwrap_or_default();
                }
                self.give_up(Loss::failure(outcome));
                None
            }
        }
    }

    /// Once nothing more is begun: waits for what is under way, and until all that is
    /// never answered is taken in.
    async fn send_goodbye(&self) {
        if self
            .until(|| self.in_flight.borrow().len() == 0)
            .await
            .is_none()
        {
            return;
        }
        let awaits = {
            let mut out = self.out.borrow_mut();
            self.session.borrow_mut().write_goodbye(&mut out.bytes)
        };
        if self.drain(true, |_| ()).await.is_none() {
            return;
        }
        if awaits && self.until(|| self.has_goodbye.get()).await.is_none() {
            return;
        }
        let connection = &self.connection;
        let end = poll_fn(|context| Pin::new(&mut *connection.borrow_mut()).poll_shutdown(context));
        // Nothing is lost any more after any message.
        self.worker.wait(Wait::Other, end).await.unwrap_or_default();
    }

    /// Reads what is said and settles what it answers, until the writing half is through
    /// or the connection is lost.
    async fn read(&self, mut input: Vec<u8>) {
        let mut buffer = vec![0; READ_BYTES].into_boxed_slice();
        let mut look = pin!(sleep(LOOK_EVERY));
        let mut answered = Vec::new();
        loop {
            if let Err(loss) = self.digest(&mut input, &mut answered) {
                self.give_up(loss);
            }
            let has_words = !self.out.borrow().bytes.is_empty() && !self.is_writing.get();
            if has_words && self.drain(false, |_| ()).await.is_none() {
                return;
            }
            let received = watched(self.worker, Wait::Other, |context| {
                if self.lost.get().is_some() || self.has_written.get() {
                    return Poll::Ready(0);
                }
                self.poll_receive(context, &mut buffer, look.as_mut())
            });
            match received.await {
                0 => return,
                bytes => input.extend_from_slice(&buffer[..bytes]),
            }
        }
    }

    /// Number of bytes received; 0 where the connection is lost or the server has closed it.
    fn poll_receive(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
        mut look: Pin<&mut Sleep>,
    ) -> Poll<usize> {
        let mut buffer = ReadBuf::new(buffer);
        let mut connection = self.connection.borrow_mut();
        match Pin::new(&mut *connection).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) if buffer.filled().is_empty() => {
                self.give_up(Loss::failure(Outcome::PeerClosed));
                return Poll::Ready(0);
            }
            Poll::Ready(Ok(())) => return Poll::Ready(buffer.filled().len()),
            Poll::Ready(Err(error)) => {
                self.give_up(Loss::failure(stream_outcome(&error)));
                return Poll::Ready(0);
            }
            Poll::Pending => {}
        }
        while look.as_mut().poll(context).is_ready() {
            let oldest = self.in_flight.borrow().oldest();
            if oldest.is_some_and(|sent| clock::now().since(sent) > self.how.1.timeout) {
                self.give_up(Loss::failure(Outcome::TimedOut));
                return Poll::Ready(0);
            }
            look.set(sleep(LOOK_EVERY));
        }
        Poll::Pending
    }

    /// Takes in all whole words of `input`.
    fn digest(&self, input: &mut Vec<u8>, answered: &mut Vec<Answered>) -> Result<(), Loss> {
        let mut read = 0;
        let result = loop {
            let word = {
                let mut out = self.out.borrow_mut();
                let mut session = self.session.borrow_mut();
                session.read(&input[read..], &mut out.bytes)
            };
            match word {
                Ok(None) => break Ok(()),
                Ok(Some((message, used))) => {
                    read += used;
                    if let Some(message) = message
                        && let Err(loss) = self.take_in(message, answered)
                    {
                        break Err(loss);
                    }
                }
                Err(loss) => break Err(loss),
            }
        };
        input.drain(..read);
        self.is_leaving.set(self.session.borrow().is_leaving());
        result
    }

    fn take_in(&self, message: BrokerMessage, answered: &mut Vec<Answered>) -> Result<(), Loss> {
        let mut in_flight = self.in_flight.borrow_mut();
        let (which, refusal) = match message {
            BrokerMessage::Oldest(refusal) => match in_flight.oldest_number() {
                Some(number) => ((number, false), refusal),
                // An answer without a request.
                None => return Err(Loss::failure(Outcome::Malformed)),
            },
            BrokerMessage::Messages {
                number,
                and_before,
                refusal,
            } => ((number, and_before), refusal),
            BrokerMessage::Returned(number) => {
                in_flight.returned(number);
                return Ok(());
            }
            BrokerMessage::Refused(outcome) => {
                self.worker.shard.count(outcome);
                return Ok(());
            }
            BrokerMessage::Goodbye => {
                self.has_goodbye.set(true);
                return Ok(());
            }
        };
        let Some(finished) = in_flight.answer(which, refusal, answered) else {
            return Ok(());
        };
        let shard = &self.worker.shard;
        shard.events_acknowledged.add(finished.acknowledged);
        shard.events_refused.add(finished.refused);
        for Answered { post, outcome } in answered.drain(..) {
            self.is_proven.set(true);
            shard.count(outcome);
            self.worker.finish_slices(1);
            let mut state = self.worker.state.borrow_mut();
            state.record_answer(post.intended, post.sent, clock::now());
        }
        Ok(())
    }
}

/// Returns `slice` of `set` without its first block, if it has more.
fn without_first(set: &BlockSet, slice: Slice, unit: RateUnit) -> Option<Slice> {
    let first = slice.first + 1;
    let passed = |block| units(set, slice.first, block, unit);
    (first < slice.last).then(|| Slice {
        first,
        intended: between(
            slice.intended,
            slice.intended_last,
            passed(first),
            passed(slice.last - 1),
        ),
        ..slice
    })
}

#[cfg(test)]
mod tests {
    use stillwell_plan::payload::BlockShape;
    use stillwell_plan::{PayloadFormat, PayloadPlan};
    use stillwell_units::{ByteSize, Moment, Seed};

    use super::*;

    /// Messages of ten bytes, behind five bytes of the reading half: two in the first block, one
    /// in the second.
    #[test]
    fn a_block_is_cut_where_its_first_message_is_written_in_part() {
        let post = |events| Post {
            answers: 1,
            events,
            intended: Moment::default(),
            sent: Moment::default(),
        };
        let mut encoded = Encoded {
            posts: vec![
                EncodedPost {
                    start: 5,
                    pieces: 1,
                    post: post(2),
                },
                EncodedPost {
                    start: 25,
                    pieces: 3,
                    post: post(1),
                },
            ],
            ..Encoded::default()
        };
        for (begun, written, expected) in [
            (0, 5, None),
            (0, 6, Some(2)),
            (1, 15, None),
            // The second message of the first block is cut.
            (1, 20, None),
            (1, 25, None),
            (1, 26, Some(1)),
            (2, 35, None),
            // All is written, and the output is empty.
            (2, 0, None),
        ] {
            encoded.begun = begun;
            let cut = encoded.cut_post(written).map(|post| post.events);
            assert_eq!(cut, expected, "{written} bytes");
        }
    }

    #[test]
    fn a_slice_without_its_first_block_begins_when_the_second_is_due() {
        let plan = PayloadPlan {
            format: PayloadFormat::Json,
            blocks: BlockShape::Events {
                count: 2,
                maximum: ByteSize::kib(4),
            },
            cache: ByteSize::kib(64),
            repeats: false,
        };
        let set = BlockSet::build(&plan, plan.cache, Seed::from_number(1), None).unwrap();
        let slice = Slice {
            first: 0,
            last: 3,
            intended: Moment::new(0),
            intended_last: Moment::new(1_000),
        };
        let without_first = |slice| without_first(&set, slice, RateUnit::Events);
        let second = Slice {
            first: 1,
            intended: Moment::new(500),
            ..slice
        };
        assert_eq!(without_first(slice), Some(second));
        let third = Slice {
            first: 2,
            intended: Moment::new(1_000),
            ..slice
        };
        assert_eq!(without_first(second), Some(third));
        assert_eq!(without_first(third), None);
    }
}
