//! The plan of a load.

use std::collections::BTreeMap;

use stillwell_config::files::{Disk, Files};
use stillwell_config::requests::{SpanSink, is_host_header, target};
use stillwell_metric::{LoadCounter, Outcome};
use stillwell_plan::load::{
    AnswerHeadersPlan, ClientPlan, ConnectingPlan, IdleStrategy, LoadPace, LoadPlanParts,
    LoadProtocol, Overflow, PredicatePlan, Spacing, StatsdNamesPlan, TelemetryPlan, TraceHeaders,
    TracePlan, UntilPlan,
};
use stillwell_plan::rate::Ramp;
use stillwell_plan::tls::{ClientTlsPlan, TlsSuites, Verification};
use stillwell_plan::{LoadPlan, RateShape, Validity};
use stillwell_units::{Nanos, RunId, Seed, count};

use super::error::RequestError;
use super::values::{PLUGIN_FAILURES, is_of_process};
use super::{
    LogLevel, NighthawkLoad, NighthawkOutput, NighthawkPredicate, NighthawkRequest, SequencerIdle,
    endpoints, tunnel,
};
use crate::Protocol;
use crate::envoy::{EnvoyMessage, FakePlugin, OutputPlugin, upstream_tls};
use crate::multiplexing::multiplexed;

/// Counters whose default predicates fail a load.
pub(super) const FAILURES: [&str; 5] = [
    "benchmark.http_4xx",
    "benchmark.http_5xx",
    "benchmark.pool_connection_failure",
    "benchmark.stream_resets",
    "requestsource.upstream_rq_5xx",
];

/// Classes of statuses, whose times are statistics of their own.
const CLASSES: [(Outcome, &str); 5] = [
    (Outcome::Ok, "2xx"),
    (Outcome::Status3xx, "3xx"),
    (Outcome::Status4xx, "4xx"),
    (Outcome::Status5xx, "5xx"),
    (Outcome::StatusOther, "xxx"),
];

pub(super) const DURATION: Nanos = Nanos::from_secs(5);

impl NighthawkRequest {
    /// Returns the plan of the load on a host that runs `cpus` threads at once. `run`
    /// names the load for exporters.
    ///
    /// # Errors
    /// An option has no meaning, or the plan is outside of its limits.
    pub fn plan(&self, cpus: usize, run: RunId, seed: Seed) -> Result<LoadPlan, RequestError> {
        self.plan_with(&Disk, cpus, run, seed)
    }

    /// As [`Self::plan`], with the list of requests from `files`. Certificates, keys and a body
    /// that files hold are not read from there.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub(crate) fn plan_with(
        &self,
        files: &dyn Files,
        cpus: usize,
        run: RunId,
        seed: Seed,
    ) -> Result<LoadPlan, RequestError> {
        let load = &self.load;
        let target = &self.target;
        let source = endpoints::source(self, files)?;
        let endpoints = endpoints::endpoints(self, source.as_ref())?;
        let workers = load.concurrency.workers(cpus, u32::MAX, 1);
        let each = u64::from(workers);
        let times = u32::from(workers);
        let http3 = target.http3_protocol_options.as_ref();
        let http3 = http3
            .map(|text| EnvoyMessage::parse("--http3-protocol-options", text)?.http3_streams_max());
        let streams_max = http3.transpose()?.flatten();
        let (connections, protocol, streams) = connections(self, endpoints.len(), streams_max);
        let header = self
            .output
            .latency_response_header_name
            .to_ascii_lowercase();
        let fake = fake_plugin(&self.output)?;
        let parts = LoadPlanParts {
            pace: pace(load, times)?,
            client: ClientPlan {
                connecting: ConnectingPlan {
                    connections: total("--connections", connections, times)?,
                    protocol,
                    streams,
                    prefetch: load.prefetch_connections,
                    over: Nanos::ZERO,
                    reuse: load.experimental_h1_connection_reuse_strategy,
                    requests_max: Some(load.max_requests_per_connection.into()),
                    timeout: load.timeout,
                    without_alpn: true,
                    states_empty_length: true,
                    source: match &target.upstream_bind_config {
                        Some(text) => Some(
                            EnvoyMessage::parse("--upstream-bind-config", text)?.bind_address()?,
                        ),
                        None => None,
                    },
                },
                tunnel: tunnel::plan(target)?,
                tls: tls(
                    self,
                    endpoints.iter().any(|endpoint| endpoint.tls_host.is_some()),
                )?,
                // There is no limit for one request there; this one is far away.
                timeout: Nanos::from_secs(3600),
                idle: match load.sequencer_idle_strategy {
                    SequencerIdle::Spin => IdleStrategy::Spin,
                    SequencerIdle::Poll | SequencerIdle::Sleep => IdleStrategy::Sleep,
                },
            },
            endpoints,
            workers,
            until: UntilPlan {
                duration: (!load.no_duration).then(|| load.duration.unwrap_or(DURATION)),
                requests: source
                    .and_then(|source| source.requests_max)
                    .map(|requests| requests.saturating_mul(each)),
                termination: last_of_each(&load.termination_predicate, fake),
                failure: failures(load, fake),
                by_worker: true,
            },
            warmup: Nanos::ZERO,
            first_request: load.simple_warmup,
            latency_header: (!header.is_empty()).then_some(header),
            grace: load.timeout,
            telemetry: telemetry(&self.output, run)?,
            seed,
            validity: Validity::Normal,
            fleet: None,
        };
        Ok(LoadPlan::try_new(parts)?)
    }
}

/// All quantities are those of each worker there, and totals here.
fn pace(load: &NighthawkLoad, workers: u32) -> Result<LoadPace, RequestError> {
    let per_second = f64::from(load.rps) * f64::from(workers);
    let waiting_max = u64::from(load.max_pending_requests);
    let curve = match &load.rate_limiter_plugin_config {
        None => RateShape::Constant { per_second },
        Some(text) => {
            let message = EnvoyMessage::parse("--rate-limiter-plugin-config", text)?;
            let over = message.ramp_time()?;
            let whole = load.duration.unwrap_or(DURATION);
            if !load.no_duration && over > whole {
                return Err(RequestError::Ramp {
                    ramp: over,
                    duration: whole,
                });
            }
            RateShape::Ramp(Ramp {
                from_per_second: 0.0,
                to_per_second: per_second,
                over,
            })
        }
    };
    Ok(LoadPace::Open {
        curve,
        spacing: match (load.burst_size, load.jitter_uniform) {
            (0, None | Some(Nanos::ZERO)) => Spacing::Even,
            (0, Some(most)) => Spacing::JitterUniform { most },
            (size, _) => Spacing::Burst {
                size: total("--burst-size", size, workers)?,
            },
        },
        overflow: if load.open_loop {
            Overflow::Drop {
                waiting_max: waiting_max.max(1),
            }
        } else {
            Overflow::Hold { waiting_max }
        },
    })
}

/// Returns the sum over all `workers` of a quantity that the option `flag` gives to each.
fn total(flag: &'static str, each: u32, workers: u32) -> Result<u32, RequestError> {
    each.checked_mul(workers).ok_or(RequestError::Total {
        flag,
        each,
        workers,
    })
}

/// Connections of each worker, what is spoken on them, and how many requests at
/// once, which the options of HTTP/3 may bound by `streams_max`.
fn connections(
    request: &NighthawkRequest,
    endpoints: usize,
    streams_max: Option<u32>,
) -> (u32, LoadProtocol, u32) {
    let load = &request.load;
    let least = count(endpoints);
    let protocol = protocol(request);
    if protocol == LoadProtocol::Http1 {
        return (load.connections.max(least), protocol, 1);
    }
    let limit = if load.experimental_h2_use_multiple_connections {
        Some(1)
    } else {
        load.max_concurrent_streams.or(streams_max)
    };
    let active = load.max_active_requests;
    let (connections, streams) = multiplexed(active, limit, load.connections);
    (connections.max(least), protocol, streams)
}

fn protocol(request: &NighthawkRequest) -> LoadProtocol {
    match request.target.protocol {
        Some(Protocol::Http3) => LoadProtocol::Http3,
        Some(Protocol::Http2) => LoadProtocol::Http2,
        _ if request.target.h2 || request.content.makes_calls => LoadProtocol::Http2,
        _ => LoadProtocol::Http1,
    }
}

/// Of several with one name the last one counts. Two names may be of one count, but have a threshold each.
fn last_of_each(predicates: &[NighthawkPredicate], fake: Option<FakePlugin>) -> Vec<PredicatePlan> {
    let mut plans: Vec<(&str, PredicatePlan)> = Vec::new();
    for predicate in predicates {
        let Some(plan) = counted(predicate, fake) else {
            continue;
        };
        let name = predicate.name.as_str();
        plans.retain(|(earlier, _)| *earlier != name);
        plans.push((name, plan));
    }
    plans.into_iter().map(|(_, plan)| plan).collect()
}

/// Returns a predicate as this load counts. The failures of a plugin are the answers after
/// those that it accepts; without such a plugin there are none. No worker has the counters of
/// the process.
fn counted(predicate: &NighthawkPredicate, fake: Option<FakePlugin>) -> Option<PredicatePlan> {
    let [headers, data] = PLUGIN_FAILURES;
    let accepted = match predicate.name.as_str() {
        name if is_of_process(name) => return None,
        name if name == headers => fake.unwrap_or_default().headers_until_failure?,
        name if name == data => fake.unwrap_or_default().data_until_failure?,
        _ => return Some(predicate.plan),
    };
    Some(PredicatePlan {
        threshold: predicate.plan.threshold.saturating_add(accepted.into()),
        ..predicate.plan
    })
}

fn failures(load: &NighthawkLoad, fake: Option<FakePlugin>) -> Vec<PredicatePlan> {
    if !load.failure_predicate.is_empty() {
        return last_of_each(&load.failure_predicate, fake);
    }
    if load.no_default_failure_predicates {
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

fn tls(request: &NighthawkRequest, uses_tls: bool) -> Result<ClientTlsPlan, RequestError> {
    let target = &request.target;
    let mut plan = match (&target.tls_context, &target.transport_socket) {
        (Some(text), _) => EnvoyMessage::parse("--tls-context", text)?.tls_context()?,
        (None, Some(text)) => {
            EnvoyMessage::parse("--transport-socket", text)?.transport_socket()?
        }
        (None, None) => upstream_tls(),
    };
    if target.protocol == Some(Protocol::Http3) {
        for_quic(&mut plan);
    }
    if uses_tls && plan.server_name.is_none() {
        plan.server_name = server_name(request)?;
    }
    Ok(plan)
}

/// Adapts a plan to QUIC: version 1.3 alone. Without an authority, certificates must carry the
/// name of the target.
pub(super) fn for_quic(plan: &mut ClientTlsPlan) {
    plan.suites = TlsSuites::default();
    if plan.verification == Verification::None {
        plan.verification = Verification::Name;
    }
}

/// The requested name, where a header names the host: `:authority` does over HTTP/2 and HTTP/3. With several such headers
/// it is the target's own name; Nighthawk requests none.
fn server_name(request: &NighthawkRequest) -> Result<Option<String>, RequestError> {
    let has_authority = protocol(request) != LoadProtocol::Http1;
    let names_host =
        |name: &str| name.eq_ignore_ascii_case("host") || (has_authority && is_host_header(name));
    let headers = request.content.request_header.iter();
    let mut headers = headers.filter(|header| names_host(&header.0));
    let (Some(named), None) = (headers.next(), headers.next()) else {
        return Ok(None);
    };
    let target = target(&named.1).map_err(|source| RequestError::Host {
        host: named.1.clone(),
        source,
    })?;
    Ok(Some(target.host().to_owned()))
}

/// Returns the exporters.
fn telemetry(output: &NighthawkOutput, run: RunId) -> Result<TelemetryPlan, RequestError> {
    let address = output.stats_sink_address.as_deref();
    let sink = |text: &String| {
        let message = EnvoyMessage::parse("--stats-sinks", text)?;
        Ok(message.stats_sink(address)?)
    };
    let sinks = output.stats_sinks.iter().map(sink);
    // A sink without an address is left out.
    let sinks = sinks.filter_map(Result::transpose);
    let every = output
        .stats_flush_interval
        .map(|n| Nanos::from_secs(n.into()));
    let every = every.or(output.stats_flush_interval_duration);
    Ok(TelemetryPlan {
        run,
        sinks: sinks.collect::<Result<_, RequestError>>()?,
        flush_every: every.unwrap_or(TelemetryPlan::FLUSH_EVERY),
        trace: output
            .trace
            .as_deref()
            .filter(|uri| !uri.is_empty())
            .map(trace)
            .transpose()?,
        headers: answer_headers(output)?,
        completions: output.verbosity == LogLevel::Trace,
        statsd_names: Some(statsd_names()),
        ..TelemetryPlan::default()
    })
}

/// Counters and times of a worker by Nighthawk's names.
fn statsd_names() -> StatsdNamesPlan {
    let counters = LoadCounter::foreign().map(|(counter, name)| (counter, name.to_owned()));
    let time = |(outcome, class): (Outcome, &str)| {
        let name = format!("benchmark_http_client.latency_{class}");
        (outcome.name().to_owned(), name)
    };
    StatsdNamesPlan {
        before_worker: "cluster".to_owned(),
        worker_tag: "envoy.cluster_name".to_owned(),
        counters: counters.collect(),
        times: CLASSES.map(time).into(),
    }
}

/// Returns the response headers that are logged, at level info as by Nighthawk's plugin.
fn answer_headers(output: &NighthawkOutput) -> Result<Vec<AnswerHeadersPlan>, RequestError> {
    let headers = |plugin| match plugin {
        OutputPlugin::LogHeaders(plan) => Some(plan),
        OutputPlugin::Fake(_) => None,
    };
    let plans: Vec<_> = plugins(output)?.into_iter().filter_map(headers).collect();
    let is_logged = output.verbosity <= LogLevel::Info;
    Ok(if is_logged { plans } else { Vec::new() })
}

/// Returns the plugin that counts answers, if there is one.
fn fake_plugin(output: &NighthawkOutput) -> Result<Option<FakePlugin>, RequestError> {
    let mut plugins = plugins(output)?.into_iter();
    Ok(plugins.find_map(|plugin| match plugin {
        OutputPlugin::Fake(fake) => Some(fake),
        OutputPlugin::LogHeaders(_) => None,
    }))
}

fn plugins(output: &NighthawkOutput) -> Result<Vec<OutputPlugin>, RequestError> {
    let flag = "--user-defined-plugin-config";
    let configs = output.user_defined_plugin_config.iter();
    let read = configs.map(|text| Ok(EnvoyMessage::parse(flag, text)?.output_plugin()?));
    read.collect()
}

/// Every request is traced, by the headers of Envoy's tracer.
fn trace(uri: &str) -> Result<TracePlan, RequestError> {
    if !uri.starts_with("zipkin://") {
        return Err(RequestError::TraceScheme {
            uri: uri.to_owned(),
        });
    }
    let sink = current_zipkin_uri(uri).parse::<SpanSink>();
    let SpanSink(export) = sink.map_err(|problem| RequestError::TraceUri {
        uri: uri.to_owned(),
        problem,
    })?;
    Ok(TracePlan {
        headers: TraceHeaders::B3Multi,
        sample: 1.0,
        export: Some(export),
    })
}

/// Returns `uri` with version 2 of Zipkin's interface: Nighthawk's documentation of 2020
/// names version 1.
#[must_use]
pub fn current_zipkin_uri(uri: &str) -> String {
    uri.replace("/api/v1/", "/api/v2/")
}

/// Returns the thresholds by the names that were typed.
pub(super) fn thresholds(predicates: &[NighthawkPredicate]) -> BTreeMap<String, u64> {
    let all = predicates.iter();
    all.map(|predicate| (predicate.name.clone(), predicate.plan.threshold))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::values::PredicateKind;
    use super::*;

    /// The second predicate removed the first, as both are of connections that failed.
    #[test]
    fn the_last_predicate_of_a_name_counts_and_each_name_has_its_own() {
        let named = |name: &str, threshold| PredicateKind::Failure.named(name, threshold).unwrap();
        let predicates = [
            named("benchmark.pool_connection_failure", 7),
            named("benchmark.pool_connection_failure", 0),
            named("upstream_rq_pending_failure_eject", 1_000),
        ];
        let plans = last_of_each(&predicates, None);
        let thresholds: Vec<_> = plans.iter().map(|plan| plan.threshold).collect();
        assert_eq!(thresholds, [0, 1_000]);
    }

    #[test]
    fn a_quantity_whose_total_of_all_workers_is_too_large_is_refused() {
        for (each, workers, sum) in [
            (1_000_000, 4_294, Some(4_294_000_000)),
            (1_000_000, 4_295, None),
            (65_537, 65_535, Some(u32::MAX)),
            (65_538, 65_535, None),
        ] {
            let connections = total("--connections", each, workers);
            assert_eq!(connections.ok(), sum, "{each} x {workers}");
            let load = NighthawkLoad {
                burst_size: each,
                ..NighthawkLoad::DEFAULT
            };
            let burst = pace(&load, workers);
            assert_eq!(burst.is_ok(), sum.is_some(), "{each} x {workers}");
        }
        let error = total("--burst-size", 1_000_000, 4_295).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--burst-size: 1000000 for each of 4295 workers, at most 4294967295 in total"
        );
    }
}
