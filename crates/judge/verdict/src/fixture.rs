//! Captures made in memory, for tests: a healthy run, and what can go wrong.

use std::collections::BTreeMap;

use stillwell_capture::{
    Capture, CountBounds, LedgerFigures, MANIFEST_SCHEMA, Manifest, PhaseMark, Point, RunIdentity,
    RunOutcome, RunStage, SeriesTable,
};
use stillwell_metric::{Kind, Labels, Metric, Value, catalogue};
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::{
    ExperimentPlan, GeneratorPlan, GoalMetric, GoalPlan, PayloadFormat, PayloadPlan, Phase,
    RatePlan, RunPlan, SinkPlan, SinkProtocol, StampPlan, StoppingPlan, TargetKind, TargetPlan,
    TransportPlan,
};
use stillwell_units::{
    ByteSize, EventRate, Moment, RunId, Seed, Tolerance, float_from_u64, floor_to_u64,
};

use crate::summary::{RunSummary, summarise};
use crate::synthetic;

/// Beats are at every second from 0 to here, unless a story is longer; measured
/// is from 3 to 13.
const SECONDS: u64 = 15;

/// A run of one generator `g`, one sink `s` and a target, whose every counter
/// grows evenly.
#[derive(Clone, Debug)]
pub(crate) struct TestRun {
    pub(crate) manifest: Manifest,
    /// Growth for each second of counters, value of gauges.
    series: BTreeMap<(&'static str, Labels), (Kind, f64)>,
    /// The last beat.
    pub(crate) seconds: u64,
    /// Beats that were not taken.
    pub(crate) missing_beats: Vec<u64>,
    /// Values recorded as they are.
    pub(crate) points: Vec<(Metric, Labels, u64, Value)>,
}

pub(crate) fn generator() -> Labels {
    Labels::none()
        .with("component", "generator")
        .with("id", "g")
        .with("worker", "0")
}

pub(crate) fn sink() -> Labels {
    Labels::none()
        .with("component", "sink")
        .with("id", "s")
        .with("worker", "0")
}

impl TestRun {
    pub(crate) fn healthy() -> Self {
        let mut test_run = Self {
            manifest: manifest(),
            series: BTreeMap::new(),
            seconds: SECONDS,
            missing_beats: Vec::new(),
            points: Vec::new(),
        };
        for (metric, per_second) in [
            (catalogue::EVENTS_WRITTEN, 1000.0),
            (catalogue::BYTES_WRITTEN, 100_000.0),
            (catalogue::REQUESTED_UNITS, 1000.0),
            (catalogue::SENT_UNITS, 1000.0),
            (catalogue::WORKER_IDLE, 0.6e9),
            (catalogue::WORKER_BLOCKED, 0.01e9),
            (catalogue::WORKER_RUNNING, 0.39e9),
            (catalogue::WORKER_LATE, 0.0),
        ] {
            test_run.set(metric, generator(), per_second);
        }
        for (metric, per_second) in [
            (catalogue::BYTES_RECEIVED, 90_000.0),
            (catalogue::EVENTS_RECEIVED, 1000.0),
            (catalogue::WORKER_RUNNING, 0.1e9),
            (catalogue::WORKER_BLOCKED, 0.9e9),
        ] {
            test_run.set(metric, sink(), per_second);
        }
        for (metric, value) in [
            (catalogue::TARGET_CPU, 0.5e9),
            (catalogue::TARGET_RSS, 50e6),
            (catalogue::TARGET_RSS_PEAK, 60e6),
            (catalogue::HOST_CPU_STEAL, 0.0),
            (catalogue::HOST_CPU_FOREIGN, 0.02e9),
        ] {
            test_run.set(metric, Labels::none(), value);
        }
        test_run
    }

    /// A run of an experiment: `variant` in pair `pair`.
    pub(crate) fn placed(mut self, variant: &str, pair: u32) -> Self {
        let mut run = [0; 16];
        run[0] = u8::try_from(pair).unwrap();
        run[1] = u8::try_from(variant.len()).unwrap();
        self.manifest.run = RunId::from_bytes(run);
        self.manifest.identity = Some(RunIdentity {
            experiment: "e".to_owned(),
            variant: variant.to_owned(),
            stage: RunStage::Search,
            pair,
            position: 0,
        });
        self
    }

    pub(crate) fn set(&mut self, metric: Metric, labels: Labels, value: f64) {
        self.series
            .insert((metric.name, labels), (metric.kind, value));
    }

    pub(crate) fn without(mut self, metric: Metric) -> Self {
        self.series.retain(|(name, _), _| *name != metric.name);
        self
    }

    pub(crate) fn with(mut self, metric: Metric, labels: Labels, value: f64) -> Self {
        self.set(metric, labels, value);
        self
    }

    pub(crate) fn capture(&self) -> Capture {
        let mut series = SeriesTable::default();
        let beats = (0..=self.seconds).filter(|second| !self.missing_beats.contains(second));
        for second in beats {
            for ((name, labels), (kind, value)) in &self.series {
                let value = match kind {
                    Kind::Counter => value * float_from_u64(second),
                    Kind::Gauge | Kind::Histogram => *value,
                };
                let value = Value::Int(floor_to_u64(value.round()));
                push(&mut series, name, *kind, labels, second, value);
            }
            for (metric, labels, at, value) in &self.points {
                if *at == second {
                    push(
                        &mut series,
                        metric.name,
                        metric.kind,
                        labels,
                        second,
                        value.clone(),
                    );
                }
            }
        }
        Capture {
            manifest: self.manifest.clone(),
            series,
            events: Vec::new(),
        }
    }

    pub(crate) fn summary(&self) -> RunSummary {
        summarise(&self.capture())
    }
}

fn push(
    series: &mut SeriesTable,
    name: &str,
    kind: Kind,
    labels: &Labels,
    second: u64,
    value: Value,
) {
    let point = Point {
        moment: Moment::new(second * 1_000_000_000),
        phase: Phase::Measure,
        value,
    };
    let name = stillwell_metric::SeriesName::recorded(name.to_owned());
    series.push(name, kind, labels.clone(), point);
}

fn manifest() -> Manifest {
    let mark = |phase, second: u64| PhaseMark {
        phase,
        moment: Moment::new(second * 1_000_000_000),
        wall_millis: 1_700_000_000_000 + second * 1000,
    };
    Manifest {
        schema: MANIFEST_SCHEMA.to_owned(),
        run: RunId::from_bytes([0; 16]),
        version: "0.1.0".to_owned(),
        command: Vec::new(),
        identity: None,
        plan: run_plan(),
        host: serde_json::json!({ "cpus": 2 }),
        host_after: serde_json::Value::Null,
        target_cpus: Some(vec![1]),
        load_cpus: Some(vec![0]),
        notes: Vec::new(),
        warnings: Vec::new(),
        started_wall_millis: 1_700_000_000_000,
        phases: vec![
            mark(Phase::Prepare, 0),
            mark(Phase::Warmup, 1),
            mark(Phase::Measure, 3),
            mark(Phase::Drain, 13),
            mark(Phase::Close, 14),
            mark(Phase::Close, 15),
        ],
        target: None,
        restarts: Vec::new(),
        parts: Vec::new(),
        ledger: None,
        busiest: Vec::new(),
        last_received: None,
        machines: None,
        outcome: RunOutcome::Completed,
    }
}

pub(crate) fn run_plan() -> RunPlan {
    let empty = synthetic::run_plan();
    RunPlan {
        generators: vec![GeneratorPlan {
            id: "g".to_owned(),
            transport: TransportPlan::Tcp {
                address: "127.0.0.1:1".to_owned(),
            },
            payload: PayloadPlan {
                format: PayloadFormat::Ascii,
                blocks: BlockShape::UpTo {
                    maximum: ByteSize::kib(64),
                },
                cache: ByteSize::mib(1),
                repeats: false,
            },
            rate: RatePlan::events(EventRate::try_new(1000.0).unwrap()),
            concurrency: Concurrency::ONE,
            seed: Seed::from_number(1),
            stamps: None,
        }],
        sinks: vec![SinkPlan {
            id: "s".to_owned(),
            protocol: SinkProtocol::Tcp {
                address: "127.0.0.1:2".parse().unwrap(),
            },
            workers: std::num::NonZeroU16::MIN,
            limit: None,
            lines: None,
            prefix: None,
        }],
        target: TargetPlan {
            name: "relay".to_owned(),
            kind: TargetKind::Pid(1),
            ..empty.target
        },
        ..empty
    }
}

/// The account of 100 stamped events, of which `lost` never arrived.
pub(crate) fn lost_of_100(lost: u64) -> LedgerFigures {
    let exactly = |count| CountBounds {
        least: count,
        most: count,
    };
    LedgerFigures {
        id: "g".to_owned(),
        expected: StampPlan::ALL,
        streams: 1,
        sent: 100,
        received: exactly(100 - lost),
        lost: exactly(lost),
        incomplete: exactly(0),
        duplicated: exactly(0),
        unsent: exactly(0),
        arrivals: 100 - lost,
        reordered: 0,
        displacement_max: 0,
        late: 0,
        unclear: 0,
        intact: 100 - lost,
        damaged: 0,
        unverifiable: 0,
        undeclared: 0,
        bounded_windows: 0,
        losses: Vec::new(),
        loss_ranges: u64::from(lost > 0),
        damages: Vec::new(),
    }
}

/// An experiment `e` of `baseline` and `comparison` with these goals at 3 %.
pub(crate) fn experiment(goals: &[GoalMetric]) -> ExperimentPlan {
    let goal = |metric: &GoalMetric| GoalPlan {
        tolerance: Tolerance::try_new(0.03).unwrap(),
        ..GoalPlan::new(metric.clone())
    };
    ExperimentPlan {
        run_plan: run_plan(),
        stopping: StoppingPlan::Sequential { max_pairs: 6 },
        ..synthetic::plan("e", goals.iter().map(goal).collect())
    }
}
