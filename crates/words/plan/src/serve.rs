//! A test server: something to hit.

use std::net::SocketAddr;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};
use stillwell_units::{EventRate, Seed};

use crate::tls::ServerTlsPlan;

mod expression;
mod fault;
mod limit;
mod options;

pub use expression::{
    Expression, ExpressionError, ExpressionInputs, ExpressionKind, ExpressionValue,
};
pub use fault::{DelayExpression, Fault, FaultExpression};
pub use limit::{Admission, TokenBucket};
pub use options::{
    RESPONSE_BODY_BYTES_MAX, ResponseDelay, ResponseHeader, ResponseOptions, ResponseOptionsError,
};

/// A test server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ServePlan {
    /// From which what `rand()` gives follows, worker by worker.
    pub seed: Seed,
    /// Threads; each serves all listeners.
    pub workers: NonZeroU16,
    /// Listeners with their answers; at least one.
    pub listeners: Vec<ServeListenerPlan>,
    /// Admin endpoint with its counts and a stop request, if any.
    pub admin: Option<ServeAdminPlan>,
}

/// Address and names of a test server's admin interface.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ServeAdminPlan {
    /// Address of the admin listener; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// Prefix of request counts: `http.PREFIX.downstream_rq_2xx`.
    pub stat_prefix: String,
    /// Prefix of all Prometheus names: `PREFIX_http_downstream_rq_xx`.
    pub prometheus_prefix: String,
}

/// One address of a test server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ServeListenerPlan {
    /// Address of the listener; port 0 lets the kernel choose.
    pub address: SocketAddr,
    /// Its certificate, where it speaks TLS.
    pub tls: Option<ServerTlsPlan>,
    /// Its versions of HTTP.
    pub protocols: ServeProtocols,
    /// Answers without faults.
    pub answer: AnswerPlan,
    /// Its faults.
    pub faults: FaultsPlan,
    /// Connections that one worker serves at once; more wait in the backlog.
    pub connections_max: u32,
    /// Chains, chosen by the start of a connection; none where all clients get the above.
    /// With chains, a client that belongs to none of them is refused.
    pub chains: Vec<ServeChainPlan>,
}

/// A site for some clients of a listener.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ServeChainPlan {
    /// Its clients.
    pub clients: ChainClients,
    /// Its certificate, if it speaks TLS.
    pub tls: Option<ServerTlsPlan>,
    /// Its versions of HTTP.
    pub protocols: ServeProtocols,
    /// Answers without faults.
    pub answer: AnswerPlan,
}

/// The clients of a chain. Of several chains the one with the longest matching name serves a
/// client, then one without names for its transport, then one for all.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct ChainClients {
    /// Names that TLS clients connect to, in lower case; `*.NAME` for all names below one.
    /// Empty for any client.
    pub server_names: Vec<String>,
    /// True for clients with TLS alone, false for those without; none for both.
    pub with_tls: Option<bool>,
}

impl ChainClients {
    /// Returns how well a client matches: larger is better, `None` if it does not belong here.
    /// `server_name` is the name that a TLS client connects to, if it sends one.
    #[must_use]
    pub fn rank(&self, is_tls: bool, server_name: Option<&str>) -> Option<usize> {
        if self.with_tls.is_some_and(|with_tls| with_tls != is_tls) {
            return None;
        }
        if self.server_names.is_empty() {
            return Some(usize::from(self.with_tls.is_some()));
        }
        let name = server_name.filter(|_| is_tls)?.to_ascii_lowercase();
        let lengths = self.server_names.iter().filter_map(|pattern| {
            let matches = match pattern.strip_prefix('*') {
                Some(suffix) => name.ends_with(suffix) && name.len() > suffix.len(),
                None => *pattern == name,
            };
            // An exact name is one longer than the pattern of its parent.
            matches.then_some(2 * pattern.len() + usize::from(!pattern.starts_with('*')))
        });
        lengths.max().map(|length| length + 2)
    }
}

/// Versions of HTTP of a listener.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServeProtocols {
    /// HTTP/2 where ALPN or the connection's first bytes say so, else HTTP/1.1.
    Auto,
    /// HTTP/1.1 alone.
    Http1,
    /// HTTP/2 alone.
    Http2,
    /// HTTP/3 alone, over UDP; it goes over TLS alone.
    Http3,
}

/// Answers to requests without faults.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct AnswerPlan {
    /// Parts of the options that have an effect.
    pub filters: FilterSet,
    /// The options where a request brings none of its own.
    pub options: ResponseOptions,
    /// Headers that it reads and adds.
    pub headers: ServeHeaders,
}

/// Headers of a test server that have no name of their own.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct ServeHeaders {
    /// Name of the request header whose JSON changes the response.
    pub options: Option<String>,
    /// Name of the request header that delays the response, in milliseconds.
    pub delay: Option<String>,
    /// Value of the response header `server`. Responses with it carry `date` too.
    pub server: Option<String>,
}

/// Filters that are present.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct FilterSet {
    /// `test-server`: status, headers and body. Without it the answer is 404.
    pub test_server: bool,
    /// `dynamic-delay`: a delay, fixed or by the number of active requests.
    pub dynamic_delay: bool,
    /// Envoy's fault filter: a delay that a header of the request states. `dynamic-delay` has it too.
    #[serde(default)]
    pub header_delay: bool,
    /// `time-tracking`: a header with the time since the request before.
    pub time_tracking: bool,
}

impl FilterSet {
    /// All of them.
    pub const ALL: Self = Self {
        test_server: true,
        dynamic_delay: true,
        header_delay: false,
        time_tracking: true,
    };

    /// The name of the filter that first reads a request's options.
    #[must_use]
    pub const fn first_name(self) -> Option<&'static str> {
        match self {
            Self {
                time_tracking: true,
                ..
            } => Some("time-tracking"),
            Self {
                dynamic_delay: true,
                ..
            } => Some("dynamic-delay"),
            Self {
                test_server: true, ..
            } => Some("test-server"),
            _ => None,
        }
    }
}

/// Faults of a listener.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FaultsPlan {
    /// Added to the delay of every answer.
    pub delay: Option<DelayExpression>,
    /// Fault of a request, if any.
    pub error: Option<FaultExpression>,
    /// Limit of accepted requests.
    pub rate_limit: Option<RateLimitPlan>,
}

/// Limit of accepted requests, by a bucket of tokens that all workers share.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RateLimitPlan {
    /// Tokens that come back.
    pub rate: EventRate,
    /// Tokens that the bucket holds, at least one.
    pub burst: u32,
    /// The answer to requests without a token.
    pub answer: LimitAnswer,
}

/// The answer to requests beyond a rate limit.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LimitAnswer {
    /// This status at once, without the answer's delay.
    Status(u16),
    /// They wait for their token.
    Queue,
    /// Their connection is closed without a response.
    Close,
}

#[cfg(test)]
mod tests {
    use super::ChainClients;

    #[test]
    fn the_longest_name_serves_a_client_best() {
        let of = |names: &[&str], with_tls| ChainClients {
            server_names: names.iter().map(|name| (*name).to_owned()).collect(),
            with_tls,
        };
        let exact = of(&["a.b"], None);
        let below = of(&["*.b"], None);
        let tls = of(&[], Some(true));
        let any = of(&[], None);
        let ranks = [&exact, &below, &tls, &any].map(|chain| chain.rank(true, Some("A.b")));
        assert!(ranks.windows(2).all(|pair| pair[0] > pair[1]), "{ranks:?}");
        assert_eq!(below.rank(true, Some(".b")), None);
        assert_eq!(exact.rank(true, None), None);
        assert_eq!(exact.rank(false, Some("a.b")), None);
        assert_eq!(tls.rank(false, None), None);
        assert_eq!(any.rank(false, None), Some(0));
    }
}
