//! One workload, several programs: each of them runs once in each block of runs.
//!
//! Blocks are to several targets what pairs are to two variants: what drifts on the machine falls
//! out of comparisons within a block. Unlike in a pair, a run that fails costs nothing but itself:
//! the others of its block are still next to each other in time.

mod identity;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_capture::{RunIdentity, RunOutcome, RunStage};
use stillwell_plan::experiment::{MAX_TIME_DEFAULT, OperatingPoint};
use stillwell_plan::stopping::{DesignPlan, WarmupPlan};
use stillwell_plan::{ExperimentPlan, StoppingPlan, TargetsPlan, VariantPlan};
use stillwell_run::Interrupt;
use stillwell_scope::{clock, explain};
use stillwell_units::{Nanos, Secrets};
use stillwell_verdict::RunSummary;

pub use self::identity::{FileIdentity, NotInstalled, TargetIdentity, not_installed};
use crate::files::{read_json, remove_folder, write_json};
use crate::fingerprint::first_difference;
use crate::policy::{LOST_AT_START_MAX, describe_outcome, is_result};
use crate::request::{Circumstances, request};
use crate::results::{as_json, summary_of};
use crate::session::last_words;
use crate::{
    Executor, Forecast, Problem, ProblemKind, Results, RunsLeft, SuiteError, SuiteOptions,
    SuiteProgress, order_within,
};

/// Names the shape of [`TargetsRecord`]; keys are added within a version and
/// never removed.
pub const TARGETS_SCHEMA: &str = "stillwell/targets-suite/v1";

/// The request of a run of several targets: `targets.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TargetsRecord {
    /// [`TARGETS_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// Wall clock at the start: milliseconds since 1970.
    pub started_wall_millis: u64,
    /// The plans.
    pub plans: Vec<TargetsPlan>,
    /// The programs, by their names.
    pub identities: BTreeMap<String, TargetIdentity>,
}

/// The outcome of a run of several targets.
#[derive(Debug)]
pub struct TargetsOutcome {
    /// The runs that there are of each plan, in the order of plans.
    pub runs: Vec<Vec<RunSummary>>,
    /// The programs.
    pub identities: BTreeMap<String, TargetIdentity>,
    /// The signal that ended it before its time, if one did.
    pub interrupted: Option<i32>,
    /// Problems: targets that never worked, results that could not be written.
    pub problems: Vec<Problem>,
    /// Elapsed time.
    pub elapsed: Nanos,
}

/// Carries `plans` out, one after the other, and reports to `progress`.
///
/// In each block every target runs once, in an order that follows from the plan's seed, each in a
/// fresh state folder. A target whose first two runs fail is given up. Runs that a resumed results
/// folder already holds are not repeated.
///
/// # Errors
///
/// [`SuiteError`] where it could not begin. Later failures are part of the outcome.
pub fn run_targets(
    plans: &[TargetsPlan],
    options: &SuiteOptions,
    executor: &mut dyn Executor,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(SuiteProgress<'_>),
) -> Result<TargetsOutcome, SuiteError> {
    let started = clock::now();
    let results = Results::new(options.results.clone());
    let lock = results.lock()?;
    let has_begun = has_begun(options, &results)?;
    let identities = identity::identities(plans, options, interrupt)?;
    // A version that was not read would differ from the one of a resumed run.
    if let Some(signal) = interrupt.signal() {
        return Ok(TargetsOutcome {
            runs: vec![Vec::new(); plans.len()],
            identities,
            interrupted: Some(signal),
            problems: Vec::new(),
            elapsed: clock::now().since(started),
        });
    }
    begin(plans, options, &results, &identities, has_begun)?;
    let mut course = TargetsCourse {
        options,
        results: &results,
        executor,
        interrupt,
        forecast: Forecast::default(),
        problems: Vec::new(),
        runs_finished: 0,
    };
    for plan in plans {
        let runs = u64::from(plan.runs) * u64::try_from(plan.targets.len()).unwrap_or(0);
        course
            .forecast
            .expect(&plan.run_plan.phases, RunsLeft::exactly(runs));
    }
    let mut all = Vec::new();
    for (index, plan) in plans.iter().enumerate() {
        let mut runs = Vec::new();
        let goes_on = course.experiment(index, plans, plan, &mut runs, progress);
        all.push(runs);
        if !goes_on {
            break;
        }
    }
    if !options.keep_state {
        // Only an empty folder is removed: files that could not be removed were reported.
        drop(std::fs::remove_dir(&options.state_root));
    }
    drop(lock);
    all.resize(plans.len(), Vec::new());
    Ok(TargetsOutcome {
        runs: all,
        identities,
        interrupted: interrupt.signal(),
        problems: course.problems,
        elapsed: clock::now().since(started),
    })
}

impl Results {
    /// Returns the request of a run of several targets.
    ///
    /// # Errors
    ///
    /// [`SuiteError::Read`] where it is missing or not readable.
    pub fn targets_record(&self) -> Result<TargetsRecord, SuiteError> {
        read_json(&self.targets())
    }

    /// The summaries of all runs of `plan` that there are.
    ///
    /// # Errors
    /// [`SuiteError::Read`] for one that is there and not readable.
    pub fn targets_summaries(&self, plan: &TargetsPlan) -> Result<Vec<RunSummary>, SuiteError> {
        self.summaries(&as_experiment(plan))
    }
}

/// Returns true if there is a record to continue.
fn has_begun(options: &SuiteOptions, results: &Results) -> Result<bool, SuiteError> {
    let there = results.targets().exists() || results.suite().exists();
    match (options.resume, there) {
        (false, _) if results.has_results() => Err(SuiteError::AlreadyThere {
            results: results.root().to_path_buf(),
        }),
        (true, false) => Err(SuiteError::NothingToResume {
            results: results.root().to_path_buf(),
        }),
        _ => Ok(there),
    }
}

/// Writes down what is to be done, or holds it against what was.
fn begin(
    plans: &[TargetsPlan],
    options: &SuiteOptions,
    results: &Results,
    identities: &BTreeMap<String, TargetIdentity>,
    has_begun: bool,
) -> Result<(), SuiteError> {
    let path = results.targets();
    let record = TargetsRecord {
        schema: TARGETS_SCHEMA.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: options.command.clone(),
        started_wall_millis: clock::wall().as_u64() / Nanos::from_millis(1).as_u64(),
        plans: plans.to_vec(),
        identities: identities.clone(),
    };
    if !has_begun {
        let record = options.secrets.json(as_json(&record, &path)?);
        return write_json(&path, &record);
    }
    let old = results.targets_record()?;
    let text = |record: &TargetsRecord| {
        Secrets::Masked
            .json(serde_json::json!({ "plans": record.plans, "identities": record.identities }))
    };
    first_difference(&text(&old), &text(&record)).map_or(Ok(()), |pointer| {
        Err(SuiteError::PlanChanged {
            results: results.root().to_path_buf(),
            pointer,
        })
    })
}

/// The runs of one call of [`run_targets`].
struct TargetsCourse<'a> {
    options: &'a SuiteOptions,
    results: &'a Results,
    executor: &'a mut dyn Executor,
    interrupt: &'a Interrupt,
    forecast: Forecast,
    problems: Vec<Problem>,
    runs_finished: u32,
}

/// One run to be made.
#[derive(Clone, Copy)]
struct Turn<'p> {
    index: usize,
    plan: &'p TargetsPlan,
    experiment: &'p ExperimentPlan,
    block: u32,
    position: u32,
    target: usize,
}

impl TargetsCourse<'_> {
    /// All blocks of one plan; whether the next may follow.
    fn experiment(
        &mut self,
        index: usize,
        plans: &[TargetsPlan],
        plan: &TargetsPlan,
        runs: &mut Vec<RunSummary>,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) -> bool {
        progress(SuiteProgress::ExperimentStarted {
            experiment: &plan.name,
            number: index + 1,
            of: plans.len(),
        });
        let experiment = as_experiment(plan);
        let mut failed: BTreeMap<usize, u32> = BTreeMap::new();
        for block in 1..=plan.runs {
            let order = order_within(
                &plan.seed,
                &plan.name,
                RunStage::Search,
                plan.targets.len(),
                block,
            );
            let is_given_up =
                |index: &usize| failed.get(index).is_some_and(|n| *n >= LOST_AT_START_MAX);
            let order: Vec<usize> = order
                .into_iter()
                .filter(|index| !is_given_up(index))
                .collect();
            let names: Vec<&str> = order
                .iter()
                .filter_map(|index| plan.targets.get(*index))
                .map(|target| target.name.as_str())
                .collect();
            progress(SuiteProgress::BlockStarted {
                experiment: &plan.name,
                block,
                of: plan.runs,
                order: &names,
                left: self.forecast.left(),
            });
            for (position, target) in (0..).zip(order) {
                let turn = Turn {
                    index,
                    plan,
                    experiment: &experiment,
                    block,
                    position,
                    target,
                };
                let Some(summary) = self.turn(turn, progress) else {
                    return false;
                };
                self.count(turn, &summary, &mut failed, progress);
                runs.push(summary);
            }
        }
        true
    }

    /// Keeps count of what fails; a target that worked once is never given up.
    fn count(
        &mut self,
        turn: Turn<'_>,
        summary: &RunSummary,
        failed: &mut BTreeMap<usize, u32>,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) {
        self.runs_finished += 1;
        let name = &turn.plan.targets[turn.target].name;
        let known = failed.get(&turn.target).copied();
        if summary.outcome.is_completed() {
            failed.insert(turn.target, 0);
            return;
        }
        let folder = self.results.run(&turn.plan.name, turn.block, name);
        let why = format!(
            "{}{}",
            describe_outcome(&summary.outcome),
            last_words(&folder)
        );
        // Zero is of one that has worked.
        let times = match known {
            Some(0) => 0,
            _ => known.unwrap_or(0) + 1,
        };
        failed.insert(turn.target, times);
        if times < LOST_AT_START_MAX {
            progress(SuiteProgress::Note(format!("{name}: {why}")));
            return;
        }
        let left = u64::from(turn.plan.runs - turn.block);
        for _ in 0..left {
            self.forecast.skip(turn.index);
        }
        let reason = format!("`{name}` is stopped: {why}");
        self.problem(turn.plan, ProblemKind::GivenUp, reason, progress);
    }

    /// One run, made or taken over; `None` ends everything.
    fn turn(
        &mut self,
        turn: Turn<'_>,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) -> Option<RunSummary> {
        let target = turn.plan.targets.get(turn.target)?;
        let folder = self.results.run(&turn.plan.name, turn.block, &target.name);
        if self.options.resume
            && let Ok(summary) = read_json::<RunSummary>(&summary_of(&folder))
            && is_result(&summary.outcome)
        {
            self.forecast.skip(turn.index);
            return Some(summary);
        }
        if self.interrupt.signal().is_some() {
            return None;
        }
        let identity = RunIdentity {
            experiment: turn.plan.name.clone(),
            variant: target.name.clone(),
            stage: RunStage::Search,
            pair: turn.block,
            position: turn.position,
        };
        let about = Circumstances {
            options: self.options,
            experiment: turn.experiment,
            index: turn.index,
            variant: turn.target,
            target: &target.target,
        };
        progress(SuiteProgress::RunStarted {
            identity: &identity,
            left: self.forecast.left(),
        });
        let request = request(&about, identity, folder.clone());
        let state = request.places.state.clone();
        // Leftovers of a run that was cut off are removed.
        for old in [&state, &folder] {
            if let Err(error) = remove_folder(old) {
                let reason = format!("clear {}: {error}", old.display());
                self.storage(turn.plan, reason, progress);
                return None;
            }
        }
        let started = clock::now();
        let ended = self.executor.execute(request, self.interrupt, &mut |run| {
            progress(SuiteProgress::Run(run));
        });
        self.forecast.ran(turn.index, clock::now().since(started));
        if !self.options.keep_state
            && let Err(error) = remove_folder(&state)
        {
            let note = format!("{} could not be removed: {error}", state.display());
            progress(SuiteProgress::Note(note));
        }
        match ended {
            Ok(summary) => self.ended(turn, summary, progress),
            Err(error) => {
                self.storage(turn.plan, explain(&error), progress);
                None
            }
        }
    }

    fn ended(
        &mut self,
        turn: Turn<'_>,
        summary: RunSummary,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) -> Option<RunSummary> {
        progress(SuiteProgress::RunEnded { summary: &summary });
        match &summary.outcome {
            RunOutcome::Interrupted { .. } => None,
            outcome @ RunOutcome::StorageFailed { .. } => {
                self.storage(turn.plan, describe_outcome(outcome), progress);
                None
            }
            _ => Some(summary),
        }
    }

    fn storage(
        &mut self,
        plan: &TargetsPlan,
        reason: String,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) {
        let kind = match self.runs_finished {
            0 => ProblemKind::StorageAtStart,
            _ => ProblemKind::Storage,
        };
        self.problem(plan, kind, reason, progress);
    }

    fn problem(
        &mut self,
        plan: &TargetsPlan,
        kind: ProblemKind,
        reason: String,
        progress: &mut dyn FnMut(SuiteProgress<'_>),
    ) {
        let problem = Problem {
            experiment: plan.name.clone(),
            kind,
            reason,
        };
        progress(SuiteProgress::Problem(&problem));
        self.problems.push(problem);
    }
}

/// The same as an experiment whose variants are the targets, by which runs are
/// planned and found again. Nothing is compared by it.
fn as_experiment(plan: &TargetsPlan) -> ExperimentPlan {
    let targets = plan.targets.iter();
    ExperimentPlan {
        name: plan.name.clone(),
        summary: plan.summary.clone(),
        folder: plan.folder.clone(),
        run_plan: plan.run_plan.clone(),
        variants: targets
            .map(|target| VariantPlan::unchanged(target.name.clone()))
            .collect(),
        goals: Vec::new(),
        stopping: StoppingPlan::Fixed { pairs: plan.runs },
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
