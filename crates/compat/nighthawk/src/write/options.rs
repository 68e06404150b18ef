//! The options as JSON.

use std::collections::BTreeMap;

use stillwell_units::Nanos;

use super::Message;
use crate::time::{duration_text, timestamp_text};
use crate::{CommandLineOptions, MultiTarget, RequestOptions, Tree};

/// The options; of those that were not said nothing is written.
pub(crate) fn options(own: &CommandLineOptions) -> Tree {
    let message = Message::default()
        .put(
            "termination_predicates",
            thresholds(&own.termination_predicates),
        )
        .put("failure_predicates", thresholds(&own.failure_predicates))
        .put_list("labels", &own.labels, |label| Tree::text(&**label))
        .put_list("stats_sinks", &own.stats_sinks, |own| own.into())
        .put_list(
            "user_defined_plugin_configs",
            &own.user_defined_plugin_configs,
            |own| own.into(),
        );
    let message = conduct(requests(shape(message, own), own), own);
    let others = own.other.iter();
    others
        .fold(message, |message, (name, value)| {
            message.put(name, value.into())
        })
        .done()
}

/// How much load goes over how many connections.
fn shape(message: Message, own: &CommandLineOptions) -> Message {
    let reuse = own.experimental_h1_connection_reuse_strategy;
    message
        .short("requests_per_second", own.requests_per_second)
        .short("connections", own.connections)
        .duration("duration", own.duration)
        .boolean("no_duration", own.no_duration)
        .duration("timeout", own.timeout)
        .boolean("h2", own.h2)
        .choice("protocol", own.protocol.map(|own| own.name()))
        .text("concurrency", own.concurrency.as_deref())
        .boolean("prefetch_connections", own.prefetch_connections)
        .short("burst_size", own.burst_size)
        .choice("address_family", own.address_family.map(|own| own.name()))
        .short("max_pending_requests", own.max_pending_requests)
        .short("max_active_requests", own.max_active_requests)
        .short(
            "max_requests_per_connection",
            own.max_requests_per_connection,
        )
        .choice(
            "sequencer_idle_strategy",
            own.sequencer_idle_strategy.map(|own| own.name()),
        )
        .choice(
            "experimental_h1_connection_reuse_strategy",
            reuse.map(|own| own.name()),
        )
        .boolean("open_loop", own.open_loop)
        .duration("jitter_uniform", own.jitter_uniform)
        .boolean(
            "experimental_h2_use_multiple_connections",
            own.experimental_h2_use_multiple_connections,
        )
        .short("max_concurrent_streams", own.max_concurrent_streams)
}

/// What is sent, and where to.
fn requests(message: Message, own: &CommandLineOptions) -> Message {
    let source = own.request_source.as_deref();
    message
        .put_some(
            "request_options",
            own.request_options.as_ref().map(request_options),
        )
        .put_some(
            "request_source",
            source.map(|uri| Message::default().put("uri", Tree::text(uri)).done()),
        )
        .text("uri", own.uri.as_deref())
        .put_some("multi_target", own.multi_target.as_ref().map(multi_target))
}

/// Everything about the load but the load itself.
fn conduct(message: Message, own: &CommandLineOptions) -> Message {
    let start = own.scheduled_start;
    message
        .choice("verbosity", own.verbosity.map(|own| own.name()))
        .choice("output_format", own.output_format.map(|own| own.name()))
        .text("trace", own.trace.as_deref())
        .boolean(
            "no_default_failure_predicates",
            own.no_default_failure_predicates,
        )
        .text("nighthawk_service", own.nighthawk_service.as_deref())
        .boolean("simple_warmup", own.simple_warmup)
        .short("stats_flush_interval", own.stats_flush_interval)
        .duration(
            "stats_flush_interval_duration",
            own.stats_flush_interval_duration,
        )
        .text(
            "latency_response_header_name",
            own.latency_response_header_name.as_deref(),
        )
        .put_some(
            "scheduled_start",
            start.map(|own| Tree::Text(timestamp_text(own))),
        )
        .text("execution_id", own.execution_id.as_deref())
}

impl Message {
    fn short(self, name: &str, value: Option<u32>) -> Self {
        self.put_some(name, value.map(|own| Tree::Integer(own.into())))
    }

    fn boolean(self, name: &str, value: Option<bool>) -> Self {
        self.put_some(name, value.map(Tree::Bool))
    }

    fn duration(self, name: &str, value: Option<Nanos>) -> Self {
        self.put_some(name, value.map(|own| Tree::Text(duration_text(own))))
    }

    fn text(self, name: &str, value: Option<&str>) -> Self {
        self.put_some(name, value.map(Tree::text))
    }

    /// Enumerations are wrapped in messages with one field.
    fn choice(self, name: &str, value: Option<&'static str>) -> Self {
        let wrapped = |own| Self::default().put("value", Tree::text(own)).done();
        self.put_some(name, value.map(wrapped))
    }
}

fn thresholds(predicates: &BTreeMap<String, u64>) -> Tree {
    let all = predicates.iter();
    Tree::Map(
        all.map(|(name, own)| (name.clone(), Tree::long(*own)))
            .collect(),
    )
}

fn request_options(options: &RequestOptions) -> Tree {
    let method = options.request_method;
    let method = method.map_or("METHOD_UNSPECIFIED", |own| own.name());
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
        .put_list("endpoints", &target.endpoints, |own| {
            Message::default()
                .text("address", own.address.as_deref())
                .short("port", own.port)
                .done()
        })
        .boolean("use_https", target.use_https)
        .text("path", target.path.as_deref())
        .done()
}
