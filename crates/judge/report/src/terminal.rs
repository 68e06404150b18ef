//! A report for readers at a terminal.

use std::fmt::Write as _;

use stillwell_verdict::{ExperimentVerdict, GoalVerdict, Verdict};

use crate::forest::Axis;
use crate::words::{self, GoalText as _};
use crate::{LabReport, Style, family, honesty, moved};

/// Runs with doubts that are listed one by one.
const RUNS_LISTED_MAX: usize = 6;
/// Series that are listed of what else moved.
const MOVED_LISTED_MAX: usize = 5;

/// The report for readers at a terminal: the answers, then each experiment, then
/// where the results are and what to type next.
#[must_use]
pub fn terminal(report: &LabReport, style: Style) -> String {
    let mut text = String::new();
    line(&mut text, &headline(report));
    text.push('\n');
    let name_width = report
        .experiments
        .iter()
        .map(|own| own.name.chars().count());
    let name_width = name_width.max().unwrap_or(0);
    for experiment in &report.experiments {
        line(&mut text, &sentence(experiment, name_width, style));
    }
    for experiment in &report.experiments {
        text.push('\n');
        text.push_str(&section(experiment, style));
    }
    text.push_str(&responses(report, style));
    text.push('\n');
    text.push_str(&footer(report));
    text
}

fn headline(report: &LabReport) -> String {
    if report.experiments.is_empty() {
        return format!(
            "{}: nothing was finished, so there is no verdict",
            report.title
        );
    }
    let number = u32::try_from(report.experiments.len()).unwrap_or(u32::MAX);
    format!(
        "{}: {} compared with {} in {}: {}",
        report.title,
        report.comparison,
        report.baseline,
        words::counted(number, "experiment", "experiments"),
        words::tally(&report.experiments)
    )
}

/// The answer of one experiment.
fn sentence(experiment: &ExperimentVerdict, name_width: usize, style: Style) -> String {
    let verdict = experiment.verdict;
    let word = format!("{} {:<12}", words::symbol(verdict), verdict.name());
    let mut text = format!(
        "{} {:<name_width$}  {}",
        style.verdict(verdict, &word),
        words::plain(&experiment.name),
        words::plain(&words::finding(experiment))
    );
    let failed = experiment.checks.iter().filter(|check| check.failed() > 0);
    let failed = u32::try_from(failed.count()).unwrap_or(u32::MAX);
    if failed > 0 {
        let failed = words::counted(failed, "failed check", "failed checks");
        text.push_str(&format!("; {}", style.bad(&failed)));
    }
    if experiment.erratic {
        text.push_str(" (erratic: does not gate)");
    }
    text
}

fn section(experiment: &ExperimentVerdict, style: Style) -> String {
    let mut text = style.strong(&words::plain(&experiment.name));
    if let Some(summary) = &experiment.summary {
        text.push_str(&format!(": {}", words::plain(summary)));
    }
    text.push('\n');
    text.push_str(&goal_table(experiment, style));
    text.push_str(&forest(experiment, style));
    for goal in &experiment.goals {
        text.push_str(&remarks(goal, experiment));
        for told in honesty::of_goal(goal, experiment) {
            line(&mut text, &format!("  {told}"));
        }
    }
    text.push_str(&what_else(experiment, style));
    for check in &experiment.checks {
        let told = words::plain(&words::check_line(check));
        let told = if check.failed() > 0 {
            style.bad(&told)
        } else {
            told
        };
        line(&mut text, &format!("  {told}"));
    }
    text.push_str(&left_out(experiment));
    for seen in &experiment.cautions {
        let runs = if seen.runs == seen.of {
            String::new()
        } else {
            format!(" (in {} of {} runs)", seen.runs, seen.of)
        };
        line(
            &mut text,
            &format!("  note: {}{runs}", words::plain(&seen.caution.to_string())),
        );
    }
    for told in honesty::of_experiment(experiment) {
        line(&mut text, &style.faint(&format!("  {told}")));
    }
    line(
        &mut text,
        &style.faint(&format!("  {}", circumstances(experiment))),
    );
    text
}

/// What else changed, for readers who look for the cause.
fn what_else(experiment: &ExperimentVerdict, style: Style) -> String {
    let Some(legend) = moved::legend(experiment, MOVED_LISTED_MAX) else {
        return String::new();
    };
    let rows = moved::rows(experiment, MOVED_LISTED_MAX);
    let table = if rows.is_empty() {
        String::new()
    } else {
        let heads = moved::HEADS.map(str::to_owned).to_vec();
        let rows = rows.into_iter().map(|row| row.to_vec());
        words::columns(&[heads].into_iter().chain(rows).collect::<Vec<_>>(), 2)
    };
    format!("{table}{}\n", style.faint(&format!("  {legend}")))
}

/// The experiments of each matrix side by side.
fn responses(report: &LabReport, style: Style) -> String {
    let mut text = String::new();
    for family in family::families(&report.experiments) {
        let name = style.strong(&words::plain(family.name));
        line(&mut text, &format!("\n{name}: response"));
        let mut rows = vec![family.heads()];
        rows.extend(family.rows());
        text.push_str(&words::columns(&rows, 2));
        for curve in family.curves() {
            line(&mut text, &style.faint(&format!("  {curve}")));
        }
    }
    text
}

/// A row for each goal; the verdict stands last, so that its colour moves nothing.
fn goal_table(experiment: &ExperimentVerdict, style: Style) -> String {
    let heads = [
        "goal",
        "baseline",
        "comparison",
        "change",
        "95 % interval",
        "tolerance",
        "pairs",
        "verdict",
    ];
    let mut rows = vec![heads.map(str::to_owned).to_vec()];
    for goal in &experiment.goals {
        let value = |value: Option<f64>| {
            words::or_missing(value.map(|value| words::goal_value(&goal.metric, value)))
        };
        let change = goal
            .change
            .map(|own| words::change_size(goal.scale, own.estimate));
        let word = format!("{} {}", words::symbol(goal.verdict), goal.verdict.name());
        let role = if goal.primary { " (primary)" } else { "" };
        rows.push(vec![
            format!("{}{role}", words::goal_name(goal, experiment)),
            value(goal.baseline_mean),
            value(goal.comparison_mean),
            words::or_missing(change),
            words::or_missing(goal.change.map(words::interval)),
            goal.tolerance_text(),
            words::pairs(goal, experiment),
            style.verdict(goal.verdict, &word),
        ]);
    }
    words::columns(&rows, 2)
}

fn forest(experiment: &ExperimentVerdict, style: Style) -> String {
    const NAME_AND_MARGIN: u16 = 36;
    let width = style.width.saturating_sub(NAME_AND_MARGIN);
    let Some(axis) = Axis::of(experiment.goals.iter(), width) else {
        return String::new();
    };
    let reach = words::percent(axis.reach());
    let inner = axis.cells().saturating_sub(2 * (reach.chars().count() + 1));
    let scale = format!("-{reach}{:^inner$}+{reach}", "0");
    let mut rows = vec![vec![String::new(), scale]];
    for goal in &experiment.goals {
        let Some(change) = goal.change else {
            continue;
        };
        let drawn = axis.line(change, goal.tolerance.share());
        rows.push(vec![words::goal_name(goal, experiment), drawn]);
    }
    let legend = "  (- within tolerance, | zero, [=o=] interval and estimate)";
    format!("{}{}\n", words::columns(&rows, 2), style.faint(legend))
}

/// Why a goal has no clear answer, and what to know when reading its number.
fn remarks(goal: &GoalVerdict, experiment: &ExperimentVerdict) -> String {
    let name = words::goal_name(goal, experiment);
    let mut text = String::new();
    // The sentence at the top has said it of the deciding goal.
    let told = words::deciding(experiment).is_some_and(|own| own == goal);
    match (&goal.reason, goal.verdict) {
        (Some(_), _) | (None, Verdict::Inconclusive) if told => {}
        (Some(reason), verdict) => {
            line(
                &mut text,
                &format!("  {name} is {}: {}", verdict.name(), words::plain(reason)),
            );
        }
        (None, Verdict::Different) => {
            line(
                &mut text,
                &format!("  {name} is different: {}", words::DIFFERENT),
            );
        }
        (None, Verdict::Inconclusive) => {
            line(
                &mut text,
                &format!("  {name} is inconclusive: {}", words::could_see(goal)),
            );
        }
        _ => {}
    }
    if let Some(note) = &goal.note {
        line(&mut text, &format!("  {name}: {note}"));
    }
    text
}

fn left_out(experiment: &ExperimentVerdict) -> String {
    let mut text = String::new();
    for run in experiment.not_used.iter().take(RUNS_LISTED_MAX) {
        let doubts: Vec<String> = run.doubts.iter().map(ToString::to_string).collect();
        line(
            &mut text,
            &format!(
                "  doubt: {}pair {}, {}: {}",
                words::stage(run.stage),
                run.pair,
                run.variant,
                words::plain(&doubts.join("; "))
            ),
        );
    }
    let more = experiment.not_used.len().saturating_sub(RUNS_LISTED_MAX);
    if more > 0 {
        line(
            &mut text,
            &format!("  doubt: {more} more runs, see the report's JSON form"),
        );
    }
    text
}

/// Rate, length and CPUs.
pub(crate) fn circumstances(experiment: &ExperimentVerdict) -> String {
    let mut parts: Vec<String> = experiment.rate.iter().map(words::rate_line).collect();
    parts.push(format!(
        "{} measured after {} of warm-up in each run",
        experiment.measure, experiment.warmup
    ));
    parts.push(format!(
        "CPUs: subject {}, ours {}",
        words::cpus(experiment.cpus.subject.as_deref()),
        words::cpus(experiment.cpus.own.as_deref())
    ));
    parts.join("; ")
}

fn footer(report: &LabReport) -> String {
    let mut rows = vec![
        vec!["took".to_owned(), words::clock(report.elapsed)],
        vec!["false alarms".to_owned(), honesty::budget(&report.budget)],
        vec!["seed".to_owned(), report.seed.clone()],
        vec!["results".to_owned(), report.results_folder.clone()],
    ];
    for (index, next) in report.next.iter().enumerate() {
        let head = if index == 0 { "next" } else { "" };
        rows.push(vec![head.to_owned(), next.clone()]);
    }
    words::columns(&rows, 0)
}

fn line(text: &mut String, added: &str) {
    // Writing to a string cannot fail.
    writeln!(text, "{added}").unwrap_or_default();
}
