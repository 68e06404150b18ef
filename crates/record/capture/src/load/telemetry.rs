//! Results of exporting metrics and traces while a load went on.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// Results of exports.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TelemetryResult {
    /// Each stats sink.
    pub sinks: Vec<SinkFound>,
    /// The page to scrape, where there was one.
    pub page: Option<PageFound>,
    /// Spans, where they were to be exported.
    pub spans: Option<SpansFound>,
    /// Cause of an early end of the exporting thread.
    pub failure: Option<String>,
}

/// Results of exports to one stats sink.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SinkFound {
    /// Configured name.
    pub name: String,
    /// Number of attempted exports.
    pub flushes: u64,
    /// Number of failed exports.
    pub failures: u64,
    /// True if it has received the final totals, or there were none.
    pub is_complete: bool,
    /// Cause of the first failure.
    pub trouble: Option<String>,
}

/// The page to scrape.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PageFound {
    /// Address of the endpoint.
    pub address: SocketAddr,
    /// Number of scrapes.
    pub scrapes: u64,
}

/// Results of the export of spans.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SpansFound {
    /// Name of the receiver.
    pub name: String,
    /// Requests that ended and whose spans were wanted.
    pub sampled: u64,
    /// Those of them that result the queue full.
    pub dropped: u64,
    /// Those that got through.
    pub exported: u64,
    /// Batches in which they travelled, and how many of these got lost.
    pub batches: u64,
    /// Batches that got lost with all their spans.
    pub batches_failed: u64,
    /// Cause of the first loss.
    pub trouble: Option<String>,
}

impl TelemetryResult {
    /// Describes each failed export; empty without failures.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let sinks = self.sinks.iter().filter_map(SinkFound::trouble);
        let spans = self.spans.iter().flat_map(SpansFound::troubles);
        let failure = self.failure.iter();
        let failure = failure.map(|why| format!("the exporting thread ended early: {why}"));
        sinks.chain(spans).chain(failure).collect()
    }
}

impl SinkFound {
    fn trouble(&self) -> Option<String> {
        if self.failures == 0 && self.is_complete {
            return None;
        }
        let Self {
            name,
            flushes,
            failures,
            ..
        } = self;
        let totals = if self.is_complete {
            "but it has the totals"
        } else {
            "and it lacks the totals"
        };
        let why = self.trouble.as_deref().unwrap_or("it took too long");
        Some(format!(
            "{failures} of {flushes} exports to {name} failed, {totals}: {why}"
        ))
    }
}

impl SpansFound {
    fn troubles(&self) -> Vec<String> {
        let Self { name, sampled, .. } = self;
        let mut troubles = Vec::new();
        if self.dropped > 0 {
            let dropped = self.dropped;
            troubles.push(format!(
                "{name} was too slow for {dropped} of {sampled} spans, which were dropped: sample \
                 fewer with --trace-sample"
            ));
        }
        let lost = sampled - self.dropped.min(*sampled);
        let lost = lost.saturating_sub(self.exported);
        if lost > 0 {
            let why = self.trouble.as_deref().unwrap_or("it took too long");
            troubles.push(format!(
                "{name} did not get {lost} of {sampled} spans: {why}"
            ));
        }
        troubles
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failed_exports_are_reported() {
        let sink = |failures, is_complete| SinkFound {
            name: "statsd://a".to_owned(),
            flushes: 3,
            failures,
            is_complete,
            trouble: (failures > 0).then(|| "refused".to_owned()),
        };
        let spans = |dropped, exported| SpansFound {
            name: "zipkin://a".to_owned(),
            sampled: 10,
            dropped,
            exported,
            batches: 1,
            batches_failed: 0,
            trouble: None,
        };
        let result = |sinks, spans| TelemetryResult {
            sinks,
            page: None,
            spans: Some(spans),
            failure: None,
        };
        let good = result(vec![sink(0, true)], spans(0, 10));
        assert!(good.troubles().is_empty(), "{:?}", good.troubles());
        let bad = result(vec![sink(1, true), sink(3, false)], spans(3, 2)).troubles();
        assert_eq!(bad.len(), 4, "{bad:?}");
        assert!(
            bad[0].contains("1 of 3 exports to statsd://a failed, but it has the totals"),
            "{bad:?}"
        );
        assert!(bad[1].contains("lacks the totals"), "{bad:?}");
        assert!(
            bad[2].contains("3 of 10 spans") && bad[3].contains("5 of 10 spans"),
            "{bad:?}"
        );
    }
}
