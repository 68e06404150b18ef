//! Flags that contradict each other, and those that are known but not built, in
//! Nighthawk's words where it has some.

use anyhow::bail;
use stillwell_config::requests::target;

use crate::arguments::{
    NighthawkClientArguments, NighthawkProtocol, NighthawkRequest, NighthawkShape, NighthawkTarget,
    NighthawkTelling,
};

pub(super) fn check(arguments: &NighthawkClientArguments) -> anyhow::Result<()> {
    let rules = [
        targets(arguments).as_slice(),
        &load(&arguments.shape, &arguments.target),
        &requests(&arguments.request, &arguments.shape),
        &telling(&arguments.telling),
    ]
    .concat();
    if let Some(Rule(_, message)) = rules.iter().find(|rule| rule.0) {
        bail!("{message}");
    }
    unbuilt(arguments)
}

/// Whether a rule is broken, and what is said of it.
#[derive(Clone, Copy, Debug)]
struct Rule(bool, &'static str);

fn targets(arguments: &NighthawkClientArguments) -> [Rule; 3] {
    let target = &arguments.target;
    let (has_uri, has_many) = (
        arguments.uri.is_some(),
        !target.multi_target_endpoint.is_empty(),
    );
    let has_path = target.multi_target_path.is_some();
    [
        Rule(
            has_uri && (has_many || has_path || target.multi_target_use_https),
            "URI and --multi-target-* options cannot both be specified.",
        ),
        Rule(
            !has_uri && !has_many,
            "A URI or --multi-target-* options must be specified.",
        ),
        Rule(
            has_many && !has_path,
            "--multi-target-path must be specified.",
        ),
    ]
}

fn load(shape: &NighthawkShape, target: &NighthawkTarget) -> [Rule; 10] {
    use NighthawkProtocol::{Http1, Http3};
    let options = target.http3_protocol_options.is_some();
    let over =
        |inner, outer| target.protocol == Some(inner) && target.tunnel_protocol == Some(outer);
    let has_tunnel = target.tunnel_uri.is_some() || target.tunnel_tls_context.is_some();
    [
        Rule(
            shape.duration.is_some() && shape.no_duration,
            "--duration and --no-duration are mutually exclusive",
        ),
        Rule(
            target.h2 && target.protocol.is_some(),
            "--h2 and --protocol are mutually exclusive",
        ),
        Rule(
            options && target.protocol != Some(Http3),
            "--http3-protocol-options can only be used with --protocol http3",
        ),
        Rule(
            options && shape.max_concurrent_streams.is_some(),
            "--http3-protocol-options and --max-concurrent-streams are mutually exclusive",
        ),
        Rule(
            target.tls_context.is_some() && target.transport_socket.is_some(),
            "--tls-context and --transport-socket cannot both be set.",
        ),
        Rule(
            target.tunnel_protocol.is_some() && target.tunnel_uri.is_none(),
            "--tunnel-protocol requires --tunnel-uri",
        ),
        Rule(
            target.tunnel_protocol.is_none() && has_tunnel,
            "tunnel flags require --tunnel-protocol",
        ),
        Rule(
            target.tunnel_protocol == Some(Http3) && target.tunnel_tls_context.is_none(),
            "--tunnel-tls-context is required to use --tunnel-protocol http3",
        ),
        Rule(
            over(Http3, Http3),
            "--protocol HTTP3 over --tunnel-protocol HTTP3 is not supported",
        ),
        Rule(
            over(Http3, Http1),
            "--protocol HTTP3 over --tunnel-protocol HTTP1 is not supported",
        ),
    ]
}

fn requests(request: &NighthawkRequest, shape: &NighthawkShape) -> [Rule; 5] {
    let limiter = shape.rate_limiter_plugin_config.is_some();
    let (bursts, jitters) = (shape.burst_size > 0, shape.jitter_uniform.is_some());
    [
        Rule(
            request.request_source.is_some() && request.request_source_plugin_config.is_some(),
            "--request-source and --request_source_plugin_config cannot both be set.",
        ),
        Rule(
            bursts && limiter,
            "--burst-size and --rate-limiter-plugin-config are mutually exclusive",
        ),
        Rule(
            jitters && limiter,
            "--jitter-uniform and --rate-limiter-plugin-config are mutually exclusive",
        ),
        Rule(
            bursts && jitters,
            "--burst-size and --jitter-uniform together are not built",
        ),
        Rule(
            request.request_body_size > 0 && request.request_body_file.is_some(),
            "--request-body-size and --request-body-file are mutually exclusive",
        ),
    ]
}

fn telling(telling: &NighthawkTelling) -> [Rule; 2] {
    let (seconds, time) = (
        telling.stats_flush_interval.is_some(),
        telling.stats_flush_interval_duration.is_some(),
    );
    [
        Rule(
            seconds && time,
            "--stats-flush-interval and --stats-flush-interval-duration are mutually exclusive",
        ),
        Rule(
            (seconds || time) && telling.stats_sinks.is_empty(),
            "if --stats-flush-interval or --stats-flush-interval-duration is set, then \
             --stats-sinks must also be set",
        ),
    ]
}

/// What Nighthawk has and we have not.
fn unbuilt(arguments: &NighthawkClientArguments) -> anyhow::Result<()> {
    let request = &arguments.request;
    if let Some(uri) = &arguments.telling.nighthawk_service
        && !is_service(uri)
    {
        bail!("Bad service uri: {uri}");
    }
    if let Some(uri) = &request.request_source
        && !is_service(uri)
    {
        bail!("Invalid replay source URI: {uri}");
    }
    if request.request_method == "CONNECT" {
        bail!(
            "--request-method CONNECT is not built: it asks for a tunnel, through which there \
             is nothing to send"
        );
    }
    Ok(())
}

/// Whether it is `grpc://HOST:PORT` or the like.
fn is_service(uri: &str) -> bool {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let authority = rest.split('/').next().unwrap_or_default();
    let has_port = authority
        .rsplit_once(':')
        .is_none_or(|(_, port)| authority.ends_with(']') || port.parse::<u16>().is_ok());
    has_port && target(&format!("http://{rest}")).is_ok()
}
