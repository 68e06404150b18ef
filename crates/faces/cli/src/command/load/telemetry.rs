//! What is said in the end about metrics and traces that a load exported.

use stillwell_run::TelemetryFound;

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
    use super::*;

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
