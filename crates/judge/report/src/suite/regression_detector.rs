//! A suite in the layout of the Regression Detector's comment, for readers and scripts that expect that layout.
//!
//! Headings, columns and signs are those of its comments since October 2024; verdicts, intervals and decision are those of
//! every other report.

use std::borrow::Cow;

use stillwell_plan::GoalMetric;
use stillwell_verdict::{CheckVerdict, ExperimentVerdict, Gate, GatePolicy, GoalVerdict, Verdict};

use super::comment::cut;
use super::{CommentOptions, LENGTH_MAX, by_attention, comparisons, links};
use crate::document::escape;
use crate::{SuiteReport, words};

const GOALS: &str = "| perf | experiment | goal | Δ mean % | Δ mean % CI | trials | links |";
const CHECKS: &str =
    "| perf | experiment | bounds_check_name | replicates_passed | observed_value | links |";

/// Rows of a table that are tried, until the comment is short enough.
const ROWS: [usize; 7] = [usize::MAX, 400, 200, 100, 50, 25, 10];

const EXPLANATION: &str = "\
Each trial is a pair of runs, one of the baseline and one of the comparison, with the same load and in random order. \
\"Δ mean %\" is the change of the goal's mean, in percent of the baseline; of a share, it is in percentage points. \
\"Δ mean % CI\" is its 95 % confidence interval.

A change is a regression (❌) if all of this holds:

1. The estimate is at least the tolerance of the experiment, in the worse direction of the goal.
2. The interval does not contain zero.
3. New pairs confirm it; without confirmation, at least six pairs and Holm's correction show it.
4. The experiment is not marked `erratic`.

✅ is an improvement by the same rule, ➖ neither, and ⚠️ an experiment that could not be judged.
";

/// Returns the comment in that layout. Never longer than [`LENGTH_MAX`] bytes.
#[must_use]
pub fn regression_detector(
    report: &SuiteReport,
    options: &CommentOptions,
    policy: GatePolicy,
) -> String {
    let mut text = String::new();
    for rows_max in ROWS {
        text = Layout { report, rows_max }.text(options, policy);
        if text.len() <= LENGTH_MAX {
            return text;
        }
    }
    cut(&text)
}

/// Returns true for a regression that does not gate: it is of few pairs, and none confirmed it.
fn is_unconfirmed(entry: &ExperimentVerdict) -> bool {
    entry.verdict == Verdict::Regressed && entry.gate != Gate::Regressed
}

#[derive(Clone, Copy, Debug)]
struct Layout<'a> {
    report: &'a SuiteReport,
    rows_max: usize,
}

impl Layout<'_> {
    fn text(self, options: &CommentOptions, policy: GatePolicy) -> String {
        let mut text = self.head(options);
        text.push_str(&self.goals());
        text.push_str(&self.checks());
        text.push_str(&folded("Explanation", EXPLANATION));
        text.push_str(&self.decision(policy));
        text
    }

    fn head(self, options: &CommentOptions) -> String {
        let report = self.report;
        let links = options.links.iter().map(|(text, url)| link(text, url));
        let links: Vec<String> = links.collect();
        let mut lines = vec![
            options.marker(),
            "## Regression Detector".to_owned(),
            String::new(),
            "# Regression Detector Results".to_owned(),
            String::new(),
        ];
        if !links.is_empty() {
            lines.extend([links.join(" "), String::new()]);
        }
        let folder = report.results_folder.trim_end_matches('/');
        let job = folder.rsplit('/').next().unwrap_or(folder);
        lines.extend([
            format!("Run ID: {}", escaped(job)),
            String::new(),
            format!("Baseline: {}", escaped(&report.baseline)),
            format!("Comparison: {}", escaped(&comparisons(report))),
        ]);
        format!("{}\n\n", lines.join("\n"))
    }

    fn goals(self) -> String {
        let experiments = &self.report.experiments;
        let (ignored, gating): (Vec<_>, Vec<_>) = by_attention(experiments)
            .into_iter()
            .partition(|entry| entry.erratic);
        let changed = |entry: &&ExperimentVerdict| {
            matches!(entry.verdict, Verdict::Regressed | Verdict::Improved)
        };
        let regressed = |entry: &ExperimentVerdict| entry.verdict == Verdict::Regressed;
        let is_confirmed = |entry: &ExperimentVerdict| regressed(entry) && !is_unconfirmed(entry);
        let invalid = gating
            .iter()
            .filter(|entry| entry.verdict == Verdict::Invalid || entry.gate == Gate::Invalid);
        let invalid = invalid.count();
        let shown: Vec<_> = gating.iter().copied().filter(changed).collect();
        let answer = if gating.iter().any(|entry| is_confirmed(entry)) {
            "❌ Regression(s) detected".to_owned()
        } else if invalid > 0 {
            format!("⚠️ {invalid} of {} experiments not judged", gating.len())
        } else if gating.iter().any(|entry| regressed(entry)) {
            "⚠️ Unconfirmed regression(s)".to_owned()
        } else if shown.is_empty() {
            "✅ No significant changes detected".to_owned()
        } else {
            "✅ Improvement(s) detected".to_owned()
        };
        let mut text = format!("## Optimization Goals: {answer}\n\n");
        if !shown.is_empty() {
            text.push_str(&self.table(GOALS, shown.iter().map(|entry| self.row(entry))));
        }
        if !ignored.is_empty() {
            let table = self.table(GOALS, ignored.iter().map(|entry| self.row(entry)));
            let reason =
                "Regressions in experiments with settings containing `erratic: true` are ignored.";
            let title = "Experiments ignored for regressions";
            text.push_str(&folded(title, &format!("{reason}\n\n{table}")));
        }
        let all = self.table(GOALS, gating.iter().map(|entry| self.row(entry)));
        text.push_str(&folded(
            "Fine details of change detection per experiment",
            &all,
        ));
        text
    }

    fn checks(self) -> String {
        let ordered = by_attention(&self.report.experiments).into_iter();
        let all = ordered.flat_map(|entry| entry.checks.iter().map(move |check| (entry, check)));
        let (broken, kept): (Vec<_>, Vec<_>) = all.partition(|(_, check)| check.is_broken());
        if broken.is_empty() && kept.is_empty() {
            return String::new();
        }
        let gates = broken.iter().any(|(entry, _)| !entry.erratic);
        let answer = if gates { "❌ Failed" } else { "✅ Passed" };
        let rows = broken.iter().chain(&kept);
        let rows = rows.map(|(entry, check)| {
            let sign = match check.is_broken() {
                false => "✅",
                true if check.failed() > 0 => "❌",
                true => "⚠️",
            };
            cells([
                sign.to_owned(),
                escaped(&entry.name),
                escaped(&check.name),
                format!("{}/{}", check.passed, check.runs),
                observed(check),
                self.links(entry),
            ])
        });
        format!("## Bounds Checks: {answer}\n\n{}", self.table(CHECKS, rows))
    }

    fn decision(self, policy: GatePolicy) -> String {
        let experiments = &self.report.experiments;
        let (sign, sentence) = match self.report.exit_code(policy) {
            0 => ("✅ **Passed.**", "No experiment failed the gate."),
            1 => (
                "❌ **Failed.**",
                "An experiment regressed or a check failed.",
            ),
            2 | 3 => (
                "⚠️ **Could not run.**",
                "An experiment could not be started.",
            ),
            _ => (
                "⚠️ **Unreliable.**",
                "An experiment could not be judged well enough for the gate.",
            ),
        };
        let mut text = format!("## CI Pass/Fail Decision\n\n{sign} {sentence}\n\n");
        for problem in self.report.problems.iter().take(self.rows_max) {
            text.push_str(&format!("- {}\n", escaped(&problem.line())));
        }
        let ordered = by_attention(experiments).into_iter();
        let open = ordered.filter(|entry| {
            !entry.erratic && (entry.gate != Gate::Held || !entry.checks.is_empty())
        });
        let open: Vec<_> = open.collect();
        for entry in open.iter().take(self.rows_max) {
            let gate = match entry.gate {
                Gate::Held => "passed",
                Gate::Inconclusive if policy == GatePolicy::Normal => "passed (inconclusive)",
                Gate::Inconclusive => "inconclusive",
                Gate::Invalid => "not judged",
                Gate::Regressed | Gate::CheckFailed => "failed",
            };
            let name = escaped(&entry.name);
            if entry.gate == Gate::Held || entry.gate == Gate::CheckFailed {
                for check in &entry.checks {
                    let outcome = if check.is_broken() {
                        "failed"
                    } else {
                        "passed"
                    };
                    text.push_str(&format!(
                        "- {name}, bounds check {}: {}/{} replicas passed. Gate {outcome}.\n",
                        escaped(&check.name),
                        check.passed,
                        check.runs
                    ));
                }
            } else {
                let finding = escaped(&words::finding(entry));
                text.push_str(&format!("- {name}: {finding}. Gate {gate}.\n"));
            }
        }
        text.push_str(&left_out(open.len(), self.rows_max));
        text
    }

    fn table(self, head: &str, rows: impl Iterator<Item = String> + Clone) -> String {
        let number = rows.clone().count();
        let rule = "|---".repeat(head.matches('|').count().saturating_sub(1));
        let rows: String = rows.take(self.rows_max).collect();
        let left_out = left_out(number, self.rows_max);
        format!("{head}\n{rule}|\n{rows}{left_out}\n")
    }

    /// Returns the row of the goal that decides.
    fn row(self, entry: &ExperimentVerdict) -> String {
        let sign = match entry.verdict {
            Verdict::Regressed if is_unconfirmed(entry) => "➖",
            Verdict::Regressed => "❌",
            Verdict::Improved => "✅",
            Verdict::Invalid => "⚠️",
            Verdict::Equivalent | Verdict::Different | Verdict::Inconclusive => "➖",
        };
        let goal = words::deciding(entry);
        let change = goal.and_then(|goal| {
            let unreliable = || goal.unreliable.and_then(|estimate| estimate.change);
            goal.change.or_else(unreliable)
        });
        let missing = || words::MISSING.to_owned();
        let percent = |share: f64| format!("{:+.2}", share * 100.0);
        cells([
            sign.to_owned(),
            escaped(&entry.name),
            goal.map_or_else(missing, |goal| escaped(&goal_words(goal, entry))),
            change.map_or_else(missing, |change| percent(change.estimate)),
            change.map_or_else(missing, |change| {
                format!("[{}, {}]", percent(change.lower), percent(change.upper))
            }),
            goal.map_or_else(missing, |goal| words::pairs(goal, entry)),
            self.links(entry),
        ])
    }

    fn links(self, entry: &ExperimentVerdict) -> String {
        let links = links::filled(entry, self.report).into_iter();
        let links: Vec<String> = links.map(|entry| link(&entry.text, &entry.link)).collect();
        links.join(" ")
    }
}

/// Returns the words of the Regression Detector for its own goals, else those of other reports, and the variant where
/// there are more than one to compare.
fn goal_words(goal: &GoalVerdict, entry: &ExperimentVerdict) -> String {
    let title = match goal.metric {
        GoalMetric::Cpu => Cow::Borrowed("% cpu utilization"),
        GoalMetric::Memory => Cow::Borrowed("memory utilization"),
        _ => words::goal_title(&goal.metric, entry.work),
    };
    words::titled_goal(&title, goal, entry)
}

/// Returns the worst value and its bounds: `(147 MiB ≤ 154 MiB)`.
fn observed(check: &CheckVerdict) -> String {
    let Some(worst) = check.worst_observed else {
        return words::MISSING.to_owned();
    };
    let text = |value: f64| words::check_value(value, &check.unit);
    let sign = |holds: bool| if holds { "≤" } else { ">" };
    let lower = check.lower.map(|lower| {
        let sign = sign(lower <= worst);
        format!("{} {sign} ", text(lower))
    });
    let upper = check.upper.map(|upper| {
        let sign = sign(worst <= upper);
        format!(" {sign} {}", text(upper))
    });
    let (lower, upper) = (lower.unwrap_or_default(), upper.unwrap_or_default());
    escaped(&format!("({lower}{}{upper})", text(worst)))
}

fn left_out(number: usize, rows_max: usize) -> String {
    match number.saturating_sub(rows_max) {
        0 => String::new(),
        more => format!("\n{more} more are in the results folder.\n"),
    }
}

fn cells<const N: usize>(cells: [String; N]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

fn folded(summary: &str, content: &str) -> String {
    let content = content.trim_end();
    format!("<details>\n<summary>{summary}</summary>\n\n{content}\n\n</details>\n\n")
}

fn link(text: &str, url: &str) -> String {
    let url = escape::target(url).replace('|', "%7C");
    format!("[{}](<{url}>)", escaped(text))
}

/// Underscores are common in names and inside of words, where they mark nothing.
fn escaped(text: &str) -> String {
    escape::markdown(text, None, false).replace("\\_", "_")
}

#[cfg(test)]
mod tests;
