//! Final messages about exported metrics and traces.

use stillwell_capture::TelemetryResult;

/// Returns a line for each receiver.
pub(in crate::command) fn summary_lines(result: &TelemetryResult) -> Vec<String> {
    let mut lines = Vec::new();
    for sink in &result.sinks {
        if sink.failures == 0 && sink.flushes > 0 && sink.is_complete {
            lines.push(format!(
                "{}: {} exports, the final totals included",
                sink.name, sink.flushes
            ));
        }
    }
    if let Some(page) = result.page {
        lines.push(format!(
            "http://{}/metrics: scraped {} times",
            page.address, page.scrapes
        ));
    }
    if let Some(spans) = &result.spans {
        lines.push(format!(
            "{}: {} of {} spans exported in {} batches",
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
    use stillwell_report::load::span_counters;

    use super::*;

    #[test]
    fn each_receiver_that_worked_has_a_line() {
        let result = TelemetryResult {
            page: Some(stillwell_capture::PageFound {
                address: "127.0.0.1:1".parse().unwrap(),
                scrapes: 2,
            }),
            spans: Some(stillwell_capture::SpansFound {
                name: "zipkin://a".to_owned(),
                sampled: 5,
                dropped: 1,
                exported: 4,
                batches: 2,
                batches_failed: 0,
                trouble: None,
            }),
            ..TelemetryResult::default()
        };
        assert_eq!(
            summary_lines(&result),
            [
                "http://127.0.0.1:1/metrics: scraped 2 times",
                "zipkin://a: 4 of 5 spans exported in 2 batches"
            ]
        );
        let counters = span_counters(&result);
        assert!(counters.contains(&("tracing.zipkin.spans_sent".to_owned(), 4)));
        assert_eq!(counters.len(), 3, "zeros are left out");
    }
}
