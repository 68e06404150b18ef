//! `nighthawk_client`: the same load, asked for in Nighthawk's words.

use anyhow::{Context, bail};
use clap::Parser;
use clap::error::ContextKind;
use stillwell_plan::{
    BodyPlan, ClientTlsPlan, ConnectingPlan, EndpointPlan, IdleStrategy, LoadCurve, LoadPace,
    LoadPlan, LoadProtocol, Overflow, PredicatePlan, Spacing, TlsSuites, UntilPlan, Verification,
};
use stillwell_report::load::LoadFormat;
use stillwell_run::LoadEnd;
use stillwell_units::{Nanos, Seed};

use super::{Job, plan};
use crate::arguments::{NighthawkClientArguments, NighthawkIdle, NighthawkProtocol};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// What fails a load unless other predicates are given.
const FAILURES: [&str; 4] = [
    "benchmark.http_4xx",
    "benchmark.http_5xx",
    "benchmark.pool_connection_failure",
    "benchmark.stream_resets",
];

/// What stands in `Host` where there are several targets.
const MANY_HOSTS: &str = "host-not-supported-in-multitarget-mode";

/// The exit is Nighthawk's: 0, or 1 for whatever went wrong.
pub(crate) fn run_as_nighthawk(paint: &Paint) -> Exit {
    let arguments = match NighthawkClientArguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) if error.use_stderr() => {
            let argument = error.get(ContextKind::InvalidArg);
            let named = argument.map_or_else(String::new, |it| format!("Argument: {it}\n"));
            Paint::say(&format!("PARSE ERROR: {named}{error}"));
            return Exit::Failed;
        }
        // Help and version are no errors.
        Err(told) => {
            return match Paint::data(&told.to_string()) {
                Ok(()) => Exit::Held,
                Err(_) => Exit::Failed,
            };
        }
    };
    match conduct(&arguments, paint) {
        Ok(exit) => exit,
        Err(error) => {
            paint.error(&error);
            Exit::Failed
        }
    }
}

fn conduct(arguments: &NighthawkClientArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let bad = |error: anyhow::Error| {
        CommandError::new(Exit::Usage, anyhow::anyhow!("Bad argument: {error:#}"))
    };
    let seed = Seed::from_number(1);
    let is_quiet = matches!(arguments.verbosity.as_str(), "warn" | "error" | "critical");
    let plan = plan_of(arguments, seed).map_err(bad)?;
    if !is_quiet && plan.endpoints.iter().any(|it| it.tls_host.is_some()) {
        Paint::say("warning: certificates are not checked under this name");
    }
    if !is_quiet && arguments.experimental_h2_use_multiple_connections {
        Paint::say("warning: --experimental-h2-use-multiple-connections is deprecated");
    }
    let targets: Vec<String> = arguments.uri.iter().cloned().collect();
    let job = Job {
        plan,
        seed,
        family: arguments.address_family.into(),
        places: Vec::new(),
        targets: &targets,
        labels: &arguments.label,
        closed_loop: true,
        quiet: is_quiet,
        format: match arguments.output_format {
            LoadFormat::Human => LoadFormat::NighthawkHuman,
            other => other,
        },
    };
    let (found, _) = job.conduct(paint)?;
    Ok(match found.end {
        LoadEnd::Failure(_) => {
            Paint::say("Exiting due to failing termination predicate");
            Exit::Failed
        }
        LoadEnd::PartFailed(_) => Exit::Failed,
        LoadEnd::Duration
        | LoadEnd::Requests
        | LoadEnd::Termination(_)
        | LoadEnd::Interrupted(_) => Exit::Held,
    })
}

fn plan_of(arguments: &NighthawkClientArguments, seed: Seed) -> anyhow::Result<LoadPlan> {
    let endpoints = endpoints(arguments)?;
    let (connections, protocol, streams) = connections(arguments, endpoints.len());
    let workers = plan::workers(arguments.concurrency, u32::MAX, 1);
    let times = u32::from(workers);
    Ok(LoadPlan {
        endpoints,
        pace: pace(arguments, times),
        connecting: ConnectingPlan {
            connections: connections.saturating_mul(times),
            protocol,
            streams,
            prefetch: arguments.prefetch_connections || arguments.simple_warmup,
            reuse: arguments.experimental_h1_connection_reuse_strategy.into(),
            requests_max: arguments.max_requests_per_connection,
            timeout: arguments.timeout,
        },
        tls: ClientTlsPlan {
            verification: Verification::None,
            identity: None,
            alpn: Vec::new(),
            server_name: None,
            resumption: true,
            suites: TlsSuites::default(),
        },
        workers,
        until: UntilPlan {
            duration: (!arguments.no_duration).then_some(arguments.duration),
            requests: None,
            termination: arguments
                .termination_predicate
                .iter()
                .map(|it| it.0)
                .collect(),
            failure: failures(arguments),
            by_worker: true,
        },
        warmup: Nanos::ZERO,
        // There is no limit for one request there; this one is far away.
        timeout: Nanos::from_secs(3600),
        grace: arguments.timeout,
        idle: match arguments.sequencer_idle_strategy {
            NighthawkIdle::Spin => IdleStrategy::Spin,
            NighthawkIdle::Poll | NighthawkIdle::Sleep => IdleStrategy::Sleep,
        },
        seed,
    })
}

/// All quantities are those of each worker there, and totals here.
fn pace(arguments: &NighthawkClientArguments, workers: u32) -> LoadPace {
    LoadPace::Open {
        curve: LoadCurve::Constant {
            per_second: f64::from(arguments.rps) * f64::from(workers),
        },
        spacing: match (arguments.burst_size, arguments.jitter_uniform) {
            (0, None) => Spacing::Even,
            (0, Some(most)) => Spacing::JitterUniform { most },
            (size, _) => Spacing::Burst {
                size: size.saturating_mul(workers),
            },
        },
        overflow: if arguments.open_loop {
            Overflow::Drop {
                waiting_max: u64::from(arguments.max_pending_requests.max(1)),
            }
        } else {
            Overflow::Wait
        },
    }
}

/// Connections of each worker, what is spoken on them, and how many requests at
/// once.
fn connections(arguments: &NighthawkClientArguments, endpoints: usize) -> (u32, LoadProtocol, u32) {
    let least = u32::try_from(endpoints).unwrap_or(u32::MAX);
    if !arguments.h2 && arguments.protocol == NighthawkProtocol::Http1 {
        return (arguments.connections.max(least), LoadProtocol::Http1, 1);
    }
    let streams = if arguments.experimental_h2_use_multiple_connections {
        1
    } else {
        let limit = arguments.max_concurrent_streams.unwrap_or(u32::MAX);
        limit.min(arguments.max_active_requests)
    };
    let connections = arguments.max_active_requests.div_ceil(streams);
    (connections.max(least), LoadProtocol::Http2, streams)
}

fn failures(arguments: &NighthawkClientArguments) -> Vec<PredicatePlan> {
    if !arguments.failure_predicate.is_empty() {
        return arguments.failure_predicate.iter().map(|it| it.0).collect();
    }
    if arguments.no_default_failure_predicates {
        return Vec::new();
    }
    let counters = FAILURES.iter().filter_map(|name| name.parse().ok());
    let predicate = |counter| PredicatePlan {
        counter,
        threshold: 0,
    };
    counters.map(predicate).collect()
}

fn endpoints(arguments: &NighthawkClientArguments) -> anyhow::Result<Vec<EndpointPlan>> {
    let many = &arguments.multi_target_endpoint;
    let scheme = if arguments.multi_target_use_https {
        "https"
    } else {
        "http"
    };
    let urls: Vec<String> = match (&arguments.uri, many.is_empty()) {
        (Some(_), false) => {
            bail!("URI and --multi-target-* options cannot both be specified.")
        }
        (None, true) => bail!("A URI or --multi-target-* options must be specified."),
        (Some(uri), true) => vec![uri.clone()],
        (None, false) => {
            let path = arguments.multi_target_path.as_ref();
            let path = path.context("--multi-target-path must be specified.")?;
            many.iter()
                .map(|it| format!("{scheme}://{it}{path}"))
                .collect()
        }
    };
    let body = match &arguments.request_body_file {
        Some(path) => {
            let bytes = std::fs::read(path);
            BodyPlan::Bytes(bytes.with_context(|| format!("read {}", path.display()))?)
        }
        None if arguments.request_body_size > 0 => {
            let length = usize::try_from(arguments.request_body_size)?;
            BodyPlan::Bytes(vec![b'a'; length])
        }
        None => BodyPlan::None,
    };
    let endpoint = |url: &String| {
        let target = plan::target(url).context("Invalid target URI")?;
        let method = arguments.request_method.clone();
        let headers = &arguments.request_header;
        let mut request = plan::request_to(&target, method, headers, &[], body.clone());
        if !many.is_empty() && request.authority == target.authority() {
            MANY_HOSTS.clone_into(&mut request.authority);
        }
        Ok(EndpointPlan {
            address: target.dial_address(),
            tls_host: plan::tls_host(&target),
            weight: 1,
            requests: vec![request],
        })
    };
    urls.iter().map(endpoint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(words: &str) -> anyhow::Result<LoadPlan> {
        let line = ["nighthawk_client"]
            .into_iter()
            .chain(words.split_whitespace());
        plan_of(
            &NighthawkClientArguments::try_parse_from(line)?,
            Seed::from_number(1),
        )
    }

    #[test]
    fn the_command_of_its_documentation_is_understood() {
        let plan = plan(
            "--rps 1000 --connections 4 --concurrency 2 --prefetch-connections -v info \
             http://127.0.0.1:10000/",
        )
        .unwrap();
        assert_eq!(plan.check(), Ok(()));
        assert_eq!((plan.workers, plan.connecting.connections), (2, 8));
        let LoadPace::Open {
            curve, overflow, ..
        } = &plan.pace
        else {
            panic!("no schedule");
        };
        assert_eq!(*curve, LoadCurve::Constant { per_second: 2000.0 });
        assert_eq!(*overflow, Overflow::Wait);
        assert_eq!(plan.until.failure.len(), FAILURES.len());
        assert_eq!(plan.until.duration, Some(Nanos::from_secs(5)));
    }

    #[test]
    fn streams_and_connections_of_http2_follow_from_what_may_be_active() {
        for (words, connections, streams) in [
            ("--h2", 1, 100),
            ("-p http2 --max-active-requests 10", 1, 10),
            ("--h2 --max-concurrent-streams 1", 100, 1),
            (
                "--h2 --experimental-h2-use-multiple-connections --max-active-requests 5",
                5,
                1,
            ),
        ] {
            let connecting = plan(&format!("{words} a:80")).unwrap().connecting;
            assert_eq!(
                (connecting.connections, connecting.streams),
                (connections, streams)
            );
        }
    }

    #[test]
    fn predicates_replace_the_default_ones() {
        let failure = |words: &str| plan(&format!("{words} a:80")).unwrap().until.failure.len();
        assert_eq!(failure("--failure-predicate benchmark.http_2xx:5"), 1);
        assert_eq!(failure("--no-default-failure-predicates"), 0);
    }

    #[test]
    fn several_targets_have_one_path_and_no_uri() {
        let plan_of_two = plan(
            "--multi-target-endpoint a:1 --multi-target-endpoint [::1]:2 --multi-target-path /x",
        )
        .unwrap();
        let addresses: Vec<&str> = plan_of_two
            .endpoints
            .iter()
            .map(|it| it.address.as_str())
            .collect();
        assert_eq!(addresses, ["a:1", "[::1]:2"]);
        assert_eq!(plan_of_two.endpoints[0].requests[0].authority, MANY_HOSTS);
        for (words, says) in [
            ("--multi-target-endpoint a:1", "--multi-target-path must be"),
            (
                "--multi-target-endpoint a:1 --multi-target-path /x b",
                "cannot both be",
            ),
            ("", "must be specified"),
        ] {
            let error = format!("{:#}", plan(words).unwrap_err());
            assert!(error.contains(says), "{error}");
        }
    }
}
