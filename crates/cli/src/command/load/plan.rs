//! From what was typed to a plan.

use std::path::PathBuf;

use anyhow::{Context, bail};
use stillwell_http::{Scheme, Target};
use stillwell_plan::{
    BlockShape, BodyPlan, ClientTlsPlan, ConnectingPlan, EndpointPlan, LoadPace, LoadPlan,
    LoadProtocol, Overflow, PayloadFormat, PayloadPlan, PemSource, RequestPlan, Spacing,
    TlsIdentity, TlsSuites, UntilPlan, Verification,
};
use stillwell_units::{ByteSize, Nanos, Seed};

use super::source::{self, Sourced};
use super::telemetry;
use crate::arguments::{
    Concurrency, Header, LoadArguments, LoadRate, LoadShapeArguments, LoadTlsArguments,
};
use crate::paint::Paint;

const DURATION: Nanos = Nanos::from_secs(10);
/// How long requests under way may take to end once the time is up.
const GRACE_MAX: Nanos = Nanos::from_secs(5);
const BODY: ByteSize = ByteSize::kib(1);
/// Bodies that are built before the load.
const BODY_CACHE: ByteSize = ByteSize::mib(1);

pub(super) fn plan(arguments: &LoadArguments, seed: Seed) -> anyhow::Result<LoadPlan> {
    let connecting = &arguments.connecting;
    let endpoints = endpoints(arguments)?;
    let pace = match &arguments.rate {
        LoadRate::Max => {
            if spacing(&arguments.shape) != Spacing::Even {
                bail!("the shape of a load needs a rate: give --rate N/s");
            }
            LoadPace::Closed
        }
        LoadRate::Curve(curve) => LoadPace::Open {
            curve: curve.clone(),
            spacing: spacing(&arguments.shape),
            overflow: Overflow::Wait,
        },
    };
    let protocol = LoadProtocol::from(arguments.protocol);
    let workers = workers(
        arguments.concurrency,
        arguments.connections,
        endpoints.len(),
    );
    Ok(LoadPlan {
        endpoints,
        pace,
        connecting: ConnectingPlan {
            connections: arguments.connections,
            protocol,
            streams: arguments.streams,
            prefetch: !connecting.connect_late,
            reuse: connecting.connection_reuse.into(),
            requests_max: connecting.max_requests_per_connection,
            timeout: connecting.connect_timeout,
            source: None,
        },
        tls: tls(&arguments.tls),
        workers,
        until: UntilPlan {
            duration: match (arguments.duration, arguments.requests) {
                (None, None) => Some(DURATION),
                (duration, _) => duration,
            },
            requests: arguments.requests,
            termination: predicates(&arguments.termination_predicate),
            failure: predicates(&arguments.failure_predicate),
            by_worker: false,
        },
        warmup: arguments.warmup,
        first_request: false,
        latency_header: None,
        timeout: connecting.timeout,
        grace: connecting.timeout.min(GRACE_MAX),
        idle: connecting.idle_strategy.into(),
        telemetry: telemetry::plan(&arguments.stats, &arguments.trace)?,
        seed,
    })
}

/// What is offered by ALPN is the protocol's own matter.
fn tls(arguments: &LoadTlsArguments) -> ClientTlsPlan {
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

/// Whom the certificate of an https target is for.
pub(super) fn tls_host(target: &Target) -> Option<String> {
    (target.scheme() == Scheme::Https).then(|| target.host().to_owned())
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

fn endpoints(arguments: &LoadArguments) -> anyhow::Result<Vec<EndpointPlan>> {
    let request = &arguments.request;
    if let Some(path) = &request.requests_file {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("read {}", path.display()))?;
        return gather(source::lines(&text)?, arguments);
    }
    if let Some(path) = &request.har {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("read {}", path.display()))?;
        let (requests, others) = source::har(&text)?;
        if others > 0 && !arguments.quiet {
            Paint::say(&format!(
                "{}: {others} entries are no requests over HTTP and are passed over",
                path.display()
            ));
        }
        return gather(requests, arguments);
    }
    let body = request.body.as_deref().map_or(Ok(BodyPlan::None), body)?;
    let mut endpoints = Vec::new();
    for typed in &arguments.urls {
        let (weight, url) = weighted(typed)?;
        let target = target(url)?;
        let method = request.method.clone();
        let method = method.unwrap_or_else(|| match body {
            BodyPlan::None => "GET".to_owned(),
            BodyPlan::Bytes(_) | BodyPlan::Payload(_) => "POST".to_owned(),
        });
        endpoints.push(EndpointPlan {
            address: target.dial_address(),
            tls_host: tls_host(&target),
            weight,
            requests: vec![request_to(
                &target,
                method,
                &request.header,
                &[],
                body.clone(),
            )],
        });
    }
    Ok(endpoints)
}

/// Requests that were read from a file, by their address; each address gets as
/// many as the file has for it.
fn gather(sourced: Vec<Sourced>, arguments: &LoadArguments) -> anyhow::Result<Vec<EndpointPlan>> {
    let mut endpoints: Vec<EndpointPlan> = Vec::new();
    for one in sourced {
        let target = target(&one.url)?;
        let headers = &arguments.request.header;
        let request = request_to(&target, one.method, headers, &one.headers, one.body);
        let (address, tls_host) = (target.dial_address(), tls_host(&target));
        let is_same =
            |other: &&mut EndpointPlan| other.address == address && other.tls_host == tls_host;
        match endpoints.iter_mut().find(is_same) {
            Some(endpoint) => {
                endpoint.weight = endpoint.weight.saturating_add(1);
                endpoint.requests.push(request);
            }
            None => endpoints.push(EndpointPlan {
                address,
                tls_host,
                weight: 1,
                requests: vec![request],
            }),
        }
    }
    Ok(endpoints)
}

/// `Host` is said by the authority; all else as given, ours before the file's.
pub(super) fn request_to(
    target: &Target,
    method: String,
    own: &[Header],
    others: &[Header],
    body: BodyPlan,
) -> RequestPlan {
    let is_host =
        |name: &str| name.eq_ignore_ascii_case("host") || name.eq_ignore_ascii_case(":authority");
    let all = || own.iter().chain(others);
    let authority = all().find(|header| is_host(&header.0));
    RequestPlan {
        method,
        path: target.path_and_query().to_owned(),
        authority: authority.map_or_else(|| target.authority(), |header| header.1.clone()),
        headers: all()
            .filter(|header| !is_host(&header.0))
            .map(|Header(name, value)| (name.clone(), value.clone()))
            .collect(),
        body,
    }
}

fn weighted(typed: &str) -> anyhow::Result<(u32, &str)> {
    let Some((weight, url)) = typed.split_once('*') else {
        return Ok((1, typed));
    };
    match weight.parse() {
        Ok(weight) => Ok((weight, url)),
        // An asterisk is allowed in a path.
        Err(_) if weight.contains(['/', ':']) => Ok((1, typed)),
        Err(_) => bail!("`{weight}` is no weight: write 3*{url}"),
    }
}

pub(super) fn target(url: &str) -> anyhow::Result<Target> {
    let with_scheme = if url.contains("://") {
        url.to_owned()
    } else {
        format!("http://{url}")
    };
    Ok(Target::from_url(&with_scheme)?)
}

fn body(text: &str) -> anyhow::Result<BodyPlan> {
    if let Some(path) = text.strip_prefix('@') {
        let bytes = std::fs::read(path).with_context(|| format!("read {path}"))?;
        return Ok(BodyPlan::Bytes(bytes));
    }
    let Some(payload) = text.strip_prefix("payload:") else {
        return Ok(BodyPlan::Bytes(text.as_bytes().to_vec()));
    };
    let (name, size) = match payload.split_once(':') {
        Some((name, size)) => (name, size.parse()?),
        None => (payload, BODY),
    };
    let known = [
        PayloadFormat::Ascii,
        PayloadFormat::Json,
        PayloadFormat::Syslog5424,
        PayloadFormat::ApacheCommon,
        PayloadFormat::DatadogLog,
    ];
    let names = known.iter().map(PayloadFormat::name).collect::<Vec<_>>();
    let names = names.join(", ");
    let format = known.into_iter().find(|format| format.name() == name);
    let Some(format) = format else {
        bail!("`{name}` is no format of a body: there are {names}");
    };
    Ok(BodyPlan::Payload(PayloadPlan {
        format,
        blocks: BlockShape::UpTo { maximum: size },
        cache: BODY_CACHE,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_stand_before_their_url() {
        assert_eq!(weighted("3*http://a/").unwrap(), (3, "http://a/"));
        assert_eq!(weighted("http://a/x*y").unwrap(), (1, "http://a/x*y"));
        assert!(weighted("many*a").is_err());
    }

    #[test]
    fn bodies_are_text_or_built() {
        assert_eq!(body("ab").unwrap(), BodyPlan::Bytes(b"ab".to_vec()));
        let BodyPlan::Payload(payload) = body("payload:json:4KiB").unwrap() else {
            panic!("no payload");
        };
        assert_eq!(payload.blocks.maximum(), ByteSize::kib(4));
        assert!(
            body("payload:jsn")
                .unwrap_err()
                .to_string()
                .contains("ascii, json")
        );
        assert!(body("@/nowhere").is_err());
    }

    #[test]
    fn a_host_header_is_what_the_request_says() {
        let target = target("127.0.0.1:80/x").unwrap();
        let own = ["Host: other".parse().unwrap(), "a: b".parse().unwrap()];
        let request = request_to(&target, "GET".to_owned(), &own, &[], BodyPlan::None);
        assert_eq!(request.authority, "other");
        assert_eq!(request.headers, [("a".to_owned(), "b".to_owned())]);
        assert_eq!(request.path, "/x");
    }
}
