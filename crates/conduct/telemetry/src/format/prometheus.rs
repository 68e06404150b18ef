//! A page to scrape.

mod fit;
mod samples;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use stillwell_metric::Kind;

use crate::format::names::{self, Total};
use crate::format::page::{MetricPoint, MetricsPage, Origin, PointValue};
pub(crate) use samples::prometheus_samples;

/// Content type of such a page.
pub(crate) const PROMETHEUS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Labels that we set; a label of the same name from another source is renamed.
const RESERVED_LABELS: [&str; 2] = ["outcome", "le"];

/// `pages` in Prometheus' text format, as one page. Of several values of a series the last one is shown.
pub(crate) fn prometheus_text(origin: &Origin, pages: &[Arc<MetricsPage>]) -> String {
    let mut text = String::new();
    let shared = shared_labels(origin, pages);
    let mut last = None;
    for point in joined(pages) {
        let metric = &point.metric;
        let name = names::prometheus(metric);
        if last != Some(metric) {
            let kind = match metric.kind {
                Kind::Counter => "counter",
                Kind::Gauge => "gauge",
                Kind::Histogram => "histogram",
            };
            // Writing to a text cannot fail.
            let _ok = write!(
                text,
                "# HELP {name} {}\n# TYPE {name} {kind}\n",
                metric.meaning
            );
            last = Some(metric);
        }
        let shared = shared
            .iter()
            .map(|(key, value)| (key.as_str(), value.as_str()));
        let labels: Vec<(&str, &str)> = point.labels().chain(shared).collect();
        match &point.value {
            PointValue::Counter(total) => {
                let value = match Total::new(metric, *total) {
                    Total::Whole(value) => value.to_string(),
                    Total::Seconds(value) => value.to_string(),
                };
                push(&mut text, &name, &labels, None, &value);
            }
            PointValue::Gauge(value) => {
                let value = names::gauge(metric, *value).to_string();
                push(&mut text, &name, &labels, None, &value);
            }
            PointValue::Times(times) => {
                let bucket = format!("{name}_bucket");
                for (end, count) in times.up_to() {
                    let end = end.to_string();
                    push(&mut text, &bucket, &labels, Some(&end), &count.to_string());
                }
                let count = times.count.to_string();
                push(&mut text, &bucket, &labels, Some("+Inf"), &count);
                let sum = times.sum_seconds.to_string();
                push(&mut text, &format!("{name}_sum"), &labels, None, &sum);
                push(&mut text, &format!("{name}_count"), &labels, None, &count);
            }
        }
    }
    text
}

/// Returns the labels of the user that all series of `pages` carry. Those with the name of one of our labels are renamed.
pub(crate) fn shared_labels(origin: &Origin, pages: &[Arc<MetricsPage>]) -> Vec<(String, String)> {
    let given = origin.labels.iter();
    let given = given.map(|(key, value)| (key.as_str(), value.as_str()));
    let points = pages.iter().flat_map(|page| &page.points);
    let names = points.flat_map(MetricPoint::labels).map(|(key, _)| key);
    let names: BTreeSet<&str> = names.chain(RESERVED_LABELS).collect();
    let names: Vec<&str> = names.into_iter().collect();
    fit::foreign_labels(given, &names)
}

/// Returns the points of all pages, those of one metric next to each other and each series once, with its last value.
fn joined(pages: &[Arc<MetricsPage>]) -> Vec<&MetricPoint> {
    let points = pages.iter().flat_map(|page| &page.points);
    let mut points: Vec<&MetricPoint> = points.collect();
    if pages.len() > 1 {
        // The sort is stable, so the last value of a series comes first.
        points.reverse();
        points.sort_by(|a, b| (a.metric.name, &a.labels).cmp(&(b.metric.name, &b.labels)));
        points.dedup_by(|a, b| a.metric == b.metric && a.labels == b.labels);
    }
    points
}

fn push(text: &mut String, name: &str, labels: &[(&str, &str)], end: Option<&str>, value: &str) {
    let end = end.map(|end| ("le", end));
    let labels = fit::braced(labels.iter().copied().chain(end));
    // Writing to a text cannot fail.
    let _ok = writeln!(text, "{name}{labels} {value}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::fixture;

    #[test]
    fn labels_of_a_load_are_made_to_fit() {
        let mut origin = fixture::origin();
        origin.labels = vec![
            ("my team".to_owned(), "a".to_owned()),
            ("le".to_owned(), "b".to_owned()),
        ];
        let text = prometheus_text(&origin, &[Arc::new(fixture::page(1))]);
        let line = r#"stillwell_requests_sent_total{exported_le="b",my_team="a"} 2"#;
        assert!(text.lines().any(|text_line| text_line == line), "{text}");
    }

    #[test]
    fn of_a_series_on_two_pages_the_last_value_is_shown() {
        let pages = [1, 3].map(|count| Arc::new(fixture::page(count)));
        let joined = prometheus_text(&fixture::origin(), &pages);
        let alone = prometheus_text(&fixture::origin(), &pages[1..]);
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        assert_eq!(lines(&joined), lines(&alone));
        assert_eq!(joined.lines().count(), alone.lines().count());
    }

    #[test]
    fn a_page_has_each_kind_once_and_every_series_with_its_labels() {
        let text = prometheus_text(&fixture::origin(), &[Arc::new(fixture::page(3))]);
        for line in [
            "# TYPE stillwell_requests_sent_total counter",
            r#"stillwell_requests_sent_total{team="\"a\"\\\n"} 6"#,
            r#"stillwell_outcomes_total{outcome="ok",team="\"a\"\\\n"} 3"#,
            r#"stillwell_worker_running_seconds_total{team="\"a\"\\\n"} 3"#,
            r#"stillwell_response_time_seconds_bucket{outcome="ok",team="\"a\"\\\n",le="0.0005"} 0"#,
            r#"stillwell_response_time_seconds_bucket{outcome="ok",team="\"a\"\\\n",le="0.001"} 3"#,
            r#"stillwell_response_time_seconds_bucket{outcome="ok",team="\"a\"\\\n",le="+Inf"} 3"#,
            r#"stillwell_response_time_seconds_count{outcome="ok",team="\"a\"\\\n"} 3"#,
        ] {
            assert_eq!(
                text.lines().filter(|text_line| *text_line == line).count(),
                1,
                "{line}\n{text}"
            );
        }
        let types = text.matches("# TYPE stillwell_outcomes_total ").count();
        assert_eq!(types, 1);
        assert!(text.ends_with('\n'));
    }
}
