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
use std::rc::Rc;
use std::sync::Arc;

use stillwell_metric::SinkShard;
use stillwell_plan::{IntakeService, Refusal};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Stream;
use stillwell_wire::server::{Http, Protocol as _, Reader as _, Versions, drive};
use tokio::io::AsyncWriteExt as _;

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

/// Makes connections of HTTP/1.1 and HTTP/2 to an intake.
#[derive(Debug)]
struct IntakeVersions(Site);

impl Versions for IntakeVersions {
    type End = ();
    type Http1 = Http1;
    type Http2 = Http2;

    fn http1(&self) -> Http1 {
        Http1::new(self.0.clone())
    }

    fn http2(&self) -> Http2 {
        Http2::new(self.0.clone())
    }

    fn count_cut(&self) {
        self.0.shard.errors.add(1);
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
    let mut http = Http::new(IntakeVersions(Site {
        intake,
        shard: Arc::clone(&worker.base.shard),
        stamps: Rc::new(RefCell::new(worker.stamps())),
        steering: worker.steering().cloned(),
        is_cut: Rc::default(),
    }));
    http.take(seen, clock::now());
    let mut state = worker.begin();
    let end = drive(&mut http, worker.as_ref(), &mut state, &mut stream).await;
    if end.is_some() {
        // A peer that has gone needs no end.
        stream.shutdown().await.unwrap_or_default();
    }
}
