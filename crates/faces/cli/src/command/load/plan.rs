//! From what was typed to a plan.

use std::path::PathBuf;

use stillwell_plan::{
    ClientTlsPlan, ConnectingPlan, LoadCurve, LoadPace, LoadPlan, LoadPlanParts, LoadProtocol,
    Overflow, PemSource, Spacing, TlsIdentity, TlsSuites, UntilPlan, Verification,
};
use stillwell_units::{Nanos, Seed};

use super::endpoint::{Endpoints, endpoints};
use super::{check, telemetry, tunnel};
use crate::arguments::{
    Concurrency, IdleName, LoadArguments, LoadRate, LoadShapeArguments, LoadTlsArguments, ReuseName,
};

const DURATION: Nanos = Nanos::from_secs(10);
/// How long requests under way may take to end once the time is up.
const GRACE_MAX: Nanos = Nanos::from_secs(5);

pub(super) fn plan(arguments: &LoadArguments, seed: Seed) -> anyhow::Result<LoadPlan> {
    Ok(LoadPlan::try_new(parts(arguments, seed)?)?)
}

/// The parts of a plan, for a command that changes some of them.
pub(super) fn parts(arguments: &LoadArguments, seed: Seed) -> anyhow::Result<LoadPlanParts> {
    let connecting = &arguments.connecting;
    let Endpoints {
        all: endpoints,
        requests_max,
    } = endpoints(arguments)?;
    let requests = arguments.requests.or(requests_max);
    let pace = match &arguments.rate {
        LoadRate::Max => LoadPace::Closed,
        LoadRate::Curve(curve) => LoadPace::Open {
            curve: curve.clone(),
            spacing: spacing(&arguments.shape),
            overflow: if arguments.closed_loop {
                Overflow::Defer
            } else {
                Overflow::Wait
            },
        },
    };
    let protocol = match arguments.grpc.grpc_method {
        Some(_) => LoadProtocol::Http2,
        None => arguments.over.protocol.into(),
    };
    let workers = workers(
        arguments.over.concurrency,
        arguments.over.connections,
        endpoints.len(),
    );
    let plan = LoadPlanParts {
        endpoints,
        pace,
        connecting: ConnectingPlan {
            connections: arguments.over.connections,
            protocol,
            streams: arguments.over.streams,
            prefetch: !connecting.connect_late,
            over: connecting.connect_over.unwrap_or(Nanos::ZERO),
            reuse: connecting.connection_reuse.unwrap_or(ReuseName::Mru).into(),
            requests_max: connecting.max_requests_per_connection,
            timeout: connecting.connect_timeout,
            source: None,
        },
        tunnel: tunnel::plan(&arguments.tunnel)?,
        tls: tls(&arguments.tls),
        workers,
        until: UntilPlan {
            duration: match (arguments.duration, requests) {
                (None, None) => Some(DURATION.max(length(&arguments.rate))),
                (duration, _) => duration,
            },
            requests,
            termination: predicates(&arguments.termination_predicate),
            failure: predicates(&arguments.failure_predicate),
            by_worker: false,
        },
        warmup: arguments.warmup,
        first_request: false,
        latency_header: None,
        timeout: connecting.timeout,
        grace: connecting.timeout.min(GRACE_MAX),
        idle: connecting.idle_strategy.unwrap_or(IdleName::Spin).into(),
        telemetry: telemetry::plan(&arguments.stats, &arguments.trace)?,
        seed,
    };
    check::check(arguments, &plan)?;
    Ok(plan)
}

/// How long the rate is said to change; nothing where it does not.
fn length(rate: &LoadRate) -> Nanos {
    match rate {
        LoadRate::Max | LoadRate::Curve(LoadCurve::Constant { .. }) => Nanos::ZERO,
        LoadRate::Curve(LoadCurve::Ramp { over, .. }) => *over,
        LoadRate::Curve(LoadCurve::Steps { steps }) => {
            let lengths = steps.iter().map(|step| step.length);
            lengths.fold(Nanos::ZERO, |all, one| all + one)
        }
    }
}

/// What is offered by ALPN is the protocol's own matter.
pub(super) fn tls(arguments: &LoadTlsArguments) -> ClientTlsPlan {
    let file = |path: &PathBuf| PemSource::File(path.clone());
    ClientTlsPlan {
        verification: if arguments.insecure {
            Verification::None
        } else {
            Verification::Roots {
                extra: arguments.ca.clone(),
                public: true,
            }
        },
        identity: match (&arguments.certificate, &arguments.key) {
            (Some(certificates), Some(key)) => Some(TlsIdentity {
                certificates: file(certificates),
                key: file(key),
            }),
            _ => None,
        },
        alpn: Vec::new(),
        server_name: arguments.sni.clone(),
        resumption: !arguments.no_session_resumption,
        suites: TlsSuites {
            names: arguments.cipher_suite.clone(),
            ..TlsSuites::default()
        },
    }
}

fn predicates(typed: &[crate::arguments::Predicate]) -> Vec<stillwell_plan::PredicatePlan> {
    typed.iter().map(|predicate| predicate.0).collect()
}

fn spacing(shape: &LoadShapeArguments) -> Spacing {
    if let Some(size) = shape.burst_size {
        Spacing::Burst { size }
    } else if let Some(most) = shape.jitter_uniform {
        Spacing::JitterUniform { most }
    } else if shape.poisson {
        Spacing::Poisson
    } else if let Some(exponent) = shape.zipf {
        Spacing::Zipf { exponent }
    } else {
        Spacing::Even
    }
}

/// As many as asked for; `auto` leaves no worker without a connection to each
/// endpoint.
pub(super) fn workers(concurrency: Concurrency, connections: u32, endpoints: usize) -> u16 {
    match concurrency {
        Concurrency::Workers(workers) => workers,
        Concurrency::Auto => {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            let fed = usize::try_from(connections).unwrap_or(usize::MAX) / endpoints.max(1);
            u16::try_from(cpus.min(fed).max(1)).unwrap_or(u16::MAX)
        }
    }
}
