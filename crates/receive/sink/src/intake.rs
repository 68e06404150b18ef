//! Stands in for services that others send to: whole requests in over HTTP/1.1 or
//! HTTP/2, and answers out as the service would give them.

mod datadog;
pub(crate) mod decode;
#[cfg(test)]
mod fixture;
mod grpc;
mod hec;
mod http1;
mod http2;
mod json;
mod logs;
mod md5;
mod openmetrics;
mod otlp;
mod plain;
mod recorded;
mod request;
mod service;
mod sqs;
mod stateful_logs;

use std::cell::{Cell, RefCell};
use std::future::{pending, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use stillwell_http::h2::is_http2;
use stillwell_metric::SinkShard;
use stillwell_plan::{IntakeService, Refusal};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::{Stream, Timer};
use tokio::io::{AsyncWrite as _, AsyncWriteExt as _};
use tokio::select;

use crate::ledger::Stamps;
use crate::steering::{Active, Steering};
use crate::worker::Worker;
use http1::Http1;
use http2::Http2;
pub(crate) use recorded::Recorded;
use service::{Answer, Service};

/// What all connections of an intake share.
#[derive(Debug)]
pub(crate) struct Intake {
    service: Box<dyn Service>,
    /// Between the end of a request and its answer.
    delay: Nanos,
    /// Series that it records, if it does.
    recorded: Option<Arc<Recorded>>,
}

impl Intake {
    /// The intake of the sink called `id`.
    pub(crate) fn new(id: &str, service: &IntakeService, delay: Nanos) -> Self {
        let recorded = match service {
            IntakeService::Datadog { record } => Recorded::new(id, record).map(Arc::new),
            _ => None,
        };
        let service: Box<dyn Service> = match service {
            IntakeService::SplunkHec => Box::new(hec::Hec::default()),
            IntakeService::Datadog { .. } => Box::new(datadog::Datadog::new(recorded.clone())),
            IntakeService::DatadogStatefulLogs => Box::new(stateful_logs::StatefulLogs),
            IntakeService::Otlp => Box::new(otlp::Otlp),
            IntakeService::Sqs => Box::new(sqs::Sqs::default()),
            IntakeService::Elasticsearch => Box::new(logs::Elasticsearch),
            IntakeService::Loki => Box::new(logs::Loki),
            IntakeService::S3 => Box::new(logs::S3),
            IntakeService::Openmetrics(plan) => {
                Box::new(openmetrics::Openmetrics::new(plan.as_ref().clone()))
            }
        };
        Self {
            service,
            delay,
            recorded,
        }
    }

    /// One that answers everything alike.
    pub(crate) fn plain(
        status: u16,
        headers: &[(String, String)],
        body: &[u8],
        delay: Nanos,
    ) -> Self {
        Self {
            service: Box::new(plain::Plain::new(status, headers, body)),
            delay,
            recorded: None,
        }
    }

    /// Series that it records, if it does.
    pub(crate) fn recorded(&self) -> Option<Arc<Recorded>> {
        self.recorded.clone()
    }
}

/// What a connection needs besides its own bytes.
#[derive(Clone, Debug)]
struct Site {
    intake: Arc<Intake>,
    shard: Arc<SinkShard>,
    /// Looks through bodies.
    stamps: Rc<RefCell<Stamps>>,
    /// What changes how it answers, if anything does.
    steering: Option<Arc<Steering>>,
    /// Set where the connection is to be closed without another word.
    is_cut: Rc<Cell<bool>>,
}

/// When an answer is due; until then its request counts as active.
#[derive(Debug)]
struct Due {
    moment: Moment,
    _active: Option<Active>,
}

impl Site {
    fn service(&self) -> &dyn Service {
        self.intake.service.as_ref()
    }

    /// A whole body or message, without its compression.
    fn decoded(&self, body: &[u8]) {
        self.shard.decoded_bytes.add(body.len() as u64);
        let mut stamps = self.stamps.borrow_mut();
        stamps.feed(body);
        stamps.end();
    }

    /// Enters what stands in the header of a whole request or call for stamps; `body` is
    /// its body or its first message.
    fn headed(&self, token: &[u8], body: &[u8]) {
        self.stamps.borrow().header(token, body);
    }

    /// When the answer to what came `now` is due.
    fn due(&self, now: Moment) -> Due {
        let active = self.steering.as_ref().map(|steering| steering.begin(1));
        let told = self.steering.as_ref().and_then(|steering| steering.delay());
        Due {
            moment: now + told.unwrap_or(self.intake.delay),
            _active: active,
        }
    }

    /// Whether the request that begins now is refused, and how.
    fn refusal(&self) -> Option<Refusal> {
        self.steering.as_ref()?.refusal()
    }

    /// The answer to a request that was refused; none where the connection is closed.
    fn refused(&self, with: Refusal) -> Answer {
        self.shard.messages.add(1);
        self.shard.refused.add(1);
        match with {
            Refusal::Status {
                status,
                retry_after,
            } => {
                let answer = Answer::status(status);
                match retry_after {
                    Some(seconds) => answer.header("retry-after", seconds.to_string()),
                    None => answer,
                }
            }
            Refusal::Close => {
                self.is_cut.set(true);
                Answer::status(503)
            }
        }
    }

    /// Whether no answer goes out for now.
    fn is_queueing(&self) -> bool {
        let steering = self.steering.as_ref();
        steering.is_some_and(|steering| steering.behaviour().is_queueing)
    }
}

impl Due {
    /// Of an answer to no request.
    const fn at(moment: Moment) -> Self {
        Self {
            moment,
            _active: None,
        }
    }
}

/// What is spoken on a connection.
#[derive(Debug)]
enum Talk {
    /// Not known yet: the first bytes will tell.
    Unknown(Site, Vec<u8>),
    Http1(Box<Http1>),
    Http2(Box<Http2>),
}

impl Talk {
    fn take(&mut self, input: &[u8], now: Moment) {
        match self {
            Self::Http1(talk) => talk.take(input, now),
            Self::Http2(talk) => talk.take(input, now),
            Self::Unknown(site, seen) => {
                seen.extend_from_slice(input);
                let Some(is_http2) = is_http2(seen) else {
                    return;
                };
                let (site, seen) = (site.clone(), std::mem::take(seen));
                *self = if is_http2 {
                    Self::Http2(Box::new(Http2::new(site)))
                } else {
                    Self::Http1(Box::new(Http1::new(site)))
                };
                self.take(&seen, now);
            }
        }
    }

    /// Lays out what is due `now`.
    fn fill(&mut self, now: Moment) {
        match self {
            Self::Unknown(..) => {}
            Self::Http1(talk) => talk.fill(now),
            Self::Http2(talk) => talk.fill(now),
        }
    }

    /// What is to be sent.
    fn unsent(&self) -> &[u8] {
        match self {
            Self::Unknown(..) => &[],
            Self::Http1(talk) => talk.unsent(),
            Self::Http2(talk) => talk.unsent(),
        }
    }

    /// So much of it was sent.
    fn advance(&mut self, length: usize) {
        match self {
            Self::Unknown(..) => {}
            Self::Http1(talk) => talk.advance(length),
            Self::Http2(talk) => talk.advance(length),
        }
    }

    /// When the next answer is due.
    fn due(&self) -> Option<Moment> {
        match self {
            Self::Unknown(..) => None,
            Self::Http1(talk) => talk.due(),
            Self::Http2(talk) => talk.due(),
        }
    }

    /// Whether so many answers wait that no more is to be read.
    fn is_full(&self) -> bool {
        match self {
            Self::Unknown(..) => false,
            Self::Http1(talk) => talk.is_full(),
            Self::Http2(talk) => talk.is_full(),
        }
    }

    /// Whether the connection ends once all is sent.
    fn is_over(&self) -> bool {
        match self {
            Self::Unknown(..) => false,
            Self::Http1(talk) => talk.is_over(),
            Self::Http2(talk) => talk.is_over(),
        }
    }

    /// The peer has closed the connection.
    fn finish(&mut self) {
        match self {
            Self::Unknown(site, seen) => site.shard.errors.add(u64::from(!seen.is_empty())),
            Self::Http1(talk) => talk.finish(),
            Self::Http2(talk) => talk.finish(),
        }
    }
}

/// Counts and answers the requests of `stream` until either side closes it or the
/// worker ends.
pub(crate) async fn serve(worker: Rc<Worker>, intake: Arc<Intake>, stream: Stream) {
    serve_on(worker, intake, stream, &[]).await;
}

/// The same of a stream of which `seen` was read already.
pub(crate) async fn serve_on(
    worker: Rc<Worker>,
    intake: Arc<Intake>,
    mut stream: Stream,
    seen: &[u8],
) {
    let site = Site {
        intake,
        shard: Arc::clone(&worker.base.shard),
        stamps: Rc::new(RefCell::new(worker.stamps())),
        steering: worker.steering().cloned(),
        is_cut: Rc::default(),
    };
    let mut talk = Talk::Unknown(site.clone(), Vec::new());
    talk.take(seen, clock::now());
    let mut stopping = worker.base.stopping_stream();
    let mut timer = None;
    loop {
        let version = worker.heed();
        let is_queueing = site.is_queueing();
        if send(&mut talk, &mut stream, is_queueing).await.is_err() {
            return;
        }
        if talk.is_over() {
            // Whoever is not there any more needs no end.
            stream.shutdown().await.unwrap_or_default();
            return;
        }
        let due = talk.due().filter(|_| !is_queueing);
        let is_full = talk.is_full();
        let receive = async {
            if is_full {
                return pending().await;
            }
            let take = |bytes: &[u8]| talk.take(bytes, clock::now());
            worker.receive(&mut stream, &mut stopping, take).await
        };
        // All arms are cancel-safe.
        let received = match due {
            None if worker.steering().is_none() => receive.await,
            None => select! {
                biased;
                () = worker.changed_from(version) => continue,
                received = receive => received,
                () = worker.base.token.cancelled(), if is_full => return,
            },
            Some(due) => select! {
                biased;
                waited = until(&mut timer, due) => match waited {
                    Ok(()) => continue,
                    Err(_) => return,
                },
                () = worker.changed_from(version) => continue,
                received = receive => received,
                () = worker.base.token.cancelled(), if is_full => return,
            },
        };
        if site.is_cut.get() {
            return;
        }
        match received {
            Some(Ok(1..)) => {}
            Some(Ok(0) | Err(_)) => return talk.finish(),
            None => return,
        }
    }
}

/// Sends all that is due, and what waits already where answers are queued.
async fn send(talk: &mut Talk, stream: &mut Stream, is_queueing: bool) -> io::Result<()> {
    loop {
        if !is_queueing {
            talk.fill(clock::now());
        }
        if talk.unsent().is_empty() {
            return Ok(());
        }
        let write =
            |context: &mut Context<'_>| Pin::new(&mut *stream).poll_write(context, talk.unsent());
        match poll_fn(write).await? {
            0 => return Err(io::ErrorKind::WriteZero.into()),
            length => talk.advance(length),
        }
    }
}

async fn until(timer: &mut Option<Timer>, due: Moment) -> io::Result<()> {
    let own = match timer.take() {
        Some(timer) => timer,
        None => Timer::new()?,
    };
    timer.insert(own).until(due).await;
    Ok(())
}
