use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use proptest::prelude::*;
use prost::Message as _;
use stillwell_payload::{BlockSet, SLOT_PLACEHOLDER, SLOT_WIDTH, SlotUse};
use stillwell_plan::payload::{
    Between, OtlpContexts, OtlpHistogramLimits, OtlpLogsPlan, OtlpMetricsPlan, OtlpTracesPlan,
    TraceAttribute, TraceCall, TraceOperation, TraceService, TraceValue, TraceWork,
};
use stillwell_plan::{PayloadFormat, PayloadPlan};

use crate::{build, golden, plan, up_to};

fn logs(options: OtlpLogsPlan, maximum: u64, cache: u64) -> PayloadPlan {
    plan(
        PayloadFormat::OpentelemetryLogs(options),
        up_to(maximum),
        cache,
    )
}

fn metrics(options: OtlpMetricsPlan, maximum: u64, cache: u64) -> PayloadPlan {
    plan(
        PayloadFormat::OpentelemetryMetrics(options),
        up_to(maximum),
        cache,
    )
}

fn any_contexts() -> impl Strategy<Value = OtlpContexts> {
    let range = |low: u8, width: u8| {
        (low..low + 4, 0..width).prop_map(|(low, width)| Between::new(low, low + width))
    };
    let counts = (
        range(0, 6),
        range(1, 6),
        range(0, 3),
        range(1, 20),
        range(0, 6),
    );
    (1_u32..300, counts).prop_map(|(contexts, counts)| OtlpContexts {
        contexts: Between::only(contexts),
        attributes_per_resource: counts.0,
        scopes_per_resource: counts.1,
        attributes_per_scope: counts.2,
        items_per_scope: counts.3,
        attributes_per_item: counts.4,
    })
}

/// Attributes as a text; fails where a key occurs twice.
fn attributes(list: &[KeyValue]) -> String {
    let keys: BTreeSet<&str> = list
        .iter()
        .map(|attribute| attribute.key.as_str())
        .collect();
    assert_eq!(keys.len(), list.len(), "{list:?}");
    assert!(list.iter().all(|attribute| {
        attribute
            .value
            .as_ref()
            .is_some_and(|any| any.value.is_some())
    }));
    format!("{list:?}")
}

/// Each log record's context, block by block.
fn log_contexts(set: &BlockSet) -> Vec<String> {
    let mut contexts = Vec::new();
    for index in 0..set.len() {
        let block = set.block(index);
        let request = ExportLogsServiceRequest::decode(block.bytes).unwrap();
        assert_eq!(request.resource_logs.len() as u64, block.counts().events);
        let before = contexts.len();
        for resource in &request.resource_logs {
            let of_resource = attributes(&resource.resource.as_ref().unwrap().attributes);
            for scope in &resource.scope_logs {
                let named = scope.scope.as_ref().unwrap();
                for record in &scope.log_records {
                    assert!(record.time_unix_nano > 1_600_000_000_000_000_000);
                    assert!(record.observed_time_unix_nano >= record.time_unix_nano);
                    assert!((1..=24).contains(&record.severity_number));
                    assert!(record.body.is_some());
                    let record_attributes = attributes(&record.attributes);
                    contexts.push(format!("{of_resource} {} {record_attributes}", named.name));
                }
            }
        }
        assert_eq!((contexts.len() - before) as u64, block.counts().units);
    }
    contexts
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For all shapes: every block is a request, counts agree with what is in
    /// it, and each context comes once before any comes again.
    // compat: lading, payloads | opentelemetry_logs | differs | contexts are records, not resources
    #[test]
    fn logs_are_requests_of_as_many_contexts_as_requested(
        contexts in any_contexts(),
        seed: u64,
        maximum in 4096_u64..200_000,
    ) {
        let wanted = usize::try_from(contexts.contexts.high).unwrap();
        let options = OtlpLogsPlan { contexts, ..OtlpLogsPlan::default() };
        let set = build(&logs(options, maximum, 1 << 20), seed, SlotUse::None);
        prop_assert!(set.largest_block() <= usize::try_from(maximum).unwrap());
        let seen = log_contexts(&set);
        prop_assert!(seen.len() > wanted);
        if contexts.attributes_per_item.high > 0 {
            let first: BTreeSet<&String> = seen[..wanted].iter().collect();
            prop_assert_eq!(first.len(), wanted);
            let all: BTreeSet<&String> = seen.iter().collect();
            prop_assert_eq!(all.len(), wanted);
        }
    }

    /// For all shapes, the same of metrics.
    // compat: lading, payloads | opentelemetry_metrics | differs | contexts are records, not resources
    #[test]
    fn metrics_are_requests_of_as_many_contexts_as_requested(
        contexts in any_contexts(),
        seed: u64,
        maximum in 4096_u64..200_000,
        limit in 0_u64..1000,
    ) {
        let wanted = usize::try_from(contexts.contexts.high).unwrap();
        let limits = OtlpHistogramLimits { bucket: limit, zero: limit / 2, total: limit * 3 };
        let options = OtlpMetricsPlan {
            contexts,
            histogram_count_limits: limits,
            ..OtlpMetricsPlan::default()
        };
        let set = build(&metrics(options, maximum, 1 << 20), seed, SlotUse::None);
        let mut seen = Vec::new();
        for index in 0..set.len() {
            let block = set.block(index);
            let request = ExportMetricsServiceRequest::decode(block.bytes).unwrap();
            prop_assert_eq!(request.resource_metrics.len() as u64, block.counts().events);
            let before = seen.len();
            for resource in &request.resource_metrics {
                let of_resource = attributes(&resource.resource.as_ref().unwrap().attributes);
                for scope in &resource.scope_metrics {
                    for metric in &scope.metrics {
                        let point_attributes = point(metric.data.as_ref().unwrap(), &limits);
                        let scope = &scope.scope.as_ref().unwrap().name;
                        seen.push(format!("{of_resource} {scope} {} {point_attributes}", metric.name));
                    }
                }
            }
            prop_assert_eq!((seen.len() - before) as u64, block.counts().units);
        }
        prop_assert!(seen.len() > wanted);
        let first: BTreeSet<&String> = seen[..wanted].iter().collect();
        let all: BTreeSet<&String> = seen.iter().collect();
        prop_assert_eq!((first.len(), all.len()), (wanted, wanted));
    }
}

/// The attributes of a metric's one point; fails where counts do not agree.
fn point(data: &Data, limits: &OtlpHistogramLimits) -> String {
    let has_times =
        |start: u64, time: u64| assert!(start <= time && start > 1_600_000_000_000_000_000);
    match data {
        Data::Gauge(gauge) => {
            let [point] = &gauge.data_points[..] else {
                unreachable!("{gauge:?}")
            };
            assert!(point.value.is_some());
            attributes(&point.attributes)
        }
        Data::Sum(sum) => {
            let [point] = &sum.data_points[..] else {
                unreachable!("{sum:?}")
            };
            assert!(sum.is_monotonic && point.value.is_some());
            assert!([1, 2].contains(&sum.aggregation_temporality));
            has_times(point.start_time_unix_nano, point.time_unix_nano);
            attributes(&point.attributes)
        }
        Data::Histogram(histogram) => {
            let [point] = &histogram.data_points[..] else {
                unreachable!("{histogram:?}")
            };
            assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
            assert!(point.explicit_bounds.is_sorted());
            assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
            assert!(
                point
                    .bucket_counts
                    .iter()
                    .all(|count| *count <= limits.bucket)
            );
            assert!(point.count <= limits.total);
            has_times(point.start_time_unix_nano, point.time_unix_nano);
            attributes(&point.attributes)
        }
        Data::ExponentialHistogram(histogram) => {
            let [point] = &histogram.data_points[..] else {
                unreachable!("{histogram:?}")
            };
            let positive = point.positive.as_ref().unwrap();
            assert_eq!((point.scale, positive.offset), (3, -4));
            let counted: u64 = positive.bucket_counts.iter().sum();
            assert_eq!(counted + point.zero_count, point.count);
            assert!(point.zero_count <= limits.zero && point.count <= limits.total);
            has_times(point.start_time_unix_nano, point.time_unix_nano);
            attributes(&point.attributes)
        }
        Data::Summary(summary) => {
            let [point] = &summary.data_points[..] else {
                unreachable!("{summary:?}")
            };
            assert!(point.quantile_values.is_sorted_by_key(|at| at.value));
            assert_eq!(point.quantile_values.len(), 3);
            attributes(&point.attributes)
        }
    }
}

#[test]
fn what_grows_never_shrinks() {
    let set = build(
        &metrics(OtlpMetricsPlan::default(), 100_000, 4 << 20),
        3,
        SlotUse::None,
    );
    let mut last = BTreeMap::<String, (u64, f64)>::new();
    let mut compared = 0;
    for index in 0..set.len() {
        let request = ExportMetricsServiceRequest::decode(set.block(index).bytes).unwrap();
        let scopes = request
            .resource_metrics
            .into_iter()
            .flat_map(|part| part.scope_metrics);
        for metric in scopes.flat_map(|part| part.metrics) {
            let (start, value) = match metric.data.unwrap() {
                Data::Sum(sum) if sum.aggregation_temporality == 2 => {
                    let point = &sum.data_points[0];
                    let value = format!("{:?}", point.value.as_ref().unwrap());
                    let digits = value.trim_start_matches(|c: char| !c.is_ascii_digit());
                    (
                        point.start_time_unix_nano,
                        digits.trim_end_matches(')').parse().unwrap(),
                    )
                }
                Data::Histogram(histogram) if histogram.aggregation_temporality == 2 => {
                    let point = &histogram.data_points[0];
                    (
                        point.start_time_unix_nano,
                        stillwell_units::float_from_u64(point.count),
                    )
                }
                _ => continue,
            };
            if let Some((start_before, before)) = last.insert(metric.name, (start, value)) {
                assert!(start != start_before || value >= before);
                compared += 1;
            }
        }
    }
    assert!(compared > 1000);
}

#[test]
fn every_log_event_has_a_slot_in_a_body() {
    let set = build(
        &logs(OtlpLogsPlan::default(), 60_000, 500_000),
        3,
        SlotUse::Every,
    );
    for index in 0..set.len() {
        let block = set.block(index);
        assert_eq!(block.slots().len(), block.event_ends().len());
        let mut bytes = block.bytes.to_vec();
        for (number, slot) in block.slots().enumerate() {
            let place = slot.offset..slot.offset + SLOT_WIDTH;
            assert_eq!(bytes[place.clone()], SLOT_PLACEHOLDER);
            bytes[place].copy_from_slice(format!("{number:064}").as_bytes());
        }
        let request = ExportLogsServiceRequest::decode(&bytes[..]).unwrap();
        for (number, resource) in request.resource_logs.iter().enumerate() {
            let records = resource
                .scope_logs
                .iter()
                .flat_map(|scope| &scope.log_records);
            let stamped = records.filter(|record| {
                let body = record.body.as_ref().and_then(|any| any.value.as_ref());
                matches!(body, Some(Value::StringValue(text)) if text.starts_with(&format!("{number:064} ")))
            });
            assert_eq!(stamped.count(), 1);
        }
    }
}

#[test]
fn log_records_belong_to_as_many_traces_as_requested() {
    let options = OtlpLogsPlan {
        trace_cardinality: Between::only(50),
        body_size: Between::new(100, 200),
        ..OtlpLogsPlan::default()
    };
    let set = build(&logs(options, 100_000, 1 << 20), 3, SlotUse::None);
    let mut traces = BTreeSet::new();
    for index in 0..set.len() {
        let request = ExportLogsServiceRequest::decode(set.block(index).bytes).unwrap();
        let scopes = request
            .resource_logs
            .into_iter()
            .flat_map(|part| part.scope_logs);
        for record in scopes.flat_map(|part| part.log_records) {
            assert_eq!((record.trace_id.len(), record.span_id.len()), (16, 8));
            let Some(Value::StringValue(text)) = record.body.unwrap().value else {
                unreachable!("a text");
            };
            assert!((100..=200).contains(&text.len()));
            traces.insert(record.trace_id);
        }
    }
    assert_eq!(traces.len(), 50);
}

fn operation(id: &str, work: TraceWork, calls: Vec<TraceCall>) -> TraceOperation {
    TraceOperation {
        id: id.to_owned(),
        work,
        root: None,
        calls,
        attributes: Vec::new(),
    }
}

fn service(name: &str, operations: Vec<TraceOperation>) -> TraceService {
    TraceService {
        name: name.to_owned(),
        resource_attributes: Vec::new(),
        scope_name: Some("tracing".to_owned()),
        scope_version: "1.2.3".to_owned(),
        operations,
    }
}

/// A gateway that always calls a store up to three times, and in half of all
/// cases a database.
fn topology() -> OtlpTracesPlan {
    let call = |service, rate, repeat_max| TraceCall {
        service,
        operation: 0,
        rate,
        repeat_max,
        attributes: vec![TraceAttribute {
            key: "call.kind".to_owned(),
            value: TraceValue::OneOf(vec!["a".to_owned(), "b".to_owned()]),
        }],
    };
    let get = TraceWork::Http {
        method: "GET".to_owned(),
        route: "/a/{id}".to_owned(),
    };
    let read = TraceWork::Grpc {
        service: "Store".to_owned(),
        method: "Read".to_owned(),
    };
    let select = TraceWork::Database {
        system: "postgresql".to_owned(),
        name: None,
        table: Some("things".to_owned()),
        query: "SELECT * FROM things".to_owned(),
    };
    let mut root = operation("get", get, vec![call(1, 1.0, 3), call(2, 0.5, 1)]);
    root.attributes = vec![
        TraceAttribute {
            key: "size".to_owned(),
            value: TraceValue::RandomInteger(Between::new(-3, 3)),
        },
        TraceAttribute {
            key: "token".to_owned(),
            value: TraceValue::RandomText { length: 300 },
        },
    ];
    let services = vec![
        service("gateway", vec![root]),
        service("store", vec![operation("read", read, Vec::new())]),
        service("database", vec![operation("select", select, Vec::new())]),
    ];
    OtlpTracesPlan::try_new(services, 0.1).unwrap()
}

fn traces(options: OtlpTracesPlan, maximum: u64) -> PayloadPlan {
    plan(
        PayloadFormat::OpentelemetryTraces(Box::new(options)),
        up_to(maximum),
        1 << 20,
    )
}

/// Services and spans of all traces.
fn spans(set: &BlockSet) -> BTreeMap<Vec<u8>, Vec<(String, Span)>> {
    let mut traces = BTreeMap::<_, Vec<_>>::new();
    for index in 0..set.len() {
        let block = set.block(index);
        let request = ExportTraceServiceRequest::decode(block.bytes).unwrap();
        let (mut units, mut here) = (0, BTreeSet::new());
        for resource in request.resource_spans {
            let named = &resource.resource.as_ref().unwrap().attributes[0];
            assert_eq!(named.key, "service.name");
            let Some(Value::StringValue(name)) = &named.value.as_ref().unwrap().value else {
                unreachable!("{named:?}");
            };
            for scope in resource.scope_spans {
                assert_eq!(scope.scope.as_ref().unwrap().version, "1.2.3");
                for span in scope.spans {
                    units += 1;
                    here.insert(span.trace_id.clone());
                    traces
                        .entry(span.trace_id.clone())
                        .or_default()
                        .push((name.clone(), span));
                }
            }
        }
        assert_eq!(units, block.counts().units);
        assert_eq!(here.len() as u64, block.counts().events);
    }
    traces
}

// compat: lading, payloads | opentelemetry_traces | works
#[test]
fn traces_walk_through_their_services() {
    let set = build(&traces(topology(), 100_000), 3, SlotUse::None);
    let traces = spans(&set);
    let (mut failed, mut all, mut databases) = (0, 0, 0);
    for spans in traces.values() {
        let by_id: BTreeMap<&[u8], &Span> = spans
            .iter()
            .map(|(_, span)| (&span.span_id[..], span))
            .collect();
        assert_eq!(by_id.len(), spans.len());
        let roots = spans
            .iter()
            .filter(|(_, span)| span.parent_span_id.is_empty());
        assert_eq!(roots.clone().count(), 1);
        assert!(
            roots
                .clone()
                .all(|(service, span)| service == "gateway" && span.name == "GET /a/{id}")
        );
        for (service, span) in spans {
            all += 1;
            failed += u32::from(span.status.as_ref().is_some_and(|status| status.code == 2));
            attributes(&span.attributes);
            if span.parent_span_id.is_empty() {
                continue;
            }
            let parent = by_id[&span.parent_span_id[..]];
            assert!(parent.start_time_unix_nano <= span.start_time_unix_nano);
            assert!(span.end_time_unix_nano <= parent.end_time_unix_nano);
            assert!(span.start_time_unix_nano <= span.end_time_unix_nano);
            // A server's parent is the client's span of the same call.
            match span.kind {
                2 => assert_eq!((parent.kind, &parent.name), (3, &span.name)),
                3 => assert_eq!((service.as_str(), parent.kind), ("gateway", 2)),
                kind => unreachable!("{kind}"),
            }
            assert!(
                span.attributes
                    .iter()
                    .any(|attribute| attribute.key == "call.kind")
            );
        }
        let calls = |name: &str| spans.iter().filter(|(service, _)| service == name).count();
        assert!((1..=3).contains(&calls("store")));
        databases += calls("database");
        assert!(calls("database") <= 1);
    }
    let count = traces.len();
    assert!(
        databases * 10 > count * 4 && databases * 10 < count * 6,
        "{databases} of {count}"
    );
    assert!(
        failed * 100 > all * 7 && failed * 100 < all * 18,
        "{failed} of {all}"
    );
}

#[test]
fn a_system_that_calls_itself_comes_to_an_end() {
    let mut services = topology().services().to_vec();
    let forever = TraceCall {
        service: 1,
        operation: 0,
        rate: 1.0,
        repeat_max: 3,
        attributes: Vec::new(),
    };
    services[1].operations[0].calls = vec![forever];
    let options = OtlpTracesPlan::try_new(services, 0.1).unwrap();
    for maximum in [5000, 300_000] {
        let set = build(&traces(options.clone(), maximum), 3, SlotUse::None);
        assert!(set.largest_block() <= usize::try_from(maximum).unwrap());
        assert!(!spans(&set).is_empty());
    }
}

#[test]
fn fingerprints_are_those_in_the_tree() {
    let set = build(
        &logs(OtlpLogsPlan::default(), 1 << 18, 1 << 20),
        42,
        SlotUse::None,
    );
    golden::compare("opentelemetry_logs", &set);
    let set = build(
        &metrics(OtlpMetricsPlan::default(), 1 << 18, 1 << 20),
        42,
        SlotUse::None,
    );
    golden::compare("opentelemetry_metrics", &set);
    let set = build(&traces(topology(), 1 << 18), 42, SlotUse::None);
    golden::compare("opentelemetry_traces", &set);
}
