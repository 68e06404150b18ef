//! Requests, laid out byte for byte before the load begins.

use bytes::Bytes;
use stillwell_http::h2::{BodyLength, H2RequestBlock};
use stillwell_http::h3::{self, write_data_head};
use stillwell_http::{HeadError, RequestTemplate, Scheme};
use stillwell_payload::{BlockSet, BuildError};
use stillwell_plan::{
    Alpn, BodyPlan, ClientTlsPlan, EndpointPlan, GrpcMessages, LoadPlan, LoadPlanError,
    LoadProtocol, PayloadPlan, RequestPlan,
};
use stillwell_wire::tls::{ClientTls, TlsError};

use super::calls::{self, Call};
use super::trace;
use super::tunnel::ProxyRequest;

/// A load that cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum PrepareLoadError {
    /// The plan makes no sense.
    #[error("read the plan of the load")]
    Plan(#[from] LoadPlanError),
    /// A head that would not arrive as it was given.
    #[error("write the head of request `{method} {path}`")]
    Head {
        /// Its method.
        method: String,
        /// Its path.
        path: String,
        /// The reason.
        source: HeadError,
    },
    /// An endpoint that a proxy cannot connect to.
    #[error("write the request that has the proxy connect with {address}")]
    Ask {
        /// The endpoint's address.
        address: String,
        /// The reason.
        source: HeadError,
    },
    /// TLS that cannot be configured.
    #[error("prepare TLS")]
    Tls(#[from] TlsError),
    /// The same of the proxy.
    #[error("prepare TLS with the proxy")]
    Proxy(#[source] TlsError),
    /// Requests that come from elsewhere are taken when they are due.
    #[error("take requests from elsewhere: give a rate at which they are sent")]
    Unscheduled,
    /// The payload of a body could not be built.
    #[error("build the body of request `{method} {path}`")]
    Payload {
        /// Its method.
        method: String,
        /// Its path.
        path: String,
        /// The reason.
        source: BuildError,
    },
}

/// Settings of TLS, if any endpoint uses it.
pub(super) fn tls(plan: &LoadPlan) -> Result<Option<ClientTls>, TlsError> {
    let hosts: Vec<&String> = plan
        .endpoints
        .iter()
        .filter_map(|endpoint| endpoint.tls_host.as_ref())
        .collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    let alpn = match plan.connecting.protocol {
        LoadProtocol::Http1 => Alpn::Http1,
        LoadProtocol::Http2 => Alpn::Http2,
        LoadProtocol::Http3 => Alpn::Http3,
    };
    let tls = ClientTls::new(&ClientTlsPlan {
        alpn: vec![alpn],
        ..plan.tls.clone()
    })?;
    for host in hosts {
        tls.server_name(host)?;
    }
    Ok(Some(tls))
}

/// An address and what is sent to it.
#[derive(Debug)]
pub(super) struct Endpoint {
    pub(super) address: String,
    /// The request to the proxy, if there is one.
    pub(super) ask: Option<ProxyRequest>,
    /// Name in the certificate, with TLS.
    pub(super) tls_host: Option<String>,
    /// In turn.
    pub(super) requests: Vec<Request>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    /// All that is written; of HTTP/2 the body, of HTTP/3 nothing.
    pub(super) bytes: Box<[u8]>,
    /// The head of HTTP/2.
    pub(super) block: Option<H2RequestBlock>,
    /// True if an answer may have a body.
    pub(super) wants_body: bool,
    /// Positions of its trace context in the bytes; HTTP/1.1 only.
    pub(super) trace_at: Box<[usize]>,
    /// Index among the plan's requests for its endpoint.
    pub(super) described: usize,
    /// The gRPC part, if it is a call.
    pub(super) call: Option<Call>,
    /// All of it, of HTTP/3.
    pub(super) http3: Option<Http3Request>,
}

/// A request of HTTP/3.
#[derive(Debug)]
pub(super) struct Http3Request {
    pub(super) block: h3::H3RequestBlock,
    /// Framing of its body, as in its head.
    pub(super) length: BodyLength,
    /// Head and body in their frames; requests that are alike share them.
    pub(super) whole: Bytes,
    /// The length of the head in its frame.
    pub(super) head_bytes: usize,
}

impl Http3Request {
    fn new(block: &h3::H3RequestBlock, body: &[u8]) -> Self {
        let length = match body.len() {
            0 => BodyLength::None,
            bytes => BodyLength::Bytes(bytes as u64),
        };
        let mut whole = Vec::with_capacity(block.bytes_max() + body.len());
        block.write(&[], length, &mut whole);
        let head_bytes = whole.len();
        if !body.is_empty() {
            write_data_head(body.len(), &mut whole);
            whole.extend_from_slice(body);
        }
        Self {
            block: block.clone(),
            length,
            whole: whole.into(),
            head_bytes,
        }
    }
}

pub(super) fn endpoints(plan: &LoadPlan) -> Result<Vec<Endpoint>, PrepareLoadError> {
    let build = |endpoint: &EndpointPlan| {
        let mut requests = Vec::new();
        for (index, request) in endpoint.requests.iter().enumerate() {
            add(&mut requests, plan, endpoint, request, index)?;
        }
        let tunnel = plan.tunnel.as_ref();
        let is_quic = plan.connecting.protocol == LoadProtocol::Http3;
        let ask = tunnel.map(|tunnel| ProxyRequest::new(tunnel, &endpoint.address, is_quic));
        let ask = ask.transpose().map_err(|source| PrepareLoadError::Ask {
            address: endpoint.address.clone(),
            source,
        })?;
        Ok(Endpoint {
            address: endpoint.address.clone(),
            ask,
            tls_host: endpoint.tls_host.clone(),
            requests,
        })
    };
    plan.endpoints.iter().map(build).collect()
}

/// One request that no plan has: `request`, for any endpoint.
pub(super) fn lay_out(plan: &LoadPlan, request: &RequestPlan) -> Result<Request, PrepareLoadError> {
    let no_endpoint = || PrepareLoadError::Plan(LoadPlanError::NoEndpoint);
    let endpoint = plan.endpoints.first().ok_or_else(no_endpoint)?;
    let mut requests = Vec::with_capacity(1);
    // It is none of those that the plan has.
    add(&mut requests, plan, endpoint, request, usize::MAX)?;
    requests.pop().ok_or_else(no_endpoint)
}

fn add(
    requests: &mut Vec<Request>,
    plan: &LoadPlan,
    endpoint: &EndpointPlan,
    request: &RequestPlan,
    index: usize,
) -> Result<(), PrepareLoadError> {
    let head = Head::new(plan, endpoint, request).map_err(|source| PrepareLoadError::Head {
        method: request.method.clone(),
        path: request.path.clone(),
        source,
    })?;
    let before = requests.len();
    let blocks = |payload: &PayloadPlan| {
        let seed = plan.seed.derive("body", index as u64);
        let set = BlockSet::build(payload, payload.cache, seed, None);
        set.map_err(|source| PrepareLoadError::Payload {
            method: request.method.clone(),
            path: request.path.clone(),
            source,
        })
    };
    let wants_body = request.method != "HEAD";
    match &request.body {
        BodyPlan::None => requests.push(head.with(&[], wants_body)),
        BodyPlan::Bytes(body) => requests.push(head.with(body, wants_body)),
        BodyPlan::Grpc(call) => {
            let set = match &call.messages {
                GrpcMessages::Payload(payload) => Some(blocks(payload)?),
                GrpcMessages::Given(_) => None,
            };
            calls::lay_out(&head, call, set.as_ref(), requests);
        }
        BodyPlan::Payload(payload) => {
            let set = blocks(payload)?;
            for block in 0..set.len() {
                requests.push(head.with(set.run(block, block + 1).bytes, wants_body));
            }
        }
    }
    for built in &mut requests[before..] {
        built.described = index;
        let is_http1 = built.block.is_none() && built.http3.is_none();
        if let (Some(trace), true) = (&plan.telemetry.trace, is_http1) {
            built.trace_at = trace::places(&built.bytes, trace.headers);
        }
    }
    Ok(())
}

/// The head of a request in either version.
#[derive(Clone, Debug)]
pub(super) enum Head {
    Http1(RequestTemplate),
    Http2(H2RequestBlock),
    Http3(h3::H3RequestBlock),
}

impl Head {
    pub(super) fn new(
        plan: &LoadPlan,
        endpoint: &EndpointPlan,
        request: &RequestPlan,
    ) -> Result<Self, HeadError> {
        // Of HTTP/2 they are written with each request.
        let is_http1 = plan.connecting.protocol == LoadProtocol::Http1;
        let trace = plan.telemetry.trace.as_ref().filter(|_| is_http1);
        let blank = trace.map_or_else(Vec::new, |trace| trace::blank_headers(trace.headers));
        let traced = blank.iter().map(|(name, value)| (*name, value.as_str()));
        let own = request.headers.iter();
        let own = own.map(|(name, value)| (name.as_str(), value.as_str()));
        let of_call = calls::headers(&request.body);
        let is_given = |name: &str| {
            let mut own = request.headers.iter();
            own.any(|(other, _)| other.eq_ignore_ascii_case(name))
        };
        let of_call = of_call.iter().filter(|(name, _)| !is_given(name));
        let of_call = of_call.map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = traced.chain(of_call).chain(own).collect();
        let RequestPlan {
            method,
            path,
            authority,
            ..
        } = request;
        Ok(match plan.connecting.protocol {
            LoadProtocol::Http1 => {
                Self::Http1(RequestTemplate::new(method, path, authority, &headers)?)
            }
            LoadProtocol::Http3 => {
                Self::Http3(h3::H3RequestBlock::new(method, authority, path, &headers)?)
            }
            LoadProtocol::Http2 => {
                let scheme = match endpoint.tls_host {
                    Some(_) => Scheme::Https,
                    None => Scheme::Http,
                };
                Self::Http2(H2RequestBlock::new(
                    method, scheme, authority, path, &headers,
                )?)
            }
        })
    }

    pub(super) fn with(&self, body: &[u8], wants_body: bool) -> Request {
        match self {
            Self::Http1(template) => {
                let mut bytes = Vec::with_capacity(template.head_bytes_max() + body.len());
                template.write_head(body.len() as u64, &mut bytes);
                bytes.extend_from_slice(body);
                Request {
                    bytes: bytes.into_boxed_slice(),
                    block: None,
                    wants_body,
                    trace_at: Box::default(),
                    described: 0,
                    call: None,
                    http3: None,
                }
            }
            Self::Http2(block) => Request {
                bytes: body.into(),
                block: Some(block.clone()),
                wants_body,
                trace_at: Box::default(),
                described: 0,
                call: None,
                http3: None,
            },
            Self::Http3(block) => Request {
                bytes: Box::default(),
                block: None,
                wants_body,
                trace_at: Box::default(),
                described: 0,
                call: None,
                http3: Some(Http3Request::new(block, body)),
            },
        }
    }
}
