//! Who is told what while a load goes on: from what was typed to a plan, and what
//! is said about it in the end.

use anyhow::Context;
use stillwell_plan::{SpanProtocol, StatsPagePlan, TelemetryPlan, TraceHeaders, TracePlan};
use stillwell_run::TelemetryFound;
use stillwell_units::RunId;

use crate::arguments::{LoadStatsArguments, LoadTraceArguments};
use crate::command::random::random;

/// What `stillwell load` was told.
pub(super) fn plan(
    stats: &LoadStatsArguments,
    trace: &LoadTraceArguments,
) -> anyhow::Result<TelemetryPlan> {
    let labels = stats.stats_label.iter();
    let export = trace.trace.as_ref().map(|sink| sink.0.clone());
    let headers = trace.trace_headers.map(TraceHeaders::from);
    let of_kind = export.as_ref().map(|sink| usual_headers(sink.protocol));
    Ok(TelemetryPlan {
        run: random_run()?,
        labels: labels.map(|it| (it.0.clone(), it.1.clone())).collect(),
        sinks: stats.stats_sink.iter().map(|it| it.0.clone()).collect(),
        flush_every: stats
            .stats_flush_interval
            .unwrap_or(TelemetryPlan::FLUSH_EVERY),
        page: stats.stats_listen.map(|address| StatsPagePlan {
            address: address.0,
            linger: stats.stats_linger,
        }),
        trace: headers.or(of_kind).map(|headers| TracePlan {
            headers,
            sample: trace.trace_sample.unwrap_or(1.0),
            export,
        }),
        headers: Vec::new(),
    })
}

/// What those who take such spans understand.
const fn usual_headers(protocol: SpanProtocol) -> TraceHeaders {
    match protocol {
        SpanProtocol::Zipkin => TraceHeaders::B3Multi,
        SpanProtocol::OtlpHttp | SpanProtocol::OtlpGrpc => TraceHeaders::W3c,
    }
}

/// Drawn anew each time, whatever the seed: two loads with the same seed are two
/// loads to whoever is told of them.
pub(super) fn random_run() -> anyhow::Result<RunId> {
    let bytes = random().context("name this load")?;
    Ok(RunId::from_bytes(bytes))
}

/// Counters of what was told, by Nighthawk's names where it has any; zeros are
/// left out.
pub(super) fn counters(found: &TelemetryFound) -> Vec<(String, u64)> {
    let Some(spans) = &found.spans else {
        return Vec::new();
    };
    let kind = if spans.name.starts_with("zipkin") {
        "zipkin"
    } else {
        "otlp"
    };
    let counters = [
        ("spans_sent", spans.exported),
        ("spans_dropped", spans.dropped),
        ("reports_sent", spans.batches - spans.batches_failed),
        ("reports_dropped", spans.batches_failed),
    ];
    let counters = counters.into_iter().filter(|(_, value)| *value > 0);
    counters
        .map(|(name, value)| (format!("tracing.{kind}.{name}"), value))
        .collect()
}

/// What is said in the end: a line for each receiver.
pub(super) fn told(found: &TelemetryFound) -> Vec<String> {
    let mut lines = Vec::new();
    for sink in &found.sinks {
        if sink.failures == 0 && sink.is_complete {
            lines.push(format!(
                "{}: told {} times, totals included",
                sink.name, sink.flushes
            ));
        }
    }
    if let Some(page) = found.page {
        lines.push(format!(
            "http://{}/metrics: scraped {} times",
            page.address, page.scrapes
        ));
    }
    if let Some(spans) = &found.spans {
        lines.push(format!(
            "{}: {} spans of {} in {} batches",
            spans.name,
            spans.exported,
            spans.sampled,
            spans.batches - spans.batches_failed
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Typed {
        #[command(flatten)]
        stats: LoadStatsArguments,
        #[command(flatten)]
        trace: LoadTraceArguments,
    }

    fn read(words: &str) -> TelemetryPlan {
        let typed = Typed::parse_from(["load"].into_iter().chain(words.split_whitespace()));
        plan(&typed.stats, &typed.trace).unwrap()
    }

    #[test]
    fn nobody_is_told_anything_unless_asked_for() {
        let nothing = read("");
        assert!(!nothing.tells_anybody() && nothing.trace.is_none());
        assert_ne!(nothing.run, read("").run, "each load has a name of its own");
    }

    #[test]
    fn requests_say_their_trace_as_its_receiver_understands_it() {
        for (words, headers) in [
            ("--trace zipkin://a", TraceHeaders::B3Multi),
            ("--trace otlp+grpc://a", TraceHeaders::W3c),
            ("--trace zipkin://a --trace-headers w3c", TraceHeaders::W3c),
            ("--trace-headers b3", TraceHeaders::B3),
        ] {
            let trace = read(words).trace.unwrap();
            assert_eq!(trace.headers, headers, "{words}");
            assert_eq!(
                trace.export.is_some(),
                words.contains("--trace "),
                "{words}"
            );
        }
    }

    #[test]
    fn what_went_well_is_said_in_a_line() {
        let found = TelemetryFound {
            page: Some(stillwell_run::PageFound {
                address: "127.0.0.1:1".parse().unwrap(),
                scrapes: 2,
            }),
            spans: Some(stillwell_run::SpansFound {
                name: "zipkin://a".to_owned(),
                sampled: 5,
                dropped: 1,
                exported: 4,
                batches: 2,
                batches_failed: 0,
                trouble: None,
            }),
            ..TelemetryFound::default()
        };
        assert_eq!(
            told(&found),
            [
                "http://127.0.0.1:1/metrics: scraped 2 times",
                "zipkin://a: 4 spans of 5 in 2 batches"
            ]
        );
        let counters = counters(&found);
        assert!(counters.contains(&("tracing.zipkin.spans_sent".to_owned(), 4)));
        assert_eq!(counters.len(), 3, "zeros are left out");
    }
}
