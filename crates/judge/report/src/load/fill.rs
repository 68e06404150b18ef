//! From the capture of a load to its report.

use stillwell_capture::{LoadCapture, LoadEnd, LoadSecond, LoadWorkerView, RouteCounts};
use stillwell_metric::{
    Histogram, LoadCounts, LoadTime, Outcome, RouteTime, Sizes, TimeState, add_histogram,
    empty_histogram,
};
use stillwell_plan::load::{
    BodyPlan, EndpointPlan, GrpcMessages, LoadPace, LoadPacing, LoadProtocol, Overflow,
    PredicatePlan, Spacing,
};
use stillwell_plan::rate::Ramp;
use stillwell_plan::{LoadPlan, RateShape};
use stillwell_units::{Nanos, float_from_u64};

use super::{
    Ending, GLOBAL, GeneratorHealth, HealthWarning, LoadInterval, LoadOptions,
    LoadProtocol as ReportedProtocol, LoadReport, LoadResult, LoadStatistic, Moments, OutcomeCount,
    PackedHistogram, RequestClass, RequestedRate, WorkerHealth, id,
};

mod counters;

pub use counters::{SPAN_COUNTERS, span_counters};

/// A capture, and how its report is made.
#[derive(Clone, Copy, Debug)]
pub struct LoadReportInput<'a> {
    /// The capture.
    pub capture: &'a LoadCapture,
    /// The options in the form of another tool, where the load was requested in its words.
    pub original: Option<&'a serde_json::Value>,
    /// Reasons why the result is unreliable, worst first.
    pub warnings: &'a [HealthWarning],
}

impl LoadReportInput<'_> {
    fn plan(&self) -> &LoadPlan {
        &self.capture.manifest.plan
    }

    fn has_schedule(&self) -> bool {
        matches!(self.plan().pace, LoadPace::Open { .. })
    }

    /// Returns true if latency counts from the sent time although there is a schedule.
    fn is_closed_loop(&self) -> bool {
        match &self.plan().pace {
            LoadPace::Closed => false,
            LoadPace::Open { overflow, .. } => {
                matches!(overflow, Overflow::Defer | Overflow::Hold { .. })
            }
        }
    }
}

/// The report of a load, from its capture alone.
#[must_use]
pub fn load_report(input: &LoadReportInput<'_>) -> LoadReport {
    let (capture, manifest) = (input.capture, &input.capture.manifest);
    let workers: Vec<LoadResult> = capture
        .workers()
        .enumerate()
        .map(|(index, worker)| result(input, index, worker))
        .collect();
    let mut global = LoadResult::merged(GLOBAL, &workers);
    if input.original.is_none() {
        // Workers that end one after the other make no shorter load.
        global.execution_duration = manifest.measured;
    }
    global.counters.extend(span_counters(&manifest.telemetry));
    let intervals = capture.seconds.iter();
    let intervals: Vec<_> = intervals.map(|second| interval(input, second)).collect();
    let has_rate = intervals
        .iter()
        .any(|interval| interval.requested.is_some());
    let is_open = LoadPacing::of(&manifest.plan) == LoadPacing::Open;
    LoadReport {
        version: manifest.version.clone(),
        command: manifest.command.join(" "),
        seed: manifest.plan.seed.to_string(),
        host: Vec::new(),
        options: options(input),
        written: manifest.ended,
        health: health(input, global.execution_duration),
        global,
        workers,
        intervals,
        due: (has_rate && is_open).then(|| capture.sum(LoadCounts::due)),
        ending: ending(input),
    }
}

fn result(input: &LoadReportInput<'_>, index: usize, worker: LoadWorkerView<'_>) -> LoadResult {
    let mut result = LoadResult::named(format!("worker_{index}"));
    result.execution_start = input.capture.manifest.started;
    result.execution_duration = worker.worker.measured;
    result.counters = counters::of(input, worker.counts());
    for outcome in Outcome::ALL {
        let count = worker.counts().ended(outcome);
        if count > 0 {
            result.end(outcome, count);
        }
    }
    result.statuses.clone_from(&worker.counts().statuses);
    statistics(input, worker, &mut result);
    result.classes = worker
        .routes()
        .map(|(counts, times)| request_class(input, counts, times))
        .collect();
    result
}

/// Returns the requests of one route.
fn request_class(
    input: &LoadReportInput<'_>,
    counts: &RouteCounts,
    [response, service, first_byte]: &[Histogram<u64>; RouteTime::ALL.len()],
) -> RequestClass {
    let outcomes = Outcome::ALL.into_iter().zip(counts.outcomes);
    let outcomes = outcomes.filter(|(_, count)| *count > 0);
    let response = if response.is_empty() || input.is_closed_loop() {
        service
    } else {
        response
    };
    let times = |name: &str, histogram| {
        LoadStatistic::of_times(&format!("class.{}.{name}", counts.name), histogram)
    };
    RequestClass {
        name: counts.name.clone(),
        sent: counts.outcomes.iter().sum(),
        outcomes: outcomes
            .map(|(outcome, count)| OutcomeCount { outcome, count })
            .collect(),
        statuses: counts.statuses.clone(),
        response_time: times("response_time", response),
        service_time: times("service_time", service),
        first_byte: times("first_byte", first_byte),
    }
}

fn statistics(input: &LoadReportInput<'_>, worker: LoadWorkerView<'_>, result: &mut LoadResult) {
    let service = worker.times_of_answers(LoadTime::Service);
    let initiated = worker.times_of_answers(LoadTime::Response);
    // Without a schedule, or with one that waits, only the sent time counts.
    let initiated = if initiated.is_empty() {
        service.clone()
    } else {
        initiated
    };
    let response = if input.is_closed_loop() {
        &service
    } else {
        &initiated
    };
    let completed = with_failures(worker, initiated.clone());
    let lateness = worker.times(LoadTime::Lateness);
    let times = [
        (id::REQUEST_TO_RESPONSE, &service),
        (id::QUEUE_TO_CONNECT, lateness),
        (id::SEQUENCER_CALLBACK, &completed),
        (id::SEQUENCER_BLOCKING, worker.times(LoadTime::Blocked)),
        (id::ORIGIN_LATENCY, worker.times(LoadTime::Origin)),
        (id::RESPONSE_TIME, response),
        (id::SERVICE_TIME, &service),
        (id::LATENESS, lateness),
        (
            id::GENERATOR_LATENESS,
            worker.times(LoadTime::GeneratorLateness),
        ),
        (id::FIRST_BYTE, worker.times(LoadTime::FirstByte)),
        (id::FIRST_MESSAGE, worker.times(LoadTime::FirstMessage)),
        (id::CONNECT, worker.times(LoadTime::Connect)),
        (id::TLS_HANDSHAKE, worker.times(LoadTime::Handshake)),
    ];
    for (name, histogram) in times {
        // Formats of other tools show their statistics even if they are empty.
        let is_due = input.original.is_some() && !name.starts_with(id::STILLWELL_PREFIX);
        if is_due || !histogram.is_empty() {
            result.add_statistic(LoadStatistic::of_times(name, histogram));
        }
    }
    if input.original.is_some() {
        for name in id::LATENCY_BY_STATUS {
            result.add_statistic(LoadStatistic::of_times(name, &empty_histogram()));
        }
    }
    classes(input, worker, result);
    for (name, sizes) in [
        (id::RESPONSE_HEADER_SIZE, worker.counts().head_sizes),
        (id::RESPONSE_BODY_SIZE, worker.counts().body_sizes),
    ] {
        result.add_statistic(LoadStatistic::of_sizes(name, moments(sizes)));
    }
}

/// Adds the times of requests that failed or were dropped.
fn with_failures(worker: LoadWorkerView<'_>, mut times: Histogram<u64>) -> Histogram<u64> {
    for end in Outcome::FAILURES {
        add_histogram(&mut times, worker.times(LoadTime::Failed(end)));
    }
    times
}

/// Times by the class of the answer, and by the failure where there was none.
fn classes(input: &LoadReportInput<'_>, worker: LoadWorkerView<'_>, result: &mut LoadResult) {
    let has_response = !worker.times_of_answers(LoadTime::Response).is_empty();
    for end in Outcome::FAILURES {
        let times = worker.times(LoadTime::Failed(end));
        if !times.is_empty() {
            let name = id::of_class(id::FAILED_TIME, end);
            result.add_statistic(LoadStatistic::of_times(&name, times));
        }
    }
    for class in Outcome::ANSWERS {
        let place = match class {
            Outcome::Ok => 1,
            Outcome::Status3xx => 2,
            Outcome::Status4xx => 3,
            Outcome::Status5xx => 4,
            _ => 5,
        };
        for (name, time) in [
            (
                id::LATENCY_BY_STATUS[place].to_owned(),
                LoadTime::Service(class),
            ),
            (
                id::of_class(id::SERVICE_TIME, class),
                LoadTime::Service(class),
            ),
            (
                id::of_class(id::RESPONSE_TIME, class),
                if has_response && !input.is_closed_loop() {
                    LoadTime::Response(class)
                } else {
                    LoadTime::Service(class)
                },
            ),
        ] {
            if !worker.times(time).is_empty() {
                result.add_statistic(LoadStatistic::of_times(&name, worker.times(time)));
            }
        }
    }
}

const fn moments(sizes: Sizes) -> Moments {
    Moments {
        count: sizes.count,
        sum: sizes.sum as u128,
        squares: sizes.squares,
        min: if sizes.count == 0 { 0 } else { sizes.smallest },
        max: sizes.largest,
    }
}

fn interval(input: &LoadReportInput<'_>, second: &LoadSecond) -> LoadInterval {
    let outcomes = Outcome::ALL.into_iter().zip(second.outcomes);
    let response = if second.response.is_empty() || input.is_closed_loop() {
        &second.service
    } else {
        &second.response
    };
    LoadInterval {
        start: second.begin,
        length: second.length,
        requested: input.has_schedule().then_some(second.requested),
        sent: second.sent,
        outcomes: outcomes
            .filter(|(_, count)| *count > 0)
            .map(|(outcome, count)| OutcomeCount { outcome, count })
            .collect(),
        bytes_received: second.bytes[0],
        bytes_sent: second.bytes[1],
        response_time: PackedHistogram::from(response.clone()),
        service_time: PackedHistogram::from(second.service.clone()),
        lateness: PackedHistogram::from(second.lateness.clone()),
    }
}

/// Returns the generator's health after a load of `length`.
fn health(input: &LoadReportInput<'_>, length: Nanos) -> GeneratorHealth {
    let manifest = &input.capture.manifest;
    let seconds = length.as_secs_f64();
    let rate = |count: fn(&LoadCounts) -> u64| {
        let count = float_from_u64(input.capture.sum(count));
        if seconds > 0.0 { count / seconds } else { 0.0 }
    };
    let workers = manifest.workers.iter().enumerate().map(|(index, worker)| {
        let counts = &worker.counts;
        WorkerHealth {
            name: format!("worker_{index}"),
            idle: Nanos::new(counts.spent(TimeState::Idle)),
            blocked: Nanos::new(counts.spent(TimeState::Blocked)),
            running: Nanos::new(counts.spent(TimeState::Running)),
            late: Nanos::new(counts.spent(TimeState::Late)),
            cpu: worker.cpu,
            run_delay: Nanos::new(counts.run_delay.measured),
        }
    });
    let steal = manifest.host.map(|host| {
        let whole = manifest.measured.as_secs_f64() * f64::from(host.cpus.max(1));
        host.steal.as_secs_f64() / whole.max(1e-9)
    });
    GeneratorHealth {
        requested_per_second: input
            .has_schedule()
            .then(|| rate(|counts| counts.requested.measured)),
        sent_per_second: rate(|counts| counts.sent),
        workers: workers.collect(),
        cpu: manifest.cpu,
        foreign_cpu_share: None,
        steal_share: steal,
        warnings: input.warnings.to_vec(),
    }
}

fn ending(input: &LoadReportInput<'_>) -> Ending {
    let until = &input.plan().until;
    let named = |predicates: &[PredicatePlan], number: usize| {
        let predicate = predicates.get(number);
        predicate.map_or_else(String::new, |predicate| {
            format!("{}:{}", predicate.counter, predicate.threshold)
        })
    };
    match &input.capture.manifest.end {
        LoadEnd::Duration => Ending::Duration,
        LoadEnd::Requests => Ending::Requests,
        LoadEnd::Termination(number) => {
            Ending::TerminationPredicate(named(&until.termination, *number))
        }
        LoadEnd::Failure(number) => Ending::FailurePredicate(named(&until.failure, *number)),
        LoadEnd::Interrupted(_) => Ending::Stopped,
        LoadEnd::PartFailed(what) => Ending::PartFailed(what.clone()),
    }
}

fn options(input: &LoadReportInput<'_>) -> LoadOptions {
    let plan = input.plan();
    let first = plan
        .endpoints
        .first()
        .and_then(|endpoint| endpoint.requests.first());
    let (rate, arrival, jitter) = match &plan.pace {
        LoadPace::Closed => (
            RequestedRate::Max,
            "as responses arrive".to_owned(),
            Nanos::ZERO,
        ),
        LoadPace::Open { curve, spacing, .. } => (
            RequestedRate::PerSecond(mean_rate(curve, plan.until.duration)),
            arrival(curve, *spacing),
            match spacing {
                Spacing::JitterUniform { most } => *most,
                _ => Nanos::ZERO,
            },
        ),
    };
    LoadOptions {
        targets: targets(input),
        protocol: match plan.client.connecting.protocol {
            LoadProtocol::Http1 => ReportedProtocol::Http1,
            LoadProtocol::Http2 => ReportedProtocol::Http2,
            LoadProtocol::Http3 => ReportedProtocol::Http3,
        },
        rate,
        arrival,
        open_loop: input.has_schedule() && !input.is_closed_loop(),
        duration: plan.until.duration,
        warmup: plan.warmup,
        workers: plan.workers.into(),
        connections: plan.client.connecting.connections,
        streams: plan.client.connecting.streams,
        request_timeout: Some(plan.client.timeout),
        connect_timeout: Some(plan.client.connecting.timeout),
        method: first.map_or_else(String::new, |request| request.method.clone()),
        headers: first.map_or_else(Vec::new, |request| request.headers.clone()),
        body_bytes: match first.map(|request| &request.body) {
            Some(BodyPlan::Bytes(bytes)) => bytes.len() as u64,
            Some(BodyPlan::Payload(payload)) => payload.blocks.maximum().bytes(),
            Some(BodyPlan::Grpc(call)) => match &call.messages {
                GrpcMessages::Given(all) => all.first().map_or(0, |message| message.len() as u64),
                GrpcMessages::Payload(payload) => payload.blocks.maximum().bytes(),
                GrpcMessages::Typed(_) => 0,
            },
            Some(BodyPlan::None) | None => 0,
        },
        jitter_uniform: jitter,
        grpc_method: first
            .filter(|request| matches!(request.body, BodyPlan::Grpc(_)))
            .map(|request| request.path.trim_start_matches('/').to_owned()),
        validity: plan.validity,
        labels: input.capture.manifest.labels.clone(),
        original: input.original.cloned(),
    }
}

/// As typed; addresses where requests came from a file.
fn targets(input: &LoadReportInput<'_>) -> Vec<String> {
    let targets = &input.capture.manifest.targets;
    if targets.is_empty() {
        let endpoints = input.plan().endpoints.iter();
        return endpoints.map(url_of).collect();
    }
    targets.clone()
}

/// Returns the URL that would be typed for `endpoint`.
#[must_use]
pub fn url_of(endpoint: &EndpointPlan) -> String {
    let scheme = if endpoint.tls_host.is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}/", endpoint.address)
}

fn mean_rate(curve: &RateShape, duration: Option<Nanos>) -> f64 {
    match curve {
        RateShape::Max => 0.0,
        RateShape::Constant { per_second } => *per_second,
        RateShape::Ramp(Ramp {
            from_per_second,
            to_per_second,
            over,
        }) => {
            let Some(whole) = duration.filter(|whole| *whole > Nanos::ZERO) else {
                return *to_per_second;
            };
            let ramp = over.as_secs_f64().min(whole.as_secs_f64());
            let share = ramp / over.as_secs_f64().max(1e-9);
            let top = from_per_second + (to_per_second - from_per_second) * share;
            let rest = whole.as_secs_f64() - ramp;
            (f64::midpoint(*from_per_second, top) * ramp + to_per_second * rest)
                / whole.as_secs_f64()
        }
        RateShape::Steps { steps } => {
            let last = steps.last().map_or(0.0, |step| step.per_second);
            let Some(whole) = duration.filter(|whole| *whole > Nanos::ZERO) else {
                return last;
            };
            let (mut left, mut sum) = (whole.as_secs_f64(), 0.0);
            for step in steps {
                let length = step.length.as_secs_f64().min(left);
                sum += step.per_second * length;
                left -= length;
            }
            (sum + last * left) / whole.as_secs_f64()
        }
    }
}

fn arrival(curve: &RateShape, spacing: Spacing) -> String {
    let curve = match curve {
        RateShape::Max => "max".to_owned(),
        RateShape::Constant { .. } => "constant".to_owned(),
        RateShape::Ramp(ramp) => format!("ramp over {}", ramp.over),
        RateShape::Steps { steps } => format!("{} steps", steps.len()),
    };
    match spacing {
        Spacing::Even => curve,
        Spacing::Burst { size } => format!("{curve}, bursts of {size}"),
        Spacing::JitterUniform { most } => format!("{curve}, jitter up to {most}"),
        Spacing::Poisson => format!("{curve}, poisson"),
        Spacing::Zipf { exponent } => format!("{curve}, zipf {exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::rate::RateStep;

    use super::*;

    #[test]
    fn the_mean_rate_covers_the_requested_time() {
        let ramp = RateShape::Ramp(Ramp {
            from_per_second: 0.0,
            to_per_second: 100.0,
            over: Nanos::from_secs(10),
        });
        let mean = |seconds| mean_rate(&ramp, Some(Nanos::from_secs(seconds)));
        for (seconds, rate) in [(5, 25.0), (10, 50.0), (20, 75.0)] {
            assert!((mean(seconds) - rate).abs() < 1e-9, "{seconds} s");
        }
        let step = |per_second| RateStep {
            per_second,
            length: Nanos::from_secs(1),
        };
        let steps = RateShape::Steps {
            steps: vec![step(10.0), step(20.0)],
        };
        let mean = mean_rate(&steps, Some(Nanos::from_secs(4)));
        assert!((mean - 17.5).abs() < 1e-9);
    }
}
