//! Messages and report of a bisection.

use anstyle::Style;
use stillwell_experiment::bisect::{
    Answer, BisectProgress, BisectRecord, Commit, OutcomeKind, OutcomeRecord, StepRecord,
};
use stillwell_plan::goal::Scale;
use stillwell_plan::{GoalMetric, SuitePlan, WorkUnit};
use stillwell_report::history::{
    BisectCommit, BisectOutcome, BisectReport, BisectStep, CommitAnswer,
};
use stillwell_verdict::Change;

use crate::arguments::BisectArguments;
use crate::command::output;
use crate::paint::Paint;
use crate::secrets;

/// Digits of a commit's name that readers know it by.
const COMMIT_SHOWN: usize = 12;

/// A line while it goes on.
pub(super) fn progress(progress: &BisectProgress<'_>, plan: &SuitePlan, paint: &Paint) -> String {
    match progress {
        BisectProgress::Commits(commits) => match commits.len() - 1 {
            1 => "1 commit after GOOD, which is BAD".to_owned(),
            many => format!("{many} commits after GOOD, up to BAD"),
        },
        BisectProgress::Comparing {
            left_at_most,
            baseline,
            comparison,
        } => {
            let (baseline, comparison) = (name(baseline), name(comparison));
            let compared = format!("{baseline} against {comparison}");
            let compared = paint.styled(Style::new().bold(), &compared);
            let plural = if *left_at_most == 1 { "" } else { "s" };
            format!("{compared}: at most {left_at_most} comparison{plural} left")
        }
        BisectProgress::Answered { step, taken_over } => {
            let short = step.comparison.get(..COMMIT_SHOWN);
            let short = short.unwrap_or(&step.comparison);
            let already = if *taken_over {
                ", from earlier results"
            } else {
                ""
            };
            let answer = match step.answer {
                Answer::Bad => "worse",
                Answer::Good => "not worse",
                Answer::Unknown => "inconclusive",
            };
            let change = step.change.map_or_else(String::new, |[change, ..]| {
                let share = matches!(metric(Some(step), plan).scale(), Scale::Ratio);
                let unit = if share { " %" } else { " points" };
                format!(" ({:+.2}{unit} in {} pairs)", change * 100.0, step.pairs)
            });
            let reason = step.reason.as_deref().map(|reason| format!(": {reason}"));
            format!(
                "=> {short}: {answer}{change}{already}{}",
                reason.unwrap_or_default()
            )
        }
        BisectProgress::Suite(_) => String::new(),
    }
}

fn name(commit: &Commit) -> String {
    let short = commit.revision.get(..COMMIT_SHOWN);
    format!("{} ({})", short.unwrap_or(&commit.revision), commit.title)
}

/// Report of a bisection, without the next command.
pub(super) fn report(record: &BisectRecord, plan: &SuitePlan, results: String) -> BisectReport {
    let commits = record.commits.iter().map(|commit| BisectCommit {
        revision: commit.revision.clone(),
        title: commit.title.clone(),
        merge: commit.merge,
    });
    let steps = record.steps.iter().filter_map(|step| {
        Some(BisectStep {
            baseline: place(record, &step.baseline)?,
            comparison: place(record, &step.comparison)?,
            answer: answer(step.answer),
            change: step.change.map(|[estimate, lower, upper]| Change {
                estimate,
                lower: unbounded(lower),
                upper: unbounded(upper),
            }),
            tolerance_share: step.tolerance,
            pairs: step.pairs,
            reason: step.reason.clone(),
            results: step.results.clone(),
        })
    });
    BisectReport {
        experiment: record.experiment.clone(),
        metric: metric(record.steps.first(), plan),
        work: work(plan),
        commits: commits.collect(),
        steps: steps.collect(),
        outcome: outcome(record),
        results_folder: results,
        command: output::command_line(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        next: Vec::new(),
    }
}

/// The command that looks again in the range that is left, with fresh runs.
pub(super) fn narrower(outcome: &OutcomeRecord, arguments: &BisectArguments) -> Option<String> {
    if outcome.kind != OutcomeKind::Range {
        return None;
    }
    let short = |name: &Option<String>| name.as_ref()?.get(..COMMIT_SHOWN).map(str::to_owned);
    let ends = [short(&outcome.last_good)?, short(&outcome.first_bad)?];
    let typed = [arguments.good.as_str(), arguments.bad.as_str()];
    Some(output::with_note(between(
        secrets::command_words().into_iter().skip(1),
        typed,
        ends,
    )))
}

/// The line with other ends, and results in a folder of its own.
fn between(words: impl Iterator<Item = String>, typed: [&str; 2], ends: [String; 2]) -> String {
    let mut line = vec!["stillwell".to_owned()];
    let mut ends = typed.into_iter().zip(ends).peekable();
    let mut words = words;
    while let Some(word) = words.next() {
        match word.as_str() {
            "--resume" => {}
            "--results" => drop(words.next()),
            other if other.starts_with("--results=") => {}
            other => match ends.next_if(|(typed, _)| *typed == other) {
                Some((_, end)) => line.push(end),
                None => line.push(output::quoted(other)),
            },
        }
    }
    line.join(" ")
}

/// Returns the metric that decided a step, or the first of the plan.
fn metric(step: Option<&StepRecord>, plan: &SuitePlan) -> GoalMetric {
    if let Some(metric) = step.and_then(|step| step.metric.clone()) {
        return metric;
    }
    let goals = plan
        .experiments
        .first()
        .map(|experiment| experiment.goals.as_slice());
    let first = goals.and_then(|goals| goals.first());
    // Every experiment has a goal: plans come from the configuration.
    first.map_or(GoalMetric::CpuPerEvent, |goal| goal.metric.clone())
}

fn work(plan: &SuitePlan) -> WorkUnit {
    let first = plan.experiments.first();
    first.map_or_else(WorkUnit::default, |experiment| {
        WorkUnit::of(&experiment.run_plan.generators)
    })
}

fn outcome(record: &BisectRecord) -> Option<BisectOutcome> {
    let outcome = record.outcome.as_ref()?;
    let confirmed = || {
        let last = record.steps.last()?;
        Some(BisectOutcome::Found {
            good: place(record, outcome.last_good.as_deref()?)?,
            bad: place(record, outcome.first_bad.as_deref()?)?,
            confirmed: answer(last.answer),
        })
    };
    match outcome.kind {
        OutcomeKind::NotWorse => Some(BisectOutcome::NotWorse),
        OutcomeKind::Unclear => Some(BisectOutcome::Unclear),
        OutcomeKind::Commit | OutcomeKind::Range => confirmed().map(|outcome| match outcome {
            // Where both ends are neighbours, their comparison was the first.
            BisectOutcome::Found { good, bad, .. } => BisectOutcome::Found {
                good,
                bad,
                confirmed: CommitAnswer::Bad,
            },
            other => other,
        }),
        OutcomeKind::Unconfirmed => confirmed(),
    }
}

fn place(record: &BisectRecord, revision: &str) -> Option<usize> {
    let mut commits = record.commits.iter();
    commits.position(|commit| commit.revision == revision)
}

const fn answer(answer: Answer) -> CommitAnswer {
    match answer {
        Answer::Bad => CommitAnswer::Bad,
        Answer::Good => CommitAnswer::Good,
        Answer::Unknown => CommitAnswer::Unknown,
    }
}

/// A record has no infinity.
fn unbounded(value: f64) -> f64 {
    if value.abs() >= f64::MAX {
        value.signum() * f64::INFINITY
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_search_has_other_ends_and_results_of_its_own() {
        let words = "bisect --results old v1 HEAD suite --resume --only HEAD".split(' ');
        let ends = ["abc".to_owned(), "def".to_owned()];
        let line = between(words.map(str::to_owned), ["v1", "HEAD"], ends);
        assert_eq!(line, "stillwell bisect abc def suite --only HEAD");
    }
}
