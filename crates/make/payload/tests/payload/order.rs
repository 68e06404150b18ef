use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use proptest::prelude::*;
use prost::Message;
use stillwell_payload::{BlockSet, Part, Seeds};
use stillwell_plan::PayloadFormat;
use stillwell_plan::payload::{Between, LokiPlan, OtlpContexts, OtlpMetricsPlan, RemoteWritePlan};
use stillwell_units::Seed;

use crate::flows::samples;
use crate::{plan, up_to};

/// The streams of Loki's lines, with their times in milliseconds.
fn lines(set: &BlockSet) -> Vec<(String, u64)> {
    let mut times = Vec::new();
    for index in 0..set.len() {
        let body: serde_json::Value = serde_json::from_slice(set.block(index).bytes).unwrap();
        for stream in body["streams"].as_array().unwrap() {
            for line in stream["values"].as_array().unwrap() {
                let nanos: u64 = line[0].as_str().unwrap().parse().unwrap();
                times.push((stream["stream"].to_string(), nanos / 1_000_000));
            }
        }
    }
    times
}

/// The metrics of OpenTelemetry's points, with their times in milliseconds.
fn points(set: &BlockSet) -> Vec<(String, u64)> {
    let requests = (0..set.len()).map(|index| {
        let request = ExportMetricsServiceRequest::decode(set.block(index).bytes);
        request.unwrap().resource_metrics
    });
    let scopes = requests.flatten().flat_map(|part| part.scope_metrics);
    let metrics = scopes.flat_map(|scope| scope.metrics);
    let timed = metrics.map(|metric| {
        let nanos = match metric.data.unwrap() {
            Data::Gauge(data) => data.data_points[0].time_unix_nano,
            Data::Sum(data) => data.data_points[0].time_unix_nano,
            Data::Histogram(data) => data.data_points[0].time_unix_nano,
            Data::ExponentialHistogram(data) => data.data_points[0].time_unix_nano,
            Data::Summary(data) => data.data_points[0].time_unix_nano,
        };
        (metric.name, nanos / 1_000_000)
    });
    timed.collect()
}

/// Formats whose series have an order in a store: how they are read, and whether two
/// of a series may have one time.
type Kind = (
    fn(u32) -> PayloadFormat,
    fn(&BlockSet) -> Vec<(String, u64)>,
    bool,
);

const KINDS: [Kind; 3] = [
    (
        |series| {
            PayloadFormat::RemoteWrite(RemoteWritePlan {
                series: Between::only(series),
                ..RemoteWritePlan::default()
            })
        },
        samples,
        false,
    ),
    (
        |streams| PayloadFormat::Loki(LokiPlan { streams }),
        lines,
        true,
    ),
    (
        |contexts| {
            PayloadFormat::OpentelemetryMetrics(OtlpMetricsPlan {
                contexts: OtlpContexts {
                    contexts: Between::only(contexts),
                    ..OtlpMetricsPlan::default().contexts
                },
                ..OtlpMetricsPlan::default()
            })
        },
        points,
        false,
    ),
];

proptest! {
    /// For all numbers of workers and series: a series is one worker's where there are
    /// enough, together they have all, and through all sets a worker's times go on.
    #[test]
    fn a_store_finds_each_series_in_order(
        kind in 0..KINDS.len(),
        workers in 1_u32..5,
        series_count in 1_u32..120,
        seed: u64,
    ) {
        let (format, read, may_be_equal) = KINDS[kind];
        let plan = plan(format(series_count), up_to(16_384), 60_000);
        let common = Seed::from_number(seed);
        let (mut owners, mut hours) = (BTreeMap::new(), BTreeSet::new());
        for index in 0..workers {
            let mut seeds = Seeds {
                worker: common.derive("worker", u64::from(index)),
                part: Part { index, of: workers },
                ..common.into()
            };
            let mut last = BTreeMap::new();
            for pass in 0..3 {
                let set = BlockSet::build(&plan, plan.cache, seeds, None).unwrap();
                for (series, time) in read(&set) {
                    let owner = *owners.entry(series.clone()).or_insert(index);
                    prop_assert!(owner == index || workers > series_count);
                    if let Some(before) = last.insert(series, time) {
                        prop_assert!(before < time || may_be_equal && before == time);
                    }
                    hours.insert(time / 3_600_000);
                }
                seeds.worker = seeds.worker.derive("pass", pass);
                seeds.after = set.ended();
            }
        }
        let most = usize::try_from(series_count).unwrap();
        prop_assert!(owners.len() == most || may_be_equal && owners.len() <= most);
        // All of them within an hour, so none is too old beside another.
        prop_assert!(hours.len() <= 2 && hours.last().unwrap() - hours.first().unwrap() <= 1);
    }
}
