//! Names and values of counters.

use super::*;
use crate::LoadShard;

const FACTS: CounterFacts = CounterFacts {
    http: HttpVersion::One,
    targets: 0,
    terminations: 0,
    was_stopped: false,
};

#[test]
fn every_name_reads_back_and_no_other_does() {
    for name in names() {
        let counter: LoadCounter = name.parse().unwrap();
        assert_eq!(counter.to_string().parse(), Ok(counter), "{name}");
    }
    let counter: LoadCounter = "status_503".parse().unwrap();
    assert_eq!(counter.to_string(), "status_503");
    assert!("status_99".parse::<LoadCounter>().is_err());
    let error = "benchmark.http_2x".parse::<LoadCounter>().unwrap_err();
    assert!(error.to_string().contains("status_4xx, "), "{error}");
}

#[test]
fn a_counter_shows_what_its_shard_counted() {
    let (shard, _) = LoadShard::pair();
    shard.outcomes[Outcome::ConnectRefused.index()].add(2);
    shard.outcomes[Outcome::HandshakeFailed.index()].add(1);
    let value = |name: &str| name.parse::<LoadCounter>().unwrap().value(&shard, &FACTS);
    assert_eq!(value("benchmark.pool_connection_failure"), 3);
    assert_eq!(value("connect_refused"), 2);
    assert_eq!(value("benchmark.stream_resets"), 0);
    shard.statuses.count(503);
    assert_eq!((value("status_503"), value("status_500")), (1, 0));
}

#[test]
fn calls_count_by_status_and_by_failure() {
    let (shard, _) = LoadShard::pair();
    shard.calls.ended(CallEnd::Ok).add(4);
    shard.calls.ended(CallEnd::Internal).add(2);
    shard.calls.ended(CallEnd::NotGrpc).add(1);
    let value = |name: &str| name.parse::<LoadCounter>().unwrap().value(&shard, &FACTS);
    assert_eq!(value("benchmark.grpc_status.0"), 4);
    assert_eq!(value("benchmark.grpc_status.13"), 2);
    assert_eq!(value("benchmark.grpc_status.missing"), 1);
    assert_eq!(value("benchmark.grpc_error"), 3);
    assert!("benchmark.grpc_status.17".parse::<LoadCounter>().is_err());
}

#[test]
fn a_predicate_on_sent_requests_counted_dropped_ones() {
    let (shard, _) = LoadShard::pair();
    shard.begun.add(5);
    shard.sent.add(3);
    let value = |name: &str| name.parse::<LoadCounter>().unwrap().value(&shard, &FACTS);
    assert_eq!((value("requests"), value("upstream_rq_total")), (5, 3));
}

#[test]
fn a_predicate_uses_only_counts_of_the_measured_time() {
    let (shard, _) = LoadShard::pair();
    shard.warm_up();
    shard.warmup_begun.add(3);
    shard.warmup_sent.add(3);
    shard.warmup_outcomes[Outcome::Ok.index()].add(3);
    shard.connections.add(1);
    shard.bytes_received.add(99);
    for name in names() {
        let counter: LoadCounter = name.parse().unwrap();
        assert_eq!(counter.value(&shard, &FACTS), 0, "{name}");
    }
}

/// A shard in which every count that a result prints is different.
fn filled() -> LoadShard {
    let (shard, _) = LoadShard::pair();
    let calls = CallEnd::ALL.map(|end| shard.calls.ended(end));
    let messages = CallMessages::ALL.map(|which| shard.calls.messages(which));
    let source = &shard.source;
    let source = [
        &source.calls,
        &source.answered,
        &source.requests,
        &source.unconnected,
        &source.failures,
        &source.ended,
    ];
    let cells = shard.outcomes.iter().chain([&shard.sent, &shard.begun]);
    let cells = cells.chain(calls).chain(messages).chain(source);
    for (cell, count) in cells.zip(1_000..) {
        cell.add(count);
    }
    let phased = [
        &shard.connections,
        &shard.connect_failures,
        &shard.connect_timeouts,
        &shard.handshakes_resumed,
        &shard.waited_for_connect,
        &shard.waited_for_free,
        &shard.connections_used_up,
        &shard.connections_ended,
        &shard.connections_cut,
        &shard.bytes_sent,
        &shard.bytes_received,
    ];
    for (cell, count) in phased.into_iter().chain([&shard.source.waits]).zip(2_000..) {
        cell.add(count);
    }
    let names = HandshakePart::ALL.map(|part| (part, part.names().first().copied()));
    shard.handshakes.add(names);
    for (part, name) in HandshakePart::ALL.into_iter().flat_map(|part| {
        let names = part.names().iter();
        names.map(move |name| (part, *name))
    }) {
        let agreed = HandshakePart::ALL.map(|kind| (kind, (kind == part).then_some(name)));
        shard.handshakes.add(agreed);
    }
    shard.predicate.add(2);
    shard
}

#[test]
fn for_all_counters_of_a_result_a_predicate_has_the_name_and_the_value() {
    let shard = filled();
    let counts = LoadCounts::from(&shard);
    let mut seen = std::collections::BTreeSet::new();
    for http in [HttpVersion::One, HttpVersion::Two, HttpVersion::Three] {
        let facts = CounterFacts {
            http,
            targets: 3,
            terminations: 1,
            was_stopped: true,
        };
        for (name, printed) in counts.printed(&facts) {
            let counter: LoadCounter = name.parse().unwrap();
            assert_eq!(counter.value(&shard, &facts), printed, "{name}, {http:?}");
            assert_eq!(counter.to_string().parse(), Ok(counter), "{name}");
            seen.insert(name);
        }
    }
    for (name, _) in PRINTED {
        assert!(seen.contains(name), "{name} is printed in no result");
    }
}

#[test]
fn a_counter_that_depends_on_the_version_of_http_has_the_value_of_that_version() {
    let (shard, _) = LoadShard::pair();
    shard.connections.add(4);
    shard.waited_for_free.add(20);
    shard.waited_for_connect.add(300);
    shard.connections_ended.add(1_000);
    shard.connections_used_up.add(2_000);
    shard.connections_cut.add(500_000);
    for (outcome, count) in [
        (Outcome::Dropped, 1),
        (Outcome::PeerClosed, 40_000),
        (Outcome::TimedOut, 50_000),
    ] {
        shard.outcomes[outcome.index()].add(count);
    }
    for (name, expected) in [
        ("upstream_cx_total", [4, 4, 4]),
        ("upstream_cx_http1_total", [4, 0, 0]),
        ("upstream_cx_http2_total", [0, 4, 0]),
        ("upstream_cx_http3_total", [0, 0, 4]),
        ("upstream_cx_overflow", [20, 0, 0]),
        ("upstream_cx_destroy", [93_000, 503_000, 503_000]),
        ("upstream_cx_destroy_remote", [41_000, 501_000, 501_000]),
        ("upstream_cx_destroy_local", [52_000, 2_000, 2_000]),
        (
            "upstream_cx_destroy_with_active_rq",
            [90_000, 500_000, 500_000],
        ),
        (
            "upstream_cx_destroy_remote_with_active_rq",
            [40_000, 500_000, 500_000],
        ),
        ("upstream_cx_destroy_local_with_active_rq", [50_000, 0, 0]),
        ("upstream_rq_active_overflow", [0, 21, 21]),
        ("upstream_rq_pending_overflow", [1, 21, 21]),
        ("upstream_rq_pending_total", [320, 300, 300]),
    ] {
        let counter: LoadCounter = name.parse().unwrap();
        let versions = [HttpVersion::One, HttpVersion::Two, HttpVersion::Three];
        let values = versions.map(|http| counter.value(&shard, &CounterFacts { http, ..FACTS }));
        assert_eq!(values, expected, "{name}");
    }
}
