//! The plan of a load that was asked for in Nighthawk's words.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use stillwell_config::requests::{SpanSink, target};
use stillwell_metric::LoadCounter;
use stillwell_nighthawk::envoy::{EnvoyMessage, upstream_tls};
use stillwell_plan::{
    AnswerHeadersPlan, ClientTlsPlan, ConnectingPlan, IdleStrategy, LoadCurve, LoadPace, LoadPlan,
    LoadPlanParts, LoadProtocol, Overflow, PredicatePlan, Spacing, TelemetryPlan, TlsSuites,
    TraceHeaders, TracePlan, UntilPlan, Verification,
};
use stillwell_units::{Nanos, Seed};

use super::{request, tunnel};
use crate::arguments::{
    NighthawkClientArguments, NighthawkIdle, NighthawkPredicate, NighthawkProtocol, NighthawkShape,
    NighthawkTelling, NighthawkVerbosity,
};
use crate::command::load::spec::{cpus, random_run};

/// What fails a load unless other predicates are given.
pub(super) const FAILURES: [&str; 5] = [
    "benchmark.http_4xx",
    "benchmark.http_5xx",
    "benchmark.pool_connection_failure",
    "benchmark.stream_resets",
    "requestsource.upstream_rq_5xx",
];

pub(super) const DURATION: Nanos = Nanos::from_secs(5);

pub(super) fn plan(arguments: &NighthawkClientArguments, seed: Seed) -> anyhow::Result<LoadPlan> {
    let shape = &arguments.shape;
    let source = request::source(arguments)?;
    let endpoints = request::endpoints(arguments, source.as_ref())?;
    let workers = shape.concurrency.workers(cpus(), u32::MAX, 1);
    let each = u64::from(workers);
    let times = u32::from(workers);
    let http3 = arguments.target.http3_protocol_options.as_ref();
    let http3 = http3
        .map(|text| EnvoyMessage::parse("--http3-protocol-options", text)?.http3_streams_max());
    let streams_max = http3.transpose()?.flatten();
    let (connections, protocol, streams) = connections(arguments, endpoints.len(), streams_max);
    let header = arguments
        .telling
        .latency_response_header_name
        .to_ascii_lowercase();
    let parts = LoadPlanParts {
        pace: pace(shape, times)?,
        connecting: ConnectingPlan {
            connections: connections.saturating_mul(times),
            protocol,
            streams,
            prefetch: shape.prefetch_connections,
            over: Nanos::ZERO,
            reuse: shape.experimental_h1_connection_reuse_strategy.into(),
            requests_max: Some(shape.max_requests_per_connection.into()),
            timeout: shape.timeout,
            source: match &arguments.target.upstream_bind_config {
                Some(text) => {
                    Some(EnvoyMessage::parse("--upstream-bind-config", text)?.bind_address()?)
                }
                None => None,
            },
        },
        tunnel: tunnel::plan(&arguments.target)?,
        tls: tls(arguments, endpoints.iter().any(|it| it.tls_host.is_some()))?,
        endpoints,
        workers,
        until: UntilPlan {
            duration: (!shape.no_duration).then(|| shape.duration.unwrap_or(DURATION)),
            requests: source
                .and_then(|source| source.requests_max)
                .map(|requests| requests.saturating_mul(each)),
            termination: last_of_each(&shape.termination_predicate),
            failure: failures(shape),
            by_worker: true,
        },
        warmup: Nanos::ZERO,
        first_request: shape.simple_warmup,
        latency_header: (!header.is_empty()).then_some(header),
        // There is no limit for one request there; this one is far away.
        timeout: Nanos::from_secs(3600),
        grace: shape.timeout,
        idle: match shape.sequencer_idle_strategy {
            NighthawkIdle::Spin => IdleStrategy::Spin,
            NighthawkIdle::Poll | NighthawkIdle::Sleep => IdleStrategy::Sleep,
        },
        telemetry: telemetry(&arguments.telling)?,
        seed,
    };
    Ok(LoadPlan::try_new(parts)?)
}

/// All quantities are those of each worker there, and totals here.
fn pace(shape: &NighthawkShape, workers: u32) -> anyhow::Result<LoadPace> {
    let per_second = f64::from(shape.rps) * f64::from(workers);
    let waiting_max = u64::from(shape.max_pending_requests);
    let curve = match &shape.rate_limiter_plugin_config {
        None => LoadCurve::Constant { per_second },
        Some(text) => {
            let message = EnvoyMessage::parse("--rate-limiter-plugin-config", text)?;
            let over = message.ramp_time()?;
            let whole = shape.duration.unwrap_or(DURATION);
            if !shape.no_duration && over > whole {
                bail!("--rate-limiter-plugin-config: the ramp of {over} is longer than {whole}");
            }
            LoadCurve::Ramp {
                from_per_second: 0.0,
                to_per_second: per_second,
                over,
            }
        }
    };
    Ok(LoadPace::Open {
        curve,
        spacing: match (shape.burst_size, shape.jitter_uniform) {
            (0, None | Some(Nanos::ZERO)) => Spacing::Even,
            (0, Some(most)) => Spacing::JitterUniform { most },
            (size, _) => Spacing::Burst {
                size: size.saturating_mul(workers),
            },
        },
        overflow: if shape.open_loop {
            Overflow::Drop {
                waiting_max: waiting_max.max(1),
            }
        } else {
            Overflow::Hold { waiting_max }
        },
    })
}

/// Connections of each worker, what is spoken on them, and how many requests at
/// once, which the options of HTTP/3 may bound by `streams_max`.
pub(super) fn connections(
    arguments: &NighthawkClientArguments,
    endpoints: usize,
    streams_max: Option<u32>,
) -> (u32, LoadProtocol, u32) {
    let shape = &arguments.shape;
    let least = u32::try_from(endpoints).unwrap_or(u32::MAX);
    let protocol = arguments.target.protocol;
    let protocol = match protocol {
        Some(NighthawkProtocol::Http3) => LoadProtocol::Http3,
        Some(NighthawkProtocol::Http2) => LoadProtocol::Http2,
        _ if arguments.target.h2 => LoadProtocol::Http2,
        _ => return (shape.connections.max(least), LoadProtocol::Http1, 1),
    };
    let streams = if shape.experimental_h2_use_multiple_connections {
        1
    } else {
        let limit = shape.max_concurrent_streams.or(streams_max);
        let limit = limit.unwrap_or(u32::MAX);
        limit.min(shape.max_active_requests)
    };
    let connections = shape.max_active_requests.div_ceil(streams);
    (connections.max(least), protocol, streams)
}

/// Of several for one counter the last one counts.
fn last_of_each(predicates: &[NighthawkPredicate]) -> Vec<PredicatePlan> {
    let mut plans: Vec<PredicatePlan> = Vec::new();
    for NighthawkPredicate { plan, .. } in predicates {
        plans.retain(|other| other.counter != plan.counter);
        plans.push(*plan);
    }
    plans
}

fn failures(shape: &NighthawkShape) -> Vec<PredicatePlan> {
    if !shape.failure_predicate.is_empty() {
        return last_of_each(&shape.failure_predicate);
    }
    if shape.no_default_failure_predicates {
        return Vec::new();
    }
    let counters = FAILURES
        .iter()
        .filter_map(|name| name.parse::<LoadCounter>().ok());
    let predicate = |counter| PredicatePlan {
        counter,
        threshold: 0,
    };
    counters.map(predicate).collect()
}

fn tls(arguments: &NighthawkClientArguments, is_spoken: bool) -> anyhow::Result<ClientTlsPlan> {
    let target = &arguments.target;
    let mut plan = match (&target.tls_context, &target.transport_socket) {
        (Some(text), _) => EnvoyMessage::parse("--tls-context", text)?.tls_context()?,
        (None, Some(text)) => {
            EnvoyMessage::parse("--transport-socket", text)?.transport_socket()?
        }
        (None, None) => upstream_tls(),
    };
    if target.protocol == Some(NighthawkProtocol::Http3) {
        for_quic(&mut plan);
    }
    if is_spoken && plan.server_name.is_none() {
        plan.server_name = server_name(arguments)?;
    }
    Ok(plan)
}

/// QUIC speaks version 1.3 whatever is said of versions, and there a certificate is
/// always checked.
pub(super) fn for_quic(plan: &mut ClientTlsPlan) {
    plan.suites = TlsSuites::default();
    if plan.verification == Verification::None {
        plan.verification = ClientTlsPlan::default().verification;
    }
}

/// The name to ask for, where a header names the host.
fn server_name(arguments: &NighthawkClientArguments) -> anyhow::Result<Option<String>> {
    let header = |name: &str| {
        let mut headers = arguments.request.request_header.iter();
        headers.find(|header| header.0.eq_ignore_ascii_case(name))
    };
    let named = match (header("host"), header(":authority")) {
        (Some(_), Some(_)) => bail!(
            "--request-header names the host twice, by `host` and by `:authority`: which one is \
             TLS to ask for?"
        ),
        (Some(header), None) | (None, Some(header)) => header,
        (None, None) => return Ok(None),
    };
    let target = target(&named.1).with_context(|| format!("`{}` is no host", named.1))?;
    Ok(Some(target.host().to_owned()))
}

/// Who is told what while it goes on.
fn telemetry(telling: &NighthawkTelling) -> anyhow::Result<TelemetryPlan> {
    let address = telling.stats_sink_address.as_deref();
    let sink = |text: &String| {
        let message = EnvoyMessage::parse("--stats-sinks", text)?;
        Ok(message.stats_sink(address)?)
    };
    let sinks = telling.stats_sinks.iter().map(sink);
    let every = telling
        .stats_flush_interval
        .map(|n| Nanos::from_secs(n.into()));
    let every = every.or(telling.stats_flush_interval_duration);
    Ok(TelemetryPlan {
        run: random_run()?,
        sinks: sinks.collect::<anyhow::Result<_>>()?,
        flush_every: every.unwrap_or(TelemetryPlan::FLUSH_EVERY),
        trace: telling
            .trace
            .as_deref()
            .filter(|uri| !uri.is_empty())
            .map(trace)
            .transpose()?,
        headers: answer_headers(telling)?,
        ..TelemetryPlan::default()
    })
}

/// Headers of answers are told as Nighthawk's plugin does: as news, and to nobody whom
/// that does not concern.
fn answer_headers(telling: &NighthawkTelling) -> anyhow::Result<Vec<AnswerHeadersPlan>> {
    let flag = "--user-defined-plugin-config";
    let configs = telling.user_defined_plugin_config.iter();
    let read = configs.map(|text| Ok(EnvoyMessage::parse(flag, text)?.answer_headers()?));
    let plans = read.collect::<anyhow::Result<Vec<_>>>()?;
    let is_told = telling.verbosity <= NighthawkVerbosity::Info;
    Ok(if is_told { plans } else { Vec::new() })
}

/// Every request is traced, by the headers of Envoy's tracer.
fn trace(uri: &str) -> anyhow::Result<TracePlan> {
    if !uri.starts_with("zipkin://") {
        bail!("--trace: `{uri}` is not zipkin://HOST:PORT/PATH");
    }
    let sink = v2_of(uri).parse::<SpanSink>();
    let SpanSink(export) = sink.map_err(|error| anyhow::anyhow!("--trace: `{uri}`: {error}"))?;
    Ok(TracePlan {
        headers: TraceHeaders::B3Multi,
        sample: 1.0,
        export: Some(export),
    })
}

/// The address that a tracer of today is to be found at: Nighthawk's documentation
/// of 2020 names version 1 of Zipkin's interface.
pub(super) fn v2_of(uri: &str) -> String {
    uri.replace("/api/v1/", "/api/v2/")
}

/// Predicates by the names under which they were given.
pub(super) fn thresholds(predicates: &[NighthawkPredicate]) -> BTreeMap<String, u64> {
    let all = predicates.iter();
    all.map(|own| (own.name.clone(), own.plan.threshold))
        .collect()
}
