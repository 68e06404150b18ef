//! Metrics and traces that a load exports: from what was typed to a plan.

use stillwell_plan::load::{SpanProtocol, TelemetryPlan, TraceHeaders, TracePlan};
use stillwell_units::RunId;

use super::{StatsSpec, TraceSpec};

pub(super) fn plan(stats: &StatsSpec, trace: &TraceSpec, run: RunId) -> TelemetryPlan {
    let usual = trace.sink.as_ref().map(|sink| usual_headers(sink.protocol));
    TelemetryPlan {
        run,
        labels: stats.labels.clone(),
        sinks: stats.sinks.clone(),
        flush_every: stats.flush_every.unwrap_or(TelemetryPlan::FLUSH_EVERY),
        page: stats.page,
        trace: trace.headers.or(usual).map(|headers| TracePlan {
            headers,
            sample: trace.sample.unwrap_or(1.0),
            export: trace.sink.clone(),
        }),
        ..TelemetryPlan::default()
    }
}

/// Headers that the usual receivers of such spans understand.
const fn usual_headers(protocol: SpanProtocol) -> TraceHeaders {
    match protocol {
        SpanProtocol::Zipkin => TraceHeaders::B3Multi,
        SpanProtocol::OtlpHttp | SpanProtocol::OtlpGrpc => TraceHeaders::W3c,
    }
}

#[cfg(test)]
mod tests {
    use super::super::SpanSink;
    use super::*;

    fn read(sink: Option<&str>, headers: Option<TraceHeaders>) -> TelemetryPlan {
        let sink = sink.map(|text| text.parse::<SpanSink>().unwrap().0);
        let trace = TraceSpec {
            sink,
            headers,
            sample: None,
        };
        plan(&StatsSpec::default(), &trace, RunId::from_bytes([1; 16]))
    }

    #[test]
    fn without_flags_nothing_is_exported() {
        let nothing = read(None, None);
        assert!(!nothing.has_exporters() && nothing.trace.is_none());
    }

    #[test]
    fn requests_carry_their_trace_in_the_form_of_its_receiver() {
        for (sink, typed, headers) in [
            (Some("zipkin://a"), None, TraceHeaders::B3Multi),
            (Some("otlp+grpc://a"), None, TraceHeaders::W3c),
            (
                Some("zipkin://a"),
                Some(TraceHeaders::W3c),
                TraceHeaders::W3c,
            ),
            (None, Some(TraceHeaders::B3), TraceHeaders::B3),
        ] {
            let trace = read(sink, typed).trace.unwrap();
            assert_eq!(trace.headers, headers, "{sink:?} {typed:?}");
            assert_eq!(trace.export.is_some(), sink.is_some(), "{sink:?}");
        }
    }
}
