//! Blocks as the bodies of HTTP requests: which requests, and over which
//! connections of the load's.

use stillwell_http::{Scheme, Target};
use stillwell_plan::{
    BodyPlan, ConnectingPlan, EndpointPlan, ExchangePlan, IdleStrategy, LoadPace, LoadPlan,
    LoadPlanParts, RequestPlan, TelemetryPlan, UntilPlan,
};
use stillwell_units::{Nanos, Seed};
use stillwell_worker::{GRACE, TransportError};

use stillwell_load::BlockRequests;

/// A POST of each block to `url`.
pub(crate) fn blocks(
    url: &str,
    headers: &[(String, String)],
    how: &ExchangePlan,
) -> Result<BlockRequests, TransportError> {
    let target = Target::from_url(url)?;
    let plan = LoadPlanParts {
        endpoints: vec![endpoint(&target, headers)],
        // The generator's own schedule says when.
        pace: LoadPace::Closed,
        connecting: ConnectingPlan {
            // Each worker has a number of its own.
            connections: 1,
            protocol: how.protocol,
            streams: how.streams,
            prefetch: true,
            over: Nanos::ZERO,
            reuse: how.reuse,
            requests_max: how.requests_max,
            timeout: how.connect_timeout,
            source: None,
        },
        tunnel: None,
        tls: how.tls.clone(),
        workers: 1,
        until: UntilPlan::default(),
        warmup: Nanos::ZERO,
        timeout: how.timeout,
        grace: GRACE,
        idle: IdleStrategy::Sleep,
        first_request: false,
        latency_header: None,
        telemetry: TelemetryPlan::default(),
        // Nothing is random but the blocks.
        seed: Seed::from_number(0),
    };
    BlockRequests::new(LoadPlan::try_new(plan)?)
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
