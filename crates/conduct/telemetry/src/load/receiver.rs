//! Requests of exporters, each on a new connection.

use stillwell_plan::load::ReceiverPlan;
use stillwell_plan::tls::Alpn;
use stillwell_scope::explain;
use stillwell_units::ByteSize;
use stillwell_wire::client::{Endpoint, GrpcEnd, GrpcRequest, Request, unary};
use stillwell_wire::tls::ClientTls;

/// Maximum length of a gRPC response message in bytes.
const CALL_RESPONSE_BYTES_MAX: u32 = 1 << 20;

/// Maximum size of a response.
const RESPONSE_MAX: ByteSize = ByteSize::mib(1);

/// Maximum length of the part of a response that an error message quotes, in characters.
const QUOTE_CHARS_MAX: usize = 200;

/// A receiver of metrics or spans over HTTP.
#[derive(Debug)]
pub(super) struct Receiver {
    plan: ReceiverPlan,
    endpoint: Endpoint,
}

impl Receiver {
    pub(super) fn new(plan: &ReceiverPlan, tls: &ClientTls, alpn: Alpn) -> Self {
        let address = plan.address.clone();
        let endpoint = match &plan.tls_host {
            None => Endpoint::Tcp { address },
            Some(host) => Endpoint::Tls {
                address,
                tls: tls.offering(&[alpn]),
                host: host.clone(),
            },
        };
        Self {
            plan: plan.clone(),
            endpoint,
        }
    }

    /// Sends `body`, and returns the body of a response of success.
    pub(super) async fn post(
        &self,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, String> {
        let fixed = [("user-agent", "stillwell"), ("connection", "close")];
        let request = Request {
            method: "POST",
            path: &self.plan.path,
            authority: &self.plan.authority,
            headers: &[&fixed, headers].concat(),
            body,
        };
        let response = self.endpoint.request(&request, RESPONSE_MAX).await;
        let response = response.map_err(|error| explain(&error))?;
        if (200..300).contains(&response.status) {
            return Ok(response.body);
        }
        let why = String::from_utf8_lossy(&response.body);
        let why: String = why.trim().chars().take(QUOTE_CHARS_MAX).collect();
        Err(format!("it answers {} {why}", response.status))
    }

    /// Calls `method`, such as `/package.Service/Method`, and returns the message of the
    /// response.
    pub(super) async fn call(&self, method: &str, message: &[u8]) -> Result<Vec<u8>, String> {
        let request = GrpcRequest {
            authority: &self.plan.authority,
            path: method,
            headers: &[("user-agent", "stillwell")],
            message_bytes_max: CALL_RESPONSE_BYTES_MAX,
        };
        let called = unary(&self.endpoint, &request, message).await;
        let (response, end) = called.map_err(|error| explain(&error))?;
        match end {
            GrpcEnd::Status { status: 0, .. } => {
                Ok(response.map(|response| response.bytes).unwrap_or_default())
            }
            GrpcEnd::Status { status, message } => {
                let why = String::from_utf8_lossy(&message);
                Err(format!("it answers gRPC status {status} {why}"))
            }
            GrpcEnd::NoStatus => Err("it answers without a gRPC status".to_owned()),
            GrpcEnd::Failed(cause) => Err(format!("it refuses the request: {cause:?}")),
        }
    }
}
