//! Prometheus' remote write, version 1.

use std::sync::Arc;

use stillwell_http::protobuf::MessageWriter;

use crate::format::names::{self, SERVICE, Total};
use crate::format::page::{MetricsPage, Origin, PointValue};
use crate::format::prometheus::shared_labels;

/// `pages` as the body of a request, squeezed as the protocol wants it: with
/// `content-encoding: snappy` and `content-type: application/x-protobuf`. Beside
/// the labels of the load, series carry `job` and, as `instance`, the load's name.
pub(crate) fn remote_write(origin: &Origin, pages: &[Arc<MetricsPage>]) -> Vec<u8> {
    let shared = shared_labels(origin, pages);
    let mut request = MessageWriter::default();
    for page in pages {
        write_page(&mut request, origin, &shared, page);
    }
    snap::raw::Encoder::new()
        .compress_vec(&request.into_bytes())
        .expect("pages are shorter than 4 GiB")
}

fn write_page(
    request: &mut MessageWriter,
    origin: &Origin,
    shared: &[(String, String)],
    page: &MetricsPage,
) {
    let milliseconds = page.taken.as_u64() / 1_000_000;
    let mut series = |name: String, extra: &[(&str, &str)], value: f64| {
        let labels = labels(origin, shared, name, extra);
        request.message(1, |series| {
            for (key, value) in &labels {
                series.message(1, |label| {
                    label.text(1, key);
                    label.text(2, value);
                });
            }
            series.message(2, |sample| {
                sample.double(1, value);
                sample.number(2, milliseconds);
            });
        });
    };
    for point in &page.points {
        let name = names::prometheus(&point.metric);
        let extra: Vec<(&str, &str)> = point.labels().collect();
        match &point.value {
            PointValue::Counter(total) => {
                let value = Total::new(&point.metric, *total).as_float();
                series(name, &extra, value);
            }
            PointValue::Gauge(value) => {
                series(name, &extra, names::gauge(&point.metric, *value));
            }
            PointValue::Times(times) => {
                let count = stillwell_units::float_from_u64(times.count);
                let ends = times.up_to().map(|(end, count)| (end.to_string(), count));
                for (end, count) in ends.chain([("+Inf".to_owned(), times.count)]) {
                    let ended = [("le", end.as_str())];
                    let extra: Vec<_> = extra.iter().copied().chain(ended).collect();
                    let value = stillwell_units::float_from_u64(count);
                    series(format!("{name}_bucket"), &extra, value);
                }
                series(format!("{name}_sum"), &extra, times.sum_seconds);
                series(format!("{name}_count"), &extra, count);
            }
        }
    }
}

/// All labels of one series in the order of their names, as receivers want them.
/// `shared` are those that the user gave.
fn labels(
    origin: &Origin,
    shared: &[(String, String)],
    name: String,
    extra: &[(&str, &str)],
) -> Vec<(String, String)> {
    let mut labels = vec![("__name__".to_owned(), name)];
    let extra = extra
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    labels.extend(extra);
    labels.extend_from_slice(shared);
    for (key, value) in [
        ("instance", origin.run.to_string()),
        ("job", SERVICE.to_owned()),
    ] {
        // An explicit job or instance has precedence.
        if !labels.iter().any(|(known, _)| known == key) {
            labels.push((key.to_owned(), value));
        }
    }
    labels.sort_unstable();
    labels
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use crate::format::fixture;

    /// The published messages, as far as version 1 has them.
    #[derive(Clone, PartialEq, prost::Message)]
    struct WriteRequest {
        #[prost(message, repeated, tag = "1")]
        timeseries: Vec<TimeSeries>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct TimeSeries {
        #[prost(message, repeated, tag = "1")]
        labels: Vec<Label>,
        #[prost(message, repeated, tag = "2")]
        samples: Vec<Sample>,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Label {
        #[prost(string, tag = "1")]
        name: String,
        #[prost(string, tag = "2")]
        value: String,
    }
    #[derive(Clone, PartialEq, prost::Message)]
    struct Sample {
        #[prost(double, tag = "1")]
        value: f64,
        #[prost(int64, tag = "2")]
        timestamp: i64,
    }

    /// Reads the request about pages of the fixture with these counts.
    fn written(origin: &Origin, counts: &[u64]) -> WriteRequest {
        let pages = counts.iter().map(|count| Arc::new(fixture::page(*count)));
        let body = remote_write(origin, &pages.collect::<Vec<_>>());
        let plain = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
        WriteRequest::decode(plain.as_slice()).unwrap()
    }

    #[test]
    fn a_label_with_a_name_of_stillwell_gets_a_prefix() {
        let mut origin = fixture::origin();
        origin.labels = ["outcome", "le", "job"]
            .map(|key| (key.to_owned(), "x".to_owned()))
            .to_vec();
        let request = written(&origin, &[3]);
        assert!(!request.timeseries.is_empty());
        for series in &request.timeseries {
            let value = |key: &str| {
                let mut labels = series.labels.iter();
                let label = labels.find(|label| label.name == key)?;
                Some(label.value.as_str())
            };
            for key in ["exported_outcome", "exported_le", "job"] {
                assert_eq!(value(key), Some("x"), "{series:?}");
            }
            for key in ["outcome", "le"] {
                assert_ne!(value(key), Some("x"), "{series:?}");
            }
        }
    }

    #[test]
    fn two_runs_at_once_are_in_one_request() {
        let request = written(&fixture::origin(), &[3, 4]);
        let sent = request.timeseries.iter().filter(|series| {
            let mut labels = series.labels.iter();
            labels.any(|label| label.value == "stillwell_requests_sent_total")
        });
        let sent: Vec<f64> = sent.map(|series| series.samples[0].value).collect();
        assert_eq!(sent, [6.0, 8.0]);
    }

    #[test]
    fn labels_of_a_load_are_made_to_fit() {
        let mut origin = fixture::origin();
        origin.labels = ["my team", "a.b", "a-b"]
            .map(|key| (key.to_owned(), "x".to_owned()))
            .to_vec();
        let shared = shared_labels(&origin, &[]);
        let keys: Vec<String> = labels(&origin, &shared, "n".to_owned(), &[])
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(keys, ["__name__", "a_b", "instance", "job", "my_team"]);
    }

    #[test]
    fn a_receiver_finds_every_series_once_with_sorted_labels() {
        let request = written(&fixture::origin(), &[3]);
        let mut names = Vec::new();
        for series in &request.timeseries {
            let keys: Vec<&str> = series
                .labels
                .iter()
                .map(|label| label.name.as_str())
                .collect();
            assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
            assert_eq!(series.samples.len(), 1);
            assert_eq!(series.samples[0].timestamp, 1_700_000_005_250);
            names.push(format!("{:?}", series.labels));
        }
        let value = |name: &str, le: Option<&str>| {
            let series = request.timeseries.iter().find(|series| {
                let has = |key: &str, value: &str| {
                    series
                        .labels
                        .iter()
                        .any(|label| label.name == key && label.value == value)
                };
                has("__name__", name)
                    && has("job", "stillwell")
                    && le.is_none_or(|le| has("le", le))
            });
            series.map(|series| series.samples[0].value)
        };
        assert_eq!(value("stillwell_requests_sent_total", None), Some(6.0));
        assert_eq!(
            value("stillwell_response_time_seconds_count", None),
            Some(3.0)
        );
        let bucket = "stillwell_response_time_seconds_bucket";
        assert_eq!(value(bucket, Some("0.0005")), Some(0.0));
        assert_eq!(value(bucket, Some("+Inf")), Some(3.0));
        names.sort();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all, "a series stands twice");
    }
}
