//! From arguments to a load as it was typed.

use std::path::Path;

use anyhow::Context;
use stillwell_config::requests::{
    ConnectingSpec, GrpcSpec, LoadHost, LoadSpec, LoadSpecError, Predicate, RequestSource,
    RequestSpec, ShapeSpec, StatsSpec, TlsSpec, TraceSpec, TunnelSpec, read_text,
};
use stillwell_nighthawk::envoy::EnvoyMessage;
use stillwell_plan::LoadPlan;
use stillwell_plan::load::{LoadPlanParts, PredicatePlan, StatsPagePlan};
use stillwell_scope::permitted_cpus;
use stillwell_units::{RunId, Seed};

use crate::arguments::{
    LoadArguments, LoadGrpcArguments, LoadRequestArguments, LoadShapeArguments, LoadStatsArguments,
    LoadTlsArguments, LoadTraceArguments, LoadTunnelArguments,
};
use crate::command::random::random;
use crate::command::reflection::Reflected;
use crate::paint::Paint;

/// The plan of `arguments`.
pub(super) fn plan(arguments: &LoadArguments, seed: Seed) -> anyhow::Result<LoadPlan> {
    Ok(LoadPlan::try_new(parts(arguments, seed)?).map_err(LoadSpecError::from)?)
}

/// The same as parts, for a command that changes some of them.
pub(super) fn parts(arguments: &LoadArguments, seed: Seed) -> anyhow::Result<LoadPlanParts> {
    let spec = spec(arguments, seed)?;
    let mut parts = on_this_host(arguments.quiet, |host| spec.parts(host))?;
    parts.validity = arguments.validity.into();
    Ok(match arguments.threshold.is_empty() {
        true => parts,
        false => parts.with_timeout_as_grace(),
    })
}

fn on_this_host<T>(
    is_quiet: bool,
    read: impl FnOnce(LoadHost<'_>) -> Result<T, LoadSpecError>,
) -> Result<T, LoadSpecError> {
    read(LoadHost {
        cpus: cpus(),
        permitted_cpus: &permitted_cpus(),
        reflection: &Reflected,
        notice: &|text| {
            if !is_quiet {
                Paint::print_message(text);
            }
        },
    })
}

/// Threads that this process can run at once.
pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A name for one load, drawn each time for any seed: two loads with the same seed are
/// two loads for those that receive their series and traces.
pub(super) fn random_run() -> anyhow::Result<RunId> {
    let bytes = random().context("choose a random id for this load")?;
    Ok(RunId::from_bytes(bytes))
}

fn spec(arguments: &LoadArguments, seed: Seed) -> anyhow::Result<LoadSpec> {
    Ok(LoadSpec {
        urls: arguments.urls.clone(),
        rate: arguments.rate.clone(),
        shape: shape(&arguments.shape),
        duration: arguments.duration,
        requests: arguments.requests,
        warmup: arguments.warmup,
        closed_loop: arguments.closed_loop,
        termination: predicates(&arguments.termination_predicate),
        failure: predicates(&arguments.failure_predicate),
        concurrency: arguments.over.concurrency,
        cpus: arguments.over.cpus.clone(),
        request: request(&arguments.request)?,
        grpc: grpc(&arguments.grpc),
        connecting: connecting(arguments),
        tls: tls(&arguments.tls),
        tunnel: tunnel(&arguments.tunnel),
        stats: stats(&arguments.stats),
        trace: trace(&arguments.trace),
        seed,
        run: random_run()?,
    })
}

fn predicates(typed: &[Predicate]) -> Vec<PredicatePlan> {
    typed.iter().map(|predicate| predicate.0).collect()
}

pub(crate) fn shape(arguments: &LoadShapeArguments) -> ShapeSpec {
    ShapeSpec {
        burst_size: arguments.burst_size,
        jitter_uniform: arguments.jitter_uniform,
        poisson: arguments.poisson,
        zipf: arguments.zipf,
    }
}

fn request(arguments: &LoadRequestArguments) -> anyhow::Result<RequestSpec> {
    let list = arguments.request_source.as_deref().map(list).transpose()?;
    Ok(RequestSpec {
        method: arguments.method.clone(),
        headers: arguments.header.clone(),
        body: arguments.body.clone(),
        requests_file: arguments.requests_file.clone(),
        har: arguments.har.clone(),
        list,
    })
}

/// A list of requests: the text itself, or that of the file behind `@`.
fn list(text: &str) -> anyhow::Result<RequestSource> {
    let message = match text.strip_prefix('@') {
        Some(path) => EnvoyMessage::parse(path, &read_text(Path::new(path))?)?,
        None => EnvoyMessage::parse("--request-source", text)?,
    };
    Ok(message.request_list()?)
}

fn grpc(arguments: &LoadGrpcArguments) -> GrpcSpec {
    GrpcSpec {
        method: arguments.grpc_method.clone(),
        json: arguments.grpc_json.clone(),
        text: arguments.grpc_text.clone(),
        descriptors: arguments.grpc_descriptors.clone(),
        streaming: arguments.grpc_streaming.map(Into::into),
        deadline: arguments.grpc_deadline,
        messages: arguments.grpc_messages,
        message_every: arguments.grpc_message_rate.map(|rate| rate.0),
    }
}

fn connecting(arguments: &LoadArguments) -> ConnectingSpec {
    let (over, connecting) = (&arguments.over, &arguments.connecting);
    ConnectingSpec {
        connections: over.connections,
        protocol: over.protocol.into(),
        streams: over.streams,
        timeout: connecting.timeout,
        connect_timeout: connecting.connect_timeout,
        late: connecting.connect_late,
        over: connecting.connect_over,
        requests_max: connecting.max_requests_per_connection,
        reuse: connecting.connection_reuse.map(Into::into),
        idle: connecting.idle_strategy.map(Into::into),
    }
}

pub(crate) fn tls(arguments: &LoadTlsArguments) -> TlsSpec {
    TlsSpec {
        insecure: arguments.insecure,
        ca: arguments.ca.clone(),
        certificate: arguments.certificate.clone(),
        key: arguments.key.clone(),
        sni: arguments.sni.clone(),
        no_resumption: arguments.no_session_resumption,
        cipher_suites: arguments.cipher_suite.clone(),
    }
}

fn tunnel(arguments: &LoadTunnelArguments) -> TunnelSpec {
    TunnelSpec {
        uri: arguments.tunnel_uri.clone(),
        protocol: arguments.tunnel_protocol.map(Into::into),
        headers: arguments.tunnel_header.clone(),
        insecure: arguments.tunnel_insecure,
        ca: arguments.tunnel_ca.clone(),
    }
}

fn stats(arguments: &LoadStatsArguments) -> StatsSpec {
    let labels = arguments.stats_label.iter();
    StatsSpec {
        sinks: arguments
            .stats_sink
            .iter()
            .map(|sink| sink.0.clone())
            .collect(),
        flush_every: arguments.stats_flush_interval,
        page: arguments.stats_listen.map(|address| StatsPagePlan {
            address: address.0,
            linger: arguments.stats_linger,
        }),
        labels: labels
            .map(|label| (label.0.clone(), label.1.clone()))
            .collect(),
    }
}

fn trace(arguments: &LoadTraceArguments) -> TraceSpec {
    TraceSpec {
        sink: arguments.trace.as_ref().map(|sink| sink.0.clone()),
        sample: arguments.trace_sample,
        headers: arguments.trace_headers.map(Into::into),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use stillwell_units::Nanos;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        load: LoadArguments,
    }

    #[test]
    fn each_load_has_a_name_of_its_own() {
        let typed = Typed::parse_from(["load", "http://a/"]);
        let run = || spec(&typed.load, Seed::from_number(1)).unwrap().run;
        assert_ne!(run(), run());
    }

    /// A response that came later than 5 s after the end counted as an error, for any bound.
    #[test]
    fn a_load_with_a_threshold_waits_for_each_request_until_its_timeout() {
        let grace = |words: &str| {
            let words = format!("load http://127.0.0.1:1/ {words}");
            let typed = Typed::parse_from(words.split_whitespace());
            parts(&typed.load, Seed::from_number(1)).unwrap().grace
        };
        assert_eq!(grace("--timeout 20s"), Nanos::from_secs(5));
        assert_eq!(grace("--timeout 2s"), Nanos::from_secs(2));
        assert_eq!(
            grace("--timeout 20s --threshold p99<1s"),
            Nanos::from_secs(20)
        );
    }
}
