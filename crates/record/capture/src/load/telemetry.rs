//! Results of exporting metrics and traces while a load went on.

use std::net::SocketAddr;

use serde::{Deserialize, Serialize};

/// What became of what was told.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TelemetryFound {
    /// Each stats sink.
    pub sinks: Vec<SinkFound>,
    /// The page to scrape, where there was one.
    pub page: Option<PageFound>,
    /// Spans, where they were to be exported.
    pub spans: Option<SpansFound>,
    /// Why the thread that tells ended early, if it did.
    pub failure: Option<String>,
}

/// What became of what a stats sink was told.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SinkFound {
    /// As it was asked for.
    pub name: String,
    /// How often it was told something, or tried to.
    pub flushes: u64,
    /// How often that failed.
    pub failures: u64,
    /// Whether it has got the totals of the end.
    pub is_complete: bool,
    /// Why the first failure was one.
    pub trouble: Option<String>,
}

/// The page to scrape.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct PageFound {
    /// Where it was.
    pub address: SocketAddr,
    /// How often it was had.
    pub scrapes: u64,
}

/// What became of spans.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct SpansFound {
    /// Who was to get them.
    pub name: String,
    /// Requests that ended and whose spans were wanted.
    pub sampled: u64,
    /// Those of them that found the queue full.
    pub dropped: u64,
    /// Those that got through.
    pub exported: u64,
    /// Batches in which they travelled, and how many of these got lost.
    pub batches: u64,
    /// Batches that got lost with all their spans.
    pub batches_failed: u64,
    /// Why the first of them got lost.
    pub trouble: Option<String>,
}

impl TelemetryFound {
    /// What somebody was not told, in words; nothing where all went well.
    #[must_use]
    pub fn troubles(&self) -> Vec<String> {
        let sinks = self.sinks.iter().filter_map(SinkFound::trouble);
        let spans = self.spans.iter().flat_map(SpansFound::troubles);
        let failure = self.failure.iter();
        let failure = failure.map(|why| format!("the thread that tells others ended early: {why}"));
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
        let why = self.trouble.as_deref().unwrap_or("it was not done in time");
        Some(format!(
            "{name} could not be told {failures} of {flushes} times, {totals}: {why}"
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
            let why = self.trouble.as_deref().unwrap_or("it was not done in time");
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
    fn only_what_went_wrong_is_told() {
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
        let found = |sinks, spans| TelemetryFound {
            sinks,
            page: None,
            spans: Some(spans),
            failure: None,
        };
        let good = found(vec![sink(0, true)], spans(0, 10));
        assert!(good.troubles().is_empty(), "{:?}", good.troubles());
        let bad = found(vec![sink(1, true), sink(3, false)], spans(3, 2)).troubles();
        assert_eq!(bad.len(), 4, "{bad:?}");
        assert!(
            bad[0].contains("1 of 3 times, but it has the totals: refused"),
            "{bad:?}"
        );
        assert!(bad[1].contains("lacks the totals"), "{bad:?}");
        assert!(
            bad[2].contains("3 of 10 spans") && bad[3].contains("5 of 10 spans"),
            "{bad:?}"
        );
    }
}
