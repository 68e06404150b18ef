//! Calibration of an experiment: the baseline of an experiment compared with itself, and with
//! itself made worse by a known share, one comparison after the other.

pub mod ledger;
mod trial;

use std::path::{Path, PathBuf};

use stillwell_plan::{ExperimentPlan, SuitePlan};
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos, Seed, Tolerance, float_from_u64};
use stillwell_verdict::calibration::{
    AppliedSlowdown, CalibratedExperiment, Compared, Trial, calibrated,
};

use crate::{
    Local, Problem, ProblemKind, Results, SuiteError, SuiteOptions, SuiteProgress, run_suite,
};

/// The largest slowdown that is chosen where none is given.
const SLOWDOWN_MAX: f64 = 0.5;

/// Limits of a calibration.
#[derive(Clone, Debug)]
pub struct CalibrationLimits {
    /// Comparisons of one experiment at most, at least one.
    pub comparisons: u32,
    /// The time for all experiments together, in minutes.
    pub minutes: u32,
    /// The slowdown of the target; `None` for twice the tolerance of the primary goal.
    pub slowdown: Option<Tolerance>,
}

/// Services that a calibration needs of its caller.
pub trait CalibrationHost {
    /// Returns the options of a suite whose results go to this folder.
    fn options(&self, results: &Path) -> SuiteOptions;

    /// Returns what ends the calibration early.
    fn interrupt(&self) -> &Interrupt;

    /// Reports that a comparison begins.
    fn announce(&mut self, experiment: &ExperimentPlan, trial: Trial, number: u32);

    /// Reports the progress of a comparison.
    fn progress(&mut self, progress: SuiteProgress<'_>);

    /// Reports that a comparison ended, and its progress with it.
    fn ended(&mut self);

    /// Reports the results of the first comparison of an experiment.
    fn first(&mut self, results: &Results, suite: &SuitePlan);
}

/// The reason why a calibration cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// A comparison could not be carried out.
    #[error(transparent)]
    Suite(#[from] SuiteError),
    /// The target could not be started.
    #[error("{}: {}", .0.experiment, .0.reason)]
    Start(Problem),
    /// The disk became full.
    #[error("{}: {}", .0.experiment, .0.reason)]
    Incomplete(Problem),
}

/// Calibrates the baseline of `experiment` until `until`; `None` if no comparison ended, and the reason why a
/// comparison could not be made, if that ended it. Results go below `folder`.
pub fn calibrate(
    experiment: &ExperimentPlan,
    (seed, folder): (Seed, &Path),
    (limits, until): (&CalibrationLimits, Moment),
    host: &mut dyn CalibrationHost,
) -> (Option<CalibratedExperiment>, Option<CalibrationError>) {
    let slowdown_kind = trial::slowdown_kind(experiment);
    let slowdown = slowdown(experiment, limits);
    let applied = slowdown_kind.clone().map(|how| AppliedSlowdown {
        how,
        truth: trial::truth(experiment, slowdown.share()),
    });
    let mut compared: Vec<Compared> = Vec::new();
    let (mut binary, mut failure) = (None, None);
    let began = clock::now();
    for number in 1..=limits.comparisons {
        let trial = Trial::of(number, slowdown_kind.is_ok());
        let seed = seed.derive("calibrate", number.into());
        let suite = match (trial, &slowdown_kind) {
            (Trial::Worse, Ok(how)) => {
                let percent = slowdown.to_string();
                trial::worse(experiment, seed, binary.as_deref(), (*how, &percent))
            }
            _ => trial::self_comparison(experiment, seed),
        };
        host.announce(experiment, trial, number);
        let results = Results::new(folder.join(format!("{number:03}-{}", trial.name())));
        match compare(&suite, trial, &results, host) {
            Ok(result) => compared.extend(result),
            Err(error) => {
                failure = Some(error);
                break;
            }
        }
        if number == 1 {
            binary = binary_of(&results);
            host.first(&results, &suite);
        }
        // One of each kind at least.
        let is_enough = number >= 2 && !fits(&compared, began, until);
        if is_enough || host.interrupt().signal().is_some() {
            break;
        }
    }
    let is_empty = compared.is_empty();
    let result = (!is_empty).then(|| calibrated(experiment, &compared, applied, limits.minutes));
    (result, failure)
}

/// Twice what matters, so it should be found.
fn slowdown(experiment: &ExperimentPlan, limits: &CalibrationLimits) -> Tolerance {
    let tolerance = experiment.goals.first().map(|goal| goal.tolerance);
    let twice = tolerance.map(|goal| (2.0 * goal.share()).min(SLOWDOWN_MAX));
    let twice = twice.and_then(|share| Tolerance::try_new(share).ok());
    limits.slowdown.or(twice).unwrap_or(Tolerance::DEFAULT)
}

/// Runs a suite of one experiment; `None` where it came to nothing.
fn compare(
    suite: &SuitePlan,
    trial: Trial,
    results: &Results,
    host: &mut dyn CalibrationHost,
) -> Result<Option<Compared>, CalibrationError> {
    let options = host.options(results.root());
    let interrupt = host.interrupt().clone();
    let mut runs = Vec::new();
    let ran = run_suite(suite, &options, &mut Local, &interrupt, &mut |progress| {
        if let SuiteProgress::RunEnded { summary } = &progress
            // The probe is no comparison.
            && summary.identity.as_ref().is_some_and(|identity| identity.pair > 0)
        {
            runs.push((*summary).clone());
        }
        host.progress(progress);
    });
    host.ended();
    let outcome = ran?;
    let problem = outcome.most_severe();
    if let Some(problem) = problem.filter(|problem| problem.kind.is_about_starting()) {
        return Err(CalibrationError::Start(problem.clone()));
    }
    if let Some(problem) = problem.filter(|problem| problem.kind == ProblemKind::Storage) {
        return Err(CalibrationError::Incomplete(problem.clone()));
    }
    if outcome.interrupted.is_some() {
        // Half a comparison would count as inconclusive.
        return Ok(None);
    }
    let elapsed = outcome.elapsed;
    let mut verdicts = outcome.verdicts.into_iter();
    Ok(verdicts.next().map(|verdict| Compared {
        trial,
        verdict,
        runs,
        elapsed,
    }))
}

/// Returns true if one more comparison, as long as those before in the mean, ends in time.
fn fits(compared: &[Compared], began: Moment, until: Moment) -> bool {
    let now = clock::now();
    let count = float_from_u64(compared.len().max(1) as u64);
    let mean = now.since(began).as_secs_f64() / count;
    now + Nanos::from_secs_f64(mean) <= until
}

/// The executable of the baseline.
fn binary_of(results: &Results) -> Option<PathBuf> {
    let binaries = results.record().ok()?.binaries;
    binaries.into_iter().next()?.path
}
