//! Spans, on their way from the workers to whoever gets them.

use std::sync::Arc;
use std::sync::mpsc::{Receiver as Queue, TryRecvError};

use stillwell_export::{Origin, Span, SpanBatch, SpanRequest, otlp_spans, zipkin_spans};
use stillwell_plan::{Alpn, EndpointPlan, LoadPlan, SpanProtocol, SpanSinkPlan};
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_wire::tls::ClientTls;
use tokio::time::{sleep, timeout};

use super::account::Account;
use super::post::Receiver;
use super::sink::taken;

/// Spans that travel together at most.
const BATCH_MAX: usize = 1024;
/// Without spans, the queue is looked at so often. Nobody is woken for a span:
/// that would cost the worker a call of the kernel.
const LOOK_EVERY: Nanos = Nanos::from_millis(20);
/// How long one batch may take.
const EXPORT_MAX: Nanos = Nanos::from_secs(2);
/// After a batch that got lost.
const FAILED_PAUSE: Nanos = Nanos::from_millis(100);

/// What is sent to OpenTelemetry's receivers of traces.
const OTLP_METHOD: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// Exports spans until there are no more workers.
#[derive(Debug)]
pub(super) struct Exporter {
    account: Arc<Account>,
    origin: Arc<Origin>,
    protocol: SpanProtocol,
    receiver: Receiver,
    queue: Queue<Span>,
    requests: Vec<Vec<SpanRequest>>,
    epoch: Nanos,
}

impl Exporter {
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
            account: Arc::new(Account::new(&plan.name)),
            origin: Arc::clone(origin),
            protocol: plan.protocol,
            receiver: Receiver::new(&plan.receiver, tls, alpn),
            queue,
            requests: load.endpoints.iter().map(requests).collect(),
            epoch: clock::wall().saturating_sub(since_boot),
        }
    }

    pub(super) const fn account(&self) -> &Arc<Account> {
        &self.account
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
                sleep(LOOK_EVERY.as_duration()).await;
                continue;
            }
            let exported = timeout(EXPORT_MAX.as_duration(), self.export(&batch)).await;
            let exported =
                exported.unwrap_or_else(|_| Err(format!("it takes longer than {EXPORT_MAX}")));
            let has_failed = exported.is_err();
            if !has_failed {
                self.account.spans.add(batch.len() as u64);
            }
            self.account.note(exported, false);
            if has_failed {
                sleep(FAILED_PAUSE.as_duration()).await;
            }
        }
    }

    /// Takes what waits; whether there will be no more.
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
                taken(&self.receiver.post(&headers, &body).await?)
            }
            SpanProtocol::OtlpGrpc => {
                let message = otlp_spans(&self.origin, &batch);
                taken(&self.receiver.call(OTLP_METHOD, &message).await?)
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

/// What spans say of the requests to one endpoint.
fn requests(endpoint: &EndpointPlan) -> Vec<SpanRequest> {
    let scheme = if endpoint.tls_host.is_some() {
        "https"
    } else {
        "http"
    };
    let (host, port) = endpoint.address.rsplit_once(':').unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let one = |request: &stillwell_plan::RequestPlan| SpanRequest {
        method: request.method.clone(),
        url: format!("{scheme}://{}{}", request.authority, request.path),
        host: host.to_owned(),
        port: port.parse().unwrap_or(0),
    };
    endpoint.requests.iter().map(one).collect()
}
