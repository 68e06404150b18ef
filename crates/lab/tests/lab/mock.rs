//! A lab without processes and clocks.

use std::fs;
use std::path::Path;

use stillwell_capture::{RunIdentity, RunOutcome};
use stillwell_lab::{
    Executor, ExecutorError, LabError, LabOptions, LabOutcome, LabProgress, run_lab,
};
use stillwell_plan::{
    BlockShape, CpuChoice, ExperimentPlan, GeneratorPlan, GoalMetric, GoalPlan, IsolationPlan,
    LabPlan, ObserverPlan, OperatingPoint, PayloadFormat, PayloadPlan, PhasesPlan, PlacementPlan,
    RatePlan, RateUnit, ReadyProbe, RigPlan, StopPlan, SubjectKind, SubjectPlan, SubjectSignal,
    TransportPlan, VariantPlan,
};
use stillwell_plan::{ChildPlan, EnvironmentPlan};
use stillwell_run::{Interrupt, Progress, RunRequest};
use stillwell_units::{ByteSize, EventRate, Nanos, Seed, Tolerance};
use stillwell_verdict::{
    Doubt, GeneratorFigures, Measured, RunFigures, RunSummary, SUMMARY_SCHEMA,
};

/// Makes every run up: its outcome and its CPU per event.
pub(crate) struct Mock<F> {
    made_up: F,
    /// All that was asked for, in order.
    pub(crate) requests: Vec<RunRequest>,
}

impl<F> Mock<F>
where
    F: FnMut(&RunIdentity, &Interrupt) -> (RunOutcome, f64),
{
    pub(crate) fn new(made_up: F) -> Self {
        Self {
            made_up,
            requests: Vec::new(),
        }
    }

    /// Experiment, pair and variant of every run, in order.
    pub(crate) fn ran(&self) -> Vec<(String, u32, String)> {
        let identities = self.requests.iter().filter_map(|run| run.identity.clone());
        identities
            .map(|own| (own.experiment, own.pair, own.variant))
            .collect()
    }
}

impl<F> Executor for Mock<F>
where
    F: FnMut(&RunIdentity, &Interrupt) -> (RunOutcome, f64),
{
    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError> {
        let identity = request.identity.clone().unwrap();
        let (outcome, cpu) = (self.made_up)(&identity, interrupt);
        let generators = request.plan.generators.iter();
        let doubt = Doubt::NotCompleted {
            outcome: outcome.clone(),
        };
        let doubts = Vec::from_iter((!outcome.is_completed()).then_some(doubt));
        let summary = RunSummary {
            schema: SUMMARY_SCHEMA.to_owned(),
            run: request.run,
            subject: request.plan.subject.name.clone(),
            identity: Some(identity),
            outcome,
            measured: request.plan.phases.measure,
            values: [(GoalMetric::CpuPerEvent, Measured::Value(cpu))].into(),
            doubts,
            cautions: Vec::new(),
            figures: RunFigures {
                subject_cpu_share: Some(0.95),
                subject_core_share: Some(0.95),
                generators: generators
                    .map(|own| GeneratorFigures {
                        id: own.id.clone(),
                        unit: RateUnit::Events,
                        asked_per_second: None,
                        achieved_per_second: Some(10_000.0),
                    })
                    .collect(),
                ..RunFigures::default()
            },
            checks: Vec::new(),
        };
        fs::create_dir_all(&request.folder).unwrap();
        let text = serde_json::to_vec(&summary).unwrap();
        fs::write(request.folder.join("summary.json"), text).unwrap();
        self.requests.push(request);
        Ok(summary)
    }
}

/// All runs complete; the comparison costs a tenth more, give or take.
pub(crate) fn dearer(identity: &RunIdentity, _interrupt: &Interrupt) -> (RunOutcome, f64) {
    let noise = 1.0 + 0.002 * f64::from(identity.pair % 3);
    let cost = if identity.variant == "baseline" {
        100.0
    } else {
        110.0
    };
    (RunOutcome::Completed, cost * noise)
}

pub(crate) fn experiment(name: &str, pairs: u32) -> ExperimentPlan {
    ExperimentPlan {
        name: name.to_owned(),
        summary: None,
        folder: "/lab".into(),
        rig: rig(),
        variants: ["baseline", "comparison"]
            .map(|name| VariantPlan::unchanged(name.to_owned()))
            .to_vec(),
        goals: vec![GoalPlan {
            metric: GoalMetric::CpuPerEvent,
            tolerance: Tolerance::try_new(0.03).unwrap(),
        }],
        pairs,
        operating_point: OperatingPoint::Stated,
        report_links: Vec::new(),
        erratic: false,
    }
}

pub(crate) fn lab(experiments: impl IntoIterator<Item = ExperimentPlan>) -> LabPlan {
    LabPlan {
        experiments: experiments.into_iter().collect(),
        seed: Seed::from_number(7),
    }
}

fn rig() -> RigPlan {
    RigPlan {
        seed: Seed::from_number(1),
        generators: vec![GeneratorPlan {
            id: "load".to_owned(),
            transport: TransportPlan::Tcp {
                address: "127.0.0.1:1".to_owned(),
            },
            payload: PayloadPlan {
                format: PayloadFormat::Ascii,
                blocks: BlockShape::UpTo {
                    maximum: ByteSize::new(8192),
                },
                cache: ByteSize::new(1 << 20),
            },
            rate: RatePlan::events(EventRate::try_new(100.0).unwrap()),
            connections: 1,
            workers: 1,
            seed: Seed::from_number(2),
        }],
        sinks: Vec::new(),
        subject: SubjectPlan {
            name: "relay".to_owned(),
            kind: SubjectKind::Child(ChildPlan {
                program: "/no/such/program".into(),
                arguments: Vec::new(),
                environment: EnvironmentPlan::default(),
                directory: None,
                mounts: Vec::new(),
            }),
            ready: ReadyProbe::Immediately,
            cpus: CpuChoice::Auto,
            memory: None,
            stop: StopPlan {
                signal: SubjectSignal::Term,
                grace: Nanos::SECOND,
            },
        },
        observer: ObserverPlan::default(),
        phases: PhasesPlan::default(),
        timeline: Vec::new(),
        isolation: IsolationPlan::default(),
        placement: PlacementPlan::default(),
        checks: Vec::new(),
    }
}

pub(crate) fn options(folder: &Path, resume: bool) -> LabOptions {
    LabOptions {
        results: folder.join("results"),
        resume,
        command: vec!["stillwell".to_owned(), "run".to_owned()],
        stillwell: "/no/such/stillwell".into(),
        cache: folder.join("cache"),
        state_root: folder.join("state"),
        keep_state: false,
    }
}

/// Runs `plan` without listening.
pub(crate) fn run(
    plan: &LabPlan,
    options: &LabOptions,
    executor: &mut dyn Executor,
) -> Result<LabOutcome, LabError> {
    let mut ignore = |_: LabProgress<'_>| {};
    run_lab(plan, options, executor, &Interrupt::new(), &mut ignore)
}
