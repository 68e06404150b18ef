//! Counters by Nighthawk's names, most of which are Envoy's.

use std::collections::BTreeMap;

use stillwell_metric::{CallEnd, CallMessages, HandshakePart, LoadShard, Outcome, SourceCount};
use stillwell_plan::LoadProtocol;
use stillwell_run::LoadEnd;

use super::Told;

/// Ends of requests that got no connection.
const UNCONNECTED: [Outcome; 4] = [
    Outcome::ConnectRefused,
    Outcome::ConnectTimedOut,
    Outcome::ConnectFailed,
    Outcome::HandshakeFailed,
];

/// Ends of requests that we cut off, connection and all.
const CUT_BY_US: [Outcome; 3] = [Outcome::TimedOut, Outcome::Malformed, Outcome::SendFailed];

/// What one worker counted in the measured time; zeros are left out.
pub(super) fn of(told: &Told<'_>, shard: &LoadShard) -> BTreeMap<String, u64> {
    let all = [
        benchmark(told, shard),
        connections(told, shard),
        requests(told, shard),
        calls(shard),
        source(shard),
    ];
    let named = all.into_iter().flatten().filter(|(_, value)| *value > 0);
    let named = named.map(|(name, value)| (name.to_owned(), value));
    named.chain(handshakes(shard)).collect()
}

fn ended(shard: &LoadShard, outcomes: &[Outcome]) -> u64 {
    outcomes.iter().map(|end| shard.ended(*end)).sum()
}

fn benchmark(told: &Told<'_>, shard: &LoadShard) -> Vec<(&'static str, u64)> {
    let plan = told.plan;
    let was_stopped = matches!(told.found.end, LoadEnd::Interrupted(_));
    let is_failure = shard.predicate.total() > plan.until.termination.len() as u64;
    let resets = ended(shard, &CUT_BY_US) + shard.ended(Outcome::PeerClosed);
    vec![
        ("benchmark.http_2xx", shard.ended(Outcome::Ok)),
        ("benchmark.http_3xx", shard.ended(Outcome::Status3xx)),
        ("benchmark.http_4xx", shard.ended(Outcome::Status4xx)),
        ("benchmark.http_5xx", shard.ended(Outcome::Status5xx)),
        ("benchmark.http_xxx", shard.ended(Outcome::StatusOther)),
        (
            "benchmark.pool_connection_failure",
            ended(shard, &UNCONNECTED),
        ),
        ("benchmark.pool_overflow", shard.ended(Outcome::Dropped)),
        ("benchmark.stream_resets", resets),
        ("graceful_stop_requested", u64::from(was_stopped)),
        ("sequencer.failed_terminations", u64::from(is_failure)),
    ]
}

fn connections(told: &Told<'_>, shard: &LoadShard) -> Vec<(&'static str, u64)> {
    let targets = told.plan.endpoints.len() as u64;
    let opened = shard.connections.measured();
    let waited = shard.waited_for_free.measured();
    // Over HTTP/2 and 3 a request that ends so does not tell what became of its
    // connection, and it is a stream that it waits for.
    let (protocol, by_peer, by_us, waited) = match told.plan.connecting.protocol {
        LoadProtocol::Http1 => (
            "upstream_cx_http1_total",
            shard.ended(Outcome::PeerClosed),
            ended(shard, &CUT_BY_US),
            waited,
        ),
        LoadProtocol::Http2 => ("upstream_cx_http2_total", 0, 0, 0),
        LoadProtocol::Http3 => ("upstream_cx_http3_total", 0, 0, 0),
    };
    let remote = shard.connections_ended.measured() + by_peer;
    let local = shard.connections_used_up.measured() + by_us;
    vec![
        ("default.total_match_count", targets),
        ("membership_change", targets),
        ("upstream_cx_total", opened),
        (protocol, opened),
        (
            "upstream_cx_connect_fail",
            shard.connect_failures.measured(),
        ),
        (
            "upstream_cx_connect_timeout",
            shard.connect_timeouts.measured(),
        ),
        ("upstream_cx_destroy", remote + local),
        ("upstream_cx_destroy_local", local),
        ("upstream_cx_destroy_local_with_active_rq", by_us),
        ("upstream_cx_destroy_remote", remote),
        ("upstream_cx_destroy_remote_with_active_rq", by_peer),
        ("upstream_cx_destroy_with_active_rq", by_peer + by_us),
        (
            "upstream_cx_max_requests",
            shard.connections_used_up.measured(),
        ),
        ("upstream_cx_overflow", waited),
        (
            "upstream_cx_rx_bytes_total",
            shard.bytes_received.measured(),
        ),
        ("upstream_cx_tx_bytes_total", shard.bytes_sent.measured()),
    ]
}

fn requests(told: &Told<'_>, shard: &LoadShard) -> Vec<(&'static str, u64)> {
    let dropped = shard.ended(Outcome::Dropped);
    let unconnected = ended(shard, &UNCONNECTED);
    let (opened_for, waited) = (
        shard.waited_for_connect.measured(),
        shard.waited_for_free.measured(),
    );
    let (overflow, overflowed, pending) = match told.plan.connecting.protocol {
        LoadProtocol::Http1 => ("upstream_rq_pending_overflow", dropped, opened_for + waited),
        LoadProtocol::Http2 | LoadProtocol::Http3 => {
            ("upstream_rq_active_overflow", dropped + waited, opened_for)
        }
    };
    vec![
        (overflow, overflowed),
        ("upstream_rq_pending_failure_eject", unconnected),
        ("upstream_rq_pending_total", pending),
        ("upstream_rq_total", shard.sent.total()),
    ]
}

/// How calls ended, and their messages, by our own names.
fn calls(shard: &LoadShard) -> Vec<(&'static str, u64)> {
    let ends = CallEnd::ALL.into_iter();
    let ends = ends.map(|end| (end.name(), shard.calls.ended(end).total()));
    let messages = CallMessages::ALL.into_iter();
    let messages = messages.map(|which| (which.name(), shard.calls.messages(which).total()));
    ends.chain(messages).collect()
}

/// What became of requests that others handed out, by Nighthawk's names and, where it
/// has none, by ours.
fn source(shard: &LoadShard) -> Vec<(&'static str, u64)> {
    let own = [
        SourceCount::Requests,
        SourceCount::Ended,
        SourceCount::Waits,
    ];
    let own = own
        .into_iter()
        .map(|count| (count.name(), shard.source.value(count)));
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
    let named = named.map(|(name, count)| (name, shard.source.value(count)));
    own.chain(named).collect()
}

/// What was agreed on, by the names that BoringSSL has for it.
fn handshakes(shard: &LoadShard) -> BTreeMap<String, u64> {
    let agreed = shard.handshakes.read().into_iter();
    let agreed = agreed.map(|((part, name), count)| {
        let kind = match part {
            HandshakePart::Suite => "ciphers",
            HandshakePart::Group => "curves",
            HandshakePart::Version => "versions",
        };
        let name = match name {
            "secp256r1" => "P-256",
            "secp384r1" => "P-384",
            other => other,
        };
        (format!("ssl.{kind}.{name}"), count)
    });
    let others = [
        ("ssl.handshake", shard.handshakes.total()),
        ("ssl.session_reused", shard.handshakes_resumed.measured()),
    ];
    let others = others.into_iter().filter(|(_, count)| *count > 0);
    let others = others.map(|(name, count)| (name.to_owned(), count));
    agreed.chain(others).collect()
}
