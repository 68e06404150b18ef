//! The catalogue of ways in which bytes reach a target: one line for each.

use std::sync::Arc;

use stillwell_load::{BlockRequests, ScenarioUsers};
use stillwell_plan::generator::{AcknowledgedBy, AcknowledgedPlan};
use stillwell_plan::payload::TemplatePlan;
use stillwell_plan::{GeneratorPlan, PayloadFormat, TransportPlan};
use stillwell_worker::{Opener, TransportError};

use crate::acknowledged::Posts;
use crate::broker::{Amqp, Kafka, Nats, Producer};
use crate::drive::Push;
use crate::exchange;
use crate::grpc::Grpc;
use crate::hec::Hec;
use crate::round_trip::RoundTrip;
use crate::trace_agent;
use crate::transport::{Files, PassthruFile, Tcp, Tls, Udp, UnixDatagram, UnixStream};

/// An environment in place of a transport.
#[derive(Debug, thiserror::Error)]
#[error("an environment sends nothing: crate `environment` prepares it")]
struct NotSent;

/// The opener of the transport that `plan` names.
pub(crate) fn opener(plan: &GeneratorPlan) -> Result<Arc<dyn Opener>, TransportError> {
    Ok(match &plan.transport {
        TransportPlan::Tcp { address } => Arc::new(Push(Tcp::new(address))),
        TransportPlan::Udp { address, bind } => Arc::new(Push(Udp::new(address, bind))),
        TransportPlan::UnixStream { path } => Arc::new(Push(UnixStream::new(path))),
        TransportPlan::UnixDatagram { path } => Arc::new(Push(UnixDatagram::new(path))),
        TransportPlan::Http {
            url,
            headers,
            exchange,
        } => Arc::new(exchange::blocks(url, headers, exchange)?),
        TransportPlan::Requests(plan) => Arc::new(BlockRequests::of_requests(plan)?),
        TransportPlan::Scenario(scenario) => Arc::new(ScenarioUsers::new(plan, scenario)?),
        TransportPlan::SplunkHec {
            url,
            token,
            acknowledgements,
        } => Arc::new(Hec::new(plan, url, token, *acknowledgements)?),
        TransportPlan::Acknowledged(exchange) => acknowledged(plan, exchange)?,
        TransportPlan::Grpc { url } => Arc::new(Grpc::new(url)?),
        TransportPlan::TraceAgent { url, retries } => {
            Arc::new(trace_agent::posts(plan, url, *retries)?)
        }
        TransportPlan::Files { layout, bytes_max } => {
            let (bytes_max, files) = (bytes_max.bytes(), plan.concurrency.connections());
            let ends_lines = ends_lines(&plan.payload.format);
            Arc::new(Files::new(layout, bytes_max, files, &plan.seed, ends_lines))
        }
        TransportPlan::PassthruFile { path } => {
            let ends_lines = ends_lines(&plan.payload.format);
            Arc::new(Push(PassthruFile::new(path, ends_lines)))
        }
        TransportPlan::TcpRr {
            address,
            request_bytes,
            response_bytes,
        } => Arc::new(RoundTrip::new(address, *request_bytes, *response_bytes)),
        TransportPlan::Tls { to, tls } => Arc::new(Tls::new(to, tls)?),
        TransportPlan::Kafka(to) => Arc::new(Producer::new(plan, Kafka::new(to)?)),
        TransportPlan::Nats(to) => Arc::new(Producer::new(plan, Nats::new(to)?)),
        TransportPlan::Amqp(to) => Arc::new(Producer::new(plan, Amqp::new(to)?)),
        TransportPlan::FileTree(_)
        | TransportPlan::ProcessTree(_)
        | TransportPlan::ProcFs(_)
        | TransportPlan::Container(_)
        | TransportPlan::Kubernetes(_) => {
            return Err(TransportError::new("choose the transport", NotSent));
        }
    })
}

/// Returns true if each event ends with a line feed.
fn ends_lines(format: &PayloadFormat) -> bool {
    format.ends_lines()
        && format
            .template()
            .is_none_or(TemplatePlan::ends_with_line_feed)
}

fn acknowledged(
    plan: &GeneratorPlan,
    exchange: &AcknowledgedPlan,
) -> Result<Arc<dyn Opener>, TransportError> {
    Ok(match &exchange.by {
        AcknowledgedBy::Status { headers } => Arc::new(Posts::new(exchange, headers)?),
        AcknowledgedBy::SplunkHec { token, questions } => {
            let hec = Hec::new(plan, &exchange.url, token, Some(*questions))?;
            Arc::new(hec.acknowledged(exchange))
        }
    })
}
