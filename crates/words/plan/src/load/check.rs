//! Rules of a load plan.

use stillwell_units::Nanos;

use super::{
    BodyPlan, ClientPlan, ConnectingPlan, EndpointPlan, GrpcMessages, GrpcPlan, LoadPace,
    LoadPlanParts, LoadProtocol, Spacing, TunnelProtocol,
};
use crate::RateShape;

/// Reason why a load makes no sense.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadPlanError {
    /// Nowhere to send to.
    #[error("there is no target")]
    NoEndpoint,
    /// Nothing to send there.
    #[error("there is no request for {address}")]
    NoRequest {
        /// The endpoint.
        address: String,
    },
    /// A weight of zero.
    #[error("the weight of {address} is zero: leave the target out instead")]
    NoWeight {
        /// The endpoint.
        address: String,
    },
    /// A rate that is no rate.
    #[error("a rate of {rate} requests a second: write one above zero")]
    Rate {
        /// The given value.
        rate: f64,
    },
    /// A shape that never requests anything.
    #[error("the rate has no step with a length above zero")]
    NoRate,
    /// A spacing that makes no sense.
    #[error("{what}")]
    Spacing {
        /// Reason why not.
        what: &'static str,
    },
    /// Fewer connections than parts that need one.
    #[error(
        "{connections} connections are too few for {endpoints} targets on {workers} workers: \
         each worker needs one to each target"
    )]
    TooFewConnections {
        /// Number of items.
        connections: u32,
        /// The number of endpoints.
        endpoints: usize,
        /// The number of workers.
        workers: u16,
    },
    /// No worker or no stream.
    #[error("the number of {what} is zero")]
    Zero {
        /// Of what.
        what: &'static str,
    },
    /// Several requests at a time where the protocol has one.
    #[error("HTTP/1.1 carries one request at a time on a connection, not {streams}")]
    Streams {
        /// The requested value.
        streams: u32,
    },
    /// HTTP/3 without TLS.
    #[error("HTTP/3 requires TLS: {address} needs a URL with https://")]
    Http3Plain {
        /// The endpoint.
        address: String,
    },
    /// HTTP/3 with a proxy that is not connected over TLS.
    #[error("HTTP/3 requires TLS: the proxy {address} needs a URL with https://")]
    TunnelPlain {
        /// The proxy.
        address: String,
    },
    /// HTTP/3 through a proxy.
    #[error("HTTP/3 through a proxy needs HTTP/2 to the proxy")]
    Http3Tunnel,
    /// A call that makes no sense.
    #[error("{what}")]
    Call {
        /// Reason why not.
        what: &'static str,
    },
    /// A header that tracing writes itself.
    #[error("tracing sets the header `{name}` on each request: remove the header, or do not trace")]
    TraceHeaderGiven {
        /// Its name.
        name: String,
    },
    /// A share that is none.
    #[error("a share of {share} of all requests: write one from 0 to 1")]
    TraceSample {
        /// The given value.
        share: f64,
    },
    /// Connections that are all to be opened once it is over.
    #[error(
        "connections are opened over {over}, but the load ends after {duration}: make the load \
         longer"
    )]
    OpensTooLong {
        /// The given value.
        over: Nanos,
        /// Length of the load.
        duration: Nanos,
    },
    /// Generators that cannot have equal numbers of workers.
    #[error("{workers} workers cannot be divided evenly among {generators} generators")]
    Generators {
        /// The number of generators.
        generators: u16,
        /// The number of workers of all of them.
        workers: u16,
    },
    /// A load that would never end by itself and never measure anything.
    #[error("the warm-up is as long as the whole load, so nothing is measured: make it shorter")]
    AllWarmup,
}

impl LoadPlanParts {
    /// Checks what the types do not say.
    pub(super) fn check(&self) -> Result<(), LoadPlanError> {
        check_requests(&self.endpoints, &self.client, self.workers)?;
        self.check_opening()?;
        self.check_trace()?;
        if self.until.duration.is_some_and(|all| self.warmup >= all) {
            return Err(LoadPlanError::AllWarmup);
        }
        match &self.pace {
            LoadPace::Closed => Ok(()),
            LoadPace::Open { curve, spacing, .. } => {
                check_curve(curve)?;
                check_spacing(*spacing)
            }
        }
    }

    fn check_opening(&self) -> Result<(), LoadPlanError> {
        let over = self.client.connecting.over;
        match self.until.duration {
            Some(duration) if over >= duration && over > Nanos::ZERO => {
                Err(LoadPlanError::OpensTooLong { over, duration })
            }
            _ => Ok(()),
        }
    }

    fn check_trace(&self) -> Result<(), LoadPlanError> {
        let Some(trace) = &self.telemetry.trace else {
            return Ok(());
        };
        if !(0.0..=1.0).contains(&trace.sample) {
            return Err(LoadPlanError::TraceSample {
                share: trace.sample,
            });
        }
        let written = trace.headers.names();
        let is_written = |name: &str| {
            written
                .iter()
                .any(|header| header.eq_ignore_ascii_case(name))
        };
        let requests = self
            .endpoints
            .iter()
            .flat_map(|endpoint| &endpoint.requests);
        let mut names = requests.flat_map(|request| request.headers.iter().map(|(name, _)| name));
        match names.find(|name| is_written(name)) {
            Some(name) => Err(LoadPlanError::TraceHeaderGiven { name: name.clone() }),
            None => Ok(()),
        }
    }
}

/// Checks the requests of `endpoints` and the connections that `client` opens to them on
/// `workers`.
pub(crate) fn check_requests(
    endpoints: &[EndpointPlan],
    client: &ClientPlan,
    workers: u16,
) -> Result<(), LoadPlanError> {
    if endpoints.is_empty() {
        return Err(LoadPlanError::NoEndpoint);
    }
    for endpoint in endpoints {
        let address = || endpoint.address.clone();
        if endpoint.requests.is_empty() {
            return Err(LoadPlanError::NoRequest { address: address() });
        }
        if endpoint.weight == 0 {
            return Err(LoadPlanError::NoWeight { address: address() });
        }
    }
    check_connections(endpoints, client, workers)?;
    for request in endpoints.iter().flat_map(|endpoint| &endpoint.requests) {
        if let BodyPlan::Grpc(call) = &request.body {
            if client.connecting.protocol != LoadProtocol::Http2 {
                let what = "gRPC needs HTTP/2";
                return Err(LoadPlanError::Call { what });
            }
            check_call(call)?;
        }
    }
    Ok(())
}

fn check_connections(
    endpoints: &[EndpointPlan],
    client: &ClientPlan,
    workers: u16,
) -> Result<(), LoadPlanError> {
    let ConnectingPlan {
        connections,
        protocol,
        streams,
        ..
    } = client.connecting;
    for (what, count) in [("workers", u32::from(workers)), ("streams", streams)] {
        if count == 0 {
            return Err(LoadPlanError::Zero { what });
        }
    }
    if protocol == LoadProtocol::Http1 && streams > 1 {
        return Err(LoadPlanError::Streams { streams });
    }
    let tunnel = client.tunnel.as_ref();
    if protocol == LoadProtocol::Http3 {
        if tunnel.is_some_and(|proxy| proxy.protocol != TunnelProtocol::Http2) {
            return Err(LoadPlanError::Http3Tunnel);
        }
        if let Some(plain) = endpoints
            .iter()
            .find(|endpoint| endpoint.tls_host.is_none())
        {
            let address = plain.address.clone();
            return Err(LoadPlanError::Http3Plain { address });
        }
    }
    if let Some(tunnel) = tunnel.filter(|proxy| proxy.protocol == TunnelProtocol::Http3)
        && tunnel.tls_host.is_none()
    {
        let address = tunnel.address.clone();
        return Err(LoadPlanError::TunnelPlain { address });
    }
    if u64::from(connections) < endpoints.len() as u64 * u64::from(workers) {
        return Err(LoadPlanError::TooFewConnections {
            connections,
            endpoints: endpoints.len(),
            workers,
        });
    }
    Ok(())
}

fn check_call(call: &GrpcPlan) -> Result<(), LoadPlanError> {
    let is_empty = matches!(&call.messages, GrpcMessages::Given(all) if all.is_empty());
    let rules = [
        (
            call.count == 0 || is_empty,
            "a gRPC call must send at least one message",
        ),
        (
            call.every.is_some_and(|every| every == Nanos::ZERO),
            "the time between two messages must be above zero",
        ),
        (
            call.deadline
                .is_some_and(|deadline| deadline == Nanos::ZERO),
            "the deadline of a gRPC call must be above zero",
        ),
    ];
    match rules.into_iter().find(|(is_broken, _)| *is_broken) {
        Some((_, what)) => Err(LoadPlanError::Call { what }),
        None => Ok(()),
    }
}

fn check_curve(curve: &RateShape) -> Result<(), LoadPlanError> {
    if curve.is_max() {
        let rate = f64::INFINITY;
        return Err(LoadPlanError::Rate { rate });
    }
    let rates = curve.levels();
    if let Some(rate) = rates.iter().find(|rate| !rate.is_finite() || **rate < 0.0) {
        return Err(LoadPlanError::Rate { rate: *rate });
    }
    if !rates.iter().any(|rate| *rate > 0.0) {
        return Err(rates
            .first()
            .map_or(LoadPlanError::NoRate, |rate| LoadPlanError::Rate {
                rate: *rate,
            }));
    }
    Ok(())
}

fn check_spacing(spacing: Spacing) -> Result<(), LoadPlanError> {
    let what = match spacing {
        Spacing::Burst { size: 0 } => "a burst must have at least one request",
        Spacing::Zipf { exponent } if !exponent.is_finite() || exponent <= 1.0 => {
            "the exponent of a Zipf distribution must be above one"
        }
        _ => return Ok(()),
    };
    Err(LoadPlanError::Spacing { what })
}
