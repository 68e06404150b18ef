//! Requests, laid out byte for byte before the load begins.

use std::borrow::Cow;

use bytes::Bytes;
use stillwell_http::h2::{BodyLength, H2RequestBlock};
use stillwell_http::h3::{self, write_data_head};
use stillwell_http::{HeadError, RequestTemplate, Scheme};
use stillwell_payload::{BlockSet, BuildError};
use stillwell_plan::load::{
    BodyPlan, ClientPlan, EndpointPlan, GrpcMessages, LoadPlanError, LoadProtocol, RequestPlan,
    TraceHeaders,
};
use stillwell_plan::tls::{Alpn, ClientTlsPlan};
use stillwell_plan::{LoadPlan, PayloadPlan};
use stillwell_units::Seed;
use stillwell_wire::tls::{ClientTls, TlsError};

use super::answer::AnswerBody;
use super::calls::{self, Call};
use super::trace;
use super::tunnel::ProxyRequest;

/// The method that opens a tunnel.
const CONNECT: &str = "CONNECT";

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
    #[error("write the CONNECT request to the proxy for {address}")]
    ProxyHead {
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
    #[error("take requests from a request source: give a rate at which they are sent")]
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

/// Settings of TLS, if any of `endpoints` uses it.
pub(super) fn tls(
    client: &ClientPlan,
    endpoints: &[EndpointPlan],
) -> Result<Option<ClientTls>, TlsError> {
    let hosts: Vec<&String> = endpoints
        .iter()
        .filter_map(|endpoint| endpoint.tls_host.as_ref())
        .collect();
    if hosts.is_empty() {
        return Ok(None);
    }
    let alpn = match client.connecting.protocol {
        LoadProtocol::Http1 => Alpn::Http1,
        LoadProtocol::Http2 => Alpn::Http2,
        LoadProtocol::Http3 => Alpn::Http3,
    };
    let tls = ClientTls::new(&ClientTlsPlan {
        alpn: vec![alpn],
        ..client.tls.clone()
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
    /// Share of the load and of connections, relative to other endpoints.
    pub(super) weight: u32,
    /// The request to the proxy, if there is one.
    pub(super) proxy_request: Option<ProxyRequest>,
    /// Name in the certificate, with TLS.
    pub(super) tls_host: Option<String>,
    /// In turn.
    pub(super) requests: Vec<Request>,
}

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) encoded: EncodedRequest,
    /// The body of its answer.
    pub(super) answer_body: AnswerBody,
    /// Index among the plan's requests for its endpoint.
    pub(super) described: usize,
}

/// A request as its protocol sends it.
#[derive(Debug)]
pub(super) enum EncodedRequest {
    Http1 {
        /// Head and body.
        bytes: Box<[u8]>,
        /// Positions of its trace context in the bytes.
        trace_at: Box<[usize]>,
    },
    Http2 {
        head: H2RequestBlock,
        body: Box<[u8]>,
        /// The gRPC part, if it is a call.
        call: Option<Call>,
    },
    Http3(Http3Request),
}

impl Request {
    /// Returns the bytes that are sent as they are: head and body, or the body of HTTP/2.
    pub(super) fn bytes(&self) -> &[u8] {
        match &self.encoded {
            EncodedRequest::Http1 { bytes, .. } => bytes,
            EncodedRequest::Http2 { body, .. } => body,
            EncodedRequest::Http3(request) => &request.whole,
        }
    }

    /// Returns the head, of HTTP/2.
    pub(super) const fn http2_head(&self) -> Option<&H2RequestBlock> {
        match &self.encoded {
            EncodedRequest::Http2 { head, .. } => Some(head),
            EncodedRequest::Http1 { .. } | EncodedRequest::Http3(_) => None,
        }
    }

    /// Returns the gRPC part, if it is a call.
    pub(super) const fn call(&self) -> Option<&Call> {
        match &self.encoded {
            EncodedRequest::Http2 { call, .. } => call.as_ref(),
            EncodedRequest::Http1 { .. } | EncodedRequest::Http3(_) => None,
        }
    }

    /// Returns the request, of HTTP/3.
    pub(super) const fn http3(&self) -> Option<&Http3Request> {
        match &self.encoded {
            EncodedRequest::Http3(request) => Some(request),
            EncodedRequest::Http1 { .. } | EncodedRequest::Http2 { .. } => None,
        }
    }
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

/// Encodes requests for their protocol.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestEncoder<'p> {
    client: &'p ClientPlan,
    trace: Option<TraceHeaders>,
    seed: Seed,
}

impl<'p> RequestEncoder<'p> {
    pub(super) fn of_load(plan: &'p LoadPlan) -> Self {
        Self {
            client: &plan.client,
            trace: plan.telemetry.trace.as_ref().map(|trace| trace.headers),
            seed: plan.seed,
        }
    }

    /// The encoder of a generator's requests, which are not traced. Random bodies do not
    /// depend on the run.
    pub(super) fn of_generator(client: &'p ClientPlan) -> Self {
        Self {
            client,
            trace: None,
            seed: Seed::from_number(0),
        }
    }

    /// Encodes all requests of `plan`.
    pub(super) fn endpoint(self, plan: &EndpointPlan) -> Result<Endpoint, PrepareLoadError> {
        let mut requests = Vec::new();
        for (index, request) in plan.requests.iter().enumerate() {
            self.add(&mut requests, plan, request, index)?;
        }
        let is_quic = self.client.connecting.protocol == LoadProtocol::Http3;
        let tunnel = self.client.tunnel.as_ref();
        let proxy_request = tunnel.map(|tunnel| ProxyRequest::new(tunnel, &plan.address, is_quic));
        let proxy_request =
            proxy_request
                .transpose()
                .map_err(|source| PrepareLoadError::ProxyHead {
                    address: plan.address.clone(),
                    source,
                })?;
        Ok(Endpoint {
            proxy_request,
            requests,
            ..Endpoint::bare(plan)
        })
    }

    /// Encodes a request that no plan has, for any endpoint.
    pub(super) fn lay_out(
        self,
        endpoint: &EndpointPlan,
        request: &RequestPlan,
    ) -> Result<Request, PrepareLoadError> {
        let mut requests = Vec::with_capacity(1);
        // It is none of those that the plan has.
        self.add(&mut requests, endpoint, request, usize::MAX)?;
        let no_request = || LoadPlanError::NoRequest {
            address: endpoint.address.clone(),
        };
        Ok(requests.pop().ok_or_else(no_request)?)
    }

    /// Encodes the head of `request`.
    pub(super) fn head(
        self,
        endpoint: &EndpointPlan,
        request: &RequestPlan,
    ) -> Result<Head, HeadError> {
        // Of HTTP/2 they are written with each request.
        let protocol = self.client.connecting.protocol;
        let trace = self.trace.filter(|_| protocol == LoadProtocol::Http1);
        let blank = trace.map_or_else(Vec::new, trace::blank_headers);
        let traced = blank.iter().map(|(name, value)| (*name, value.as_str()));
        let request_headers = request.headers.iter();
        let request_headers = request_headers.map(|(name, value)| (name.as_str(), value.as_str()));
        let of_call = calls::headers(&request.body);
        let is_given = |name: &str| {
            let mut request_headers = request.headers.iter();
            request_headers.any(|(header, _)| header.eq_ignore_ascii_case(name))
        };
        let of_call = of_call.iter().filter(|(name, _)| !is_given(name));
        let of_call = of_call.map(|(name, value)| (*name, value.as_str()));
        let headers: Vec<(&str, &str)> = traced.chain(of_call).chain(request_headers).collect();
        let RequestPlan {
            method,
            path,
            authority,
            ..
        } = request;
        if method == CONNECT {
            return self.connect_head(endpoint, request, &headers);
        }
        Ok(match protocol {
            LoadProtocol::Http1 => {
                let head = RequestTemplate::new(method, path, authority, &headers)?;
                Head::Http1(match self.client.connecting.states_empty_length {
                    true => head.stating_empty_length(),
                    false => head,
                })
            }
            LoadProtocol::Http3 => {
                Head::Http3(h3::H3RequestBlock::new(method, authority, path, &headers)?)
            }
            LoadProtocol::Http2 => {
                let scheme = match endpoint.tls_host {
                    Some(_) => Scheme::Https,
                    None => Scheme::Http,
                };
                Head::Http2(H2RequestBlock::new(
                    method, scheme, authority, path, &headers,
                )?)
            }
        })
    }

    /// Encodes the head of a `CONNECT` request, for the host and port of its authority.
    fn connect_head(
        self,
        endpoint: &EndpointPlan,
        request: &RequestPlan,
        headers: &[(&str, &str)],
    ) -> Result<Head, HeadError> {
        if request.body != BodyPlan::None {
            return Err(HeadError::ConnectBody);
        }
        let port = if endpoint.tls_host.is_some() { 443 } else { 80 };
        let authority = with_port(&request.authority, port);
        Ok(match self.client.connecting.protocol {
            LoadProtocol::Http1 => Head::Http1(RequestTemplate::connect(&authority, headers)?),
            LoadProtocol::Http2 => Head::Http2(H2RequestBlock::connect(&authority, headers)?),
            LoadProtocol::Http3 => Head::Http3(h3::H3RequestBlock::connect(&authority, headers)?),
        })
    }

    fn add(
        self,
        requests: &mut Vec<Request>,
        endpoint: &EndpointPlan,
        request: &RequestPlan,
        index: usize,
    ) -> Result<(), PrepareLoadError> {
        let head = self.head(endpoint, request);
        let head = head.map_err(|source| PrepareLoadError::Head {
            method: request.method.clone(),
            path: request.path.clone(),
            source,
        })?;
        let before = requests.len();
        let blocks = |payload: &PayloadPlan| {
            let seed = self.seed.derive("body", index as u64);
            let set = BlockSet::build(payload, payload.cache, seed, None);
            set.map_err(|source| PrepareLoadError::Payload {
                method: request.method.clone(),
                path: request.path.clone(),
                source,
            })
        };
        let answer_body = match request.method.as_str() {
            "HEAD" => AnswerBody::Never,
            CONNECT => AnswerBody::UnlessTunnel,
            _ => AnswerBody::Any,
        };
        match &request.body {
            BodyPlan::None => requests.push(head.with(&[], answer_body)),
            BodyPlan::Bytes(body) => requests.push(head.with(body, answer_body)),
            BodyPlan::Grpc(call) => {
                let set = match &call.messages {
                    GrpcMessages::Payload(payload) => Some(blocks(payload)?),
                    GrpcMessages::Given(_) | GrpcMessages::Typed(_) => None,
                };
                calls::lay_out(&head, call, set.as_ref(), requests);
            }
            BodyPlan::Payload(payload) => {
                let set = blocks(payload)?;
                for block in 0..set.len() {
                    requests.push(head.with(set.run(block, block + 1).bytes, answer_body));
                }
            }
        }
        for built in &mut requests[before..] {
            built.described = index;
            if let (Some(trace), EncodedRequest::Http1 { bytes, trace_at }) =
                (self.trace, &mut built.encoded)
            {
                *trace_at = trace::places(bytes, trace);
            }
        }
        Ok(())
    }
}

impl Endpoint {
    /// The address of `plan` without its requests.
    pub(super) fn bare(plan: &EndpointPlan) -> Self {
        Self {
            address: plan.address.clone(),
            weight: plan.weight,
            proxy_request: None,
            tls_host: plan.tls_host.clone(),
            requests: Vec::new(),
        }
    }
}

/// Returns `authority` with `port` unless it has one.
fn with_port(authority: &str, port: u16) -> Cow<'_, str> {
    let after_address = authority.rsplit(']').next().unwrap_or_default();
    if after_address.contains(':') {
        return Cow::Borrowed(authority);
    }
    Cow::Owned(format!("{authority}:{port}"))
}

/// The head of a request in either version.
#[derive(Clone, Debug)]
pub(super) enum Head {
    Http1(RequestTemplate),
    Http2(H2RequestBlock),
    Http3(h3::H3RequestBlock),
}

impl Head {
    pub(super) fn with(&self, body: &[u8], answer_body: AnswerBody) -> Request {
        let encoded = match self {
            Self::Http1(template) => {
                let mut bytes = Vec::with_capacity(template.head_bytes_max() + body.len());
                template.write_head(body.len() as u64, &mut bytes);
                bytes.extend_from_slice(body);
                EncodedRequest::Http1 {
                    bytes: bytes.into_boxed_slice(),
                    trace_at: Box::default(),
                }
            }
            Self::Http2(head) => EncodedRequest::Http2 {
                head: head.clone(),
                body: body.into(),
                call: None,
            },
            Self::Http3(block) => EncodedRequest::Http3(Http3Request::new(block, body)),
        };
        Request {
            encoded,
            answer_body,
            described: 0,
        }
    }
}
