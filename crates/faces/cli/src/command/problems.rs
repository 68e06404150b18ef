//! Problems that are kept with the results, for reports and for comments on pull requests.

use std::path::Path;

use stillwell_experiment::{Results, SavedProblem, SuiteError, SuiteOutcome};
use stillwell_plan::SuitePlan;
use stillwell_report::SuiteProblem;
use stillwell_scope::explain;
use stillwell_verdict::ExperimentVerdict;

use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::secrets;

/// Reason for an experiment without a run.
pub(crate) const NOT_RUN: &str = "it was not run: the suite ended early, or is still running";

/// Keeps the reason why nothing was run in the folder of `--results`, unless it has results.
pub(crate) fn keep_error(
    results: Option<&Path>,
    result: Result<Exit, CommandError>,
) -> Result<Exit, CommandError> {
    let (Err(error), Some(folder)) = (&result, results) else {
        return result;
    };
    let saved = Results::new(folder.to_path_buf());
    if !saved.has_request() && !folder.starts_with("s3:") {
        let details = error.details.iter().chain(&error.hint);
        let lines: Vec<String> = [error.to_string()]
            .into_iter()
            .chain(details.cloned())
            .collect();
        let problem = SavedProblem {
            experiment: None,
            exit_code: error.exit.code(),
            reason: lines.join("\n"),
        };
        // The error itself says more than that it could not be kept.
        drop(keep(&saved, vec![problem]));
    }
    result
}

/// Keeps the problems of a suite that was run.
pub(crate) fn keep_outcome(results: &Path, outcome: &SuiteOutcome) {
    if let Err(error) = keep(&Results::new(results.to_path_buf()), of_outcome(outcome)) {
        Paint::print_message(&format!("note: {}", explain(&error)));
    }
}

/// Returns the problems of a suite that was run.
pub(crate) fn of_outcome(outcome: &SuiteOutcome) -> Vec<SavedProblem> {
    let problems = outcome.problems.iter();
    let problems = problems.map(|problem| SavedProblem {
        experiment: Some(problem.experiment.clone()),
        exit_code: match problem.kind.is_about_starting() {
            true => Exit::CouldNotRun.code(),
            false => Exit::Invalid.code(),
        },
        reason: problem.reason.clone(),
    });
    problems.collect()
}

fn keep(results: &Results, problems: Vec<SavedProblem>) -> Result<(), SuiteError> {
    let problems = problems.into_iter().map(|problem| SavedProblem {
        reason: secrets::handling().text(&problem.reason),
        ..problem
    });
    results.write_problems(
        secrets::command_words(),
        problems.collect(),
        secrets::handling(),
    )
}

/// Returns problems as reports show them.
pub(crate) fn shown(problems: Vec<SavedProblem>) -> Vec<SuiteProblem> {
    let problems = problems.into_iter();
    let problems = problems.map(|problem| SuiteProblem {
        experiment: problem.experiment,
        reason: problem.reason,
        exit_code: problem.exit_code,
    });
    problems.collect()
}

/// Adds a problem for each experiment of `plan` that has neither a verdict nor a problem: the suite ended before it,
/// and must not look complete.
pub(crate) fn with_not_run(
    mut problems: Vec<SuiteProblem>,
    plan: &SuitePlan,
    verdicts: &[ExperimentVerdict],
) -> Vec<SuiteProblem> {
    for experiment in &plan.experiments {
        let name = experiment.name.as_str();
        let is_judged = verdicts.iter().any(|verdict| verdict.name == name);
        let mut named = problems.iter().map(|entry| entry.experiment.as_deref());
        if !is_judged && !named.any(|known| known == Some(name)) {
            problems.push(SuiteProblem {
                experiment: Some(name.to_owned()),
                reason: NOT_RUN.to_owned(),
                exit_code: Exit::Invalid.code(),
            });
        }
    }
    problems
}
