//! A page and spans for tests.

use stillwell_load::{Span, TraceContext};
use stillwell_metric::{Outcome, catalogue, empty_histogram};
use stillwell_units::{Moment, Nanos, RunId};

use crate::format::page::{MetricPoint, MetricsPage, Origin, PointValue, Times};
use crate::format::spans::SpanRequest;

pub(crate) fn origin() -> Origin {
    Origin {
        run: RunId::from_bytes([0xab; 16]),
        version: "1.2.3",
        labels: vec![("team".to_owned(), "\"a\"\\\n".to_owned())],
    }
}

/// `count` requests answered, of twice as many sent, after 1 ms each.
pub(crate) fn page(count: u64) -> MetricsPage {
    let mut times = empty_histogram();
    times.record_n(1_000_000, count).unwrap();
    let point = |metric, label: Option<(&str, &str)>, value| MetricPoint {
        metric,
        labels: label
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .into_iter()
            .collect(),
        value,
    };
    MetricsPage {
        started: Nanos::from_secs(1_700_000_000),
        taken: Nanos::from_millis(1_700_000_005_250),
        named: Vec::new(),
        points: vec![
            point(
                catalogue::REQUESTS_SENT,
                None,
                PointValue::Counter(2 * count),
            ),
            point(
                catalogue::OUTCOMES,
                Some(("outcome", Outcome::Ok.name())),
                PointValue::Counter(count),
            ),
            point(
                catalogue::OUTCOMES,
                Some(("outcome", Outcome::TimedOut.name())),
                PointValue::Counter(0),
            ),
            point(
                catalogue::WORKER_RUNNING,
                None,
                PointValue::Counter(count * 1_000_000_000),
            ),
            point(
                catalogue::RESPONSE_TIME,
                Some(("outcome", Outcome::Ok.name())),
                PointValue::Times(Box::new(Times::new(&times, &times))),
            ),
        ],
    }
}

pub(crate) fn requests() -> Vec<Vec<SpanRequest>> {
    let request = |path: &str| SpanRequest {
        method: "GET".to_owned(),
        url: format!("http://127.0.0.1:8080/{path}"),
        host: "127.0.0.1".to_owned(),
        port: 8080,
    };
    vec![vec![request("a"), request("b")]]
}

/// One that was answered and one that was not.
pub(crate) fn spans() -> Vec<Span> {
    let context = |byte| TraceContext {
        trace: [byte; 16],
        span: [byte; 8],
        is_sampled: true,
    };
    let answered = Span {
        context: context(1),
        worker: 0,
        endpoint: 0,
        request: 1,
        intended: Moment::new(900),
        sent: Moment::new(1_000),
        first_byte: Some(Moment::new(2_000_000)),
        end: Moment::new(3_000_000),
        outcome: Outcome::Ok,
        status: 200,
    };
    let lost = Span {
        context: context(2),
        worker: 3,
        first_byte: None,
        outcome: Outcome::TimedOut,
        status: 0,
        ..answered
    };
    vec![answered, lost]
}
