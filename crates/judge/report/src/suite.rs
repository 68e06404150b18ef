//! A suite of experiments as a document.
//!
//! A terminal shows the experiments in the order of the plan, and the answers last. A page shows those that
//! need attention first, in one table, and folds everything else.

mod caveats;
pub(crate) mod charts;
mod comment;
mod evidence;
mod family;
pub(crate) mod links;
mod moved;
mod profiles;
mod regression_detector;
pub(crate) mod runs;
mod unused;

use std::borrow::Cow;

use stillwell_plan::goal::Scale;
use stillwell_units::count;
use stillwell_verdict::limits::PAIRS_UNCONFIRMED_MIN;
use stillwell_verdict::{
    CheckVerdict, ExperimentVerdict, Gate, GoalVerdict, Verdict, failing_more,
};

use crate::document::{
    Block, Cell, Column, Comment, Document, Fold, Inline, Medium, Section, Severity, Sign, Table,
    Text,
};
use crate::json::{base_unit, json};
use crate::words::{self, GoalText as _};
use crate::{Format, FullReport, Style, SuiteReport};

pub use comment::{CommentOptions, comment};
pub use profiles::ExperimentProfiles;
pub(crate) use profiles::{data as profiles_data, few_samples, named as named_profile};
pub use regression_detector::regression_detector;
pub use runs::{ExperimentRuns, RunCollector, RunDelivery, RunValues};

/// The hidden first line, by which a bot finds its own comment again.
pub const MARKER: &str = "<!-- stillwell:report:v1 -->";

/// No report is longer, in bytes: hosts refuse comments above 65,536 characters.
pub const LENGTH_MAX: usize = 60_000;

/// Limits of the comment on a pull request.
const COMMENT: Comment = Comment {
    marker: MARKER,
    length_max: LENGTH_MAX,
    end_max: 6_000,
    table_max: 30_000,
    text_max: 400,
    noun: ("experiment", "experiments"),
};

impl From<&SuiteReport> for FullReport {
    fn from(report: &SuiteReport) -> Self {
        Self {
            document: document(report),
            data: json(report),
            page_data: None,
        }
    }
}

/// Returns the report for readers at a terminal: each experiment, where the results are and what to type next, and
/// the answers at the end.
#[must_use]
pub fn terminal(report: &SuiteReport, style: Style) -> String {
    Format::Terminal.render(style, || document(report), String::new)
}

/// Returns the report in GitHub's Markdown: verdict first, one table, the rest folded. Never longer than
/// [`LENGTH_MAX`]; what is left out is said.
#[must_use]
pub fn markdown(report: &SuiteReport) -> String {
    Format::Markdown.render(Style::default(), || document(report), String::new)
}

/// Returns the document.
fn document(report: &SuiteReport) -> Document {
    let responses: Vec<Block> = family::families(&report.experiments)
        .iter()
        .map(family::Family::section)
        .collect();
    let ordered = by_attention(&report.experiments);
    let section = |experiment| section(experiment, report);
    let mut screen: Vec<Block> = report.experiments.iter().map(section).collect();
    screen.extend(responses.iter().cloned());
    screen.extend(profiles::overview(report));
    screen.push(Block::group([footer(report)]));
    // The answer is what a terminal still shows in the end.
    screen.push(Block::group([charts::all_intervals(&ordered)]));
    screen.push(Block::group([Block::paragraph(headline(report))]));
    screen.push(Block::Table(answers(report)));
    screen.push(problems(report));

    let tally = format!("{}.", words::tally(&report.experiments));
    let table = Table::new(
        OVERVIEW.map(Column::named),
        ordered.iter().map(|entry| overview(entry)),
    );
    let top = [
        Block::paragraph(tally),
        Block::On(Medium::Browser, vec![needing_attention(&ordered)]),
        Block::On(Medium::Browser, vec![charts::all_intervals(&ordered)]),
        Block::Table(table),
        problems(report),
    ];
    let mut page = vec![Block::section(1, finding(report), top)];
    page.extend(responses);
    page.extend(profiles::overview(report));
    page.extend(ordered.into_iter().map(section));
    page.push(method(report));
    Document {
        comment: Some(COMMENT),
        ..Document::new([Block::on_screen(screen), Block::on_page(page)])
    }
}

/// Returns the problems that are not part of the verdicts.
fn problems(report: &SuiteReport) -> Block {
    let problems = report.problems.iter();
    Block::list(problems.map(|problem| Text::bad(problem.line())))
}

/// Most experiments of a page that shows all of them open; else those that pass are closed.
const OPEN_MAX: usize = 5;

/// Most experiments that are named below the headline.
const NAMED_MAX: usize = 3;

/// Returns the answers of the first experiments that do not pass, for readers who read no further.
fn needing_attention(ordered: &[&ExperimentVerdict]) -> Block {
    // The section of a single experiment follows at once.
    let several = ordered.len() > 1;
    let failing = ordered.iter();
    let failing = failing.filter(|entry| several && entry.gate != Gate::Held);
    let unnamed = failing.clone().count().saturating_sub(NAMED_MAX);
    let more = (unnamed > 0).then(|| Text::from(format!("{unnamed} more in the table below")));
    let named = failing.take(NAMED_MAX).map(|experiment| {
        Text::strong(experiment.name.as_str())
            .and(": ")
            .and(Text::verdict(experiment.verdict))
            .and(", ")
            .and(words::finding(experiment))
    });
    Block::list(named.chain(more))
}

/// Returns the experiments in the order of a page: those first that need a reader's eye.
#[must_use]
pub fn by_attention(experiments: &[ExperimentVerdict]) -> Vec<&ExperimentVerdict> {
    let mut ordered: Vec<&ExperimentVerdict> = experiments.iter().collect();
    ordered.sort_by_key(|experiment| rank(experiment));
    ordered
}

/// Returns the key that sorts experiments which need a reader's eye first, and erratic ones last.
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

/// Longest list of comparisons in a headline, in characters; a longer one is given as their number.
const COMPARISONS_MAX: usize = 60;

/// Returns the versions that are compared with the baseline: the comparison of the report, or the names of all
/// comparisons if an experiment has several, or their number if these are long.
fn comparisons(report: &SuiteReport) -> Cow<'_, str> {
    let experiments = || report.experiments.iter();
    if !experiments().any(|entry| entry.variants.len() > 2) {
        return Cow::Borrowed(&report.comparison);
    }
    let mut names: Vec<&str> = Vec::new();
    for variant in experiments().flat_map(|entry| entry.variants.iter().skip(1)) {
        if !names.contains(&variant.as_str()) {
            names.push(variant);
        }
    }
    let list = names.join(", ");
    match list.chars().count() > COMPARISONS_MAX {
        true => Cow::Owned(format!("{} variants", names.len())),
        false => Cow::Owned(list),
    }
}

fn headline(report: &SuiteReport) -> String {
    let title = &report.title;
    if report.experiments.is_empty() {
        return format!("{title}: no experiment finished, so there is no verdict");
    }
    let number = words::counted(count(report.experiments.len()), "experiment", "experiments");
    let (baseline, compared) = (&report.baseline, comparisons(report));
    let tally = words::tally(&report.experiments);
    format!("{title}: {compared} compared with {baseline} in {number}: {tally}")
}

/// Returns the headline of a page.
fn finding(report: &SuiteReport) -> Text {
    if report.experiments.is_empty() {
        let finding = match report.problems.is_empty() {
            true => "stillwell: no experiment finished, so there is no verdict",
            false => "stillwell could not run the experiments",
        };
        return Text::answer(Sign::Invalid, finding);
    }
    let gating = || report.experiments.iter().filter(|entry| !entry.erratic);
    let with = |gate: Gate| count(gating().filter(|entry| entry.gate == gate).count());
    let number = count(gating().count());
    let mut all = words::counted(number, "experiment", "experiments");
    let erratic = count(report.experiments.len()) - number;
    if erratic > 0 {
        all.push_str(&format!(" ({erratic} erratic not counted)"));
    }
    let (regressed, failed) = (with(Gate::Regressed), with(Gate::CheckFailed));
    let (invalid, unsure) = (with(Gate::Invalid), with(Gate::Inconclusive));
    let is_improved =
        |entry: &&ExperimentVerdict| entry.gate == Gate::Held && entry.verdict == Verdict::Improved;
    let improved = count(gating().filter(is_improved).count());
    let is_unconfirmed = |entry: &&ExperimentVerdict| {
        entry.gate == Gate::Inconclusive && entry.verdict == Verdict::Regressed
    };
    let unconfirmed = count(gating().filter(is_unconfirmed).count());
    let (sign, finding) = if regressed > 0 {
        let word = words::counted(regressed, "regression", "regressions");
        (Sign::Worse, format!("stillwell: {word} in {all}"))
    } else if failed > 0 {
        let word = words::counted(failed, "experiment", "experiments");
        let finding = format!("stillwell: checks failed in {word} of {all}");
        (Sign::Worse, finding)
    } else if invalid > 0 {
        let finding = format!("stillwell could not judge {invalid} of {all}");
        (Sign::Invalid, finding)
    } else if !report.problems.is_empty() {
        let finding =
            format!("stillwell: the suite is incomplete; no confirmed regression in {all}");
        (Sign::Invalid, finding)
    } else if unconfirmed > 0 {
        let word = words::counted(
            unconfirmed,
            "unconfirmed regression",
            "unconfirmed regressions",
        );
        (Sign::Unclear, format!("stillwell: {word} in {all}"))
    } else if unsure > 0 {
        let finding = format!("no conclusion in {unsure} of {all}");
        (Sign::Unclear, finding)
    } else if improved > 0 {
        let word = words::counted(improved, "improvement", "improvements");
        (Sign::Better, format!("stillwell: {word} in {all}"))
    } else {
        let visible = detectable_change(gating());
        let visible = visible.map(|entry| format!(" (detectable change {entry})"));
        let visible = visible.unwrap_or_default();
        let finding = format!("stillwell: {all} without a regression{visible}");
        (Sign::Same, finding)
    };
    Text::answer(sign, finding)
        .and(" · ")
        .and(Text::code(&report.baseline))
        .and(" vs ")
        .and(Text::code(comparisons(report)))
}

/// Returns the largest detectable change of the goals that decide; `None` if their scales differ, because percent and
/// points have no common maximum.
fn detectable_change<'a>(
    experiments: impl Iterator<Item = &'a ExperimentVerdict>,
) -> Option<String> {
    let goals = experiments.filter_map(words::deciding);
    let visible = goals.filter_map(|goal| Some((goal.scale, goal.smallest_visible?)));
    let visible: Vec<(Scale, f64)> = visible.collect();
    let (scale, first) = *visible.first()?;
    if visible.iter().any(|(entry, _)| *entry != scale) {
        return None;
    }
    let shares = visible.iter().map(|(_, share)| *share);
    Some(words::size(scale, shares.fold(first, f64::max)))
}

/// Returns the answer of each experiment in a sentence.
fn answers(report: &SuiteReport) -> Table {
    let rows = report.experiments.iter().map(|experiment| {
        let mut answer = Text::from(words::finding(experiment));
        let failed = experiment.checks.iter().filter(|check| check.failed() > 0);
        let failed = count(failed.count());
        if failed > 0 {
            let failed = words::counted(failed, "failed check", "failed checks");
            answer = answer.and("; ").and(Text::bad(failed));
        }
        let unmeasured = experiment.checks.iter();
        let unmeasured = count(unmeasured.filter(|check| check.not_measured > 0).count());
        if unmeasured > 0 {
            let unmeasured = words::counted(unmeasured, "check", "checks");
            answer = answer
                .and("; ")
                .and(Text::bad(format!("{unmeasured} not measured")));
        }
        if experiment.erratic {
            answer = answer.and(" (erratic: does not gate)");
        } else if experiment.verdict == Verdict::Regressed && experiment.gate != Gate::Regressed {
            let pairs_min = PAIRS_UNCONFIRMED_MIN;
            answer = answer.and(format!(
                " (does not gate: not confirmed, and fewer than {pairs_min} pairs)"
            ));
        }
        let name = Cell::from(experiment.name.as_str());
        vec![
            Text::verdict(experiment.verdict).into(),
            name,
            answer.into(),
        ]
    });
    Table::new([], rows)
}

/// Heads of the table of experiments on a page.
const OVERVIEW: [&str; 8] = [
    "verdict",
    "experiment",
    "goal",
    "baseline",
    "comparison",
    "change (95 % interval)",
    "tolerance",
    "pairs",
];

fn overview(experiment: &ExperimentVerdict) -> Vec<Cell> {
    let verdict = experiment.verdict;
    let mut word = Text::verdict(verdict);
    if experiment.checks.iter().any(CheckVerdict::is_broken) {
        word = word.and(", ").and(Text::bad("check failed"));
    }
    if failing_more(&experiment.discards).is_some() {
        word = word.and(", ").and(Text::bad("target failed"));
    }
    let erratic = if experiment.erratic { " (erratic)" } else { "" };
    let mut row: Vec<Cell> = vec![word.into(), format!("{}{erratic}", experiment.name).into()];
    let Some(goal) = words::deciding(experiment) else {
        row.resize(OVERVIEW.len(), words::MISSING.into());
        return row;
    };
    let change = match (goal.change, &goal.reason) {
        (Some(change), _) => {
            let text = words::change_with_interval(goal.scale, change);
            let is_bold = verdict == Verdict::Regressed;
            let text = if is_bold {
                Text::strong(text)
            } else {
                text.into()
            };
            Cell::interval(text, change)
        }
        (None, Some(reason)) => reason.as_str().into(),
        (None, None) => words::MISSING.into(),
    };
    row.push(words::goal_name(goal, experiment).into());
    row.extend(means(goal));
    row.push(match unreliable_change(goal) {
        Some(text) => text.into(),
        None => change,
    });
    row.push(goal.tolerance_text().into());
    row.push(words::pairs(goal, experiment).into());
    row
}

/// Returns the means of both variants: those of all pairs, marked, if there is no verdict.
fn means(goal: &GoalVerdict) -> [Cell; 2] {
    match &goal.unreliable {
        None => [goal.baseline_mean, goal.comparison_mean].map(|mean| value(goal, mean)),
        Some(estimate) => [estimate.baseline_mean, estimate.comparison_mean].map(|mean| {
            let text = mean.map(|mean| words::goal_value(&goal.metric, mean));
            text.map_or_else(|| words::MISSING.into(), |text| marked(&text).into())
        }),
    }
}

/// Returns `text` with the mark of an unreliable number.
fn marked(text: &str) -> String {
    format!("{text} ({})", words::UNRELIABLE)
}

/// Returns the change over all pairs with its interval, marked, if there is no verdict.
fn unreliable_change(goal: &GoalVerdict) -> Option<String> {
    let change = goal.unreliable.as_ref()?.change?;
    Some(marked(&words::change_with_interval(goal.scale, change)))
}

fn value(goal: &GoalVerdict, value: Option<f64>) -> Cell {
    value.map_or_else(
        || words::MISSING.into(),
        |value| {
            let text = words::goal_value(&goal.metric, value);
            Cell::number(text, value, base_unit(&goal.metric))
        },
    )
}

/// Returns all that is known of one experiment.
fn section(experiment: &ExperimentVerdict, report: &SuiteReport) -> Block {
    let goals = goals(experiment);
    let mut runs = report.runs.iter();
    let runs = runs.find(|runs| runs.experiment == experiment.name);
    let mut blocks = vec![
        Block::on_page([Block::paragraph(words::finding(experiment))]),
        Block::on_screen([Block::Table(
            goals.select(&SCREEN_COLUMNS).with_optional(&NARROW_WITHOUT),
        )]),
        Block::on_page([Block::Table(goals.select(&PAGE_COLUMNS))]),
        charts::intervals(experiment),
        Block::list(remarks(experiment)),
        Block::On(
            Medium::Browser,
            charts::pairs(experiment, report.experiments.len()),
        ),
        Block::On(Medium::Browser, evidence::measured(runs)),
        Block::group(runs.map_or_else(Vec::new, |runs| {
            profiles::blocks(runs, experiment.work, report)
        })),
        Block::On(Medium::Screen, moved::blocks(experiment, 5)),
        Block::On(Medium::Page, moved::blocks(experiment, 10)),
        Block::list(experiment.checks.iter().map(|check| {
            let line = words::check_line(check);
            if check.is_broken() {
                Text::bad(line)
            } else {
                line.into()
            }
        })),
        Block::On(Medium::Screen, unused::warnings(experiment, 6)),
        Block::On(Medium::Page, unused::warnings(experiment, 10)),
    ];
    blocks.extend(experiment.notes.iter().map(|seen| {
        let runs = if seen.runs == seen.of {
            String::new()
        } else {
            format!(" (in {} of {} runs)", seen.runs, seen.of)
        };
        Block::Note(Severity::Note, format!("{}{runs}", seen.note).into())
    }));
    let lines = caveats::of_experiment(experiment).into_iter();
    let lines = lines.chain([circumstances(experiment)]);
    let lines = Block::list(lines.map(Text::dim));
    blocks.push(Block::On(Medium::Plain, vec![lines]));
    let effort = evidence::effort(experiment, report, runs);
    blocks.push(Block::On(Medium::Browser, effort));
    let links = links::filled(experiment, report).into_iter();
    let links = links.map(|link| Text(vec![Inline::Link(link.text, link.link)]));
    blocks.push(Block::on_page([Block::list(links)]));
    let (name, verdict) = (experiment.name.as_str(), experiment.verdict.name());
    Block::Section(Section {
        summary: experiment.summary.as_deref().map(Text::from),
        fold: Fold::Optional(format!("{name}: {verdict}").into()),
        is_closed: report.experiments.len() > OPEN_MAX && experiment.gate == Gate::Held,
        ..Section::titled(2, name, blocks)
    })
}

/// Columns of the table of goals at a terminal.
const SCREEN_COLUMNS: [&str; 8] = [
    "goal",
    "baseline",
    "comparison",
    "change",
    "95 % interval",
    "tolerance",
    "pairs",
    "verdict",
];

/// Those of them that a narrow terminal leaves out.
const NARROW_WITHOUT: [&str; 4] = ["pairs", "tolerance", "baseline", "comparison"];

/// Columns of the table of goals on a page.
const PAGE_COLUMNS: [&str; 9] = [
    "verdict",
    "goal",
    "baseline",
    "comparison",
    "difference",
    "change (95 % interval)",
    "tolerance",
    "detectable change",
    "pairs",
];

/// Returns a row for each goal, with the columns of every medium.
fn goals(experiment: &ExperimentVerdict) -> Table {
    const COLUMNS: [&str; 11] = [
        "goal",
        "verdict",
        "baseline",
        "comparison",
        "difference",
        "change",
        "95 % interval",
        "change (95 % interval)",
        "tolerance",
        "detectable change",
        "pairs",
    ];
    let rows = experiment.goals.iter().map(|goal| {
        let role = if goal.primary { " (primary)" } else { "" };
        let unreliable = goal.unreliable.and_then(|estimate| estimate.change);
        let [baseline, comparison] = means(goal);
        let absolute = goal.baseline_mean.zip(goal.comparison_mean);
        let absolute = absolute.filter(|_| goal.unreliable.is_none());
        let absolute = absolute.map(|(baseline, comparison)| comparison - baseline);
        let absolute = absolute.map(|entry| words::goal_difference(&goal.metric, entry));
        let size = goal
            .change
            .map(|entry| words::change_size(goal.scale, entry.estimate));
        let unreliable_size =
            unreliable.map(|entry| marked(&words::change_size(goal.scale, entry.estimate)));
        let unreliable_interval = unreliable.map(words::interval);
        let relative = goal.change.map_or_else(
            || words::MISSING.into(),
            |entry| Cell::interval(words::change_with_interval(goal.scale, entry), entry),
        );
        let relative = unreliable_change(goal).map_or(relative, Cell::from);
        let visible = goal.smallest_visible;
        let visible = visible.map(|share| words::size(goal.scale, share));
        vec![
            format!("{}{role}", words::goal_name(goal, experiment)).into(),
            Text::verdict(goal.verdict).into(),
            baseline,
            comparison,
            words::or_missing(absolute).into(),
            words::or_missing(unreliable_size.or(size)).into(),
            words::or_missing(unreliable_interval.or_else(|| goal.change.map(words::interval)))
                .into(),
            relative,
            goal.tolerance_text().into(),
            words::or_missing(visible).into(),
            words::pairs(goal, experiment).into(),
        ]
    });
    Table::new(COLUMNS.map(|name| column(name, experiment)), rows)
}

/// Returns a column; those of the two variants have their names as titles.
fn column(name: &'static str, experiment: &ExperimentVerdict) -> Column {
    match (name, experiment.variants.as_slice()) {
        ("baseline", [baseline, _]) => Column::named(name).titled(baseline),
        ("comparison", [_, comparison]) => Column::named(name).titled(comparison),
        _ => Column::named(name),
    }
}

/// Returns the reasons for the verdicts of goals, and notes about them. A reason of several goals is printed once.
fn remarks(experiment: &ExperimentVerdict) -> Vec<String> {
    let mut lines: Vec<(Vec<String>, String)> = Vec::new();
    for goal in &experiment.goals {
        let name = words::goal_name(goal, experiment);
        if let Some(reason) = reason(goal, experiment) {
            let text = format!("{}: {reason}", goal.verdict.name());
            let known = lines.iter_mut().find(|line| line.1 == text);
            match known {
                Some((names, _)) => names.push(name.clone()),
                None => lines.push((vec![name.clone()], text)),
            }
        }
        let notes = goal.note.iter().map(|note| format!("{name}: {note}"));
        let notes = notes.chain(caveats::of_goal(goal, experiment));
        lines.extend(notes.map(|note| (Vec::new(), note)));
    }
    let lines = lines.into_iter();
    let lines = lines.map(|(names, text)| match names.as_slice() {
        [] => text,
        [name] => format!("{name} is {text}"),
        [names @ .., last] => format!("{} and {last} are {text}", names.join(", ")),
    });
    words::skipped(experiment)
        .into_iter()
        .chain(lines)
        .collect()
}

/// Returns the reason for the verdict of a goal, unless the answer of the experiment has it.
fn reason<'a>(goal: &'a GoalVerdict, experiment: &ExperimentVerdict) -> Option<Cow<'a, str>> {
    let is_deciding = words::deciding(experiment).is_some_and(|entry| {
        entry == goal || (goal.reason.is_some() && entry.reason == goal.reason)
    });
    match (&goal.reason, goal.verdict) {
        (Some(_), _) | (None, Verdict::Inconclusive) if is_deciding => None,
        (Some(reason), _) => Some(reason.into()),
        (None, Verdict::Different) => Some(words::DIFFERENT.into()),
        (None, Verdict::Inconclusive) => Some(words::could_see(goal).into()),
        _ => None,
    }
}

/// Returns rate, length and CPUs.
fn circumstances(experiment: &ExperimentVerdict) -> String {
    let mut parts: Vec<String> = experiment.rate.iter().map(words::rate_line).collect();
    parts.push(format!(
        "{} measured after {} of warm-up in each run",
        words::length(experiment.measure),
        words::length(experiment.warmup)
    ));
    parts.push(format!(
        "CPUs: target {}, load generators and sinks {}",
        words::cpus(experiment.cpus.target.as_deref()),
        words::cpus(experiment.cpus.workers.as_deref())
    ));
    parts.join("; ")
}

/// Words of the table of goals, once in a report.
const COLUMNS_EXPLAINED: &str = "primary: the goal that alone decides the exit code; tolerance: the smallest change \
    that matters; pair: a run of each variant, one after the other or together";

/// Returns the meaning of columns, where the results are and what to type next.
fn footer(report: &SuiteReport) -> Block {
    let bounded = report.budget.false_alarm_bound;
    let alarms = bounded.map(|_| ("false alarms", caveats::budget(&report.budget)));
    let columns =
        (!report.experiments.is_empty()).then(|| ("columns", COLUMNS_EXPLAINED.to_owned()));
    let rows = [
        columns,
        Some(("took", words::clock(report.elapsed))),
        alarms,
        Some(("seed", report.seed.clone())),
        Some(("results", report.results_folder.clone())),
    ];
    let next = report.next.iter().enumerate();
    let next = next.map(|(index, next)| (if index == 0 { "next" } else { "" }, next.clone()));
    let rows = rows.into_iter().flatten().chain(next);
    Block::KeyValue(
        rows.map(|(name, text)| (name.into(), text.into()))
            .collect(),
    )
}

/// Returns method, host, and how to get these numbers again.
fn method(report: &SuiteReport) -> Block {
    let about = Text::from(
        "Runs of both variants are made in randomly ordered pairs, each in a new process. Each run gives one \
         number, from counters at both ends of the measured phase. The change is the mean of the pairs' \
         log ratios with its 95 % interval, which allows for every check of the verdict. ",
    )
    .and(Text::code("equivalent"))
    .and(" means that the whole interval lies within the tolerance, which is the smallest change that matters. ")
    .and(
        "The detectable change is the smallest one that four of five such experiments would distinguish from \
         none; a regression must also reach the tolerance. Only the ",
    )
    .and(Text::strong("primary"))
    .and(" goal decides the exit code.");
    let host = report.host.iter();
    let host: Vec<String> = host.map(|(name, fact)| format!("{name} {fact}")).collect();
    let budget = caveats::budget(&report.budget);
    let elapsed = words::clock(report.elapsed);
    let mut lines: Vec<Text> = vec![
        format!("false alarms: {budget}").into(),
        format!("stillwell {}, took {elapsed}", report.version).into(),
    ];
    if !host.is_empty() {
        lines.push(format!("host: {}", host.join(", ")).into());
    }
    lines.extend([
        Text::from("seed: ").and(Text::code(&report.seed)),
        Text::from("reproduce: ").and(Text::code(&report.command)),
        Text::from("results: ").and(Text::code(&report.results_folder)),
    ]);
    Block::Section(Section {
        fold: Fold::Folded("How this was measured".into()),
        blocks: vec![Block::Paragraph(about), Block::list(lines)],
        ..Section::default()
    })
}
