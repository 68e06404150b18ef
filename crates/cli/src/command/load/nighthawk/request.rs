//! The requests of a load that was asked for in Nighthawk's words.

use anyhow::Context;
use stillwell_config::{EnvoyMessage, RequestSource, SourceRequest};
use stillwell_plan::{BodyPlan, EndpointPlan};

use super::afar;
use super::plan::DURATION;
use crate::arguments::{NighthawkClientArguments, NighthawkRequest};
use crate::command::load::endpoint::{target, tls_host};
use crate::command::load::listed::{self, Common, filled, is_host};
use crate::command::load::plan;

/// What stands in `Host` where there are several targets.
const MANY_HOSTS: &str = "host-not-supported-in-multitarget-mode";

/// The list of requests, where there is one, be it of another's.
pub(super) fn source(
    arguments: &NighthawkClientArguments,
) -> anyhow::Result<Option<RequestSource>> {
    let request = &arguments.request;
    if let Some(uri) = &request.request_source {
        let shape = &arguments.shape;
        let workers = u64::from(plan::workers(shape.concurrency, u32::MAX, 1));
        let seconds = match shape.no_duration {
            true => u64::MAX,
            false => shape
                .duration
                .unwrap_or(DURATION)
                .as_u64()
                .div_ceil(1_000_000_000),
        };
        let sent = workers
            .saturating_mul(shape.rps.into())
            .saturating_mul(seconds);
        let quantity = sent.clamp(1, afar::REQUESTS_MAX);
        return afar::requests(uri, quantity, shape.timeout).map(Some);
    }
    let Some(text) = &request.request_source_plugin_config else {
        return Ok(None);
    };
    let message = EnvoyMessage::parse("--request-source-plugin-config", text)?;
    Ok(Some(message.request_source()?))
}

/// Where requests go, and what they are: all alike, or those of `source`.
pub(super) fn endpoints(
    arguments: &NighthawkClientArguments,
    source: Option<&RequestSource>,
) -> anyhow::Result<Vec<EndpointPlan>> {
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
    let alike = [SourceRequest::default()];
    let all = source.map_or(alike.as_slice(), |source| &source.requests);
    let endpoint = |url: &String| {
        let target = target(url).with_context(|| format!("Invalid target URI: '{url}'"))?;
        let common = Common {
            method: Some(&request.request_method),
            headers: &request.request_header,
            body: &body,
        };
        let is_named = |own: &SourceRequest| {
            let all = request.request_header.iter().map(|header| &header.0);
            let own = own.headers.iter().map(|header| &header.0);
            all.chain(own).any(|name| is_host(name))
        };
        let one = |own: &SourceRequest| {
            let mut one = listed::request(&target, common, Some(own));
            if !many.is_empty() && !is_named(own) {
                MANY_HOSTS.clone_into(&mut one.authority);
            }
            one
        };
        Ok(EndpointPlan {
            address: target.dial_address(),
            tls_host: tls_host(&target),
            weight: 1,
            requests: all.iter().map(one).collect(),
        })
    };
    urls.iter().map(endpoint).collect()
}

fn body(request: &NighthawkRequest) -> anyhow::Result<BodyPlan> {
    if let Some(path) = &request.request_body_file {
        let bytes = std::fs::read(path);
        let bytes = bytes.with_context(|| format!("read {}", path.display()))?;
        return Ok(BodyPlan::Bytes(bytes));
    }
    Ok(filled(request.request_body_size))
}
