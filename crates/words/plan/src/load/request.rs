//! Requests and their destinations.

use serde::{Deserialize, Serialize};

use super::GrpcPlan;
use crate::PayloadPlan;

/// An address that requests are sent to.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct EndpointPlan {
    /// `host:port` to dial.
    pub address: String,
    /// The host that its certificate is for, where TLS is spoken with it.
    pub tls_host: Option<String>,
    /// Share of the requests, relative to the other weights; at least 1.
    /// Where there is no schedule it is connections that are divided so.
    pub weight: u32,
    /// Requests that are sent in turn, repeatedly; at least one. Workers begin at
    /// different ones.
    pub requests: Vec<RequestPlan>,
}

/// One request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RequestPlan {
    /// The method. `CONNECT` has no path and no body, and requests the host and port of the
    /// authority: an answer from 200 to 299 opens a tunnel, and the connection or the stream is closed.
    pub method: String,
    /// Path and query; starts with `/`.
    pub path: String,
    /// Value of `Host` or `:authority`.
    pub authority: String,
    /// True if a header stated the authority: it is the same for each URL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_authority_stated: bool,
    /// Headers besides that and the length, in this order.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: BodyPlan,
}

/// The body of a request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyPlan {
    /// None.
    None,
    /// These bytes.
    Bytes(Vec<u8>),
    /// The blocks of a payload in turn: as many requests as there are blocks.
    Payload(PayloadPlan),
    /// The messages of a gRPC call.
    Grpc(GrpcPlan),
}
