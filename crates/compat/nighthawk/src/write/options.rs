//! The options as JSON.

use std::collections::BTreeMap;

use stillwell_units::Nanos;

use super::Message;
use crate::time::{duration_text, timestamp_text};
use crate::{CommandLineOptions, MultiTarget, RequestOptions, Tree};

/// Writes the options that were given.
pub(crate) fn options(options: &CommandLineOptions) -> Tree {
    let message = Message::default()
        .put(
            "termination_predicates",
            thresholds(&options.termination_predicates),
        )
        .put(
            "failure_predicates",
            thresholds(&options.failure_predicates),
        )
        .put_list("labels", &options.labels, |label| Tree::text(&**label))
        .put_list("stats_sinks", &options.stats_sinks, |value| value.into())
        .put_list(
            "user_defined_plugin_configs",
            &options.user_defined_plugin_configs,
            |value| value.into(),
        );
    let message = conduct(requests(shape(message, options), options), options);
    let fields = options.raw_fields.iter();
    fields
        .fold(message, |message, (name, value)| {
            message.put(name, value.into())
        })
        .done()
}

/// Writes rate, connections and duration.
fn shape(message: Message, options: &CommandLineOptions) -> Message {
    let reuse = options.experimental_h1_connection_reuse_strategy;
    message
        .short("requests_per_second", options.requests_per_second)
        .short("connections", options.connections)
        .duration("duration", options.duration)
        .boolean("no_duration", options.no_duration)
        .duration("timeout", options.timeout)
        .boolean("h2", options.h2)
        .choice("protocol", options.protocol.map(|value| value.name()))
        .text("concurrency", options.concurrency.as_deref())
        .boolean("prefetch_connections", options.prefetch_connections)
        .short("burst_size", options.burst_size)
        .choice(
            "address_family",
            options.address_family.map(|value| value.name()),
        )
        .short("max_pending_requests", options.max_pending_requests)
        .short("max_active_requests", options.max_active_requests)
        .short(
            "max_requests_per_connection",
            options.max_requests_per_connection,
        )
        .choice(
            "sequencer_idle_strategy",
            options.sequencer_idle_strategy.map(|value| value.name()),
        )
        .choice(
            "experimental_h1_connection_reuse_strategy",
            reuse.map(|value| value.name()),
        )
        .boolean("open_loop", options.open_loop)
        .duration("jitter_uniform", options.jitter_uniform)
        .boolean(
            "experimental_h2_use_multiple_connections",
            options.experimental_h2_use_multiple_connections,
        )
        .short("max_concurrent_streams", options.max_concurrent_streams)
}

/// Writes requests and targets.
fn requests(message: Message, options: &CommandLineOptions) -> Message {
    let source = options.request_source.as_deref();
    message
        .put_some(
            "request_options",
            options.request_options.as_ref().map(request_options),
        )
        .put_some(
            "request_source",
            source.map(|uri| Message::default().put("uri", Tree::text(uri)).done()),
        )
        .text("uri", options.uri.as_deref())
        .put_some(
            "multi_target",
            options.multi_target.as_ref().map(multi_target),
        )
}

/// Everything about the load but the load itself.
fn conduct(message: Message, options: &CommandLineOptions) -> Message {
    let start = options.scheduled_start;
    message
        .choice("verbosity", options.verbosity.map(|value| value.name()))
        .choice(
            "output_format",
            options.output_format.map(|value| value.name()),
        )
        .text("trace", options.trace.as_deref())
        .boolean(
            "no_default_failure_predicates",
            options.no_default_failure_predicates,
        )
        .text("nighthawk_service", options.nighthawk_service.as_deref())
        .boolean("simple_warmup", options.simple_warmup)
        .short("stats_flush_interval", options.stats_flush_interval)
        .duration(
            "stats_flush_interval_duration",
            options.stats_flush_interval_duration,
        )
        .text(
            "latency_response_header_name",
            options.latency_response_header_name.as_deref(),
        )
        .put_some(
            "scheduled_start",
            start.map(|start| Tree::Text(timestamp_text(start))),
        )
        .text("execution_id", options.execution_id.as_deref())
}

impl Message {
    fn short(self, name: &str, value: Option<u32>) -> Self {
        self.put_some(name, value.map(|number| Tree::Integer(number.into())))
    }

    fn boolean(self, name: &str, value: Option<bool>) -> Self {
        self.put_some(name, value.map(Tree::Bool))
    }

    fn duration(self, name: &str, value: Option<Nanos>) -> Self {
        self.put_some(
            name,
            value.map(|duration| Tree::Text(duration_text(duration))),
        )
    }

    fn text(self, name: &str, value: Option<&str>) -> Self {
        self.put_some(name, value.map(Tree::text))
    }

    /// Enumerations are wrapped in messages with one field.
    fn choice(self, name: &str, value: Option<&'static str>) -> Self {
        let wrapped = |name| Self::default().put("value", Tree::text(name)).done();
        self.put_some(name, value.map(wrapped))
    }
}

fn thresholds(predicates: &BTreeMap<String, u64>) -> Tree {
    let all = predicates.iter();
    Tree::Map(
        all.map(|(name, threshold)| (name.clone(), Tree::long(*threshold)))
            .collect(),
    )
}

fn request_options(options: &RequestOptions) -> Tree {
    let method = options.request_method;
    let method = method.map_or("METHOD_UNSPECIFIED", |method| method.name());
    Message::default()
        .put("request_method", Tree::text(method))
        .put_list("request_headers", &options.request_headers, header)
        .put("json_body", Tree::text(&*options.json_body))
        .short("request_body_size", options.request_body_size)
        .done()
}

fn header((key, value): &(String, String)) -> Tree {
    let header = Message::default()
        .put("key", Tree::text(&**key))
        .put("value", Tree::text(&**value));
    Message::default().put("header", header.done()).done()
}

fn multi_target(target: &MultiTarget) -> Tree {
    Message::default()
        .put_list("endpoints", &target.endpoints, |endpoint| {
            Message::default()
                .text("address", endpoint.address.as_deref())
                .short("port", endpoint.port)
                .done()
        })
        .boolean("use_https", target.use_https)
        .text("path", target.path.as_deref())
        .done()
}
