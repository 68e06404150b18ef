//! Arguments of tracing.

use clap::{Args, ValueEnum};
use stillwell_config::requests::{SpanSink, share};
use stillwell_plan::load::TraceHeaders;

/// Tracing options.
#[derive(Args, Debug, Default)]
#[command(next_help_heading = "Tracing")]
pub(crate) struct LoadTraceArguments {
    /// Trace requests and export their spans to this receiver, such as
    /// zipkin://HOST:PORT/api/v2/spans or otlp+http://HOST:PORT
    #[arg(long, value_name = "URI")]
    pub(crate) trace: Option<SpanSink>,
    /// Share of requests to sample, such as 0.01 or 1%; the others are marked as not
    /// sampled [default: 1]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) trace_sample: Option<f64>,
    /// Format of trace headers; also without --trace [default: b3multi with zipkin, else
    /// w3c]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub(crate) trace_headers: Option<TraceHeadersName>,
}

/// Formats of trace headers.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum TraceHeadersName {
    /// `traceparent` of W3C Trace Context.
    W3c,
    /// B3 in one header.
    B3,
    /// B3 in several headers.
    #[value(name = "b3multi", alias = "b3-multi")]
    B3Multi,
}

impl_from!(TraceHeadersName => TraceHeaders { W3c, B3, B3Multi });
