//! Traces for Datadog's agent: a block a request, sent again where the agent says
//! that it has too much to do.

use stillwell_http::Target;
use stillwell_plan::payload::TraceEncoding;
use stillwell_plan::{GeneratorPlan, PayloadFormat};
use stillwell_units::Nanos;
use stillwell_worker::TransportError;

use crate::acknowledged::{Posts, Rules};

/// The agent's path for traces of this version.
const PATH: &str = "/v0.4/traces";

/// Posts to the agent at `url`.
pub(crate) fn posts(
    plan: &GeneratorPlan,
    url: &str,
    retries: u32,
) -> Result<Posts, TransportError> {
    let target: Target = url.parse()?;
    let content_type = match &plan.payload.format {
        PayloadFormat::TraceAgent(traces) if traces.encoding == TraceEncoding::Json => {
            "application/json"
        }
        _ => "application/msgpack",
    };
    let headers = [
        ("content-type", content_type),
        // Else it answers 200 to everything that it drops.
        ("datadog-send-real-http-status", "true"),
    ];
    Posts::by_rules(&target, PATH, &headers, rules(retries))
}

/// Sends again to an overloaded agent; it acknowledges nothing.
const fn rules(retries: u32) -> Rules {
    Rules {
        may_pass: |status| matches!(status, 429 | 503),
        retries,
        pause_first: Nanos::from_millis(100),
        pause_longest: Nanos::from_millis(6400),
        keeps_account: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_limit() {
        let pauses: Vec<u64> = (0..8)
            .filter_map(|again| rules(9).again_after(503, again))
            .map(|pause| pause.as_u64() / 1_000_000)
            .collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 6400]);
        for (status, again) in [(500, 0), (408, 0), (503, 9)] {
            assert_eq!(rules(9).again_after(status, again), None, "{status}");
        }
    }
}
