//! Where requests go and what they are: from what was typed, or from a file.

use std::path::Path;

use anyhow::{Context, bail};
use stillwell_http::{Scheme, Target};
use stillwell_nighthawk::envoy::EnvoyMessage;
use stillwell_plan::{
    BlockShape, BodyPlan, EndpointPlan, OtlpLogsPlan, OtlpMetricsPlan, PayloadFormat, PayloadPlan,
    RequestPlan,
};
use stillwell_units::ByteSize;

use super::grpc;
use super::listed::{self, Common};
use super::source::{self, Sourced};
use crate::arguments::{Header, LoadArguments, LoadRequestArguments};
use crate::paint::Paint;

const BODY: ByteSize = ByteSize::kib(1);
/// Bodies that are built before the load.
const BODY_CACHE: ByteSize = ByteSize::mib(1);

/// Where requests go, with theirs, and how many there are to be where a list says
/// so.
#[derive(Debug)]
pub(super) struct Endpoints {
    pub(super) all: Vec<EndpointPlan>,
    pub(super) requests_max: Option<u64>,
}

impl From<Vec<EndpointPlan>> for Endpoints {
    fn from(all: Vec<EndpointPlan>) -> Self {
        Self {
            all,
            requests_max: None,
        }
    }
}

pub(super) fn endpoints(arguments: &LoadArguments) -> anyhow::Result<Endpoints> {
    let request = &arguments.request;
    if let Some(method) = &arguments.grpc.grpc_method {
        return Ok(grpc::endpoints(arguments, method)?.into());
    }
    if let Some(path) = &request.requests_file {
        let found = source::lines(&read(path)?);
        let found = found.with_context(|| path.display().to_string())?;
        return Ok(gather(found, request)?.into());
    }
    if let Some(path) = &request.har {
        let found = source::har(&read(path)?);
        let (requests, others) = found.with_context(|| path.display().to_string())?;
        if others > 0 && !arguments.quiet {
            Paint::say(&format!(
                "{}: {others} entries are no requests over HTTP and are passed over",
                path.display()
            ));
        }
        return Ok(gather(requests, request)?.into());
    }
    typed(&arguments.urls, request)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path);
    text.with_context(|| format!("read {}", path.display()))
}

/// The URLs that were typed, each with the requests of the list, where there is
/// one, and else with the one that was typed.
fn typed(urls: &[String], request: &LoadRequestArguments) -> anyhow::Result<Endpoints> {
    let list = request.request_source.as_deref().map(list).transpose()?;
    let body = request.body.as_deref().map_or(Ok(BodyPlan::None), body)?;
    let common = Common {
        method: request.method.as_deref(),
        headers: &request.header,
        body: &body,
    };
    let mut all = Vec::new();
    for typed in urls {
        let (weight, url) = weighted(typed)?;
        let target = target(url)?;
        all.push(EndpointPlan {
            address: target.dial_address(),
            tls_host: tls_host(&target),
            weight,
            requests: match &list {
                None => vec![listed::request(&target, common, None)],
                Some(list) => {
                    let requests = list.requests.iter();
                    requests
                        .map(|own| listed::request(&target, common, Some(own)))
                        .collect()
                }
            },
        });
    }
    Ok(Endpoints {
        all,
        requests_max: list.and_then(|list| list.requests_max),
    })
}

/// A list of requests: the text itself, or what stands in the file behind `@`.
fn list(text: &str) -> anyhow::Result<stillwell_nighthawk::envoy::RequestSource> {
    let message = match text.strip_prefix('@') {
        Some(path) => EnvoyMessage::parse(path, &read(Path::new(path))?)?,
        None => EnvoyMessage::parse("--request-source", text)?,
    };
    Ok(message.request_list()?)
}

/// Whom the certificate of an https target is for.
pub(super) fn tls_host(target: &Target) -> Option<String> {
    (target.scheme() == Scheme::Https).then(|| target.host().to_owned())
}

/// Requests that were read from a file, by their address; each address gets as
/// many as the file has for it.
///
/// What one does not say of itself is as was typed.
fn gather(
    sourced: Vec<Sourced>,
    typed: &LoadRequestArguments,
) -> anyhow::Result<Vec<EndpointPlan>> {
    let default_body = typed.body.as_deref().map_or(Ok(BodyPlan::None), body)?;
    let mut endpoints: Vec<EndpointPlan> = Vec::new();
    for one in sourced {
        let target = target(&one.url)?;
        let body = match one.body {
            BodyPlan::None => default_body.clone(),
            own => own,
        };
        let method = one.method.or_else(|| typed.method.clone());
        let method = method.unwrap_or_else(|| usual_method(&body).to_owned());
        let request = request_to(&target, method, &typed.header, &one.headers, body);
        let (address, tls_host) = (target.dial_address(), tls_host(&target));
        let is_same =
            |other: &&mut EndpointPlan| other.address == address && other.tls_host == tls_host;
        match endpoints.iter_mut().find(is_same) {
            Some(endpoint) => {
                endpoint.weight = endpoint.weight.saturating_add(1);
                endpoint.requests.push(request);
            }
            None => endpoints.push(EndpointPlan {
                address,
                tls_host,
                weight: 1,
                requests: vec![request],
            }),
        }
    }
    Ok(endpoints)
}

/// What asks for an answer, or brings something.
pub(super) const fn usual_method(body: &BodyPlan) -> &'static str {
    match body {
        BodyPlan::None => "GET",
        BodyPlan::Bytes(_) | BodyPlan::Payload(_) | BodyPlan::Grpc(_) => "POST",
    }
}

/// `Host` is said by the authority; all else as given, ours before the file's and
/// in place of what has the same name there.
pub(super) fn request_to(
    target: &Target,
    method: String,
    own: &[Header],
    others: &[Header],
    body: BodyPlan,
) -> RequestPlan {
    let is_host =
        |name: &str| name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority");
    let is_ours = |header: &&Header| {
        let mut own = own.iter();
        own.any(|other| other.0.eq_ignore_ascii_case(&header.0))
    };
    let all = || {
        let others = others.iter();
        own.iter().chain(others.filter(|header| !is_ours(header)))
    };
    let authority = all().find(|header| is_host(&header.0));
    RequestPlan {
        method,
        path: target.path_and_query().to_owned(),
        authority: authority.map_or_else(|| target.authority(), |header| header.1.clone()),
        headers: all()
            .filter(|header| !is_host(&header.0))
            .map(|Header(name, value)| (name.clone(), value.clone()))
            .collect(),
        body,
    }
}

pub(super) fn weighted(typed: &str) -> anyhow::Result<(u32, &str)> {
    let Some((weight, url)) = typed.split_once('*') else {
        return Ok((1, typed));
    };
    match weight.parse() {
        Ok(weight) => Ok((weight, url)),
        // An asterisk is allowed in a path.
        Err(_) if weight.contains(['/', ':']) => Ok((1, typed)),
        Err(_) => bail!("`{weight}` is no weight: write 3*{url}"),
    }
}

pub(super) fn target(url: &str) -> anyhow::Result<Target> {
    let with_scheme = if url.contains("://") {
        url.to_owned()
    } else if let Some(rest) = half_scheme(url) {
        bail!("`{url}` lacks `//` behind its scheme: write http://{rest}, or https://{rest}");
    } else {
        format!("http://{url}")
    };
    Ok(Target::from_url(&with_scheme)?)
}

/// What stands behind `http:` or `https:` without two slashes, as a slip of the
/// finger leaves it.
fn half_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once(':')?;
    let is_scheme = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    // A host may be called `http`, and its port follows.
    let is_port = rest.starts_with(|c: char| c.is_ascii_digit());
    (is_scheme && !is_port).then(|| rest.trim_start_matches('/'))
}

pub(super) fn body(text: &str) -> anyhow::Result<BodyPlan> {
    if let Some(path) = text.strip_prefix('@') {
        let bytes = std::fs::read(path).with_context(|| format!("read {path}"))?;
        return Ok(BodyPlan::Bytes(bytes));
    }
    let Some(payload) = text.strip_prefix("payload:") else {
        return Ok(BodyPlan::Bytes(text.as_bytes().to_vec()));
    };
    let (name, size) = match payload.split_once(':') {
        Some((name, size)) => (name, size.parse()?),
        None => (payload, BODY),
    };
    let known = [
        PayloadFormat::Ascii,
        PayloadFormat::Json,
        PayloadFormat::Syslog5424,
        PayloadFormat::ApacheCommon,
        PayloadFormat::DatadogLog,
        PayloadFormat::OpentelemetryLogs(OtlpLogsPlan::default()),
        PayloadFormat::OpentelemetryMetrics(OtlpMetricsPlan::default()),
    ];
    let names = known.iter().map(PayloadFormat::name).collect::<Vec<_>>();
    let names = names.join(", ");
    let format = known.into_iter().find(|format| format.name() == name);
    let Some(format) = format else {
        bail!("`{name}` is no format of a body: there are {names}");
    };
    Ok(BodyPlan::Payload(PayloadPlan {
        format,
        blocks: BlockShape::UpTo { maximum: size },
        cache: BODY_CACHE,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stand_before_their_url() {
        assert_eq!(weighted("3*http://a/").unwrap(), (3, "http://a/"));
        assert_eq!(weighted("http://a/x*y").unwrap(), (1, "http://a/x*y"));
        assert!(weighted("many*a").is_err());
    }

    #[test]
    fn bodies_are_text_or_built() {
        assert_eq!(body("ab").unwrap(), BodyPlan::Bytes(b"ab".to_vec()));
        let BodyPlan::Payload(payload) = body("payload:json:4KiB").unwrap() else {
            panic!("no payload");
        };
        assert_eq!(payload.blocks.maximum(), ByteSize::kib(4));
        assert!(
            body("payload:jsn")
                .unwrap_err()
                .to_string()
                .contains("ascii, json")
        );
        assert!(body("@/nowhere").is_err());
    }

    #[test]
    fn a_host_header_is_what_the_request_says() {
        let target = target("127.0.0.1:80/x").unwrap();
        let own = ["Host: other".parse().unwrap(), "a: b".parse().unwrap()];
        let request = request_to(&target, "GET".to_owned(), &own, &[], BodyPlan::None);
        assert_eq!(request.authority, "other");
        assert_eq!(request.headers, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(request.path, "/x");
    }
}
