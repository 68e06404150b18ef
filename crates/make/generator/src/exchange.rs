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
    EndpointPlan {
        address: target.dial_address(),
        tls_host: is_secure.then(|| target.host().to_owned()),
        weight: 1,
        requests: vec![RequestPlan {
            method: "POST".to_owned(),
            path: target.path_and_query().to_owned(),
            authority: target.authority(),
            headers: headers.to_vec(),
            body: BodyPlan::None,
        }],
    }
}
