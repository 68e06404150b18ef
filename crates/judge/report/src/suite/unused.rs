//! Runs with warnings: one line for each cause, not for each run.

use std::mem::{Discriminant, discriminant};

use stillwell_capture::RunStage;
use stillwell_plan::WorkUnit;
use stillwell_units::count;
use stillwell_verdict::{ExperimentVerdict, RunNotUsed, RunWarning};

use crate::document::{Block, Severity};
use crate::words;

/// Runs of one variant and stage with warnings of the same kinds.
struct Cause<'a> {
    stage: RunStage,
    variant: &'a str,
    kinds: Vec<Discriminant<RunWarning>>,
    runs: Vec<&'a RunNotUsed>,
}

/// Returns a warning for each of the first `limit` causes, which names the first `limit` of its runs with their
/// numbers.
pub(super) fn warnings(experiment: &ExperimentVerdict, limit: usize) -> Vec<Block> {
    let mut causes = causes(&experiment.not_used);
    causes.retain(|cause| !cause.is_stated(experiment));
    let hidden = causes.iter().skip(limit).map(|cause| cause.runs.len());
    let hidden: usize = hidden.sum();
    let shown = causes
        .iter()
        .take(limit)
        .map(|cause| cause.text(limit, experiment.work));
    let more = (hidden > 0).then(|| {
        let more = words::counted(count(hidden), "more run", "more runs");
        format!("{more}, see the report's JSON form")
    });
    shown
        .chain(more)
        .map(|text| Block::Note(Severity::Warning, text.into()))
        .collect()
}

/// Returns the causes in the order of their first runs.
fn causes(runs: &[RunNotUsed]) -> Vec<Cause<'_>> {
    let mut causes: Vec<Cause<'_>> = Vec::new();
    for run in runs {
        let kinds: Vec<_> = run.warnings.iter().map(discriminant).collect();
        let known = causes.iter_mut().find(|cause| {
            cause.stage == run.stage && cause.variant == run.variant && cause.kinds == kinds
        });
        match known {
            Some(cause) => cause.runs.push(run),
            None => causes.push(Cause {
                stage: run.stage,
                variant: &run.variant,
                kinds,
                runs: vec![run],
            }),
        }
    }
    causes
}

impl Cause<'_> {
    /// Returns true if the verdict has the reason, and the runs have no numbers to show besides.
    fn is_stated(&self, experiment: &ExperimentVerdict) -> bool {
        let verdict = words::finding(experiment);
        let mut warnings = self.runs.iter().flat_map(|run| &run.warnings);
        let has_numbers = self.runs.iter().any(|run| !run.values.is_empty());
        !has_numbers && warnings.all(|warning| verdict.contains(&warning.to_string()))
    }

    fn text(&self, limit: usize, work: WorkUnit) -> String {
        let stage = words::stage(self.stage);
        let warnings: Vec<String> = self.runs[0]
            .warnings
            .iter()
            .map(ToString::to_string)
            .collect();
        let warnings = warnings.join("; ");
        let variant = self.variant;
        if let [run] = self.runs.as_slice() {
            let pair = run.pair;
            return format!(
                "{stage}pair {pair}, {variant}{}: {warnings}",
                figures(&[run], work)
            );
        }
        let differs = self
            .runs
            .iter()
            .any(|run| run.warnings != self.runs[0].warnings);
        let of_first = if differs {
            format!(" (these numbers are of pair {})", self.runs[0].pair)
        } else {
            String::new()
        };
        let pairs = self.runs.iter().take(limit);
        let pairs: Vec<String> = pairs.map(|run| run.pair.to_string()).collect();
        let hidden = count(self.runs.len().saturating_sub(limit));
        let hidden = if hidden > 0 {
            format!(" and {hidden} more")
        } else {
            String::new()
        };
        let runs = words::counted(count(self.runs.len()), "run", "runs");
        format!(
            "{runs} of {variant}, {stage}pairs {}{hidden}{}: {warnings}{of_first}",
            pairs.join(", "),
            figures(&self.runs, work)
        )
    }
}

/// Returns the numbers of some runs in brackets: of each goal the lowest and the highest.
fn figures(runs: &[&RunNotUsed], work: WorkUnit) -> String {
    let goals = runs[0].values.iter().map(|(metric, value)| {
        let values = runs.iter().flat_map(|run| &run.values);
        let values = values.filter(|(named, _)| named == metric);
        let bounds = values.fold([*value; 2], |[least, most], (_, value)| {
            [least.min(*value), most.max(*value)]
        });
        let [least, most] = bounds.map(|value| words::goal_value(metric, value));
        let name = words::goal_title(metric, work);
        if least == most {
            format!("{name} {least}")
        } else {
            format!("{name} {least} to {most}")
        }
    });
    let goals: Vec<String> = goals.collect();
    if goals.is_empty() {
        String::new()
    } else {
        format!(" ({})", goals.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::invalid;

    #[test]
    fn a_cause_of_several_runs_is_one_line_that_names_them() {
        let all = invalid();
        assert_eq!(causes(&all.not_used).len(), 1);
        let text = causes(&all.not_used)[0].text(6, WorkUnit::Events);
        assert!(
            text.starts_with("8 runs of comparison, pairs 1, 2, 3, 4, 5, 6 and 2 more ("),
            "{text}"
        );
        assert!(
            text.contains(" (CPU per event 4.31 µs): generator late"),
            "{text}"
        );
    }

    #[test]
    fn a_reason_that_the_verdict_has_is_no_warning_unless_there_are_numbers() {
        let outcome = stillwell_capture::RunOutcome::CouldNotStart {
            reason: "port taken".to_owned(),
        };
        let mut failed = invalid();
        failed.not_used.truncate(1);
        failed.not_used[0].warnings = vec![RunWarning::NotCompleted { outcome }];
        let reason = "0 valid pairs, 4 are needed: 1 run of baseline discarded (run could not start: port taken)";
        failed.goals[0].reason = Some(reason.to_owned());
        assert_eq!(warnings(&failed, 6).len(), 1);
        failed.not_used[0].values.clear();
        assert_eq!(warnings(&failed, 6), []);
    }

    #[test]
    fn runs_of_other_variants_and_other_causes_have_their_own_lines() {
        let mut some = invalid();
        some.not_used.truncate(4);
        some.not_used[1].variant = "baseline".to_owned();
        some.not_used[2].warnings.truncate(1);
        some.not_used[3].warnings[1] = RunWarning::TargetDelayed {
            share: 0.5,
            limit: 0.1,
        };
        let causes = causes(&some.not_used);
        let sizes: Vec<usize> = causes.iter().map(|cause| cause.runs.len()).collect();
        assert_eq!(sizes, [2, 1, 1]);
        let text = causes[0].text(6, WorkUnit::Events);
        assert!(text.ends_with("(these numbers are of pair 1)"), "{text}");
        assert!(
            causes[1]
                .text(6, WorkUnit::Events)
                .starts_with("pair 2, baseline (")
        );
    }
}
