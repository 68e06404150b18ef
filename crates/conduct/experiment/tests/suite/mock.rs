//! A suite without processes and clocks.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use stillwell_capture::{RunIdentity, RunOutcome, RunStage};
use stillwell_experiment::{
    Executor, ExecutorError, SuiteError, SuiteOptions, SuiteOutcome, SuiteProgress, run_suite,
};
use stillwell_plan::experiment::{MAX_TIME_DEFAULT, OperatingPoint};
use stillwell_plan::generator::Concurrency;
use stillwell_plan::payload::BlockShape;
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::target::{ChildPlan, EnvironmentPlan};
use stillwell_plan::{
    ExperimentPlan, GeneratorPlan, GoalMetric, GoalPlan, PayloadFormat, PayloadPlan, RatePlan,
    RunPlan, StoppingPlan, SuitePlan, TargetKind, TargetPlan, TransportPlan, VariantPlan, WorkUnit,
};
use stillwell_run::{CallDescriber, Interrupt, Progress, RunRequest};
use stillwell_units::{ByteSize, EventRate, Nanos, Seed, Tolerance};
use stillwell_verdict::{
    GeneratorFigures, Measured, RunFigures, RunSummary, RunWarning, SUMMARY_SCHEMA, WarmupFigures,
};

/// Makes every run up.
pub(crate) struct Mock<F> {
    made_up: F,
    /// All requests, in order.
    pub(crate) requests: Vec<RunRequest>,
    /// Designs of the requested pairs.
    pub(crate) designs: Vec<(DesignPlan, Seed)>,
    /// Runs that were summed up again, and with which warm-up.
    pub(crate) summed_up: Vec<(RunIdentity, Nanos)>,
}

/// Result of a run.
#[derive(Clone, Debug)]
pub(crate) struct Made {
    pub(crate) outcome: RunOutcome,
    pub(crate) cpu_per_event: f64,
    pub(crate) warnings: Vec<RunWarning>,
    /// The moment from which the run was steady, if that was requested.
    pub(crate) steady_from: Option<Nanos>,
}

impl From<(RunOutcome, f64)> for Made {
    fn from((outcome, cpu_per_event): (RunOutcome, f64)) -> Self {
        let warning = RunWarning::NotCompleted {
            outcome: outcome.clone(),
        };
        Self {
            warnings: Vec::from_iter((!outcome.is_completed()).then_some(warning)),
            outcome,
            cpu_per_event,
            steady_from: None,
        }
    }
}

/// A target and a machine, as they are: every number follows from the seed and the run's place.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) seed: u64,
    /// By how much each variant costs more than the baseline, as a share, in the
    /// search and in the confirmation.
    pub(crate) effects: BTreeMap<&'static str, (f64, f64)>,
    /// Standard deviation of one run, as a share.
    pub(crate) noise: f64,
    /// Unreliable runs.
    pub(crate) unreliable: Vec<(RunStage, u32, &'static str)>,
    /// Runs whose target dies.
    pub(crate) dying: Vec<(RunStage, u32, &'static str)>,
    /// The moment from which runs are steady.
    pub(crate) steady_from: Option<Nanos>,
}

impl World {
    /// One in which the comparison costs more by `effect`.
    pub(crate) fn with(effect: f64, noise: f64) -> Self {
        Self {
            seed: 1,
            effects: [("comparison", (effect, effect))].into(),
            noise,
            ..Self::default()
        }
    }

    pub(crate) fn make(&self, item: &RunIdentity) -> Made {
        let place = (item.stage, item.pair, item.variant.as_str());
        let outcome = if self.dying.contains(&place) {
            RunOutcome::TargetDied {
                phase: stillwell_plan::Phase::Measure,
            }
        } else {
            RunOutcome::Completed
        };
        let effects = self.effects.get(item.variant.as_str());
        let (search, confirm) = effects.copied().unwrap_or_default();
        let effect = match item.stage {
            RunStage::Search => search,
            RunStage::Confirm => confirm,
        };
        let cost = 100.0 * (1.0 + effect) * (self.noise * self.normal(item)).exp();
        let mut made = Made::from((outcome, cost));
        if !made.outcome.is_completed() {
            made.warnings = vec![RunWarning::TargetDied {
                phase: stillwell_plan::Phase::Measure,
                code: None,
                signal: Some(9),
                last_lines: Vec::new(),
            }];
        }
        if self.unreliable.contains(&place) {
            made.warnings.push(RunWarning::CpuSteal {
                share: 0.3,
                limit: 0.05,
            });
        }
        made.steady_from = self.steady_from;
        made
    }

    /// A number from the standard normal distribution, by Box and Muller.
    fn normal(&self, item: &RunIdentity) -> f64 {
        let seed = Seed::from_number(self.seed)
            .derive(&item.experiment, u64::from(item.stage == RunStage::Confirm))
            .derive(&item.variant, u64::from(item.pair));
        let uniform = |at: usize| {
            let bytes = seed.bytes();
            let number =
                u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
            (f64::from(number) + 0.5) / 4_294_967_296.0
        };
        (-2.0 * uniform(0).ln()).sqrt() * (std::f64::consts::TAU * uniform(4)).cos()
    }
}

/// An executor in a world of its own.
pub(crate) fn in_world(world: World) -> Mock<impl FnMut(&RunIdentity, &Interrupt) -> Made> {
    Mock::new(move |item: &RunIdentity, _: &Interrupt| world.make(item))
}

/// Like it, but with the run at this place interrupted.
pub(crate) fn interrupted_at(
    world: World,
    place: (RunStage, u32, u32),
) -> Mock<impl FnMut(&RunIdentity, &Interrupt) -> Made> {
    Mock::new(move |item: &RunIdentity, interrupt: &Interrupt| {
        if (item.stage, item.pair, item.position) == place {
            interrupt.raise(2);
            return Made::from((RunOutcome::Interrupted { signal: 2 }, 1.0));
        }
        world.make(item)
    })
}

impl<F, R> Mock<F>
where
    F: FnMut(&RunIdentity, &Interrupt) -> R,
    R: Into<Made>,
{
    pub(crate) fn new(made_up: F) -> Self {
        Self {
            made_up,
            requests: Vec::new(),
            designs: Vec::new(),
            summed_up: Vec::new(),
        }
    }
}

impl<F> Mock<F> {
    /// Experiment, pair and variant of every run, in order.
    pub(crate) fn ran(&self) -> Vec<(String, u32, String)> {
        let identities = self.requests.iter().filter_map(|run| run.identity.clone());
        identities
            .map(|item| (item.experiment, item.pair, item.variant))
            .collect()
    }

    /// Stage and pair of every pair, in order.
    pub(crate) fn pairs(&self) -> Vec<(RunStage, u32)> {
        let identities = self.requests.iter().filter_map(|run| run.identity.as_ref());
        let mut pairs: Vec<_> = identities.map(|item| (item.stage, item.pair)).collect();
        pairs.dedup();
        pairs
    }
}

impl<F, R> Executor for Mock<F>
where
    F: FnMut(&RunIdentity, &Interrupt) -> R,
    R: Into<Made>,
{
    fn execute(
        &mut self,
        request: RunRequest,
        interrupt: &Interrupt,
        _progress: &mut dyn FnMut(Progress),
    ) -> Result<RunSummary, ExecutorError> {
        let identity = request.identity.clone().unwrap();
        let made = (self.made_up)(&identity, interrupt).into();
        let summary = summary(&request, made);
        write(&request.folder, &summary);
        self.requests.push(request);
        Ok(summary)
    }

    fn execute_pair(
        &mut self,
        requests: [RunRequest; 2],
        design: DesignPlan,
        turns: &Seed,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(usize, Progress),
    ) -> [Result<RunSummary, ExecutorError>; 2] {
        self.designs.push((design, *turns));
        let mut place = 0..;
        requests.map(|request| {
            let run = place.next().unwrap();
            self.execute(request, interrupt, &mut |event| progress(run, event))
        })
    }

    fn sum_up(&mut self, folder: &Path, warmup: Nanos) -> Result<RunSummary, ExecutorError> {
        let text = fs::read(folder.join("summary.json")).unwrap();
        let mut summary: RunSummary = serde_json::from_slice(&text).unwrap();
        summary.warmup = warmup;
        write(folder, &summary);
        let identity = summary.identity.clone().unwrap();
        self.summed_up.push((identity, warmup));
        Ok(summary)
    }
}

fn write(folder: &Path, summary: &RunSummary) {
    fs::create_dir_all(folder).unwrap();
    let text = serde_json::to_vec(summary).unwrap();
    fs::write(folder.join("summary.json"), text).unwrap();
}

fn summary(request: &RunRequest, made: Made) -> RunSummary {
    let generators = request.plan.generators.iter();
    let phases = &request.plan.phases;
    RunSummary {
        schema: SUMMARY_SCHEMA.to_owned(),
        run: request.run,
        target: request.plan.target.name.clone(),
        identity: request.identity.clone(),
        outcome: made.outcome,
        measured: phases.measure,
        warmup: phases.warmup,
        length: phases.warmup + phases.measure,
        values: [(GoalMetric::CpuPerEvent, Measured::Value(made.cpu_per_event))].into(),
        warnings: made.warnings,
        notes: Vec::new(),
        figures: RunFigures {
            target_cpu_share: Some(0.95),
            target_core_share: Some(0.95),
            generators: generators
                .map(|item| GeneratorFigures {
                    id: item.id.clone(),
                    unit: WorkUnit::Events,
                    requested_per_second: None,
                    achieved_per_second: Some(10_000.0),
                })
                .collect(),
            warmup: made.steady_from.map(|cut| WarmupFigures {
                series: "events_sent".to_owned(),
                cut: Some(cut),
                beats: 20,
                apart: 0.0,
                drift: None,
            }),
            ..RunFigures::default()
        },
        checks: Vec::new(),
        series: BTreeMap::new(),
        series_left_out: 0,
        environment: BTreeMap::new(),
    }
}

/// All runs complete; the comparison costs a tenth more, give or take.
pub(crate) fn costlier_comparison(
    identity: &RunIdentity,
    _interrupt: &Interrupt,
) -> (RunOutcome, f64) {
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
        folder: "/suite".into(),
        run_plan: run_plan(),
        variants: ["baseline", "comparison"]
            .map(|name| VariantPlan::unchanged(name.to_owned()))
            .to_vec(),
        goals: vec![GoalPlan {
            tolerance: Tolerance::try_new(0.03).unwrap(),
            ..GoalPlan::new(GoalMetric::CpuPerEvent)
        }],
        stopping: StoppingPlan::Fixed { pairs },
        design: DesignPlan::Paired,
        warmup: WarmupPlan::Stated,
        max_time: MAX_TIME_DEFAULT,
        confirm: false,
        builds: 1,
        family: None,
        operating_point: OperatingPoint::Stated,
        stated_max: Vec::new(),
        report_links: Vec::new(),
        erratic: false,
    }
}

/// Looks at 4, 6, 8 … `max_pairs`, with what is found confirmed.
pub(crate) fn sequential(name: &str, max_pairs: u32) -> ExperimentPlan {
    ExperimentPlan {
        stopping: StoppingPlan::Sequential { max_pairs },
        confirm: true,
        ..experiment(name, max_pairs)
    }
}

pub(crate) fn suite(experiments: impl IntoIterator<Item = ExperimentPlan>) -> SuitePlan {
    SuitePlan {
        experiments: experiments.into_iter().collect(),
        seed: Seed::from_number(7),
    }
}

fn run_plan() -> RunPlan {
    RunPlan {
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
                repeats: false,
            },
            rate: RatePlan::events(EventRate::try_new(100.0).unwrap()),
            concurrency: Concurrency::ONE,
            seed: Seed::from_number(2),
            stamps: None,
        }],
        target: TargetPlan {
            name: "relay".to_owned(),
            kind: TargetKind::Child(ChildPlan {
                program: "/no/such/program".into(),
                arguments: Vec::new(),
                environment: EnvironmentPlan::default(),
                directory: None,
                mounts: Vec::new(),
                log_limit: stillwell_plan::target::LOG_LIMIT_DEFAULT,
            }),
            ..TargetPlan::none()
        },
        ..RunPlan::idle(Seed::from_number(1))
    }
}

pub(crate) fn options(folder: &Path, resume: bool) -> SuiteOptions {
    SuiteOptions {
        secrets: stillwell_units::Secrets::Masked,
        results: folder.join("results"),
        resume,
        judge_only: false,
        wait_for_quiet: true,
        problems: Vec::new(),
        command: vec!["stillwell".to_owned(), "run".to_owned()],
        stillwell: "/no/such/stillwell".into(),
        cache: folder.join("cache"),
        state_root: folder.join("state"),
        keep_state: false,
        metrics: None,
        describer: CallDescriber::default(),
    }
}

/// Runs `plan` without listening.
pub(crate) fn run(
    plan: &SuitePlan,
    options: &SuiteOptions,
    executor: &mut dyn Executor,
) -> Result<SuiteOutcome, SuiteError> {
    let mut ignore = |_: SuiteProgress<'_>| {};
    run_suite(plan, options, executor, &Interrupt::new(), &mut ignore)
}
