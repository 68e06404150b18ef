//! The catalogue of ways in which bytes reach a target: one line for each.

use std::sync::Arc;

use stillwell_plan::{AcknowledgedBy, AcknowledgedPlan, GeneratorPlan, TransportPlan};
use stillwell_worker::{Opener, TransportError};

use crate::acknowledged::Posts;
use crate::broker::{Amqp, Kafka, Nats, Producer};
use crate::container::ContainersToBe;
use crate::drive::Push;
use crate::exchange;
use crate::file_tree::FileTree;
use crate::grpc::Grpc;
use crate::hec::Hec;
use crate::kubernetes::ObjectsToBe;
use crate::proc_fs::ProcFs;
use crate::process_tree::ProcessTree;
use crate::round_trip::RoundTrip;
use crate::trace_agent;
use crate::transport::{Files, PassthruFile, Tcp, Tls, Udp, UnixDatagram, UnixStream};

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
            let (bytes_max, files) = (bytes_max.bytes(), plan.connections);
            Arc::new(Files::new(layout, bytes_max, files, &plan.seed))
        }
        TransportPlan::PassthruFile { path } => Arc::new(Push(PassthruFile::new(path))),
        TransportPlan::TcpRr {
            address,
            request_bytes,
            response_bytes,
        } => Arc::new(RoundTrip::new(address, *request_bytes, *response_bytes)),
        TransportPlan::FileTree(tree) => Arc::new(FileTree::new(tree, &plan.seed)),
        TransportPlan::Tls { to, tls } => Arc::new(Tls::new(to, tls)?),
        TransportPlan::ProcessTree(tree) => Arc::new(ProcessTree::new(tree, &plan.seed)?),
        TransportPlan::ProcFs(folder) => Arc::new(ProcFs::new(folder, &plan.seed)?),
        TransportPlan::Container(containers) => Arc::new(ContainersToBe::new(containers, &plan.id)),
        TransportPlan::Kubernetes(objects) => Arc::new(ObjectsToBe::new(objects, &plan.id)?),
        TransportPlan::Kafka(to) => Arc::new(Producer::new(plan, Kafka::new(to)?)),
        TransportPlan::Nats(to) => Arc::new(Producer::new(plan, Nats::new(to)?)),
        TransportPlan::Amqp(to) => Arc::new(Producer::new(plan, Amqp::new(to)?)),
    })
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
