//! Connections over HTTP/2 and HTTP/3, which carry several requests at once.

/// Default of the maximum number of requests in flight of a worker.
pub(crate) const ACTIVE_REQUESTS_DEFAULT: u32 = 100;

/// Returns the connections of a worker that has up to `active` requests in flight, and the requests
/// in flight on each of them, which `limit` bounds. There are at most `connections_max`
/// connections, as by Envoy's circuit breaker, also if fewer requests are in flight then.
pub(crate) fn multiplexed(active: u32, limit: Option<u32>, connections_max: u32) -> (u32, u32) {
    let streams = limit.unwrap_or(u32::MAX).clamp(1, active.max(1));
    (active.div_ceil(streams).min(connections_max), streams)
}
