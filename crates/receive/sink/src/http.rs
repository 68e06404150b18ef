//! HTTP connections: count every request, answer each alike. Those of HTTP/2 are the
//! intake's, with a service that is none.

use std::io;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_http::h2::is_http2;
use stillwell_http::{CONTINUE, HeadError, PreparedResponse, write_response};
use stillwell_metric::SinkShard;
use stillwell_plan::sink::SinkBody;
use stillwell_plan::step::Refusal;
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_wire::Stream;
use stillwell_wire::server::{Activity, DueTimer, HeadDeadline, Reader as _, busy, linger};
use tokio::io::AsyncWriteExt;
use tokio::task::yield_now;
use tokio::time::timeout_at;

use crate::intake::{self, Intake};
use crate::steering::Steering;
use crate::worker::Worker;

mod exchange;

use exchange::{Exchange, HttpReply};

/// Bytes of a compressed body that are read at once. Each can become a thousand, so other
/// connections are served after them. With two codings, `BodyDecoder` bounds the output of one
/// read.
const CODED_READ_BYTES: usize = 4 << 10;

/// Pipelined answers are written together up to about this length.
const WRITE_BYTES: usize = 64 << 10;

/// Answers of a sink, laid out once.
#[derive(Debug)]
pub(crate) struct Answers {
    keep_alive: PreparedResponse,
    last: PreparedResponse,
    refusal: PreparedResponse,
    delay: Nanos,
    http2: Arc<Intake>,
}

impl Answers {
    pub(crate) fn new(
        status: u16,
        headers: &[(String, String)],
        body: &SinkBody,
        delay: Nanos,
    ) -> Result<Self, HeadError> {
        let body = match body {
            SinkBody::Empty => [].as_slice(),
            SinkBody::Static(bytes) => bytes,
        };
        let http2 = Intake::plain(status, headers, body, delay);
        let close = ("connection", "close");
        let mut headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let keep_alive = PreparedResponse::new(status, &headers, body)?;
        if !headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(close.0))
        {
            headers.push(close);
        }
        Ok(Self {
            keep_alive,
            last: PreparedResponse::new(status, &headers, body)?,
            refusal: PreparedResponse::new(400, &[close], b"")?,
            delay,
            http2: Arc::new(http2),
        })
    }

    fn bytes(&self, reply: HttpReply) -> &[u8] {
        match reply {
            HttpReply::Continue => CONTINUE,
            // Closed connections get nothing, and steered sinks lay out their own.
            HttpReply::Refused { .. } => &[],
            HttpReply::Refuse => self.refusal.bytes(),
            HttpReply::Answer { head_only, last } => {
                let response = if last { &self.last } else { &self.keep_alive };
                if head_only {
                    response.head()
                } else {
                    response.bytes()
                }
            }
        }
    }
}

/// Counts and answers the requests of `stream` until either side closes it or
/// the worker ends. What arrives together is answered together, the delay after
/// it came; what comes in the meantime waits in the kernel. The connection is not idle then.
pub(crate) async fn serve(
    worker: Rc<Worker>,
    answers: Arc<Answers>,
    mut stream: Stream,
    activity: Activity,
) {
    let mut exchange = Exchange::new(worker.stamps(), worker.steering().cloned());
    let mut reads = worker.reads(Rc::clone(&activity));
    let mut writer = Writer::new(Rc::clone(&activity));
    let mut version = Version::Unknown(Vec::new());
    let mut head = HeadDeadline::default();
    loop {
        let open = version.open_head(&exchange);
        let head_due = head.of(open.filter(|_| worker.reads_at_once()));
        let mut read_max = usize::MAX;
        if version.is_decoding(&exchange) {
            read_max = CODED_READ_BYTES;
            yield_now().await;
        }
        let take = |bytes: &[u8]| version.take(bytes, &mut exchange, &worker.base.shard);
        let receiving = worker.receive_at_most(read_max, &mut stream, &mut reads, take);
        let read = match head_due {
            None => receiving.await,
            // A client that is too slow ends as one that has closed.
            Some(due) => timeout_at(due, receiving).await.unwrap_or(Some(Ok(0))),
        };
        match read {
            Some(Ok(1..)) => {}
            Some(Ok(0) | Err(_)) => {
                version.finish(&worker.base.shard);
                return exchange.finish(&worker.base.shard);
            }
            None => return,
        }
        if let Version::Http2(seen) = &version {
            let intake = Arc::clone(&answers.http2);
            return intake::serve_on(worker, intake, stream, activity, seen).await;
        }
        let replies = exchange.replies();
        let written = match worker.steering() {
            None => writer.answer(&mut stream, &answers, &replies).await,
            Some(steering) => {
                let steered = writer.answer_steered(&mut stream, &answers, &replies, steering);
                // An answer that is queued would hold up the worker's end; one that is
                // due would not.
                tokio::select! {
                    biased;
                    written = steered => written,
                    () = worker.base.token.cancelled() => return,
                }
            }
        };
        if written.is_err() || replies.iter().any(|reply| reply.is_last()) {
            break;
        }
        exchange.reuse(replies);
    }
    if exchange.is_refused() {
        let discard = async |stream: &mut Stream| {
            let read = worker.receive(stream, &mut reads, |_| {}).await;
            matches!(read, Some(Ok(1..)))
        };
        linger(&mut stream, discard).await;
    }
}

/// The version of HTTP that a connection speaks, known by its first bytes.
#[derive(Debug)]
enum Version {
    /// Not known yet.
    Unknown(Vec<u8>),
    Http1,
    /// Bytes that were read until the version was known.
    Http2(Vec<u8>),
}

impl Version {
    fn take(&mut self, bytes: &[u8], exchange: &mut Exchange, shard: &SinkShard) {
        match self {
            Self::Http1 => exchange.take(bytes, shard),
            Self::Http2(seen) => seen.extend_from_slice(bytes),
            Self::Unknown(seen) => {
                seen.extend_from_slice(bytes);
                match is_http2(seen) {
                    None => {}
                    Some(true) => *self = Self::Http2(std::mem::take(seen)),
                    Some(false) => {
                        exchange.take(seen, shard);
                        *self = Self::Http1;
                    }
                }
            }
        }
    }

    /// Returns true within a body whose coding is undone.
    const fn is_decoding(&self, exchange: &Exchange) -> bool {
        matches!(self, Self::Http1) && exchange.is_decoding()
    }

    /// The number of the request whose head has begun and is not whole, if there is one.
    fn open_head(&self, exchange: &Exchange) -> Option<u64> {
        match self {
            Self::Unknown(seen) => (!seen.is_empty()).then_some(0),
            Self::Http1 => exchange.open_head(),
            Self::Http2(_) => None,
        }
    }

    /// The peer has closed the connection.
    fn finish(&self, shard: &SinkShard) {
        let was_cut = matches!(self, Self::Unknown(seen) if !seen.is_empty());
        shard.errors.add(u64::from(was_cut));
    }
}

/// Writes answers when they are due. The connection is not idle until then.
#[derive(Debug)]
struct Writer {
    activity: Activity,
    timer: DueTimer,
    together: Vec<u8>,
}

impl Writer {
    fn new(activity: Activity) -> Self {
        Self {
            activity,
            timer: DueTimer::default(),
            together: Vec::new(),
        }
    }

    async fn answer(
        &mut self,
        stream: &mut Stream,
        answers: &Answers,
        replies: &[HttpReply],
    ) -> io::Result<()> {
        let is_delayed = |reply: &HttpReply| matches!(reply, HttpReply::Answer { .. });
        if answers.delay > Nanos::ZERO && replies.iter().any(is_delayed) {
            let due = self.timer.until(clock::now() + answers.delay);
            busy(&self.activity, due).await?;
        }
        if let [reply] = replies {
            return stream.write_all(answers.bytes(*reply)).await;
        }
        for (index, reply) in replies.iter().enumerate() {
            self.together.extend_from_slice(answers.bytes(*reply));
            if self.together.len() >= WRITE_BYTES || index + 1 == replies.len() {
                stream.write_all(&self.together).await?;
                self.together.clear();
            }
        }
        Ok(())
    }

    /// The same of a sink that is steered while it runs: request by request.
    async fn answer_steered(
        &mut self,
        stream: &mut Stream,
        answers: &Answers,
        replies: &[HttpReply],
        steering: &Arc<Steering>,
    ) -> io::Result<()> {
        let came = clock::now();
        let requests = replies
            .iter()
            .filter(|reply| **reply != HttpReply::Continue);
        let mut active: Vec<_> = requests.map(|_| steering.begin(1)).collect();
        // The first is answered first.
        active.reverse();
        for reply in replies {
            if *reply == HttpReply::Continue {
                stream.write_all(CONTINUE).await?;
                continue;
            }
            let delay = steering.delay().unwrap_or(answers.delay);
            if delay > Nanos::ZERO {
                busy(&self.activity, self.timer.until(came + delay)).await?;
            }
            busy(&self.activity, steering.until_answering()).await;
            match reply {
                HttpReply::Refused { with, last } => refuse(stream, *with, *last).await?,
                reply => stream.write_all(answers.bytes(*reply)).await?,
            }
            active.pop();
        }
        Ok(())
    }
}

/// Says that a request is refused; an error where the connection is to be closed.
async fn refuse(stream: &mut Stream, with: Refusal, last: bool) -> io::Result<()> {
    let Refusal::Status {
        status,
        retry_after,
    } = with
    else {
        return Err(io::ErrorKind::ConnectionAborted.into());
    };
    let seconds = retry_after.map(|seconds| seconds.to_string());
    let mut headers = Vec::new();
    headers.extend(seconds.as_deref().map(|seconds| ("retry-after", seconds)));
    headers.extend(last.then_some(("connection", "close")));
    let mut bytes = Vec::new();
    write_response(status, &headers, b"", &mut bytes)
        .map_err(|error| io::Error::other(error.to_string()))?;
    stream.write_all(&bytes).await
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use stillwell_metric::Labels;
    use stillwell_plan::step::SinkChange;
    use stillwell_scope::Token;
    use stillwell_units::Seed;
    use stillwell_wire::server::watched;
    use tokio::net::UnixStream;
    use tokio::time::timeout;

    use super::*;
    use crate::socket::Place;
    use crate::steering::SinkControl;

    /// Sends a request to a sink; returns true if its connection is idle a second later.
    async fn becomes_idle(delay: Nanos, steering: Option<Arc<Steering>>) -> bool {
        let shard = Arc::new(SinkShard::new(Labels::none()));
        let worker = Worker::new(shard, Token::new()).with_steering(steering);
        let answers = Arc::new(Answers::new(200, &[], &SinkBody::Empty, delay).unwrap());
        let (mut client, stream) = UnixStream::pair().unwrap();
        let request = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        client.write_all(request).await.unwrap();
        let activity = Activity::default();
        let served = serve(
            Rc::new(worker),
            answers,
            stream.into(),
            Rc::clone(&activity),
        );
        let served = watched(Rc::clone(&activity), served);
        assert!(timeout(Duration::from_secs(1), served).await.is_err());
        activity.get() <= clock::now()
    }

    /// Such a connection was closed for a new one.
    #[tokio::test(start_paused = true)]
    async fn a_connection_whose_answer_is_delayed_or_held_is_not_idle() {
        let later = Nanos::from_secs(600);
        let place = Place::Nowhere;
        let steering = Arc::new(Steering::new(place, 1, None, &Seed::from_number(1)));
        assert!(becomes_idle(Nanos::ZERO, None).await);
        assert!(!becomes_idle(later, None).await);
        assert!(becomes_idle(Nanos::ZERO, Some(Arc::clone(&steering))).await);
        assert!(!becomes_idle(later, Some(Arc::clone(&steering))).await);
        SinkControl(Arc::clone(&steering)).change(&SinkChange::Queue);
        assert!(!becomes_idle(Nanos::ZERO, Some(steering)).await);
    }
}
