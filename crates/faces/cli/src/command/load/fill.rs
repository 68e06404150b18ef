//! From what was found to what is told.

use stillwell_metric::{LoadShard, LoadTime, Outcome, Sizes, TimeState, empty_histogram};
use stillwell_nighthawk::CommandLineOptions;
use stillwell_plan::{
    BodyPlan, EndpointPlan, GrpcMessages, LoadCurve, LoadPace, LoadPlan, LoadProtocol, Spacing,
};
use stillwell_report::load::{
    AskedRate, Ending, Finding, GLOBAL, GeneratorHealth, LoadInterval, LoadOptions,
    LoadProtocol as ReportedProtocol, LoadReport, LoadResult, LoadStatistic, Moments, OutcomeCount,
    PackedHistogram, WorkerHealth, id,
};
use stillwell_run::{LoadDoubt, LoadEnd, LoadFound, LoadSecond, LoadWorkerFound};
use stillwell_scope::clock;
use stillwell_units::{Nanos, Seed, float_from_u64};

use super::remedy::Words;
use super::telemetry;

mod counters;

/// What a report is made of.
pub(super) struct Told<'a> {
    /// Targets as typed; empty where requests came from a file.
    pub(super) targets: &'a [String],
    pub(super) labels: &'a [String],
    /// Whether latency counts from the sent time although there is a schedule.
    pub(super) closed_loop: bool,
    /// What was asked for in Nighthawk's words, where it was.
    pub(super) nighthawk: Option<&'a CommandLineOptions>,
    pub(super) plan: &'a LoadPlan,
    pub(super) seed: &'a Seed,
    pub(super) found: &'a LoadFound,
    pub(super) doubts: &'a [LoadDoubt],
}

pub(super) fn report(told: &Told<'_>) -> LoadReport {
    let found = told.found;
    let workers: Vec<LoadResult> = found
        .workers
        .iter()
        .enumerate()
        .map(|(index, worker)| result(told, index, worker))
        .collect();
    let mut global = LoadResult::merged(GLOBAL, &workers);
    if told.nighthawk.is_none() {
        // Workers that end one after the other make no shorter load.
        global.execution_duration = found.measured;
    }
    global
        .counters
        .extend(telemetry::counters(&found.telemetry));
    LoadReport {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::env::args().collect::<Vec<_>>().join(" "),
        seed: told.seed.to_string(),
        host: Vec::new(),
        options: options(told),
        written: clock::wall(),
        health: health(told, global.execution_duration),
        global,
        workers,
        intervals: found
            .seconds
            .iter()
            .map(|second| interval(told, second))
            .collect(),
        ending: ending(told),
    }
}

fn has_schedule(plan: &LoadPlan) -> bool {
    matches!(plan.pace, LoadPace::Open { .. })
}

fn result(told: &Told<'_>, index: usize, worker: &LoadWorkerFound) -> LoadResult {
    let mut result = LoadResult::named(format!("worker_{index}"));
    result.execution_start = told.found.started;
    result.execution_duration = worker.measured;
    result.counters = counters::of(told, &worker.shard);
    for outcome in Outcome::ALL {
        let count = worker.shard.outcomes[outcome.index()].total();
        if count > 0 {
            result.end(outcome, count);
        }
    }
    statistics(told, worker, &mut result);
    result
}

fn statistics(told: &Told<'_>, worker: &LoadWorkerFound, result: &mut LoadResult) {
    let service = worker.times_of_answers(LoadTime::Service);
    let initiated = worker.times_of_answers(LoadTime::Response);
    // Without a schedule, or with one that waits, only the sent time counts.
    let initiated = if initiated.is_empty() {
        service.clone()
    } else {
        initiated
    };
    let response = if told.closed_loop {
        &service
    } else {
        &initiated
    };
    let lateness = worker.times(LoadTime::Lateness);
    let times = [
        (id::REQUEST_TO_RESPONSE, &service),
        (id::QUEUE_TO_CONNECT, lateness),
        (id::SEQUENCER_CALLBACK, &initiated),
        (id::SEQUENCER_BLOCKING, worker.times(LoadTime::Blocked)),
        (id::ORIGIN_LATENCY, worker.times(LoadTime::Origin)),
        (id::RESPONSE_TIME, response),
        (id::SERVICE_TIME, &service),
        (id::LATENESS, lateness),
        (id::OWN_LATENESS, worker.times(LoadTime::OwnLateness)),
        (id::FIRST_BYTE, worker.times(LoadTime::FirstByte)),
        (id::FIRST_MESSAGE, worker.times(LoadTime::FirstMessage)),
        (id::CONNECT, worker.times(LoadTime::Connect)),
        (id::TLS_HANDSHAKE, worker.times(LoadTime::Handshake)),
    ];
    for (name, histogram) in times {
        // Nighthawk tells its own ones even where they are empty.
        let is_due = told.nighthawk.is_some() && !name.starts_with(id::OWN_PREFIX);
        if is_due || !histogram.is_empty() {
            result.add_statistic(LoadStatistic::of_times(name, histogram));
        }
    }
    if told.nighthawk.is_some() {
        for name in id::LATENCY_BY_STATUS {
            result.add_statistic(LoadStatistic::of_times(name, &empty_histogram()));
        }
    }
    classes(told, worker, result);
    for (name, sizes) in [
        (id::RESPONSE_HEADER_SIZE, worker.shard.head_sizes.read()),
        (id::RESPONSE_BODY_SIZE, worker.shard.body_sizes.read()),
    ] {
        result.add_statistic(LoadStatistic::of_sizes(name, moments(sizes)));
    }
}

/// Times by the class of the answer, and by the failure where there was none.
fn classes(told: &Told<'_>, worker: &LoadWorkerFound, result: &mut LoadResult) {
    let has_response = !worker.times_of_answers(LoadTime::Response).is_empty();
    for end in Outcome::FAILURES {
        let times = worker.times(LoadTime::Failed(end));
        if !times.is_empty() {
            let name = id::of_class(id::FAILED_TIME, end);
            result.add_statistic(LoadStatistic::of_times(&name, times));
        }
    }
    for class in Outcome::ANSWERS {
        let nighthawk = match class {
            Outcome::Ok => 1,
            Outcome::Status3xx => 2,
            Outcome::Status4xx => 3,
            Outcome::Status5xx => 4,
            _ => 5,
        };
        for (name, time) in [
            (
                id::LATENCY_BY_STATUS[nighthawk].to_owned(),
                LoadTime::Service(class),
            ),
            (
                id::of_class(id::SERVICE_TIME, class),
                LoadTime::Service(class),
            ),
            (
                id::of_class(id::RESPONSE_TIME, class),
                if has_response && !told.closed_loop {
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

fn interval(told: &Told<'_>, second: &LoadSecond) -> LoadInterval {
    let outcomes = Outcome::ALL.into_iter().zip(second.outcomes);
    let response = if second.response.is_empty() || told.closed_loop {
        &second.service
    } else {
        &second.response
    };
    LoadInterval {
        start: second.begin,
        length: second.length,
        asked: has_schedule(told.plan).then_some(second.asked),
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

/// What the generator thinks of itself after a load of `length`.
fn health(told: &Told<'_>, length: Nanos) -> GeneratorHealth {
    let found = told.found;
    let seconds = length.as_secs_f64();
    let rate = |count: fn(&LoadShard) -> u64| {
        let counts = found.workers.iter().map(|worker| count(&worker.shard));
        let count = float_from_u64(counts.sum());
        if seconds > 0.0 { count / seconds } else { 0.0 }
    };
    let workers = found.workers.iter().enumerate().map(|(index, worker)| {
        let shard = &worker.shard;
        WorkerHealth {
            name: format!("worker_{index}"),
            ahead: Nanos::new(shard.spent(TimeState::Ahead)),
            blocked: Nanos::new(shard.spent(TimeState::Blocked)),
            running: Nanos::new(shard.spent(TimeState::Running)),
            late: Nanos::new(shard.spent(TimeState::Late)),
            cpu: worker.cpu,
            run_delay: Nanos::new(shard.run_delay.measured()),
        }
    });
    let steal = found.host.map(|host| {
        let whole = found.measured.as_secs_f64() * f64::from(host.cpus.max(1));
        host.steal.as_secs_f64() / whole.max(1e-9)
    });
    let words = match told.nighthawk {
        Some(_) => Words::Nighthawk,
        None => Words::Own,
    };
    let findings = told.doubts.iter().map(|doubt| Finding {
        code: doubt.code().to_owned(),
        text: words.told(&doubt.to_string(), doubt.remedy()),
        invalidates: doubt.invalidates(),
    });
    GeneratorHealth {
        asked_per_second: has_schedule(told.plan).then(|| rate(|shard| shard.asked.measured())),
        sent_per_second: rate(|shard| shard.sent.total()),
        workers: workers.collect(),
        cpu: found.cpu,
        foreign_cpu_share: None,
        steal_share: steal,
        findings: findings.collect(),
    }
}

fn ending(told: &Told<'_>) -> Ending {
    let until = &told.plan.until;
    let named = |predicates: &[stillwell_plan::PredicatePlan], number: usize| {
        let predicate = predicates.get(number);
        predicate.map_or_else(String::new, |predicate| {
            format!("{}:{}", predicate.counter, predicate.threshold)
        })
    };
    match &told.found.end {
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

fn options(told: &Told<'_>) -> LoadOptions {
    let plan = told.plan;
    let first = plan.endpoints.first().and_then(|it| it.requests.first());
    let (rate, arrival, jitter) = match &plan.pace {
        LoadPace::Closed => (AskedRate::Max, "as answers come".to_owned(), Nanos::ZERO),
        LoadPace::Open { curve, spacing, .. } => (
            AskedRate::PerSecond(mean_rate(curve, plan.until.duration)),
            arrival(curve, *spacing),
            match spacing {
                Spacing::JitterUniform { most } => *most,
                _ => Nanos::ZERO,
            },
        ),
    };
    LoadOptions {
        targets: targets(told),
        protocol: match plan.connecting.protocol {
            LoadProtocol::Http1 => ReportedProtocol::Http1,
            LoadProtocol::Http2 => ReportedProtocol::Http2,
            LoadProtocol::Http3 => ReportedProtocol::Http3,
        },
        rate,
        arrival,
        open_loop: has_schedule(plan) && !told.closed_loop,
        duration: plan.until.duration,
        warmup: plan.warmup,
        workers: plan.workers.into(),
        connections: plan.connecting.connections,
        streams: plan.connecting.streams,
        request_timeout: Some(plan.timeout),
        connect_timeout: Some(plan.connecting.timeout),
        method: first.map_or_else(String::new, |request| request.method.clone()),
        headers: first.map_or_else(Vec::new, |request| request.headers.clone()),
        body_bytes: match first.map(|request| &request.body) {
            Some(BodyPlan::Bytes(bytes)) => bytes.len() as u64,
            Some(BodyPlan::Payload(payload)) => payload.blocks.maximum().bytes(),
            Some(BodyPlan::Grpc(call)) => match &call.messages {
                GrpcMessages::Given(all) => all.first().map_or(0, |message| message.len() as u64),
                GrpcMessages::Payload(payload) => payload.blocks.maximum().bytes(),
            },
            Some(BodyPlan::None) | None => 0,
        },
        jitter_uniform: jitter,
        grpc_method: first
            .filter(|request| matches!(request.body, BodyPlan::Grpc(_)))
            .map(|request| request.path.trim_start_matches('/').to_owned()),
        labels: told.labels.to_vec(),
        original: told.nighthawk.map(|own| {
            serde_json::to_value(own).expect("every key is a text and every number finite")
        }),
    }
}

/// As typed; addresses where requests came from a file.
fn targets(told: &Told<'_>) -> Vec<String> {
    if told.targets.is_empty() {
        let endpoints = told.plan.endpoints.iter();
        return endpoints.map(url_of).collect();
    }
    told.targets.to_vec()
}

/// What would be typed for `endpoint`, whatever is asked for there.
pub(super) fn url_of(endpoint: &EndpointPlan) -> String {
    let scheme = if endpoint.tls_host.is_some() {
        "https"
    } else {
        "http"
    };
    format!("{scheme}://{}/", endpoint.address)
}

fn mean_rate(curve: &LoadCurve, duration: Option<Nanos>) -> f64 {
    match curve {
        LoadCurve::Constant { per_second } => *per_second,
        LoadCurve::Ramp {
            from_per_second,
            to_per_second,
            over,
        } => {
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
        LoadCurve::Steps { steps } => {
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

fn arrival(curve: &LoadCurve, spacing: Spacing) -> String {
    let curve = match curve {
        LoadCurve::Constant { .. } => "constant".to_owned(),
        LoadCurve::Ramp { over, .. } => format!("ramp over {over}"),
        LoadCurve::Steps { steps } => format!("{} steps", steps.len()),
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
    use stillwell_plan::LoadStep;

    use super::*;

    #[test]
    fn the_mean_rate_is_that_of_the_time_asked_for() {
        let ramp = LoadCurve::Ramp {
            from_per_second: 0.0,
            to_per_second: 100.0,
            over: Nanos::from_secs(10),
        };
        let mean = |seconds| mean_rate(&ramp, Some(Nanos::from_secs(seconds)));
        for (seconds, rate) in [(5, 25.0), (10, 50.0), (20, 75.0)] {
            assert!((mean(seconds) - rate).abs() < 1e-9, "{seconds} s");
        }
        let step = |per_second| LoadStep {
            per_second,
            length: Nanos::from_secs(1),
        };
        let steps = LoadCurve::Steps {
            steps: vec![step(10.0), step(20.0)],
        };
        let mean = mean_rate(&steps, Some(Nanos::from_secs(4)));
        assert!((mean - 17.5).abs() < 1e-9);
    }
}
