//! Counters by Nighthawk's names, most of which are Envoy's.

use std::collections::BTreeMap;

use stillwell_capture::{LoadEnd, TelemetryResult};
use stillwell_metric::{CallEnd, CallMessages, HandshakePart, LoadCounts, Outcome, SourceCount};
use stillwell_plan::load::LoadProtocol;

use super::LoadReportInput;

/// Ends of requests that got no connection.
const UNCONNECTED: [Outcome; 4] = [
    Outcome::ConnectRefused,
    Outcome::ConnectTimedOut,
    Outcome::ConnectFailed,
    Outcome::HandshakeFailed,
];

/// Ends of requests that we cut off, connection and all.
const CUT_BY_US: [Outcome; 3] = [Outcome::TimedOut, Outcome::Malformed, Outcome::SendFailed];

/// Returns the counts of a worker in the measured time, without zeros.
pub(super) fn of(input: &LoadReportInput<'_>, counts: &LoadCounts) -> BTreeMap<String, u64> {
    let all = [
        benchmark(input, counts),
        connections(input, counts),
        requests(input, counts),
        calls(counts),
        source(counts),
    ];
    let named = all.into_iter().flatten().filter(|(_, value)| *value > 0);
    let named = named.map(|(name, value)| (name.to_owned(), value));
    let named = named.chain(handshakes(counts));
    named.chain(call_statuses(counts)).collect()
}

fn ended(counts: &LoadCounts, outcomes: &[Outcome]) -> u64 {
    outcomes.iter().map(|end| counts.ended(*end)).sum()
}

fn benchmark(input: &LoadReportInput<'_>, counts: &LoadCounts) -> Vec<(&'static str, u64)> {
    let plan = input.plan();
    let was_stopped = matches!(input.capture.manifest.end, LoadEnd::Interrupted(_));
    let is_failure = counts.predicate > plan.until.termination.len() as u64;
    let resets = ended(counts, &CUT_BY_US) + counts.ended(Outcome::PeerClosed);
    vec![
        ("benchmark.http_2xx", counts.ended(Outcome::Ok)),
        ("benchmark.http_3xx", counts.ended(Outcome::Status3xx)),
        ("benchmark.http_4xx", counts.ended(Outcome::Status4xx)),
        ("benchmark.http_5xx", counts.ended(Outcome::Status5xx)),
        ("benchmark.http_xxx", counts.ended(Outcome::StatusOther)),
        (
            "benchmark.pool_connection_failure",
            ended(counts, &UNCONNECTED),
        ),
        ("benchmark.pool_overflow", counts.ended(Outcome::Dropped)),
        ("benchmark.stream_resets", resets),
        ("graceful_stop_requested", u64::from(was_stopped)),
        ("sequencer.failed_terminations", u64::from(is_failure)),
    ]
}

fn connections(input: &LoadReportInput<'_>, counts: &LoadCounts) -> Vec<(&'static str, u64)> {
    let targets = input.plan().endpoints.len() as u64;
    let opened = counts.connections.measured;
    let waited = counts.waited_for_free.measured;
    // Over HTTP/2 and 3 such a request does not show the end of its connection, and it waits
    // for a stream.
    let (protocol, by_peer, by_us, waited) = match input.plan().client.connecting.protocol {
        LoadProtocol::Http1 => (
            "upstream_cx_http1_total",
            counts.ended(Outcome::PeerClosed),
            ended(counts, &CUT_BY_US),
            waited,
        ),
        LoadProtocol::Http2 => ("upstream_cx_http2_total", 0, 0, 0),
        LoadProtocol::Http3 => ("upstream_cx_http3_total", 0, 0, 0),
    };
    let remote = counts.connections_ended.measured + by_peer;
    let local = counts.connections_used_up.measured + by_us;
    vec![
        ("default.total_match_count", targets),
        ("membership_change", targets),
        ("upstream_cx_total", opened),
        (protocol, opened),
        ("upstream_cx_connect_fail", counts.connect_failures.measured),
        (
            "upstream_cx_connect_timeout",
            counts.connect_timeouts.measured,
        ),
        ("upstream_cx_destroy", remote + local),
        ("upstream_cx_destroy_local", local),
        ("upstream_cx_destroy_local_with_active_rq", by_us),
        ("upstream_cx_destroy_remote", remote),
        ("upstream_cx_destroy_remote_with_active_rq", by_peer),
        ("upstream_cx_destroy_with_active_rq", by_peer + by_us),
        (
            "upstream_cx_max_requests",
            counts.connections_used_up.measured,
        ),
        ("upstream_cx_overflow", waited),
        ("upstream_cx_rx_bytes_total", counts.bytes_received.measured),
        ("upstream_cx_tx_bytes_total", counts.bytes_sent.measured),
    ]
}

fn requests(input: &LoadReportInput<'_>, counts: &LoadCounts) -> Vec<(&'static str, u64)> {
    let dropped = counts.ended(Outcome::Dropped);
    let unconnected = ended(counts, &UNCONNECTED);
    let (opened_for, waited) = (
        counts.waited_for_connect.measured,
        counts.waited_for_free.measured,
    );
    // Envoy has called requests without a stream both names, one after the other.
    let (active, overflowed, pending) = match input.plan().client.connecting.protocol {
        LoadProtocol::Http1 => (0, dropped, opened_for + waited),
        LoadProtocol::Http2 | LoadProtocol::Http3 => {
            let without_stream = dropped + waited;
            (without_stream, without_stream, opened_for)
        }
    };
    vec![
        ("upstream_rq_active_overflow", active),
        ("upstream_rq_pending_overflow", overflowed),
        ("upstream_rq_pending_failure_eject", unconnected),
        ("upstream_rq_pending_total", pending),
        ("upstream_rq_total", counts.sent),
    ]
}

/// Returns the ends of calls and their messages, by our own names.
fn calls(counts: &LoadCounts) -> Vec<(&'static str, u64)> {
    let ends = CallEnd::ALL.into_iter();
    let ends = ends.map(|end| (end.name(), counts.calls_ended(end)));
    let messages = CallMessages::ALL.into_iter();
    let messages = messages.map(|which| (which.name(), counts.messages(which)));
    ends.chain(messages).collect()
}

/// Returns the statuses of calls by number, and the calls that did not end with status 0, by
/// Nighthawk's names.
fn call_statuses(counts: &LoadCounts) -> BTreeMap<String, u64> {
    let mut named = BTreeMap::new();
    for (index, end) in CallEnd::ALL.into_iter().enumerate() {
        let count = counts.calls_ended(end);
        if count == 0 {
            continue;
        }
        let status = match end {
            CallEnd::NoStatus | CallEnd::NotGrpc => "missing".to_owned(),
            _ if end.is_status() => index.to_string(),
            _ => "invalid".to_owned(),
        };
        let mut add = |name: String| *named.entry(name).or_default() += count;
        add(format!("benchmark.grpc_status.{status}"));
        if end != CallEnd::Ok {
            add("benchmark.grpc_error".to_owned());
        }
    }
    named
}

/// Returns the results of a request source, by Nighthawk's names and, where it has none,
/// by ours.
fn source(counts: &LoadCounts) -> Vec<(&'static str, u64)> {
    let counters = [
        SourceCount::Requests,
        SourceCount::Ended,
        SourceCount::Waits,
    ];
    let counters = counters
        .into_iter()
        .map(|count| (count.name(), counts.source.value(count)));
    let named = [
        (
            "requestsource.internal.upstream_rq_200",
            SourceCount::Answered,
        ),
        ("requestsource.upstream_cx_total", SourceCount::Calls),
        (
            "requestsource.upstream_cx_connect_fail",
            SourceCount::Unconnected,
        ),
        ("requestsource.upstream_rq_total", SourceCount::Calls),
        (
            "requestsource.upstream_rq_pending_failure_eject",
            SourceCount::Unconnected,
        ),
        ("requestsource.upstream_rq_5xx", SourceCount::Failures),
    ];
    let named = named.map(|(name, count)| (name, counts.source.value(count)));
    counters.chain(named).collect()
}

/// Returns the agreed parameters, by BoringSSL's names.
fn handshakes(counts: &LoadCounts) -> BTreeMap<String, u64> {
    let agreed = counts.handshakes.iter().map(|agreed| {
        let kind = match agreed.part {
            HandshakePart::Suite => "ciphers",
            HandshakePart::Group => "curves",
            HandshakePart::Signature => "sigalgs",
            HandshakePart::Version => "versions",
        };
        let name = match agreed.name.as_str() {
            "secp256r1" => "P-256",
            "secp384r1" => "P-384",
            other => other,
        };
        (format!("ssl.{kind}.{name}"), agreed.count)
    });
    let extra = [
        ("ssl.handshake", counts.handshakes_total),
        ("ssl.session_reused", counts.handshakes_resumed.measured),
    ];
    let extra = extra.into_iter().filter(|(_, count)| *count > 0);
    let extra = extra.map(|(name, count)| (name.to_owned(), count));
    agreed.chain(extra).collect()
}

/// Returns counters of exported spans, by Nighthawk's names where it has any; zeros are
/// left out.
#[must_use]
pub fn span_counters(telemetry: &TelemetryResult) -> Vec<(String, u64)> {
    let Some(spans) = &telemetry.spans else {
        return Vec::new();
    };
    let kind = if spans.name.starts_with("zipkin") {
        "zipkin"
    } else {
        "otlp"
    };
    let all = [
        // Envoy counts what it has passed to reports, delivered or not.
        ("spans_sent", spans.sampled.saturating_sub(spans.dropped)),
        ("spans_dropped", spans.dropped),
        ("reports_sent", spans.batches - spans.batches_failed),
        ("reports_dropped", spans.batches_failed),
    ];
    let all = all.into_iter().filter(|(_, value)| *value > 0);
    all.map(|(name, value)| (format!("tracing.{kind}.{name}"), value))
        .collect()
}
