//! Requests of a generator: all to one address, in turn, by weight.

use stillwell_plan::load::{BodyPlan, EndpointPlan, RequestPlan};
use stillwell_units::{Target, as_usize};

use super::endpoint::{gather, target, tls_host, typed_body};
use super::error::LoadSpecError;
use super::{Header, RecordedRequest, RequestSpec, is_host_header, recorded};
use crate::files::Files;

/// Maximum sum of the weights of a mix, after division by their common divisor.
const TURNS_MAX: usize = 10_000;

/// One request of a mix.
#[derive(Clone, Debug)]
pub(crate) struct MixedRequest {
    pub(crate) weight: u32,
    /// Path and query; the URL's if `None`.
    pub(crate) path: Option<String>,
    pub(crate) method: Option<String>,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: Option<String>,
}

impl MixedRequest {
    /// Returns the only request of a generator without a mix.
    pub(crate) const fn usual() -> Self {
        Self {
            weight: 1,
            path: None,
            method: None,
            headers: Vec::new(),
            body: None,
        }
    }
}

/// Source of the requests of a generator.
#[derive(Clone, Debug)]
pub(crate) enum RequestOrigin {
    /// One request, or a mix.
    Mix(Vec<MixedRequest>),
    /// Text of a file of requests.
    Lines(String),
    /// Text of an HTTP archive.
    Har(String),
}

/// Returns the requests of `origin`, sent to the address of `url`. Missing fields come from
/// `common`.
pub(crate) fn endpoint_of(
    url: &str,
    common: &RequestSpec,
    origin: RequestOrigin,
    files: &dyn Files,
) -> Result<EndpointPlan, LoadSpecError> {
    let base = target(url)?;
    let mut defaults = common.clone();
    let weighted = match origin {
        RequestOrigin::Mix(mix) => {
            // Those of an entry replace common ones.
            defaults.headers.clear();
            mixed(&base, common, mix, files)?
        }
        RequestOrigin::Lines(text) => recorded(&base, recorded::request_lines(&text)?)?,
        RequestOrigin::Har(text) => recorded(&base, recorded::har(&text)?.0)?,
    };
    let weights: Vec<u32> = weighted.iter().map(|(weight, _)| *weight).collect();
    let mut requests: Vec<RequestPlan> = Vec::new();
    for (_, request) in weighted {
        let endpoints = gather(vec![request], &defaults, files)?;
        requests.extend(endpoints.into_iter().flat_map(|endpoint| endpoint.requests));
    }
    let has_payload = |request: &RequestPlan| matches!(request.body, BodyPlan::Payload(_));
    if requests.len() > 1 && requests.iter().any(has_payload) {
        return Err(LoadSpecError::text(
            "a body of `payload:` makes many requests: use it alone, not in a mix",
        ));
    }
    let turns = turns(&weights)?;
    Ok(EndpointPlan {
        address: base.dial_address(),
        tls_host: tls_host(&base),
        weight: 1,
        requests: turns
            .into_iter()
            .map(|index| requests[index].clone())
            .collect(),
    })
}

fn mixed(
    base: &Target,
    common: &RequestSpec,
    mix: Vec<MixedRequest>,
    files: &dyn Files,
) -> Result<Vec<(u32, RecordedRequest)>, LoadSpecError> {
    let mut requests = Vec::new();
    for entry in mix {
        let inherited = common.headers.iter().filter(|header| {
            let mut names = entry.headers.iter();
            !names.any(|known| known.0.eq_ignore_ascii_case(&header.0))
        });
        let headers = entry.headers.iter().chain(inherited).cloned().collect();
        let path = entry
            .path
            .as_deref()
            .unwrap_or_else(|| base.path_and_query());
        let request = RecordedRequest {
            method: entry.method,
            url: moved(base, path)?,
            headers,
            body: typed_body(entry.body.as_deref(), files)?,
        };
        requests.push((entry.weight, request));
    }
    Ok(requests)
}

/// Requests of a file have the weight 1 and keep their paths; their hosts do not count.
fn recorded(
    base: &Target,
    requests: Vec<RecordedRequest>,
) -> Result<Vec<(u32, RecordedRequest)>, LoadSpecError> {
    let move_one = |mut request: RecordedRequest| {
        request.url = moved(base, &request.url)?;
        request.headers.retain(|header| !is_host_header(&header.0));
        Ok((1, request))
    };
    requests.into_iter().map(move_one).collect()
}

/// Returns `url`, which may be a path alone, at the address of `base`.
fn moved(base: &Target, url: &str) -> Result<String, LoadSpecError> {
    let origin = format!("{}://{}", base.scheme().as_str(), base.authority());
    if url.starts_with('/') {
        return Ok(format!("{origin}{url}"));
    }
    Ok(format!("{origin}{}", target(url)?.path_and_query()))
}

/// Returns the order of requests in which each appears by its weight, evenly spread.
fn turns(weights: &[u32]) -> Result<Vec<usize>, LoadSpecError> {
    let divisor = weights
        .iter()
        .fold(0, |all, weight| common_divisor(all, *weight));
    let weights: Vec<i64> = weights
        .iter()
        .map(|weight| i64::from(weight / divisor.max(1)))
        .collect();
    let total: i64 = weights.iter().sum();
    let count = as_usize(total.unsigned_abs());
    if count > TURNS_MAX {
        return Err(LoadSpecError::text(format!(
            "the weights of a mix sum up to {total}, at most {TURNS_MAX} are possible"
        )));
    }
    let mut credits = vec![0_i64; weights.len()];
    let mut turns = Vec::with_capacity(count);
    for _ in 0..count {
        for (credit, weight) in credits.iter_mut().zip(&weights) {
            *credit += weight;
        }
        // The first of several largest.
        let largest = (0..credits.len()).rev().max_by_key(|index| credits[*index]);
        let Some(index) = largest else { break };
        credits[index] -= total;
        turns.push(index);
    }
    Ok(turns)
}

const fn common_divisor(left: u32, right: u32) -> u32 {
    let (mut left, mut right) = (left, right);
    while right > 0 {
        (left, right) = (right, left % right);
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_appear_by_weight_and_evenly_spread() {
        assert_eq!(turns(&[1]).unwrap(), [0]);
        assert_eq!(turns(&[20, 20]).unwrap(), [0, 1]);
        assert_eq!(turns(&[6, 2]).unwrap(), [0, 0, 1, 0]);
        assert!(turns(&[10_007, 1]).is_err());
    }

    #[test]
    fn paths_and_urls_are_at_the_address_of_the_base() {
        let base = target("https://127.0.0.1:8443/x").unwrap();
        for (url, moved_url) in [
            ("/a?b=1", "https://127.0.0.1:8443/a?b=1"),
            ("http://example.com/c", "https://127.0.0.1:8443/c"),
        ] {
            assert_eq!(moved(&base, url).unwrap(), moved_url);
        }
    }
}
