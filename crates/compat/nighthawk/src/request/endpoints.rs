//! Endpoints of a load, and the requests to them.

use stillwell_config::files::{Files, read_input};
use stillwell_config::requests::{
    Header, RequestDefaults, filled_body, is_host_header, listed_request, target, tls_host,
};
use stillwell_http::Target;
use stillwell_plan::load::{BodyPlan, EndpointPlan, GrpcMessages, GrpcPlan, RequestPlan};

use super::error::RequestError;
use super::values::bracketed;
use super::{NighthawkContent, NighthawkRequest};
use crate::envoy::{EnvoyMessage, RequestSource, SourceRequest};
use crate::service::{RequestPattern, RequestSourceClient};

/// Value of `Host` if there are several targets.
const MANY_HOSTS: &str = "host-not-supported-in-multitarget-mode";

/// Returns the list of requests, if there is one.
pub(super) fn source(
    request: &NighthawkRequest,
    files: &dyn Files,
) -> Result<Option<RequestSource>, RequestError> {
    let Some(text) = &request.content.request_source_plugin_config else {
        return Ok(None);
    };
    let message = EnvoyMessage::parse("--request-source-plugin-config", text)?;
    Ok(Some(message.request_source(files)?))
}

impl NighthawkRequest {
    /// Returns the client of the service that hands out requests, if there is one.
    ///
    /// # Errors
    /// Why no channel to it, or no request, can be made.
    pub fn source_client(&self) -> Result<Option<RequestSourceClient>, RequestError> {
        let Some(uri) = &self.content.request_source else {
            return Ok(None);
        };
        let ahead = self.load.rps.max(self.load.burst_size);
        let pattern = patterns(self)?.into_iter().next();
        let pattern = Box::new(pattern.ok_or(RequestError::NoTarget)?);
        let client = RequestSourceClient::new(uri, ahead, self.load.timeout, pattern);
        let client = client.map_err(|source| RequestError::Source {
            uri: uri.clone(),
            source: Box::new(source),
        })?;
        Ok(Some(client))
    }
}

/// Returns the endpoints with their requests: all alike, or those of `source`.
pub(super) fn endpoints(
    request: &NighthawkRequest,
    source: Option<&RequestSource>,
) -> Result<Vec<EndpointPlan>, RequestError> {
    let uniform = [SourceRequest::default()];
    let all = source.map_or(uniform.as_slice(), |source| &source.requests);
    let endpoint = |pattern: Pattern| EndpointPlan {
        address: pattern.target.dial_address(),
        tls_host: tls_host(&pattern.target),
        weight: 1,
        requests: all
            .iter()
            .map(|source_request| pattern.request(source_request))
            .collect(),
    };
    Ok(patterns(request)?.into_iter().map(endpoint).collect())
}

/// Returns `uri` with brackets around an address of IPv6 that has none: `::1:80` is `[::1]:80`.
fn with_brackets(uri: &str) -> String {
    let start = uri.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = uri.split_at(start);
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    format!("{scheme}{}{path}", bracketed(authority))
}

/// The parts that all requests to one target share.
#[derive(Clone, Debug)]
struct Pattern {
    target: Target,
    method: String,
    headers: Vec<Header>,
    body: BodyPlan,
    /// True for one of several targets.
    is_one_of_many: bool,
}

/// Returns the pattern of each target.
fn patterns(request: &NighthawkRequest) -> Result<Vec<Pattern>, RequestError> {
    let content = &request.content;
    let many = &request.target.multi_target_endpoint;
    let urls: Vec<String> = match &request.uri {
        Some(uri) => vec![with_brackets(uri)],
        None => {
            let is_secure = request.target.multi_target_use_https;
            let scheme = if is_secure { "https" } else { "http" };
            let path = request.target.multi_target_path.as_deref();
            let path = path.unwrap_or("/");
            many.iter()
                .map(|address| format!("{scheme}://{address}{path}"))
                .collect()
        }
    };
    let body = match body(content)? {
        BodyPlan::Bytes(message) if content.makes_calls => call(message),
        BodyPlan::None if content.makes_calls => call(Vec::new()),
        body => body,
    };
    let pattern = |url: &String| {
        Ok(Pattern {
            target: target(url).map_err(|source| RequestError::TargetUri {
                uri: url.clone(),
                source,
            })?,
            method: match content.makes_calls {
                true => "POST".to_owned(),
                false => content.request_method.clone(),
            },
            headers: content.request_header.clone(),
            body: body.clone(),
            is_one_of_many: !many.is_empty(),
        })
    };
    urls.iter().map(pattern).collect()
}

impl RequestPattern for Pattern {
    fn request(&self, source_request: &SourceRequest) -> RequestPlan {
        let common = RequestDefaults {
            method: Some(&self.method),
            headers: &self.headers,
            body: &self.body,
        };
        let mut request_plan = listed_request(&self.target, common, Some(source_request));
        let all = self.headers.iter().map(|header| &header.0);
        let mut names = all.chain(source_request.headers.iter().map(|header| &header.0));
        if self.is_one_of_many && !names.any(|name| is_host_header(name)) {
            MANY_HOSTS.clone_into(&mut request_plan.authority);
        }
        request_plan
    }
}

/// Returns a call with one message. Nighthawk does not look at the messages of an answer.
fn call(message: Vec<u8>) -> BodyPlan {
    BodyPlan::Grpc(GrpcPlan {
        messages: GrpcMessages::Given(vec![message]),
        count: 1,
        every: None,
        deadline: None,
        server_streams: true,
    })
}

/// Largest file of a body.
const BODY_MAX: u64 = 1 << 30;

fn body(content: &NighthawkContent) -> Result<BodyPlan, RequestError> {
    if let Some(path) = &content.request_body_file {
        let bytes = read_input(path.as_ref(), BODY_MAX);
        let bytes = bytes.map_err(|source| RequestError::Body {
            path: path.clone(),
            source,
        })?;
        return Ok(BodyPlan::Bytes(bytes));
    }
    Ok(filled_body(content.request_body_size))
}
