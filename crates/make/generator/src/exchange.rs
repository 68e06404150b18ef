//! Blocks as the bodies of HTTP requests: which requests, and over which
//! connections of the load's.

use stillwell_http::{Scheme, Target};
use stillwell_plan::generator::{ExchangePlan, RequestsPlan};
use stillwell_plan::load::{BodyPlan, EndpointPlan, RequestPlan};
use stillwell_worker::TransportError;

use stillwell_load::BlockRequests;

/// A POST of each block to `url`.
pub(crate) fn blocks(
    url: &str,
    headers: &[(String, String)],
    how: &ExchangePlan,
) -> Result<BlockRequests, TransportError> {
    let target = Target::from_url(url)?;
    let endpoint = endpoint(&target, headers);
    BlockRequests::new(&RequestsPlan::try_new(
        url.to_owned(),
        endpoint,
        how.client(),
    )?)
}

fn endpoint(target: &Target, headers: &[(String, String)]) -> EndpointPlan {
    let is_secure = target.scheme() == Scheme::Https;
    // `Host` is written from the authority.
    let is_host = |header: &(String, String)| header.0.eq_ignore_ascii_case("host");
    let host = headers.iter().find(|header| is_host(header));
    let ordinary = headers.iter().filter(|header| !is_host(header));
    EndpointPlan {
        address: target.dial_address(),
        tls_host: is_secure.then(|| target.host().to_owned()),
        weight: 1,
        requests: vec![RequestPlan {
            method: "POST".to_owned(),
            path: target.path_and_query().to_owned(),
            authority: host.map_or_else(|| target.authority(), |(_, value)| value.clone()),
            is_authority_stated: host.is_some(),
            headers: ordinary.cloned().collect(),
            body: BodyPlan::None,
        }],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_for_the_host_is_the_authority() {
        let target = Target::from_url("http://127.0.0.1:1/a").unwrap();
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let headers = [header("x", "y"), header("Host", "a.example")];
        let made = endpoint(&target, &headers);
        assert_eq!(made.address, "127.0.0.1:1");
        let request = &made.requests[0];
        assert_eq!(request.authority, "a.example");
        assert_eq!(request.headers, [header("x", "y")]);
        assert_eq!(endpoint(&target, &[]).requests[0].authority, "127.0.0.1:1");
    }
}
