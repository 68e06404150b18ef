//! Experiments one after the other.

mod course;
mod experiment;
mod pair;
mod probe;
mod summing;

use std::fs;
use std::path::Path;

use stillwell_capture::{Manifest, RunIdentity};
use stillwell_plan::experiment::OperatingPoint;
use stillwell_plan::{ExperimentPlan, SuitePlan};
use stillwell_run::{Interrupt, RunRequest};
use stillwell_scope::{clock, explain};
use stillwell_verdict::{ErrorBudget, ExperimentVerdict, RunSummary, apply_error_budget, standing};

use self::course::{Course, runs_left};
use crate::binary::VariantTargets;
use crate::files::{read_json, remove_folder, write_json};
use crate::operating;
use crate::quiet::pause_before;
use crate::request::{Circumstances, request};
use crate::results::Results;
use crate::verdict_file::{Conduct, VerdictRecord};
use crate::{Executor, Forecast, Problem, ProblemKind, RunsLeft, SuiteOptions, SuiteProgress};

/// One call of [`run_suite`](crate::run_suite).
pub(crate) struct Session<'a> {
    plan: &'a SuitePlan,
    options: &'a SuiteOptions,
    results: &'a Results,
    targets: &'a [VariantTargets],
    executor: &'a mut dyn Executor,
    interrupt: &'a Interrupt,
    forecast: Forecast,
    /// Over all experiments, those of earlier sessions included.
    pairs_finished: u32,
    verdicts: Vec<ExperimentVerdict>,
    /// The course of each of `verdicts`.
    conducts: Vec<Conduct>,
    problems: Vec<Problem>,
}

/// The outcome of a session.
#[derive(Debug)]
pub(crate) struct SessionOutcome {
    pub(crate) verdicts: Vec<ExperimentVerdict>,
    pub(crate) budget: ErrorBudget,
    pub(crate) problems: Vec<Problem>,
}

/// Receiver of progress.
type Listener<'l> = dyn FnMut(SuiteProgress<'_>) + 'l;

/// True if the next experiment follows.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Next {
    /// It does.
    Experiment,
    /// The suite ends.
    End,
}

/// A run ended without a summary.
#[derive(Debug)]
enum NoRun {
    /// The suite was interrupted.
    Interrupted,
    /// There was nowhere to put it.
    Storage(String),
}

impl<'a> Session<'a> {
    pub(crate) fn new(
        plan: &'a SuitePlan,
        options: &'a SuiteOptions,
        results: &'a Results,
        targets: &'a [VariantTargets],
        executor: &'a mut dyn Executor,
        interrupt: &'a Interrupt,
    ) -> Self {
        Self {
            plan,
            options,
            results,
            targets,
            executor,
            interrupt,
            forecast: Forecast::default(),
            pairs_finished: 0,
            verdicts: Vec::new(),
            conducts: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// Carries all experiments out.
    pub(crate) fn run(mut self, progress: &mut Listener<'_>) -> SessionOutcome {
        for experiment in &self.plan.experiments {
            self.expect(experiment);
        }
        for problem in &self.options.problems {
            let reason = problem.reason.clone();
            self.problem(&problem.experiment, problem.kind, reason, progress);
        }
        for (index, experiment) in self.plan.experiments.iter().enumerate() {
            if self.interrupt.signal().is_some() {
                break;
            }
            if self.options.judge_only && !self.results.experiment(&experiment.name).is_dir() {
                continue;
            }
            progress(SuiteProgress::ExperimentStarted {
                experiment: &experiment.name,
                number: index + 1,
                of: self.plan.experiments.len(),
            });
            if self.experiment(index, experiment, progress) == Next::End {
                break;
            }
        }
        if !self.options.keep_state {
            // Only an empty folder is removed: files that could not be removed were reported.
            drop(fs::remove_dir(&self.options.state_root));
        }
        let budget = self.apply_budget(progress);
        SessionOutcome {
            verdicts: self.verdicts,
            budget,
            problems: self.problems,
        }
    }

    /// Lets all experiments share one error budget, and keeps those verdicts
    /// again that are others for it.
    fn apply_budget(&mut self, progress: &mut Listener<'_>) -> ErrorBudget {
        let before = self.verdicts.clone();
        let budget = apply_error_budget(&mut self.verdicts, &self.plan.experiments);
        let verdicts = std::mem::take(&mut self.verdicts);
        let conducts = std::mem::take(&mut self.conducts);
        for ((verdict, before), conduct) in verdicts.iter().zip(&before).zip(&conducts) {
            if verdict != before {
                self.keep(verdict, conduct, progress);
            }
        }
        self.verdicts = verdicts;
        budget
    }

    /// Adds what an experiment will take to the forecast.
    fn expect(&mut self, experiment: &ExperimentPlan) {
        let runs = runs_left(experiment, &standing(experiment, &[]));
        self.forecast.expect(&experiment.run_plan.phases, runs);
        let (phases, probes) = match experiment.operating_point {
            OperatingPoint::Probe { length, .. } => {
                (operating::probing(experiment, length).run_plan.phases, 1)
            }
            OperatingPoint::Stated | OperatingPoint::Max => (experiment.run_plan.phases, 0),
        };
        self.forecast.expect(&phases, RunsLeft::exactly(probes));
    }

    /// The run of `identity`, with an empty state folder.
    fn prepare(
        &self,
        about: &Circumstances<'_>,
        identity: RunIdentity,
    ) -> Result<RunRequest, NoRun> {
        if self.interrupt.signal().is_some() {
            return Err(NoRun::Interrupted);
        }
        let RunIdentity {
            experiment,
            variant,
            stage,
            pair,
            ..
        } = &identity;
        let folder = if *pair == 0 {
            self.results.probe(experiment)
        } else {
            self.results.run_of(experiment, *stage, *pair, variant)
        };
        let request = request(about, identity, folder);
        let state = &request.places.state;
        remove_folder(state)
            .map_err(|error| NoRun::Storage(format!("clear {}: {error}", state.display())))?;
        Ok(request)
    }

    /// Carries one run out, in a fresh state folder.
    fn execute(
        &mut self,
        about: &Circumstances<'_>,
        identity: RunIdentity,
        progress: &mut Listener<'_>,
    ) -> Result<RunSummary, NoRun> {
        let started = clock::now();
        if identity.pair > 0 {
            let place = (identity.stage, identity.pair, identity.position);
            let pause = pause_before(&self.plan.seed, about.experiment, place);
            self.executor.pause(pause, self.interrupt);
        }
        let request = self.prepare(about, identity.clone())?;
        progress(SuiteProgress::RunStarted {
            identity: &identity,
            left: self.forecast.left(),
        });
        let state = request.places.state.clone();
        let part = match identity.pair {
            0 => probe_part(about.index),
            _ => pairs_part(about.index),
        };
        let ended = self.executor.execute(request, self.interrupt, &mut |run| {
            progress(SuiteProgress::Run(run));
        });
        self.forecast.ran(part, clock::now().since(started));
        self.clear_state(&state, progress);
        let summary = ended.map_err(|error| NoRun::Storage(explain(&error)))?;
        progress(SuiteProgress::RunEnded { summary: &summary });
        Ok(summary)
    }

    /// Removes a run's state folder, if it is not to be kept.
    fn clear_state(&self, state: &Path, progress: &mut Listener<'_>) {
        if !self.options.keep_state
            && let Err(error) = remove_folder(state)
        {
            let note = format!("{} could not be removed: {error}", state.display());
            progress(SuiteProgress::Note(note));
        }
    }

    /// Has an experiment judged, and keeps what it came to.
    fn conclude(
        &mut self,
        experiment: &ExperimentPlan,
        course: Course,
        progress: &mut Listener<'_>,
    ) {
        if course.runs.is_empty() {
            return;
        }
        let verdict = standing(experiment, &course.runs).verdict;
        let conduct = Conduct::new(self.plan.seed, experiment, course.audit, &course.runs);
        self.keep(&verdict, &conduct, progress);
        progress(SuiteProgress::ExperimentEnded { verdict: &verdict });
        self.verdicts.push(verdict);
        self.conducts.push(conduct);
    }

    /// Writes down what an experiment came to, and how.
    fn keep(
        &mut self,
        verdict: &ExperimentVerdict,
        conduct: &Conduct,
        progress: &mut Listener<'_>,
    ) {
        let path = self.results.verdict(&verdict.name);
        if let Err(error) = write_json(&path, &VerdictRecord::new(verdict, conduct)) {
            self.storage_problem(&verdict.name, explain(&error), progress);
        }
    }

    fn storage_problem(&mut self, experiment: &str, reason: String, progress: &mut Listener<'_>) {
        let kind = if self.pairs_finished == 0 {
            ProblemKind::StorageAtStart
        } else {
            ProblemKind::Storage
        };
        self.problem(experiment, kind, reason, progress);
    }

    fn problem(
        &mut self,
        experiment: &str,
        kind: ProblemKind,
        reason: String,
        progress: &mut Listener<'_>,
    ) {
        let problem = Problem {
            experiment: experiment.to_owned(),
            kind,
            reason,
        };
        progress(SuiteProgress::Problem(&problem));
        self.problems.push(problem);
    }
}

/// The pairs of an experiment, as a part of the forecast.
const fn pairs_part(index: usize) -> usize {
    2 * index
}

/// The probe of an experiment, as a part of the forecast.
const fn probe_part(index: usize) -> usize {
    2 * index + 1
}

/// The last output of the target of the run in `folder`. A program that does not start mostly
/// prints the reason.
pub(crate) fn last_words(folder: &Path) -> String {
    let manifest: Result<Manifest, _> = read_json(&folder.join("manifest.json"));
    let target = manifest.ok().and_then(|manifest| manifest.target);
    let lines = target.map(|target| target.last_lines);
    let lines = lines.unwrap_or_default().into_iter();
    lines.map(|line| format!("\n    target: {line}")).collect()
}
