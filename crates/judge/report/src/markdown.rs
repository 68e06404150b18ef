//! A report for a comment on a pull request.

use stillwell_verdict::{ExperimentVerdict, Gate, GoalVerdict, Verdict};

use crate::terminal::circumstances;
use crate::words::{self, GoalText as _};
use crate::{LabReport, family, honesty, moved};

/// The hidden first line, by which a bot finds its own comment again.
pub const MARKER: &str = "<!-- stillwell:report:v1 -->";

/// No report is longer, in bytes: hosts refuse comments above 65,536 characters.
pub const LENGTH_MAX: usize = 65_000;

/// Of [`LENGTH_MAX`], what the table of experiments may take.
const TABLE_MAX: usize = 30_000;
/// Of [`LENGTH_MAX`], what the response tables of matrices may take.
const RESPONSES_MAX: usize = 15_000;
/// Of [`LENGTH_MAX`], what is kept for the end of the report.
const END_MAX: usize = 6_000;
/// Longest text of one cell or line that others wrote, in characters.
const CELL_MAX: usize = 400;
/// Runs with doubts that are listed one by one.
const RUNS_LISTED_MAX: usize = 10;
/// Series that are listed of what else moved.
const MOVED_LISTED_MAX: usize = 10;

/// The report in GitHub's Markdown: verdict first, one table, the rest folded.
/// Never longer than [`LENGTH_MAX`]; what is left out is said.
#[must_use]
pub fn markdown(report: &LabReport) -> String {
    let mut text = format!("{MARKER}\n{}\n\n", headline(report));
    let mut ordered: Vec<&ExperimentVerdict> = report.experiments.iter().collect();
    ordered.sort_by_key(|experiment| rank(experiment));
    text.push_str(&table(&ordered));
    text.push('\n');
    text.push_str(&responses(report));
    let mut left_out = 0_u32;
    for experiment in &ordered {
        let details = details(experiment);
        if text.len() + details.len() + END_MAX > LENGTH_MAX {
            left_out += 1;
        } else {
            text.push_str(&details);
        }
    }
    if left_out > 0 {
        text.push_str(&format!(
            "Details of {} are left out, because a comment has to stay short; the results folder \
             has them.\n\n",
            words::counted(left_out, "experiment", "experiments")
        ));
    }
    text.push_str(&measured(report));
    text
}

/// What needs a reader's eye comes first; erratic experiments come last.
fn rank(experiment: &ExperimentVerdict) -> (bool, u8) {
    let gate = match experiment.gate {
        Gate::Regressed => 0,
        Gate::CheckFailed => 1,
        Gate::Invalid => 2,
        Gate::Inconclusive => 3,
        Gate::Held => 4,
    };
    (experiment.erratic, gate)
}

fn headline(report: &LabReport) -> String {
    let gating = || report.experiments.iter().filter(|own| !own.erratic);
    let with = |gate: Gate| {
        let own = gating().filter(|own| own.gate == gate);
        u32::try_from(own.count()).unwrap_or(u32::MAX)
    };
    let all = u32::try_from(report.experiments.len()).unwrap_or(u32::MAX);
    let all = words::counted(all, "experiment", "experiments");
    let (regressed, failed) = (with(Gate::Regressed), with(Gate::CheckFailed));
    let (invalid, unsure) = (with(Gate::Invalid), with(Gate::Inconclusive));
    let finding = if regressed > 0 {
        let word = words::counted(regressed, "regression", "regressions");
        format!("❌ stillwell: {word} in {all}")
    } else if failed > 0 {
        let word = words::counted(failed, "experiment", "experiments");
        format!("❌ stillwell: checks failed in {word} of {all}")
    } else if invalid > 0 {
        format!("⚠️ stillwell could not judge {invalid} of {all}")
    } else if unsure > 0 {
        format!("❔ stillwell cannot tell in {unsure} of {all}")
    } else {
        let visible = gating().filter_map(|own| words::deciding(own)?.smallest_visible);
        let visible = visible
            .max_by(f64::total_cmp)
            .map_or_else(String::new, |visible| {
                format!(" (could have seen {})", words::percent(visible))
            });
        format!("✅ stillwell: {all} without a regression{visible}")
    };
    let tally = words::tally(&report.experiments);
    format!(
        "### {finding} · {} vs {}\n\n{tally}.",
        code(&report.baseline),
        code(&report.comparison)
    )
}

fn symbol(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Regressed => "❌",
        Verdict::Improved => "🟢",
        Verdict::Equivalent => "✅",
        Verdict::Different => "🔶",
        Verdict::Inconclusive => "❔",
        Verdict::Invalid => "⚠️",
    }
}

fn table(experiments: &[&ExperimentVerdict]) -> String {
    let mut text = String::from(
        "| verdict | experiment | goal | baseline | comparison | change (95 % interval) | \
         tolerance | pairs |\n|---|---|---|---|---|---|---|---|\n",
    );
    for (index, experiment) in experiments.iter().enumerate() {
        let row = row(experiment);
        if text.len() + row.len() > TABLE_MAX {
            let more = experiments.len() - index;
            text.push_str(&format!(
                "\n{more} more experiments are left out of this table.\n"
            ));
            break;
        }
        text.push_str(&row);
    }
    text
}

fn row(experiment: &ExperimentVerdict) -> String {
    let verdict = experiment.verdict;
    let word = format!("{} {}", symbol(verdict), verdict.name());
    let failed = if experiment.checks.iter().any(|check| check.failed() > 0) {
        ", ❌ check failed"
    } else {
        ""
    };
    let erratic = if experiment.erratic { " (erratic)" } else { "" };
    let name = format!("{}{erratic}", cell(&experiment.name));
    let Some(goal) = words::deciding(experiment) else {
        return format!("| {word}{failed} | {name} | n/a | n/a | n/a | n/a | n/a | n/a |\n");
    };
    let [baseline, comparison] = values(goal);
    let change = match (goal.change, &goal.reason) {
        (Some(change), _) => bold_if(
            verdict == Verdict::Regressed,
            &words::change_with_interval(goal.scale, change),
        ),
        (None, Some(reason)) => cell(reason),
        (None, None) => words::MISSING.to_owned(),
    };
    format!(
        "| {word}{failed} | {name} | {} | {baseline} | {comparison} | {change} | {} | {} |\n",
        cell(&words::goal_name(goal, experiment)),
        goal.tolerance_text(),
        words::pairs(goal, experiment)
    )
}

fn bold_if(bold: bool, text: &str) -> String {
    if bold {
        format!("**{text}**")
    } else {
        text.to_owned()
    }
}

fn values(goal: &GoalVerdict) -> [String; 2] {
    [goal.baseline_mean, goal.comparison_mean]
        .map(|value| words::or_missing(value.map(|value| words::goal_value(&goal.metric, value))))
}

fn details(experiment: &ExperimentVerdict) -> String {
    let mut text = format!(
        "<details><summary>{}: {}</summary>\n\n",
        cell(&experiment.name),
        experiment.verdict.name()
    );
    if let Some(summary) = &experiment.summary {
        text.push_str(&format!("{}\n\n", cell(summary)));
    }
    text.push_str(&format!("{}\n\n", cell(&words::finding(experiment))));
    text.push_str(&goals(experiment));
    text.push('\n');
    text.push_str(&what_else(experiment));
    for item in items(experiment) {
        text.push_str(&format!("* {item}\n"));
    }
    text.push_str("\n</details>\n\n");
    text
}

fn goals(experiment: &ExperimentVerdict) -> String {
    let mut text = String::from(
        "| verdict | goal | baseline | comparison | absolute | relative (95 % interval) | \
         tolerance | could have seen | pairs |\n|---|---|---|---|---|---|---|---|---|\n",
    );
    for goal in &experiment.goals {
        let [baseline, comparison] = values(goal);
        let absolute = goal.baseline_mean.zip(goal.comparison_mean);
        let absolute = absolute.map(|(baseline, comparison)| {
            words::goal_difference(&goal.metric, comparison - baseline)
        });
        let relative = goal
            .change
            .map(|change| words::change_with_interval(goal.scale, change));
        let role = if goal.primary { " (primary)" } else { "" };
        text.push_str(&format!(
            "| {} {} | {}{role} | {baseline} | {comparison} | {} | {} | {} | {} | {} |\n",
            symbol(goal.verdict),
            goal.verdict.name(),
            cell(&words::goal_name(goal, experiment)),
            words::or_missing(absolute),
            words::or_missing(relative),
            goal.tolerance_text(),
            words::or_missing(goal.smallest_visible.map(words::percent)),
            words::pairs(goal, experiment),
        ));
    }
    text
}

/// What else changed, for readers who look for the cause.
fn what_else(experiment: &ExperimentVerdict) -> String {
    let Some(legend) = moved::legend(experiment, MOVED_LISTED_MAX) else {
        return String::new();
    };
    let rows = moved::rows(experiment, MOVED_LISTED_MAX);
    let mut text = String::new();
    if !rows.is_empty() {
        text.push_str(&table_row(&moved::HEADS));
        text.push_str(&rule(moved::HEADS.len()));
        for row in rows {
            text.push_str(&table_row(&row.map(|own| cell(&own))));
        }
        text.push('\n');
    }
    text.push_str(&format!("{}\n\n", cell(&legend)));
    text
}

/// The experiments of each matrix side by side, folded.
fn responses(report: &LabReport) -> String {
    let mut text = String::new();
    for family in family::families(&report.experiments) {
        let mut folded = format!(
            "<details><summary>{}: response</summary>\n\n",
            cell(family.name)
        );
        let heads: Vec<String> = family.heads().iter().map(|own| cell(own)).collect();
        folded.push_str(&table_row(&heads));
        folded.push_str(&rule(heads.len()));
        for row in family.rows() {
            let row: Vec<String> = row.iter().map(|own| cell(own)).collect();
            folded.push_str(&table_row(&row));
        }
        folded.push('\n');
        for curve in family.curves() {
            folded.push_str(&format!("* {}\n", cell(&curve)));
        }
        folded.push_str("\n</details>\n\n");
        if text.len() + folded.len() < RESPONSES_MAX {
            text.push_str(&folded);
        }
    }
    text
}

fn table_row(cells: &[impl AsRef<str>]) -> String {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    format!("| {} |\n", cells.join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|{}\n", "---|".repeat(columns))
}

/// What else there is to say of an experiment, a line each.
fn items(experiment: &ExperimentVerdict) -> Vec<String> {
    let mut items = Vec::new();
    for goal in &experiment.goals {
        let name = words::goal_name(goal, experiment);
        let told = words::deciding(experiment).is_some_and(|own| own == goal);
        if let Some(reason) = goal.reason.as_ref().filter(|_| !told) {
            items.push(cell(&format!(
                "{name} is {}: {reason}",
                goal.verdict.name()
            )));
        }
        if goal.verdict == Verdict::Different {
            items.push(format!("{name} is different: {}", words::DIFFERENT));
        }
        if let Some(note) = &goal.note {
            items.push(cell(&format!("{name}: {note}")));
        }
        let told = honesty::of_goal(goal, experiment).into_iter();
        items.extend(told.map(|own| cell(&own)));
    }
    for check in &experiment.checks {
        let mark = if check.failed() > 0 { "❌ " } else { "" };
        items.push(format!("{mark}{}", cell(&words::check_line(check))));
    }
    for run in experiment.not_used.iter().take(RUNS_LISTED_MAX) {
        let doubts: Vec<String> = run.doubts.iter().map(ToString::to_string).collect();
        let doubts = doubts.join("; ");
        items.push(cell(&format!(
            "doubt: {}pair {}, {}: {doubts}",
            words::stage(run.stage),
            run.pair,
            run.variant
        )));
    }
    let more = experiment.not_used.len().saturating_sub(RUNS_LISTED_MAX);
    if more > 0 {
        items.push(format!("doubt: {more} more runs"));
    }
    for seen in &experiment.cautions {
        let text = format!(
            "note: {} (in {} of {} runs)",
            seen.caution, seen.runs, seen.of
        );
        items.push(cell(&text));
    }
    let told = honesty::of_experiment(experiment).into_iter();
    items.extend(told.map(|own| cell(&own)));
    items.push(cell(&circumstances(experiment)));
    for link in &experiment.report_links {
        items.push(format!("[{}](<{}>)", cell(&link.text), target(&link.link)));
    }
    items
}

/// Method, host, and how to get these numbers again.
fn measured(report: &LabReport) -> String {
    let mut text = String::from("<details><summary>How this was measured</summary>\n\n");
    text.push_str(
        "Runs of both variants are made in randomly ordered pairs, each in a fresh process. One \
         number a run, from counters at both ends of the measured phase; the change is the mean \
         of the pairs' log ratios with its 95 % interval, which holds over all looks at the data \
         together. `equivalent` means that the whole interval lies within the tolerance.\n\n",
    );
    text.push_str(&format!(
        "* false alarms: {}\n",
        cell(&honesty::budget(&report.budget))
    ));
    text.push_str(&format!(
        "* stillwell {}, took {}\n",
        cell(&report.version),
        words::clock(report.elapsed)
    ));
    let host: Vec<String> = report
        .host
        .iter()
        .map(|(name, fact)| format!("{name} {fact}"))
        .collect();
    if !host.is_empty() {
        text.push_str(&format!("* host: {}\n", cell(&host.join(", "))));
    }
    text.push_str(&format!("* seed: {}\n", code(&report.seed)));
    text.push_str(&format!("* reproduce: {}\n", code(&report.command)));
    text.push_str(&format!("* results: {}\n", code(&report.results_folder)));
    text.push_str("\n</details>\n");
    text
}

/// Text of others in a cell or line: it ends no cell, starts no tag or link, and
/// stays short.
fn cell(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for (index, character) in text.chars().enumerate() {
        if index == CELL_MAX {
            escaped.push('…');
            break;
        }
        match character {
            control if control.is_control() => escaped.push(' '),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            // A mention would call people to the comment.
            '@' => escaped.push_str("&#64;"),
            '|' | '\\' | '`' | '*' | '_' | '[' | ']' | '~' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other => escaped.push(other),
        }
    }
    escaped
}

/// Text of others as code: quoted with more backticks than it has itself.
fn code(text: &str) -> String {
    let mut longest = 0;
    let mut current = 0;
    for character in text.chars() {
        current = if character == '`' { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    let quote = "`".repeat(longest + 1);
    let pad = if longest > 0 { " " } else { "" };
    let short: String = text.chars().take(CELL_MAX).collect();
    let short = short.replace(['\n', '\r'], " ");
    format!("{quote}{pad}{short}{pad}{quote}")
}

/// The target of a link within angle brackets.
fn target(link: &str) -> String {
    let kept = link.chars().take(CELL_MAX);
    kept.filter(|c| !matches!(c, '<' | '>' | '\n' | '\r'))
        .collect()
}
