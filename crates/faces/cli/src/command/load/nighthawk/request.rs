//! The requests of a load that was asked for in Nighthawk's words.

use anyhow::Context;
use stillwell_config::requests::{
    Header, RequestDefaults, filled_body, is_host_header, listed_request, target, tls_host,
};
use stillwell_http::Target;
use stillwell_nighthawk::envoy::{EnvoyMessage, RequestSource, SourceRequest};
use stillwell_nighthawk::service::{RequestPattern, RequestSourceClient};
use stillwell_plan::{BodyPlan, EndpointPlan, RequestPlan};

use crate::arguments::{NighthawkClientArguments, NighthawkRequest};

/// What stands in `Host` where there are several targets.
const MANY_HOSTS: &str = "host-not-supported-in-multitarget-mode";

/// The list of requests, where there is one.
pub(super) fn source(
    arguments: &NighthawkClientArguments,
) -> anyhow::Result<Option<RequestSource>> {
    let Some(text) = &arguments.request.request_source_plugin_config else {
        return Ok(None);
    };
    let message = EnvoyMessage::parse("--request-source-plugin-config", text)?;
    Ok(Some(message.request_source()?))
}

/// The client of the service that hands out requests, where there is one.
pub(super) fn source_client(
    arguments: &NighthawkClientArguments,
) -> anyhow::Result<Option<RequestSourceClient>> {
    let Some(uri) = &arguments.request.request_source else {
        return Ok(None);
    };
    let shape = &arguments.shape;
    let ahead = shape.rps.max(shape.burst_size);
    let pattern = patterns(arguments)?.into_iter().next();
    let pattern = Box::new(pattern.context("there is no target")?);
    let client = RequestSourceClient::new(uri, ahead, shape.timeout, pattern);
    Ok(Some(
        client.with_context(|| format!("--request-source {uri}"))?,
    ))
}

/// Where requests go, and what they are: all alike, or those of `source`.
pub(super) fn endpoints(
    arguments: &NighthawkClientArguments,
    source: Option<&RequestSource>,
) -> anyhow::Result<Vec<EndpointPlan>> {
    let alike = [SourceRequest::default()];
    let all = source.map_or(alike.as_slice(), |source| &source.requests);
    let endpoint = |pattern: Pattern| EndpointPlan {
        address: pattern.target.dial_address(),
        tls_host: tls_host(&pattern.target),
        weight: 1,
        requests: all.iter().map(|own| pattern.request(own)).collect(),
    };
    Ok(patterns(arguments)?.into_iter().map(endpoint).collect())
}

/// What all requests to one target have in common.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    target: Target,
    method: String,
    headers: Vec<Header>,
    body: BodyPlan,
    /// Whether it is one of several targets.
    is_one_of_many: bool,
}

/// Those of all targets, at least one.
pub(super) fn patterns(arguments: &NighthawkClientArguments) -> anyhow::Result<Vec<Pattern>> {
    let request = &arguments.request;
    let many = &arguments.target.multi_target_endpoint;
    let urls: Vec<String> = match &arguments.uri {
        Some(uri) => vec![uri.clone()],
        None => {
            let is_secure = arguments.target.multi_target_use_https;
            let scheme = if is_secure { "https" } else { "http" };
            let path = arguments.target.multi_target_path.as_deref();
            let path = path.unwrap_or("/");
            many.iter()
                .map(|it| format!("{scheme}://{it}{path}"))
                .collect()
        }
    };
    let body = body(request)?;
    let pattern = |url: &String| {
        Ok(Pattern {
            target: target(url).with_context(|| format!("Invalid target URI: '{url}'"))?,
            method: request.request_method.clone(),
            headers: request.request_header.clone(),
            body: body.clone(),
            is_one_of_many: !many.is_empty(),
        })
    };
    urls.iter().map(pattern).collect()
}

impl RequestPattern for Pattern {
    fn request(&self, own: &SourceRequest) -> RequestPlan {
        let common = RequestDefaults {
            method: Some(&self.method),
            headers: &self.headers,
            body: &self.body,
        };
        let mut one = listed_request(&self.target, common, Some(own));
        let all = self.headers.iter().map(|header| &header.0);
        let mut names = all.chain(own.headers.iter().map(|header| &header.0));
        if self.is_one_of_many && !names.any(|name| is_host_header(name)) {
            MANY_HOSTS.clone_into(&mut one.authority);
        }
        one
    }
}

fn body(request: &NighthawkRequest) -> anyhow::Result<BodyPlan> {
    if let Some(path) = &request.request_body_file {
        let bytes = std::fs::read(path);
        let bytes = bytes.with_context(|| format!("read {}", path.display()))?;
        return Ok(BodyPlan::Bytes(bytes));
    }
    Ok(filled_body(request.request_body_size))
}
