//! From a load as it was typed to the parts of its plan.

use stillwell_plan::Validity;
use stillwell_plan::load::{
    ClientPlan, ConnectingPlan, EndpointPlan, IdleStrategy, LoadPace, LoadPlanParts, LoadProtocol,
    Overflow, Reuse, Spacing, UntilPlan,
};
use stillwell_units::Nanos;
use stillwell_units::human::counted;

use super::endpoint::{gather, read, typed};
use super::error::{LoadSpecError, While as _};
use super::host::ReadLoad;
use super::{LoadSpec, ShapeSpec, check, grpc, recorded, telemetry, tls, tunnel};

const DURATION: Nanos = Nanos::from_secs(10);
/// Time limit for requests in flight after the end of the load.
const GRACE_MAX: Nanos = Nanos::from_secs(5);

/// Returns the parts of the plan of `spec`.
pub(super) fn parts(
    spec: &LoadSpec,
    context: &ReadLoad<'_>,
) -> Result<LoadPlanParts, LoadSpecError> {
    let connecting = &spec.connecting;
    let protocol = protocol(spec)?;
    let (endpoints, requests_max) = endpoints(spec, context)?;
    let requests = spec.requests.or(requests_max);
    let workers =
        spec.concurrency
            .workers(context.host.cpus, connecting.connections, endpoints.len());
    let plan = LoadPlanParts {
        endpoints,
        pace: pace(spec),
        client: ClientPlan {
            connecting: ConnectingPlan {
                connections: connecting.connections,
                protocol,
                streams: connecting.streams,
                prefetch: !connecting.late,
                over: connecting.over.unwrap_or(Nanos::ZERO),
                reuse: connecting.reuse.unwrap_or(Reuse::Mru),
                requests_max: connecting.requests_max,
                timeout: connecting.connect_timeout,
                without_alpn: false,
                states_empty_length: false,
                source: None,
            },
            tunnel: tunnel::plan(&spec.tunnel)?,
            tls: tls::plan(&spec.tls),
            timeout: connecting.timeout,
            idle: connecting.idle.unwrap_or(IdleStrategy::Spin),
        },
        workers,
        until: UntilPlan {
            duration: match (spec.duration, requests) {
                (None, None) => Some(DURATION.max(spec.rate.length())),
                (duration, _) => duration,
            },
            requests,
            termination: spec.termination.clone(),
            failure: spec.failure.clone(),
            by_worker: false,
        },
        warmup: spec.warmup,
        first_request: false,
        latency_header: None,
        grace: connecting.timeout.min(GRACE_MAX),
        telemetry: telemetry::plan(&spec.stats, &spec.trace, spec.run),
        seed: spec.seed,
        validity: Validity::Normal,
        fleet: None,
    };
    check::check(spec, context.host.permitted_cpus, &plan)?;
    Ok(plan)
}

/// Returns the protocol of connections. Calls by gRPC use HTTP/2.
fn protocol(spec: &LoadSpec) -> Result<LoadProtocol, LoadSpecError> {
    match (&spec.grpc.method, spec.connecting.protocol) {
        (Some(_), LoadProtocol::Http3) => Err(LoadSpecError::text(
            "--grpc-method does not support HTTP/3: use --protocol http2, or leave --protocol out",
        )),
        (Some(_), _) => Ok(LoadProtocol::Http2),
        (None, protocol) => Ok(protocol),
    }
}

/// Returns endpoints with their requests, and the number of requests if a list gives it.
fn endpoints(
    spec: &LoadSpec,
    context: &ReadLoad<'_>,
) -> Result<(Vec<EndpointPlan>, Option<u64>), LoadSpecError> {
    let (request, files) = (&spec.request, context.files);
    if let Some(method) = &spec.grpc.method {
        return Ok((grpc::endpoints(spec, method, context)?, None));
    }
    if let Some(path) = &request.requests_file {
        let parsed = recorded::request_lines(&read(files, path)?);
        let parsed = parsed.reading(|| path.display().to_string())?;
        return Ok((gather(parsed, request, files)?, None));
    }
    if let Some(path) = &request.har {
        let parsed = recorded::har(&read(files, path)?);
        let (requests, skipped) = parsed.reading(|| path.display().to_string())?;
        if skipped > 0 {
            (context.host.notice)(&format!(
                "{}: {}",
                path.display(),
                counted(
                    skipped,
                    "entry is not an HTTP request and is skipped",
                    "entries are not HTTP requests and are skipped"
                )
            ));
        }
        return Ok((gather(requests, request, files)?, None));
    }
    typed(&spec.urls, request, files)
}

fn pace(spec: &LoadSpec) -> LoadPace {
    if spec.rate.is_max() {
        return LoadPace::Closed;
    }
    LoadPace::Open {
        curve: spec.rate.clone(),
        spacing: spacing(&spec.shape),
        overflow: match spec.closed_loop {
            true => Overflow::Defer,
            false => Overflow::Wait,
        },
    }
}

pub(crate) fn spacing(shape: &ShapeSpec) -> Spacing {
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
