//! Requests of lists: what one does not say is as for all.

use stillwell_plan::load::{BodyPlan, RequestPlan};
use stillwell_units::Target;

use super::Header;
use super::endpoint::{request_to, usual_method};

/// Requests of a list, which are sent in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestSource {
    /// The requests, at least one.
    pub requests: Vec<SourceRequest>,
    /// Requests that each worker sends; `None` for no end.
    pub requests_max: Option<u64>,
}

/// One request of a list; missing fields come from the common ones.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SourceRequest {
    /// Its method, where it names one.
    pub method: Option<&'static str>,
    /// Its headers, pseudo-headers such as `:path` among them.
    pub headers: Vec<(String, String)>,
    /// Its body, where it names one.
    pub body: Option<SourceBody>,
}

/// The body of a request of a list.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum SourceBody {
    /// Any bytes of this number.
    Bytes(u32),
    /// This JSON.
    Json(String),
}

/// Parts of a request that a list leaves out.
#[derive(Clone, Copy, Debug)]
pub struct RequestDefaults<'a> {
    /// Method; `None` for the usual one.
    pub method: Option<&'a str>,
    /// Headers.
    pub headers: &'a [Header],
    /// Body.
    pub body: &'a BodyPlan,
}

/// Returns a request to `target`. Of a header that both name that of `source` counts, and
/// pseudo-headers replace what they name.
#[must_use]
pub fn listed_request(
    target: &Target,
    common: RequestDefaults<'_>,
    source: Option<&SourceRequest>,
) -> RequestPlan {
    let mut headers: Vec<Header> = common.headers.to_vec();
    let source_headers = source.map_or([].as_slice(), |source| &source.headers);
    for (name, value) in source_headers {
        headers.retain(|header| !is_same_header(&header.0, name));
        headers.push(Header(name.clone(), value.clone()));
    }
    let body = match source.and_then(|source| source.body.as_ref()) {
        None => common.body.clone(),
        Some(SourceBody::Bytes(length)) => filled_body(*length),
        Some(SourceBody::Json(text)) => {
            let is_type = |header: &Header| is_same_header(&header.0, "content-type");
            if !headers.iter().any(is_type) {
                let kind = "application/json".to_owned();
                headers.push(Header("content-type".to_owned(), kind));
            }
            BodyPlan::Bytes(text.as_bytes().to_vec())
        }
    };
    let pseudo = |headers: &mut Vec<Header>, name: &str| {
        let at = headers
            .iter()
            .position(|header| is_same_header(&header.0, name))?;
        Some(headers.remove(at).1)
    };
    let path = pseudo(&mut headers, ":path");
    let method = pseudo(&mut headers, ":method");
    pseudo(&mut headers, ":scheme");
    let of_list = source.and_then(|source| source.method);
    let method = method.or_else(|| of_list.or(common.method).map(str::to_owned));
    let method = method.unwrap_or_else(|| usual_method(&body).to_owned());
    let mut request = request_to(target, method, &headers, &[], body);
    if let Some(path) = path {
        request.path = if path.starts_with('/') {
            path
        } else {
            format!("/{path}")
        };
    }
    request
}

/// Returns a body of `length` bytes.
#[must_use]
pub fn filled_body(length: u32) -> BodyPlan {
    match usize::try_from(length) {
        Ok(0) | Err(_) => BodyPlan::None,
        Ok(length) => BodyPlan::Bytes(vec![b'a'; length]),
    }
}

/// Returns true if two names are of one header: `Host` and `:authority` are.
#[must_use]
pub fn is_same_header(left: &str, right: &str) -> bool {
    left.eq_ignore_ascii_case(right) || (is_host_header(left) && is_host_header(right))
}

/// Returns true if a header of this name says which host a request is for.
#[must_use]
pub fn is_host_header(name: &str) -> bool {
    name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority")
}
