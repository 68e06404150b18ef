//! The names of statistics: Nighthawk's, and ours beside them.
//!
//! [`super::LoadStatistic::of_times`] takes any name; these are the ones that
//! renderers know.

use stillwell_metric::Outcome;

/// From the attempt to send to the request being encoded on a connection.
pub const QUEUE_TO_CONNECT: &str = "benchmark_http_client.queue_to_connect";
/// From the request being encoded to the end of the answer; only of requests
/// that were answered.
pub const REQUEST_TO_RESPONSE: &str = "benchmark_http_client.request_to_response";
/// From the attempt to send to the end of the request, however it ended.
pub const SEQUENCER_CALLBACK: &str = "sequencer.callback";
/// Time for which the closed loop delayed requests, one sample an episode.
pub const SEQUENCER_BLOCKING: &str = "sequencer.blocking";
/// Bytes of each answer's body.
pub const RESPONSE_BODY_SIZE: &str = "benchmark_http_client.response_body_size";
/// Bytes of each answer's header names and values, `:status` included.
pub const RESPONSE_HEADER_SIZE: &str = "benchmark_http_client.response_header_size";
/// Latency that the origin reports in a response header, in nanoseconds.
pub const ORIGIN_LATENCY: &str = "benchmark_http_client.origin_latency_statistic";
/// As [`REQUEST_TO_RESPONSE`], by the class of the status: `1xx` to `5xx`, and
/// the last for everything else.
pub const LATENCY_BY_STATUS: [&str; 6] = [
    "benchmark_http_client.latency_1xx",
    "benchmark_http_client.latency_2xx",
    "benchmark_http_client.latency_3xx",
    "benchmark_http_client.latency_4xx",
    "benchmark_http_client.latency_5xx",
    "benchmark_http_client.latency_xxx",
];

/// Prefix of the names of our own statistics. Layouts of predecessors for readers leave
/// them out; the formats for programs have them.
pub const STILLWELL_PREFIX: &str = "stillwell.";
/// From the intended time to the end of the answer: latency.
pub const RESPONSE_TIME: &str = "stillwell.response_time";
/// From the sent time to the end of the answer.
pub const SERVICE_TIME: &str = "stillwell.service_time";
/// Sent time less intended time: how late the generator, or the connection that
/// it waited for, was.
pub const LATENESS: &str = "stillwell.lateness";
/// The same of requests for which a connection was free: only the generator caused
/// it.
pub const GENERATOR_LATENESS: &str = "stillwell.generator_lateness";
/// A connection's handshake of the transport, of those that came about.
pub const CONNECT: &str = "stillwell.connect";
/// A connection's TLS handshake.
pub const TLS_HANDSHAKE: &str = "stillwell.tls_handshake";
/// From the sent time to the first byte of the answer.
pub const FIRST_BYTE: &str = "stillwell.first_byte";

/// From the sent time to the first message of an answer that may have several, of
/// gRPC alone.
pub const FIRST_MESSAGE: &str = "stillwell.first_message";

/// From the intended time to the end of a request that got no answer, by how it
/// ended; from the time at which it was taken where there is no schedule.
pub const FAILED_TIME: &str = "stillwell.failed_time";

/// The name of `statistic`, such as [`RESPONSE_TIME`], of answers of one class
/// alone: `stillwell.response_time.status_5xx`.
#[must_use]
pub fn of_class(statistic: &str, class: Outcome) -> String {
    format!("{statistic}.{}", class.name())
}
