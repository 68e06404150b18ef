//! Simulates services that others send to: whole requests in over HTTP/1.1 or HTTP/2, and
//! answers out as the service would give them.

mod aws_chunks;
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
mod memory;
mod openmetrics;
mod otlp;
mod plain;
mod recorded;
mod request;
mod service;
mod site;
mod sqs;
mod stateful_logs;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use stillwell_plan::sink::IntakeService;
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_wire::server::{Activity, Http, Protocol as _, Versions, drive_watched, linger};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::worker::Worker;
use http1::Http1;
use http2::Http2;
use memory::BodyMemory;
pub(crate) use recorded::Recorded;
use service::Service;
pub(crate) use site::Intake;
use site::Site;

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
            memory: BodyMemory::default(),
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
            memory: BodyMemory::default(),
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
/// worker ends. The connection is not idle while an answer is due.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    worker: Rc<Worker>,
    intake: Arc<Intake>,
    stream: S,
    activity: Activity,
) {
    serve_on(worker, intake, stream, activity, &[]).await;
}

/// The same of a stream of which `seen` was read already.
pub(crate) async fn serve_on<S: AsyncRead + AsyncWrite + Unpin>(
    worker: Rc<Worker>,
    intake: Arc<Intake>,
    mut stream: S,
    activity: Activity,
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
    let mut reads = worker.reads(Rc::clone(&activity));
    let reader = worker.as_ref();
    let end = drive_watched(&mut http, reader, &mut reads, &activity, &mut stream).await;
    // A peer that has gone needs no end.
    if end.is_some() {
        let discard = async |stream: &mut S| {
            let read = worker.receive(stream, &mut reads, |_| {}).await;
            matches!(read, Some(Ok(1..)))
        };
        linger(&mut stream, discard).await;
    }
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Labels, SinkShard};
    use stillwell_scope::Token;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};
    use tokio::join;

    use super::*;

    /// The connection was reset, by which a client can lose the answer.
    #[tokio::test(start_paused = true)]
    async fn a_client_that_still_sends_gets_the_answer_to_what_is_no_request() {
        let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let cases: [(&[u8], &[u8]); 2] = [
            (b"what\r\n\r\n", b"HTTP/1.1 400 "),
            // The settings of the server come first.
            (preface, &[0, 0]),
        ];
        for (bad, expected) in cases {
            let (mut client, server) = duplex(4 << 10);
            let worker = Worker::new(Arc::new(SinkShard::new(Labels::none())), Token::new());
            let worker = Rc::new(worker);
            let intake = Arc::new(Intake::new("a", &IntakeService::Loki, Nanos::ZERO));
            let exchange = async {
                client.write_all(bad).await.unwrap();
                client.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
                client.shutdown().await.unwrap();
                let mut answer = Vec::new();
                client.read_to_end(&mut answer).await.unwrap();
                answer
            };
            let (answer, ()) = join!(exchange, serve(worker, intake, server, Activity::default()));
            assert!(answer.starts_with(expected), "{answer:?}");
        }
    }
}
