//! Messages and report of a bisection.

use anstyle::Style;
use clap::{Arg, CommandFactory as _};
use stillwell_experiment::bisect::{
    Answer, BisectProgress, BisectRecord, Commit, OutcomeKind, OutcomeRecord, StepRecord,
};
use stillwell_plan::goal::Scale;
use stillwell_plan::{GoalMetric, SuitePlan, WorkUnit};
use stillwell_report::history::{
    BisectCommit, BisectOutcome, BisectReport, BisectStep, CommitAnswer,
};
use stillwell_verdict::Change;

use crate::arguments::Arguments;
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
pub(super) fn narrower(outcome: &OutcomeRecord) -> Option<String> {
    if outcome.kind != OutcomeKind::Range {
        return None;
    }
    let short = |name: &Option<String>| name.as_ref()?.get(..COMMIT_SHOWN).map(str::to_owned);
    let ends = [short(&outcome.last_good)?, short(&outcome.first_bad)?];
    let words = secrets::command_words().into_iter().skip(1);
    Some(output::with_note(between(words, ends)))
}

/// The line with other ends, and results in a folder of its own.
fn between(words: impl Iterator<Item = String>, [good, bad]: [String; 2]) -> String {
    let command = Arguments::command();
    let bisect = command.find_subcommand("bisect").into_iter();
    let options = bisect.flat_map(clap::Command::get_arguments);
    let options = options.chain(command.get_arguments());
    let options = options.filter(|option| option.get_action().takes_values());
    let options: Vec<&Arg> = options.collect();
    // The first words that are neither options nor their values: `bisect`, GOOD and BAD.
    let mut replacements = [None, Some(good), Some(bad)].into_iter();
    let (mut is_value, mut has_options) = (false, true);
    let mut line = vec!["stillwell".to_owned()];
    for word in without_results(words) {
        let is_option = has_options && !is_value && word.starts_with('-');
        let replacement = match is_value || is_option {
            true => None,
            false => replacements.next().flatten(),
        };
        is_value = is_option && takes_next(&options, &word);
        // After `--` every word is positional.
        has_options &= !is_option || word != "--";
        line.push(replacement.unwrap_or_else(|| output::quoted(&word)));
    }
    line.join(" ")
}

/// Returns true if the word after `word` is the value of one of the `options`. Words such as `--only=NAME` and `-oFILE`
/// contain their value.
fn takes_next(options: &[&Arg], word: &str) -> bool {
    let Some(long) = word.strip_prefix("--") else {
        let letters = word.trim_start_matches('-');
        let is_short = |letter: char| {
            let mut options = options.iter();
            options.any(|option| {
                let aliases = option.get_all_short_aliases().unwrap_or_default();
                option.get_short() == Some(letter) || aliases.contains(&letter)
            })
        };
        // Letters before it are flags, as in `-qo FILE`.
        let place = letters.find(is_short);
        return place.is_some_and(|place| place + 1 == letters.len());
    };
    let mut options = options.iter();
    options.any(|option| {
        let aliases = option.get_all_aliases().unwrap_or_default();
        option.get_long() == Some(long) || aliases.contains(&long)
    })
}

/// Returns `words` without the options of the results folder.
fn without_results(mut words: impl Iterator<Item = String>) -> Vec<String> {
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--resume" => {}
            "--results" => drop(words.next()),
            inline if inline.starts_with("--results=") => {}
            _ => kept.push(word),
        }
    }
    kept
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
        for (words, expected) in [
            (
                "bisect --results old v1 HEAD suite --resume --only HEAD",
                "stillwell bisect abc def suite --only HEAD",
            ),
            (
                "bisect --only v1 v1 HEAD suite",
                "stillwell bisect --only v1 abc def suite",
            ),
            (
                "bisect v1 --only a HEAD suite",
                "stillwell bisect abc --only a def suite",
            ),
            (
                "bisect v1 --only v1 HEAD suite",
                "stillwell bisect abc --only v1 def suite",
            ),
            (
                "bisect --only v1 v1 --only a HEAD",
                "stillwell bisect --only v1 abc --only a def",
            ),
            (
                "bisect --only v1 --only HEAD v1 HEAD",
                "stillwell bisect --only v1 --only HEAD abc def",
            ),
            (
                "--color never bisect --only=v1 --soak v1 --pairs 4 --quick v1 HEAD",
                "stillwell --color never bisect --only=v1 --soak v1 --pairs 4 --quick abc def",
            ),
            (
                "bisect -qo v1 -ov1 -q v1 HEAD -o HEAD",
                "stillwell bisect -qo v1 -ov1 -q abc def -o HEAD",
            ),
            (
                "bisect --only v1 -- bisect HEAD --only",
                "stillwell bisect --only v1 -- abc def --only",
            ),
        ] {
            let ends = ["abc".to_owned(), "def".to_owned()];
            let words = words.split(' ').map(str::to_owned);
            assert_eq!(between(words, ends), expected);
        }
    }
}
