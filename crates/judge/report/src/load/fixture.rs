//! One load of two workers, for tests.

use stillwell_metric::{Outcome, empty_histogram};
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};

use super::{
    Ending, GLOBAL, GeneratorHealth, HealthWarning, LoadInterval, LoadOptions, LoadProtocol,
    LoadReport, LoadResult, LoadStatistic, Moments, OutcomeCount, PackedHistogram, RequestClass,
    RequestedRate, StatisticUnit, WorkerHealth, id,
};

/// 2020-10-21T21:28:12.690578Z.
pub(super) const START: Nanos = Nanos::new(1_603_315_692_690_578_000);
/// Requests of each worker in each second.
const EACH: u64 = 1000;

/// Latencies of `count` requests from 100 µs on, the slowest a hundredth of
/// which wait for a stall of `stall`.
fn times(count: u64, stall: Nanos) -> hdrhistogram::Histogram<u64> {
    let mut histogram = empty_histogram();
    for index in 0..count {
        let usual = 100_000 + index % 100 * 777;
        let behind_stall = index.saturating_sub(count - count / 50);
        let share = float_from_u64(behind_stall) / float_from_u64((count / 50).max(1));
        let extra = floor_to_u64(share * float_from_u64(stall.as_u64()));
        histogram.record(usual + extra).unwrap();
    }
    histogram
}

pub(super) fn worker(index: u64) -> LoadResult {
    let mut worker = LoadResult::named(format!("worker_{index}"));
    let requests = 5 * EACH - index;
    worker.execution_start = START + Nanos::new(index * 250_000);
    worker.execution_duration = Nanos::from_secs(5) + Nanos::new(index * 4_000);
    worker.end(Outcome::Ok, requests - 2);
    worker.end(Outcome::TimedOut, 2);
    worker.count("benchmark.http_2xx", requests - 2);
    worker.count("benchmark.stream_resets", 2);
    worker.count("benchmark.http_5xx", 0);
    worker.count("upstream_cx_http1_total", 4);
    worker.count("upstream_cx_rx_bytes_total", 3_601_000 * (index + 1));
    worker.count("upstream_cx_tx_bytes_total", 60 * requests);
    worker.count("upstream_rq_total", requests);
    let answered = requests - 2;
    let service = times(answered, Nanos::from_millis(3));
    let response = times(answered, Nanos::from_millis(90));
    for (name, histogram) in [
        (id::REQUEST_TO_RESPONSE, &service),
        (id::LATENCY_BY_STATUS[1], &service),
        (id::SERVICE_TIME, &service),
        (id::RESPONSE_TIME, &response),
        (id::SEQUENCER_CALLBACK, &response),
        (
            id::QUEUE_TO_CONNECT,
            &times(requests, Nanos::from_millis(1)),
        ),
        (id::LATENESS, &times(requests, Nanos::from_millis(80))),
        (id::SEQUENCER_BLOCKING, &empty_histogram()),
    ] {
        worker.add_statistic(LoadStatistic::of_times(name, histogram));
    }
    for (name, size) in [(id::RESPONSE_BODY_SIZE, 10), (id::RESPONSE_HEADER_SIZE, 97)] {
        let mut moments = Moments::default();
        moments.record_many(size, answered);
        moments.record_many(size + 2, index);
        worker.add_statistic(LoadStatistic::of_sizes(name, moments));
    }
    worker.classes = vec![class("GET /", &response, &service)];
    worker
}

fn class(
    name: &str,
    response: &hdrhistogram::Histogram<u64>,
    service: &hdrhistogram::Histogram<u64>,
) -> RequestClass {
    RequestClass {
        name: name.to_owned(),
        sent: response.len() + 2,
        outcomes: vec![ok(response.len()), timed_out(2)],
        response_time: LoadStatistic::of_times("class.GET /.response_time", response),
        statuses: [(200, response.len())].into(),
        service_time: LoadStatistic::of_times("class.GET /.service_time", service),
        first_byte: LoadStatistic::of_times("class.GET /.first_byte", service),
    }
}

const fn ok(count: u64) -> OutcomeCount {
    OutcomeCount {
        outcome: Outcome::Ok,
        count,
    }
}

const fn timed_out(count: u64) -> OutcomeCount {
    OutcomeCount {
        outcome: Outcome::TimedOut,
        count,
    }
}

fn interval(second: u64) -> LoadInterval {
    let stall = if second == 3 { 90 } else { 1 };
    LoadInterval {
        start: Nanos::from_secs(second),
        length: Nanos::SECOND,
        requested: Some(2 * EACH),
        sent: 2 * EACH,
        outcomes: vec![ok(2 * EACH - second), timed_out(second)],
        bytes_received: 1_440_000,
        bytes_sent: 120_000,
        response_time: PackedHistogram::new(&times(2 * EACH, Nanos::from_millis(stall))),
        service_time: PackedHistogram::new(&times(2 * EACH, Nanos::from_millis(1))),
        lateness: PackedHistogram::default(),
    }
}

/// An open loop in which one second has a stall.
pub(crate) fn report() -> LoadReport {
    let workers = vec![worker(0), worker(1)];
    let global = LoadResult::merged(GLOBAL, &workers);
    LoadReport {
        version: "0.1.0".to_owned(),
        command: "stillwell load http://127.0.0.1:10000/ --rate 2000/s".to_owned(),
        seed: "42".to_owned(),
        host: vec![("cpus_online".to_owned(), "2".to_owned())],
        options: options(),
        written: START + Nanos::from_secs(6),
        workers,
        global,
        intervals: (0..5).map(interval).collect(),
        due: None,
        health: health(),
        ending: Ending::Duration,
    }
}

fn options() -> LoadOptions {
    LoadOptions {
        targets: vec!["http://127.0.0.1:10000/".to_owned()],
        protocol: LoadProtocol::Http1,
        rate: RequestedRate::PerSecond(2000.0),
        arrival: "constant".to_owned(),
        open_loop: true,
        duration: Some(Nanos::from_secs(5)),
        warmup: Nanos::ZERO,
        workers: 2,
        connections: 8,
        streams: 1,
        request_timeout: Some(Nanos::SECOND),
        connect_timeout: Some(Nanos::from_secs(30)),
        method: "GET".to_owned(),
        headers: vec![("x-test".to_owned(), "a, \"b\"".to_owned())],
        body_bytes: 0,
        jitter_uniform: Nanos::ZERO,
        grpc_method: None,
        validity: stillwell_plan::Validity::Normal,
        labels: vec!["nightly".to_owned(), "main".to_owned()],
        original: None,
    }
}

fn health() -> GeneratorHealth {
    let worker = |name: &str| WorkerHealth {
        name: name.to_owned(),
        idle: Nanos::from_millis(4500),
        blocked: Nanos::from_millis(80),
        running: Nanos::from_millis(420),
        late: Nanos::ZERO,
        cpu: Nanos::from_millis(420),
        run_delay: Nanos::from_millis(1),
    };
    GeneratorHealth {
        requested_per_second: Some(2000.0),
        sent_per_second: 1999.8,
        workers: vec![worker("worker_0"), worker("worker_1")],
        cpu: Nanos::from_millis(900),
        foreign_cpu_share: Some(0.013),
        steal_share: None,
        warnings: Vec::new(),
    }
}

/// The same of one worker with a few statistics, and two seconds.
pub(super) fn brief() -> LoadReport {
    let mut report = report();
    report.workers.clear();
    let kept = [
        id::REQUEST_TO_RESPONSE,
        id::RESPONSE_BODY_SIZE,
        id::RESPONSE_TIME,
    ];
    report
        .global
        .statistics
        .retain(|statistic| kept.contains(&&*statistic.id));
    report.intervals.truncate(2);
    report
}

/// An unreliable closed loop that failed.
pub(super) fn invalid() -> LoadReport {
    let mut report = report();
    report.options.open_loop = false;
    report.options.rate = RequestedRate::Max;
    report
        .options
        .targets
        .push("http://127.0.0.1:10001/".to_owned());
    report.health.requested_per_second = None;
    report.health.warnings = vec![
        HealthWarning {
            code: "late".to_owned(),
            text: "worker_1 was late for 12 % of the time".to_owned(),
            invalidates: true,
        },
        HealthWarning {
            code: "shared_core".to_owned(),
            text: "the workers share a core with the target".to_owned(),
            invalidates: false,
        },
    ];
    report.ending = Ending::FailurePredicate("benchmark.http_5xx:0".to_owned());
    report.intervals.clear();
    report
}

/// A statistic of plain numbers with a distribution.
pub(super) fn sizes() -> LoadStatistic {
    let histogram = times(100, Nanos::new(5));
    LoadStatistic {
        id: "foo_size".to_owned(),
        unit: StatisticUnit::Plain,
        moments: Moments::of(&histogram),
        histogram: Some(PackedHistogram::new(&histogram)),
    }
}
