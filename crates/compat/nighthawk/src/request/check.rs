//! Options that contradict each other or are not supported, with Nighthawk's messages
//! where it has some.

use stillwell_config::requests::target;
use stillwell_units::Nanos;

use super::error::RequestError;
use super::values::bracketed;
use super::{NighthawkContent, NighthawkLoad, NighthawkOutput, NighthawkRequest, NighthawkTarget};
use crate::Protocol;

impl NighthawkRequest {
    /// Refuses options that contradict each other, and those that are known but not
    /// supported.
    ///
    /// # Errors
    /// The first rule that is broken.
    pub fn check(&self) -> Result<(), RequestError> {
        let rules = [
            targets(self).as_slice(),
            &load(&self.load, &self.target),
            &requests(&self.content, &self.load, &self.target),
            &output(&self.output),
            &service(&self.output, &self.content),
        ]
        .concat();
        if let Some(Rule(_, message)) = rules.iter().find(|rule| rule.0) {
            return Err(RequestError::Conflict(message));
        }
        unsupported(self)
    }
}

/// A rule: true if it is broken, and its message.
#[derive(Clone, Copy, Debug)]
struct Rule(bool, &'static str);

fn targets(request: &NighthawkRequest) -> [Rule; 3] {
    let target = &request.target;
    let (has_uri, has_many) = (
        request.uri.is_some(),
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

fn load(load: &NighthawkLoad, target: &NighthawkTarget) -> [Rule; 11] {
    use Protocol::{Http1, Http3};
    let options = target.http3_protocol_options.is_some();
    let over =
        |inner, outer| target.protocol == Some(inner) && target.tunnel_protocol == Some(outer);
    let has_tunnel = target.tunnel_uri.is_some() || target.tunnel_tls_context.is_some();
    [
        Rule(
            load.duration.is_some() && load.no_duration,
            "--duration and --no-duration are mutually exclusive",
        ),
        Rule(
            load.duration == Some(Nanos::ZERO),
            "--duration: write a time above zero",
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
            options && load.max_concurrent_streams.is_some(),
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

fn requests(
    content: &NighthawkContent,
    load: &NighthawkLoad,
    target: &NighthawkTarget,
) -> [Rule; 6] {
    let limiter = load.rate_limiter_plugin_config.is_some();
    let (bursts, jitters) = (load.burst_size > 0, load.jitter_uniform.is_some());
    let is_other = matches!(target.protocol, Some(Protocol::Http1 | Protocol::Http3));
    [
        Rule(
            content.makes_calls && is_other,
            "--grpc-mode can only be used with --protocol http2",
        ),
        Rule(
            content.request_source.is_some() && content.request_source_plugin_config.is_some(),
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
            "--burst-size and --jitter-uniform together are not supported",
        ),
        Rule(
            content.request_body_size > 0 && content.request_body_file.is_some(),
            "--request-body-size and --request-body-file are mutually exclusive",
        ),
    ]
}

fn output(output: &NighthawkOutput) -> [Rule; 2] {
    let (seconds, time) = (
        output.stats_flush_interval.is_some(),
        output.stats_flush_interval_duration.is_some(),
    );
    [
        Rule(
            seconds && time,
            "--stats-flush-interval and --stats-flush-interval-duration are mutually exclusive",
        ),
        Rule(
            (seconds || time) && output.stats_sinks.is_empty(),
            "if --stats-flush-interval or --stats-flush-interval-duration is set, then \
             --stats-sinks must also be set",
        ),
    ]
}

/// Options that the message to a service has no field for.
fn service(output: &NighthawkOutput, content: &NighthawkContent) -> [Rule; 2] {
    let is_remote = output.nighthawk_service.is_some();
    [
        Rule(
            is_remote && content.request_body_file.is_some(),
            "--request-body-file cannot be used with --nighthawk-service: the service does not \
             receive the file",
        ),
        Rule(
            is_remote && output.stats_sink_address.is_some(),
            "--stats-sink-address cannot be used with --nighthawk-service: the service does not \
             receive the address",
        ),
    ]
}

/// Refuses what Nighthawk supports and Stillwell does not.
fn unsupported(request: &NighthawkRequest) -> Result<(), RequestError> {
    if let Some(uri) = &request.output.nighthawk_service
        && !is_service(uri)
    {
        return Err(RequestError::ServiceUri { uri: uri.clone() });
    }
    if let Some(uri) = &request.content.request_source
        && !is_service(uri)
    {
        return Err(RequestError::SourceUri { uri: uri.clone() });
    }
    Ok(())
}

/// True for `grpc://HOST:PORT` and the like.
fn is_service(uri: &str) -> bool {
    let rest = uri.split_once("://").map_or(uri, |(_, rest)| rest);
    let authority = bracketed(rest.split('/').next().unwrap_or_default());
    let has_port = authority
        .rsplit_once(':')
        .is_none_or(|(_, port)| authority.ends_with(']') || port.parse::<u16>().is_ok());
    has_port && target(&format!("http://{authority}")).is_ok()
}
