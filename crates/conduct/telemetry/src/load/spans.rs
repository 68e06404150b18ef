//! Export of spans from the queue of the workers.

use std::sync::Arc;
use std::sync::mpsc::{Receiver as Queue, TryRecvError};

use stillwell_load::Span;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::{EndpointPlan, SpanProtocol, SpanSinkPlan};
use stillwell_plan::tls::Alpn;
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_wire::tls::ClientTls;
use tokio::time::{sleep, timeout};

use super::counts::ExportCounts;
use super::receiver::Receiver;
use super::stats::check_accepted;
use crate::format::otlp::otlp_spans;
use crate::format::page::Origin;
use crate::format::spans::{SpanBatch, SpanRequest};
use crate::format::zipkin::zipkin_spans;

/// Maximum number of spans in a batch.
const BATCH_MAX: usize = 1024;
/// Interval between polls of an empty queue. A wake-up for each span would cost the
/// worker a system call.
const POLL_EVERY: Nanos = Nanos::from_millis(20);
/// Timeout of one batch.
const EXPORT_MAX: Nanos = Nanos::from_secs(2);
/// Pause after a batch that was not delivered.
const FAILED_PAUSE: Nanos = Nanos::from_millis(20);

/// The gRPC method of OpenTelemetry's trace receivers.
const OTLP_METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Exports spans until the last worker has ended.
#[derive(Debug)]
pub(crate) struct SpanExporter {
    counts: Arc<ExportCounts>,
    origin: Arc<Origin>,
    protocol: SpanProtocol,
    receiver: Receiver,
    queue: Queue<Span>,
    requests: Vec<Vec<SpanRequest>>,
    epoch: Nanos,
}

impl SpanExporter {
    pub(super) fn new(
        plan: &SpanSinkPlan,
        load: &LoadPlan,
        queue: Queue<Span>,
        origin: &Arc<Origin>,
        tls: &ClientTls,
    ) -> Self {
        let alpn = match plan.protocol {
            SpanProtocol::OtlpGrpc => Alpn::Http2,
            SpanProtocol::OtlpHttp | SpanProtocol::Zipkin => Alpn::Http1,
        };
        let since_boot = Nanos::new(clock::now().as_u64());
        Self {
            counts: Arc::new(ExportCounts::new(&plan.name)),
            origin: Arc::clone(origin),
            protocol: plan.protocol,
            receiver: Receiver::new(&plan.receiver, tls, alpn),
            queue,
            requests: load.endpoints.iter().map(requests).collect(),
            epoch: clock::wall().saturating_sub(since_boot),
        }
    }

    pub(super) const fn counts(&self) -> &Arc<ExportCounts> {
        &self.counts
    }

    pub(super) async fn run(self) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            batch.clear();
            let is_over = self.fill(&mut batch);
            if batch.is_empty() {
                if is_over {
                    return;
                }
                sleep(POLL_EVERY.as_duration()).await;
                continue;
            }
            let exported = timeout(EXPORT_MAX.as_duration(), self.export(&batch)).await;
            let exported =
                exported.unwrap_or_else(|_| Err(format!("it takes longer than {EXPORT_MAX}")));
            let has_failed = exported.is_err();
            if !has_failed {
                self.counts.count_spans(batch.len() as u64);
            }
            self.counts.count(exported, false);
            if has_failed {
                sleep(FAILED_PAUSE.as_duration()).await;
            }
        }
    }

    /// Takes the waiting spans; returns whether the queue is closed.
    fn fill(&self, batch: &mut Vec<Span>) -> bool {
        while batch.len() < BATCH_MAX {
            match self.queue.try_recv() {
                Ok(span) => batch.push(span),
                Err(TryRecvError::Empty) => return false,
                Err(TryRecvError::Disconnected) => return true,
            }
        }
        false
    }

    async fn export(&self, spans: &[Span]) -> Result<(), String> {
        let batch = SpanBatch {
            epoch: self.epoch,
            requests: &self.requests,
            spans,
        };
        match self.protocol {
            SpanProtocol::OtlpHttp => {
                let headers = [("content-type", "application/x-protobuf")];
                let body = otlp_spans(&self.origin, &batch);
                check_accepted(&self.receiver.post(&headers, &body).await?)
            }
            SpanProtocol::OtlpGrpc => {
                let message = otlp_spans(&self.origin, &batch);
                check_accepted(&self.receiver.call(OTLP_METHOD, &message).await?)
            }
            SpanProtocol::Zipkin => {
                let headers = [("content-type", "application/json")];
                let body = zipkin_spans(&self.origin, &batch);
                self.receiver.post(&headers, &body).await?;
                Ok(())
            }
        }
    }
}

/// Describes the requests to one endpoint.
fn requests(endpoint: &EndpointPlan) -> Vec<SpanRequest> {
    let scheme = if endpoint.tls_host.is_some() {
        "https"
    } else {
        "http"
    };
    let (host, port) = endpoint.address.rsplit_once(':').unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let describe = |request: &stillwell_plan::load::RequestPlan| SpanRequest {
        method: request.method.clone(),
        url: format!("{scheme}://{}{}", request.authority, request.path),
        host: host.to_owned(),
        port: port.parse().unwrap_or(0),
    };
    endpoint.requests.iter().map(describe).collect()
}
