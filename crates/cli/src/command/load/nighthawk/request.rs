//! The requests of a load that was asked for in Nighthawk's words.

use anyhow::Context;
use stillwell_config::{EnvoyMessage, RequestSource, SourceBody, SourceRequest};
use stillwell_http::Target;
use stillwell_plan::{BodyPlan, EndpointPlan, RequestPlan};

use crate::arguments::{Header, NighthawkClientArguments, NighthawkRequest};
use crate::command::load::plan;

/// What stands in `Host` where there are several targets.
const MANY_HOSTS: &str = "host-not-supported-in-multitarget-mode";

/// The list of requests, where there is one.
pub(super) fn source(request: &NighthawkRequest) -> anyhow::Result<Option<RequestSource>> {
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
        let target = plan::target(url).with_context(|| format!("Invalid target URI: '{url}'"))?;
        let one = |own: &SourceRequest| one(&target, request, own, &body, !many.is_empty());
        Ok(EndpointPlan {
            address: target.dial_address(),
            tls_host: plan::tls_host(&target),
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

fn filled(length: u32) -> BodyPlan {
    match usize::try_from(length) {
        Ok(0) | Err(_) => BodyPlan::None,
        Ok(length) => BodyPlan::Bytes(vec![b'a'; length]),
    }
}

/// What `own` does not say is as for all requests; of a header that both name it
/// is `own` that counts.
fn one(
    target: &Target,
    all: &NighthawkRequest,
    own: &SourceRequest,
    body: &BodyPlan,
    is_one_of_many: bool,
) -> RequestPlan {
    let mut headers: Vec<Header> = all.request_header.clone();
    for (name, value) in &own.headers {
        headers.retain(|other| !is_same(&other.0, name));
        headers.push(Header(name.clone(), value.clone()));
    }
    let body = match &own.body {
        None => body.clone(),
        Some(SourceBody::Bytes(length)) => filled(*length),
        Some(SourceBody::Json(text)) => {
            if !headers
                .iter()
                .any(|header| is_same(&header.0, "content-type"))
            {
                let kind = "application/json".to_owned();
                headers.push(Header("content-type".to_owned(), kind));
            }
            BodyPlan::Bytes(text.as_bytes().to_vec())
        }
    };
    let pseudo = |headers: &mut Vec<Header>, name: &str| {
        let at = headers.iter().position(|header| is_same(&header.0, name))?;
        Some(headers.remove(at).1)
    };
    let path = pseudo(&mut headers, ":path");
    let method = pseudo(&mut headers, ":method");
    pseudo(&mut headers, ":scheme");
    let method = method.or_else(|| own.method.map(str::to_owned));
    let method = method.unwrap_or_else(|| all.request_method.clone());
    let mut request = plan::request_to(target, method, &headers, &[], body);
    if let Some(path) = path {
        request.path = if path.starts_with('/') {
            path
        } else {
            format!("/{path}")
        };
    }
    let is_named = headers.iter().any(|header| is_host(&header.0));
    if is_one_of_many && !is_named {
        MANY_HOSTS.clone_into(&mut request.authority);
    }
    request
}

/// `Host` and `:authority` are one.
fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || (is_host(one) && is_host(other))
}

fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority")
}
