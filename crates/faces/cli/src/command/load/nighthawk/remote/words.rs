//! Nighthawk's message as the words of its command line, so that there is one
//! account of what they mean and of what is refused.

use serde_json::Value;
use stillwell_nighthawk::{
    CommandLineOptions, MultiTarget, OutputFormat, RequestMethod, RequestOptions, Verbosity,
};
use stillwell_units::Nanos;

/// Words under construction.
struct Words(Vec<String>);

impl Words {
    fn put(&mut self, flag: &str, value: impl std::fmt::Display) {
        self.0.push(format!("--{flag}={value}"));
    }

    fn put_some(&mut self, flag: &str, value: Option<impl std::fmt::Display>) {
        if let Some(value) = value {
            self.put(flag, value);
        }
    }

    fn switch(&mut self, flag: &str, value: Option<bool>) {
        if value == Some(true) {
            self.0.push(format!("--{flag}"));
        }
    }

    /// A time, to the nanosecond.
    fn time(&mut self, flag: &str, value: Option<Nanos>) {
        self.put_some(flag, value.map(|own| format!("{}ns", own.as_u64())));
    }

    /// A name in lower case; the first of some enumerations stands for no wish.
    fn name(&mut self, flag: &str, name: Option<&str>) {
        let name = name.filter(|name| *name != "DEFAULT");
        self.put_some(flag, name.map(str::to_ascii_lowercase));
    }
}

/// The words that ask for the same as `own`.
///
/// Who executes it is passed over: that are we.
pub(crate) fn of(own: &CommandLineOptions) -> Result<Vec<String>, String> {
    let mut words = Words(vec!["nighthawk_client".to_owned()]);
    shape(own, &mut words);
    telling(own, &mut words);
    if let Some(options) = &own.request_options {
        request(options, &mut words)?;
    }
    words.put_some("request-source", own.request_source.as_ref());
    for (name, value) in &own.other {
        message(name, value, &mut words)?;
    }
    if let Some(target) = &own.multi_target {
        targets(target, &mut words);
    }
    if let Some(uri) = &own.uri {
        words.0.extend(["--".to_owned(), uri.clone()]);
    }
    Ok(words.0)
}

fn shape(own: &CommandLineOptions, words: &mut Words) {
    words.put_some("rps", own.requests_per_second);
    words.put_some("connections", own.connections);
    words.time("duration", own.duration);
    words.switch("no-duration", own.no_duration);
    words.time("timeout", own.timeout);
    words.switch("h2", own.h2);
    words.name("protocol", own.protocol.map(|own| own.name()));
    words.put_some("concurrency", own.concurrency.as_ref());
    words.switch("prefetch-connections", own.prefetch_connections);
    words.put_some("burst-size", own.burst_size);
    words.name("address-family", own.address_family.map(|own| own.name()));
    words.put_some("max-pending-requests", own.max_pending_requests);
    words.put_some("max-active-requests", own.max_active_requests);
    words.put_some(
        "max-requests-per-connection",
        own.max_requests_per_connection,
    );
    words.put_some("max-concurrent-streams", own.max_concurrent_streams);
    let idle = own.sequencer_idle_strategy.map(|own| own.name());
    words.name("sequencer-idle-strategy", idle);
    let reuse = own.experimental_h1_connection_reuse_strategy;
    words.name(
        "experimental-h1-connection-reuse-strategy",
        reuse.map(|own| own.name()),
    );
    words.switch(
        "experimental-h2-use-multiple-connections",
        own.experimental_h2_use_multiple_connections,
    );
    words.switch("open-loop", own.open_loop);
    words.time("jitter-uniform", own.jitter_uniform);
    words.switch("simple-warmup", own.simple_warmup);
    for (name, threshold) in &own.termination_predicates {
        words.put("termination-predicate", format_args!("{name}:{threshold}"));
    }
    for (name, threshold) in &own.failure_predicates {
        words.put("failure-predicate", format_args!("{name}:{threshold}"));
    }
    words.switch(
        "no-default-failure-predicates",
        own.no_default_failure_predicates,
    );
}

fn telling(own: &CommandLineOptions, words: &mut Words) {
    // Two defaults are others than those of the command line.
    let verbosity = own.verbosity.filter(|own| *own != Verbosity::Default);
    words.name(
        "verbosity",
        Some(verbosity.unwrap_or(Verbosity::Warn).name()),
    );
    let format = own
        .output_format
        .filter(|own| *own != OutputFormat::Default);
    words.name(
        "output-format",
        Some(format.unwrap_or(OutputFormat::Json).name()),
    );
    for label in &own.labels {
        words.put("label", label);
    }
    words.put_some("trace", own.trace.as_ref().filter(|uri| !uri.is_empty()));
    for sink in &own.stats_sinks {
        words.put("stats-sinks", sink);
    }
    words.put_some("stats-flush-interval", own.stats_flush_interval);
    words.time(
        "stats-flush-interval-duration",
        own.stats_flush_interval_duration,
    );
    words.put_some(
        "latency-response-header-name",
        own.latency_response_header_name.as_ref(),
    );
    for plugin in &own.user_defined_plugin_configs {
        words.put("user-defined-plugin-config", plugin);
    }
}

fn request(own: &RequestOptions, words: &mut Words) -> Result<(), String> {
    let method = own
        .request_method
        .filter(|own| *own != RequestMethod::Unspecified);
    words.put_some("request-method", method.map(|own| own.name()));
    for (name, value) in &own.request_headers {
        if name.get(1..).is_none_or(|rest| rest.contains(':')) {
            return Err(format!("request_headers: `{name}` is no name of a header"));
        }
        words.put("request-header", format_args!("{name}: {value}"));
    }
    words.put_some("request-body-size", own.request_body_size);
    if !own.json_body.is_empty() {
        return Err(
            "request_options.json_body has an effect only in the lists of \
                    request_source_plugin_config: put the request there"
                .to_owned(),
        );
    }
    Ok(())
}

fn targets(own: &MultiTarget, words: &mut Words) {
    for endpoint in &own.endpoints {
        let host = endpoint.address.as_deref().unwrap_or_default();
        let port = endpoint.port.unwrap_or(0);
        let is_bare = host.contains(':') && !host.starts_with('[');
        let host = if is_bare {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        words.put("multi-target-endpoint", format_args!("{host}:{port}"));
    }
    words.put_some("multi-target-path", own.path.as_ref());
    words.switch("multi-target-use-https", own.use_https);
}

/// A message of Envoy, or one that the command line has flags for.
fn message(name: &str, value: &Value, words: &mut Words) -> Result<(), String> {
    match name {
        "tls_context"
        | "transport_socket"
        | "upstream_bind_config"
        | "http3_protocol_options"
        | "request_source_plugin_config"
        | "rate_limiter_plugin_config" => words.put(&name.replace('_', "-"), value),
        "tunnel_options" => {
            let text = |key: &str| value.get(key).and_then(Value::as_str);
            words.put_some(
                "tunnel-uri",
                text("tunnel_uri").filter(|uri| !uri.is_empty()),
            );
            let protocol = value.get("tunnel_protocol");
            let protocol = protocol.map(|own| own.get("value").and_then(Value::as_str));
            words.name(
                "tunnel-protocol",
                protocol.map(|own| own.unwrap_or("HTTP1")),
            );
            words.put_some("tunnel-tls-context", value.get("tunnel_tls_context"));
        }
        other => return Err(format!("options.{other} is not known here")),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::options;
    use super::*;
    use crate::arguments::NighthawkClientArguments;

    /// From a command line to the message, and from there to a command line and
    /// the message again.
    #[test]
    fn every_option_survives_the_way_over_the_wire() {
        for words in [
            "http://a/",
            "--rps 7 --connections 3 --duration 9 --timeout 2 --concurrency auto --open-loop a:80",
            "--no-duration --h2 --max-active-requests 5 --max-concurrent-streams 2 [::1]:80",
            "-p http2 --max-requests-per-connection 9 --burst-size 4 --prefetch-connections a",
            "--jitter-uniform .00001s --simple-warmup --sequencer-idle-strategy poll a",
            "--experimental-h1-connection-reuse-strategy lru --address-family v6 a",
            "--termination-predicate benchmark.http_2xx:24 --failure-predicate \
             benchmark.http_5xx:1 --failure-predicate benchmark.http_4xx:2 a",
            "--no-default-failure-predicates --label x --label y -v trace a",
            "--multi-target-endpoint a:1 --multi-target-endpoint [::1]:2 --multi-target-path /x \
             --multi-target-use-https",
            "--request-method PUT --request-header 'host: b' --request-header ':path: /y' \
             --request-body-size 5 a",
            "--trace zipkin://a:1/api/v2/spans --latency-response-header-name x a",
            "--stats-sinks '{name:\"envoy.stat_sinks.statsd\",typed_config:{\"@type\":\
             \"type.googleapis.com/envoy.config.metrics.v3.StatsdSink\",address:{socket_address:\
             {protocol:\"UDP\",address:\"127.0.0.1\",port_value:8125}}}}' --stats-flush-interval 7 a",
            "--tunnel-protocol http2 --tunnel-uri https://proxy:8443 --tunnel-tls-context \
             {sni:\"p\",common_tls_context:{alpn_protocols:[\"h2\"]}} https://a",
            "-p http3 --http3-protocol-options {quic_protocol_options:{max_concurrent_streams:7}} \
             https://a",
            "--user-defined-plugin-config {name:\"nighthawk.log_response_headers_plugin\",\
             typed_config:{\"@type\":\"type.googleapis.com/nighthawk.LogResponseHeadersConfig\",\
             log_headers_with_name:[\"a\"],logging_mode:\"LM_LOG_ALL_RESPONSES\"}} a",
            "--request-source grpc://b:1 a",
            "--upstream-bind-config {source_address:{address:\"127.0.0.1\",port_value:0}} a",
            "--rate-limiter-plugin-config {name:\"nighthawk.linear-ramping-rate-limiter-plugin\",\
             typed_config:{\"@type\":\"type.googleapis.com/nighthawk.rate_limiter.\
             LinearRampingRateLimiterConfig\",ramp_time:\"1.500s\"}} a",
            "--request-source-plugin-config {name:\"nighthawk.in-line-options-list-request-source-\
             plugin\",typed_config:{\"@type\":\"type.googleapis.com/nighthawk.request_source.\
             InLineOptionsListRequestSourceConfig\",num_requests:4,options_list:{options:[\
             {request_method:\"PUT\",json_body:\"{}\"}]}}} a",
            "--transport-socket {name:\"envoy.transport_sockets.tls\",typed_config:{\"@type\":\
             \"type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.UpstreamTlsContext\",\
             sni:\"b\",common_tls_context:{tls_params:{cipher_suites:[\"ECDHE-RSA-AES128-SHA\"]}}}} \
             https://a",
        ] {
            let line = |words: Vec<String>| {
                let arguments = NighthawkClientArguments::try_parse_from(&words);
                assert!(arguments.is_ok(), "{words:?}: {arguments:?}");
                options::of(&arguments.unwrap()).unwrap()
            };
            let mut typed = vec!["nighthawk_client".to_owned()];
            typed.extend(["--output-format", "json"].map(str::to_owned));
            for (number, part) in words.split('\'').enumerate() {
                match number % 2 {
                    1 => typed.push(part.to_owned()),
                    _ => typed.extend(part.split_whitespace().map(str::to_owned)),
                }
            }
            let said = line(typed);
            let sent = wired(&said);
            assert_eq!(line(of(&sent).unwrap()), said, "{words}");
        }
    }

    /// As it arrives over gRPC.
    fn wired(options: &CommandLineOptions) -> CommandLineOptions {
        use stillwell_nighthawk::wire::{ExecutionRequest, decode_request, encode_request};
        let request = ExecutionRequest::Start(Box::new(options.clone()));
        let bytes = encode_request(&request).unwrap();
        match decode_request(&bytes).unwrap() {
            ExecutionRequest::Start(options) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_has_no_words_is_refused() {
        let mut own = CommandLineOptions::default();
        own.other.insert("future".to_owned(), Value::from(1));
        assert_eq!(of(&own), Err("options.future is not known here".to_owned()));
        let own = CommandLineOptions {
            request_options: Some(RequestOptions {
                request_headers: vec![("a:b".to_owned(), "c".to_owned())],
                ..RequestOptions::default()
            }),
            ..CommandLineOptions::default()
        };
        assert!(of(&own).unwrap_err().contains("`a:b` is no name"));
    }
}
