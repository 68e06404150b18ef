//! Counts and times.

use std::sync::Arc;

use stillwell_http::protobuf::MessageWriter;

use super::{resource, scope, text};
use crate::format::names::{self, Total};
use crate::format::page::{BOUNDS, MetricPoint, MetricsPage, Origin, PointValue, Times};

/// Totals since the beginning, not since the last message.
const CUMULATIVE: u64 = 2;

/// `pages` as a request to export metrics. Totals are cumulative and never fall,
/// times are histograms with explicit bounds, in seconds. Each page has a list of
/// metrics, since its points have other times.
pub(crate) fn otlp_metrics(origin: &Origin, pages: &[Arc<MetricsPage>]) -> Vec<u8> {
    let mut request = MessageWriter::default();
    request.message(1, |of_resource| {
        resource(of_resource, origin);
        for page in pages {
            of_resource.message(2, |of_scope| {
                scope(of_scope, origin);
                let same = |a: &MetricPoint, b: &MetricPoint| a.metric == b.metric;
                for points in page.points.chunk_by(same) {
                    of_scope.message(2, |metric| write_metric(metric, page, points));
                }
            });
        }
    });
    request.into_bytes()
}

/// `points` are all of one metric.
fn write_metric(message: &mut MessageWriter, page: &MetricsPage, points: &[MetricPoint]) {
    let [first, ..] = points else {
        return;
    };
    message.text(1, &names::otlp(&first.metric));
    message.text(2, first.metric.meaning);
    message.text(3, names::otlp_unit(&first.metric));
    let data = match first.value {
        PointValue::Gauge(_) => 5,
        PointValue::Counter(_) => 7,
        PointValue::Times(_) => 9,
    };
    message.message(data, |data| {
        for point in points {
            data.message(1, |value| match &point.value {
                PointValue::Counter(total) => write_total(value, page, point, *total),
                PointValue::Gauge(gauge) => write_gauge(value, page, point, *gauge),
                PointValue::Times(times) => write_times(value, page, point, times),
            });
        }
        if let PointValue::Gauge(_) = first.value {
            return;
        }
        data.number(2, CUMULATIVE);
        if let PointValue::Counter(_) = first.value {
            data.number(3, 1);
        }
    });
}

fn write_total(message: &mut MessageWriter, page: &MetricsPage, point: &MetricPoint, total: u64) {
    write_time(message, page);
    match Total::new(&point.metric, total) {
        Total::Whole(value) => message.fixed_64(6, value),
        Total::Seconds(value) => message.double(4, value),
    }
    for (key, value) in point.labels() {
        text(message, 7, key, value);
    }
}

fn write_gauge(message: &mut MessageWriter, page: &MetricsPage, point: &MetricPoint, value: f64) {
    write_time(message, page);
    message.double(4, names::gauge(&point.metric, value));
    for (key, value) in point.labels() {
        text(message, 7, key, value);
    }
}

fn write_times(
    message: &mut MessageWriter,
    page: &MetricsPage,
    point: &MetricPoint,
    times: &Times,
) {
    write_time(message, page);
    message.fixed_64(4, times.count);
    message.double(5, times.sum_seconds);
    message.packed_64(6, times.buckets.iter().copied());
    message.packed_64(7, BOUNDS.iter().map(|bound| bound.as_secs_f64().to_bits()));
    for (key, value) in point.labels() {
        text(message, 9, key, value);
    }
    if let Some([shortest, longest]) = times.extremes {
        message.double(11, shortest.as_secs_f64());
        message.double(12, longest.as_secs_f64());
    }
}

fn write_time(message: &mut MessageWriter, page: &MetricsPage) {
    message.fixed_64(2, page.started.as_u64());
    message.fixed_64(3, page.taken.as_u64());
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
    use opentelemetry_proto::tonic::metrics::v1::metric::Data;
    use opentelemetry_proto::tonic::metrics::v1::number_data_point::Value;
    use prost::Message as _;

    use super::*;
    use crate::format::fixture;

    #[test]
    fn two_runs_at_once_are_in_one_message() {
        let pages = [3, 4].map(|count| Arc::new(fixture::page(count)));
        let bytes = otlp_metrics(&fixture::origin(), &pages);
        let request = ExportMetricsServiceRequest::decode(bytes.as_slice()).unwrap();
        let scopes = &request.resource_metrics[0].scope_metrics;
        let sent = scopes.iter().map(|scope| {
            let Some(Data::Sum(sent)) = &scope.metrics[0].data else {
                panic!("no sum");
            };
            sent.data_points[0].value
        });
        let expected = [6, 8].map(|sent| Some(Value::AsInt(sent)));
        assert_eq!(sent.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn the_published_messages_read_what_was_written() {
        let page = Arc::new(fixture::page(3));
        let bytes = otlp_metrics(&fixture::origin(), &[Arc::clone(&page)]);
        let request = ExportMetricsServiceRequest::decode(bytes.as_slice()).unwrap();
        let of_resource = &request.resource_metrics[0];
        let attributes = &of_resource.resource.as_ref().unwrap().attributes;
        let keys: Vec<&str> = attributes.iter().map(|item| item.key.as_str()).collect();
        let value = [
            "service.name",
            "service.version",
            "service.instance.id",
            "team",
        ];
        assert_eq!(keys, value);
        let metrics = &of_resource.scope_metrics[0].metrics;
        assert_eq!(metrics.len(), 4, "points of one metric stand together");
        let data = |name: &str| {
            let metric = metrics.iter().find(|item| item.name == name).unwrap();
            metric.data.clone().unwrap()
        };
        let Data::Sum(sent) = data("stillwell.requests_sent") else {
            panic!("no sum");
        };
        assert!(sent.is_monotonic && sent.aggregation_temporality == 2);
        assert_eq!(sent.data_points[0].value, Some(Value::AsInt(6)));
        assert_eq!(
            sent.data_points[0].start_time_unix_nano,
            page.started.as_u64()
        );
        assert_eq!(sent.data_points[0].time_unix_nano, page.taken.as_u64());
        let Data::Sum(outcomes) = data("stillwell.outcomes") else {
            panic!("no sum");
        };
        assert_eq!(outcomes.data_points.len(), 2);
        assert_eq!(outcomes.data_points[0].attributes[0].key, "outcome");
        let Data::Sum(running) = data("stillwell.worker_running") else {
            panic!("no sum");
        };
        assert_eq!(running.data_points[0].value, Some(Value::AsDouble(3.0)));
        let Data::Histogram(times) = data("stillwell.response_time") else {
            panic!("no histogram");
        };
        let times = &times.data_points[0];
        assert_eq!((times.count, times.bucket_counts.iter().sum()), (3, 3));
        assert_eq!(times.bucket_counts.len(), times.explicit_bounds.len() + 1);
        assert!((times.sum.unwrap() - 0.003).abs() < 1e-5);
        assert!(times.min.unwrap() <= times.max.unwrap());
    }
}
