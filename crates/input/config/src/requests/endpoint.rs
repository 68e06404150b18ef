//! Endpoints and requests, from flags or from a file.

use std::io;
use std::path::Path;

use stillwell_plan::load::{BodyPlan, EndpointPlan, RequestPlan};
use stillwell_plan::payload::{BlockShape, OtlpLogsPlan, OtlpMetricsPlan};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::{ByteSize, Scheme, Target};

use super::error::{LoadSpecError, While as _};
use super::listed::{self, RequestDefaults};
use super::recorded::RecordedRequest;
use super::{Header, RequestSpec};
use crate::files::{Disk, Files};

const BODY: ByteSize = ByteSize::kib(1);
/// Largest file that is read as requests or as a body.
pub(super) const FILE_BYTES_MAX: u64 = 1 << 30;
const NOT_TEXT: &str = "stream did not contain valid UTF-8";
/// Bodies that are built before the load.
const BODY_CACHE: ByteSize = ByteSize::mib(1);

/// Reads a file that a flag names as text.
///
/// # Errors
/// The file and why it cannot be read.
pub fn read_text(path: &Path) -> Result<String, LoadSpecError> {
    read(&Disk, path)
}

pub(crate) fn read(files: &dyn Files, path: &Path) -> Result<String, LoadSpecError> {
    let bytes = files.read_bytes(path, FILE_BYTES_MAX).and_then(|bytes| {
        let text = String::from_utf8(bytes);
        // As the standard library says it of a file.
        let foreign = |_| io::Error::new(io::ErrorKind::InvalidData, NOT_TEXT);
        text.map_err(foreign)
    });
    bytes.reading(|| format!("read {}", path.display()))
}

/// The URLs that were typed, each with the requests of the list, where there is
/// one, and else with the one that was typed; and how many requests there are to be,
/// where the list says so.
pub(super) fn typed(
    urls: &[String],
    request: &RequestSpec,
    files: &dyn Files,
) -> Result<(Vec<EndpointPlan>, Option<u64>), LoadSpecError> {
    let list = request.list.as_ref();
    let body = typed_body(request.body.as_deref(), files)?;
    let common = RequestDefaults {
        method: request.method.as_deref(),
        headers: &request.headers,
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
            requests: match list {
                None => vec![listed::listed_request(&target, common, None)],
                Some(list) => {
                    let requests = list.requests.iter();
                    requests
                        .map(|source| listed::listed_request(&target, common, Some(source)))
                        .collect()
                }
            },
        });
    }
    Ok((all, list.and_then(|list| list.requests_max)))
}

/// Returns the host that the certificate of an https target is for.
#[must_use]
pub fn tls_host(target: &Target) -> Option<String> {
    (target.scheme() == Scheme::Https).then(|| target.host().to_owned())
}

/// Requests that were read from a file, by their address; each address gets as
/// many as the file has for it.
///
/// What one does not say of itself is as was typed.
pub(super) fn gather(
    sourced: Vec<RecordedRequest>,
    typed: &RequestSpec,
    files: &dyn Files,
) -> Result<Vec<EndpointPlan>, LoadSpecError> {
    let default_body = typed_body(typed.body.as_deref(), files)?;
    let mut endpoints: Vec<EndpointPlan> = Vec::new();
    for request in sourced {
        let target = target(&request.url)?;
        let body = match request.body {
            BodyPlan::None => default_body.clone(),
            headers => headers,
        };
        let method = request.method.or_else(|| typed.method.clone());
        let method = method.unwrap_or_else(|| usual_method(&body).to_owned());
        let request = request_to(&target, method, &typed.headers, &request.headers, body);
        let (address, tls_host) = (target.dial_address(), tls_host(&target));
        let is_same =
            |known: &&mut EndpointPlan| known.address == address && known.tls_host == tls_host;
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

/// Returns the usual method of a request with such a body: GET without one.
#[must_use]
pub const fn usual_method(body: &BodyPlan) -> &'static str {
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
    headers: &[Header],
    inherited: &[Header],
    body: BodyPlan,
) -> RequestPlan {
    let is_host =
        |name: &str| name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority");
    let is_ours = |header: &&Header| {
        let mut headers = headers.iter();
        headers.any(|known| known.0.eq_ignore_ascii_case(&header.0))
    };
    let all = || {
        let inherited = inherited.iter();
        headers
            .iter()
            .chain(inherited.filter(|header| !is_ours(header)))
    };
    let authority = all().find(|header| is_host(&header.0));
    RequestPlan {
        method,
        path: target.path_and_query().to_owned(),
        authority: authority.map_or_else(|| target.authority(), |header| header.1.clone()),
        is_authority_stated: authority.is_some(),
        headers: all()
            .filter(|header| !is_host(&header.0))
            .map(|Header(name, value)| (name.clone(), value.clone()))
            .collect(),
        body,
    }
}

pub(super) fn weighted(typed: &str) -> Result<(u32, &str), LoadSpecError> {
    let Some((weight, url)) = typed.split_once('*') else {
        return Ok((1, typed));
    };
    match weight.parse() {
        Ok(weight) => Ok((weight, url)),
        // An asterisk is allowed in a path.
        Err(_) if weight.contains(['/', ':']) => Ok((1, typed)),
        Err(_) => Err(LoadSpecError::text(format!(
            "`{weight}` is not a weight: write 3*{url}"
        ))),
    }
}

/// Reads a URL, which may lack `http://`.
///
/// # Errors
/// What is wrong with it, and what is accepted.
pub fn target(url: &str) -> Result<Target, LoadSpecError> {
    let with_scheme = if url.contains("://") {
        url.to_owned()
    } else if let Some(rest) = half_scheme(url) {
        return Err(LoadSpecError::text(format!(
            "`{url}` lacks `//` after its scheme: write http://{rest}, or https://{rest}"
        )));
    } else {
        format!("http://{url}")
    };
    Ok(Target::from_url(&with_scheme)?)
}

/// Returns a path in place of `text`, which has no leading slash: that of a URL, or with a slash before it.
pub(crate) fn suggested_path(text: &str) -> String {
    let path = match text.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => text,
    };
    format!("/{path}")
}

/// Text after `http:` or `https:` without two slashes, as in a typing mistake.
fn half_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_once(':')?;
    let is_scheme = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    // A host may be called `http`, and its port follows.
    let is_port = rest.starts_with(|c: char| c.is_ascii_digit());
    (is_scheme && !is_port).then(|| rest.trim_start_matches('/'))
}

/// The body that was typed, if any was.
pub(super) fn typed_body(text: Option<&str>, files: &dyn Files) -> Result<BodyPlan, LoadSpecError> {
    text.map_or(Ok(BodyPlan::None), |text| body(text, files))
}

fn body(text: &str, files: &dyn Files) -> Result<BodyPlan, LoadSpecError> {
    if let Some(path) = text.strip_prefix('@') {
        let bytes = files.read_bytes(Path::new(path), FILE_BYTES_MAX);
        let bytes = bytes.reading(|| format!("read {path}"))?;
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
        return Err(LoadSpecError::text(format!(
            "`{name}` is not a payload format: the formats are {names}"
        )));
    };
    Ok(BodyPlan::Payload(PayloadPlan {
        format,
        blocks: BlockShape::UpTo { maximum: size },
        cache: BODY_CACHE,
        repeats: false,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_precede_their_url() {
        assert_eq!(weighted("3*http://a/").unwrap(), (3, "http://a/"));
        assert_eq!(weighted("http://a/x*y").unwrap(), (1, "http://a/x*y"));
        assert!(weighted("many*a").is_err());
    }

    #[test]
    fn bodies_are_text_or_built() {
        assert_eq!(body("ab", &Disk).unwrap(), BodyPlan::Bytes(b"ab".to_vec()));
        let BodyPlan::Payload(payload) = body("payload:json:4KiB", &Disk).unwrap() else {
            panic!("no payload");
        };
        assert_eq!(payload.blocks.maximum(), ByteSize::kib(4));
        assert!(
            body("payload:jsn", &Disk)
                .unwrap_err()
                .to_string()
                .contains("ascii, json")
        );
        assert!(body("@/nowhere", &Disk).is_err());
    }

    #[test]
    fn a_host_header_is_that_of_the_request() {
        let target = target("127.0.0.1:80/x").unwrap();
        let headers = ["Host: other".parse().unwrap(), "a: b".parse().unwrap()];
        let request = request_to(&target, "GET".to_owned(), &headers, &[], BodyPlan::None);
        assert_eq!(request.authority, "other");
        assert_eq!(request.headers, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(request.path, "/x");
    }
}
