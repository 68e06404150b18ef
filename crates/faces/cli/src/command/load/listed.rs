//! Requests of Nighthawk's lists: what one does not say is as for all.

use stillwell_http::Target;
use stillwell_nighthawk::envoy::{SourceBody, SourceRequest};
use stillwell_plan::{BodyPlan, RequestPlan};

use super::endpoint::{request_to, usual_method};
use crate::arguments::Header;

/// What holds for all requests that say nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Common<'a> {
    /// None for the usual one.
    pub(super) method: Option<&'a str>,
    pub(super) headers: &'a [Header],
    pub(super) body: &'a BodyPlan,
}

/// A request to `target`. Of a header that both name it is that of `own` that
/// counts, and pseudo-headers stand in for what they name.
pub(super) fn request(
    target: &Target,
    common: Common<'_>,
    own: Option<&SourceRequest>,
) -> RequestPlan {
    let mut headers: Vec<Header> = common.headers.to_vec();
    let own_headers = own.map_or([].as_slice(), |own| &own.headers);
    for (name, value) in own_headers {
        headers.retain(|other| !is_same(&other.0, name));
        headers.push(Header(name.clone(), value.clone()));
    }
    let body = match own.and_then(|own| own.body.as_ref()) {
        None => common.body.clone(),
        Some(SourceBody::Bytes(length)) => filled(*length),
        Some(SourceBody::Json(text)) => {
            let is_type = |header: &Header| is_same(&header.0, "content-type");
            if !headers.iter().any(is_type) {
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
    let of_list = own.and_then(|own| own.method);
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

/// So many bytes, whatever they are.
pub(super) fn filled(length: u32) -> BodyPlan {
    match usize::try_from(length) {
        Ok(0) | Err(_) => BodyPlan::None,
        Ok(length) => BodyPlan::Bytes(vec![b'a'; length]),
    }
}

/// `Host` and `:authority` are one.
fn is_same(one: &str, other: &str) -> bool {
    one.eq_ignore_ascii_case(other) || (is_host(one) && is_host(other))
}

/// Whether a header of this name says whom a request is for.
pub(super) fn is_host(name: &str) -> bool {
    name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority")
}
