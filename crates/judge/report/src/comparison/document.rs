//! A comparison as a document.

use std::collections::BTreeMap;
use stillwell_units::count;

use stillwell_metric::Unit;
use stillwell_plan::goal::Scale;
use stillwell_verdict::{Change, Verdict};

use super::{ComparisonGroup, ComparisonReport, ComparisonRow, Finding, ancestors, charts, json};
use crate::document::{Block, Cell, Column, Document, Language, Severity, Table, Text};
use crate::{FullReport, words};

/// Cell text for a missing verdict.
const NO_VERDICT: &str = "no verdict";

/// Heads of the table of changes.
const HEADS: [&str; 9] = [
    "metric",
    "baseline",
    "comparison",
    "change",
    "95 % interval",
    "p",
    "tolerance",
    "runs",
    "verdict",
];

impl From<&ComparisonReport> for FullReport {
    fn from(report: &ComparisonReport) -> Self {
        Self {
            document: document(report),
            data: json::json(report),
            page_data: None,
        }
    }
}

/// Returns the document: for each experiment its changes, and what to know when reading them.
fn document(report: &ComparisonReport) -> Document {
    let title = headline(report);
    let tables = ancestors::text(report);
    let tables = tables.map(|text| Block::Code(Language::Markdown, text));
    let groups = report.groups.iter().map(group);
    let groups = tables.into_iter().chain(groups);
    let origin = format!(", Stillwell {}", report.version);
    let mut blocks = vec![Block::section(1, title, groups)];
    blocks.push(Block::group(
        report.remarks.iter().map(String::as_str).map(remark),
    ));
    blocks.push(Block::Colophon(Text::code(&report.command).and(origin)));
    Document::new(blocks)
}

fn remark(text: &str) -> Block {
    Block::Note(Severity::Note, text.into())
}

fn group(group: &ComparisonGroup) -> Block {
    let table = Table::new(HEADS.map(Column::named), group.rows.iter().map(cells));
    let table = table.with_optional(&["p", "runs", "tolerance"]);
    let several = group.rows.len() > 1;
    let sentences = group.rows.iter().flat_map(|row| {
        let name = if several {
            format!("{}: ", row.metric)
        } else {
            String::new()
        };
        let sentences = below(row).into_iter();
        sentences.map(move |sentence| format!("{name}{sentence}"))
    });
    let mut blocks = vec![Block::Table(table), Block::list(sentences)];
    blocks.extend(group.remarks.iter().map(String::as_str).map(remark));
    let title = match (&group.name, &group.ancestors) {
        (Some(name), None) => name.clone(),
        (Some(name), Some(_)) => format!("{name}, one number for each run"),
        (None, Some(_)) => "One number for each run".to_owned(),
        (None, None) => {
            blocks.extend(charts::of_group(group, 2));
            return Block::group(blocks);
        }
    };
    blocks.extend(charts::of_group(group, 3));
    Block::section(2, title, blocks)
}

fn cells(row: &ComparisonRow) -> Vec<Cell> {
    let mean = |mean: Option<f64>| match mean {
        Some(mean) => Cell::number(value(row, Some(mean)), mean, row.unit.symbol()),
        None => words::MISSING.into(),
    };
    let interval = interval(row);
    vec![
        row.metric.as_str().into(),
        mean(row.baseline.mean()),
        mean(row.comparison.mean()),
        change(row).into(),
        match row.finding.change() {
            Some(change) => Cell::interval(interval, change),
            None => interval.into(),
        },
        p_value(row).into(),
        tolerance(row).into(),
        runs(row).into(),
        row.verdict
            .map_or_else(|| NO_VERDICT.into(), Text::verdict)
            .into(),
    ]
}

/// A number of the row with its unit.
fn value(row: &ComparisonRow, value: Option<f64>) -> String {
    let Some(value) = value else {
        return words::MISSING.to_owned();
    };
    let text = match row.unit {
        Unit::Bytes => words::bytes(value),
        Unit::Nanoseconds => words::time(value),
        Unit::Ratio => format!("{:.3} %", value * 100.0),
        Unit::Count | Unit::Unknown => words::significant(value),
    };
    if row.per_second {
        format!("{text}/s")
    } else {
        text
    }
}

/// The change with its sign: `-0.30 %`.
fn change(row: &ComparisonRow) -> String {
    let share = match row.finding {
        Finding::Nothing => None,
        Finding::Plain(share) => share,
        Finding::Unpaired { change, .. } | Finding::Paired { change, .. } => Some(change.estimate),
    };
    share.map_or_else(
        || words::MISSING.to_owned(),
        |share| format!("{} {}", signed(share), unit(row.scale)),
    )
}

/// The interval in percent or points: `[-0.82, +0.23]`.
fn interval(row: &ComparisonRow) -> String {
    row.finding.change().map_or_else(
        || words::MISSING.to_owned(),
        |Change { lower, upper, .. }| format!("[{}, {}]", signed(lower), signed(upper)),
    )
}

/// The p value of the test behind the interval; missing where nothing varies.
fn p_value(row: &ComparisonRow) -> String {
    let known = row.finding.p_value();
    let known = known.filter(|_| !row.finding.has_infinite_t());
    words::or_missing(known.map(p))
}

/// A p value.
fn p(value: f64) -> String {
    if value < 0.0005 {
        "<0.001".to_owned()
    } else {
        format!("{value:.3}")
    }
}

/// The tolerance: `5 %`.
fn tolerance(row: &ComparisonRow) -> String {
    let size = (row.tolerance.share() * 1e6).round() / 1e4;
    format!("{size} {}", unit(row.scale))
}

/// Describes the number of runs: `3 + 3`, or `8 pairs`.
fn runs(row: &ComparisonRow) -> String {
    match row.finding {
        Finding::Paired { pairs, .. } => words::counted(pairs, "pair", "pairs"),
        _ => format!(
            "{} + {}",
            row.baseline.values.len(),
            row.comparison.values.len()
        ),
    }
}

/// Percent of the baseline, or points where the number is itself a share.
const fn unit(scale: Scale) -> &'static str {
    match scale {
        Scale::Ratio => "%",
        Scale::Difference => "points",
    }
}

fn signed(share: f64) -> String {
    let percent = share * 100.0;
    if !percent.is_finite() {
        return "unbounded".to_owned();
    }
    match format!("{percent:+.2}").as_str() {
        "-0.00" => "+0.00".to_owned(),
        text => text.to_owned(),
    }
}

/// Describes the numbers of the row and its other results, in sentences.
fn method(row: &ComparisonRow) -> Vec<String> {
    let shown_p = p_value(row);
    match row.finding {
        Finding::Nothing | Finding::Plain(_) => Vec::new(),
        Finding::Unpaired {
            t,
            degrees,
            p_value,
            mann_whitney_p,
            ..
        } => {
            let t = words::or_missing(t.is_finite().then(|| format!("{t:.2}")));
            let welch = format!(
                "unpaired: Welch's t {t} on one number a run, {degrees:.1} degrees of freedom, \
                 p {shown_p}"
            );
            let ranks = mann_whitney_p.map_or_else(
                || "too few runs for Mann-Whitney's test".to_owned(),
                |second| {
                    format!(
                        "Mann-Whitney p {}{}",
                        p(second),
                        disagreement(p_value, second)
                    )
                },
            );
            vec![format!("{welch}; {ranks}")]
        }
        Finding::Paired {
            p_value,
            wilcoxon_p,
            hodges_lehmann,
            ..
        } => {
            let ranks = wilcoxon_p.map_or_else(
                || "too few pairs for Wilcoxon's test".to_owned(),
                |second| format!("Wilcoxon p {}{}", p(second), disagreement(p_value, second)),
            );
            let middle = hodges_lehmann.map_or_else(String::new, |share| {
                format!(", Hodges-Lehmann {} {}", signed(share), unit(row.scale))
            });
            vec![format!("paired: t p {shown_p}; {ranks}{middle}")]
        }
    }
}

/// Advice for two tests that disagree.
fn disagreement(item: f64, second: f64) -> &'static str {
    if (item < 0.05) == (second < 0.05) {
        ""
    } else {
        ": the result is sensitive to outlying runs"
    }
}

/// Runs without a number, one sentence each, the first few.
fn left_out(row: &ComparisonRow) -> Vec<String> {
    const LISTED_MAX: usize = 4;
    let runs = row.baseline.left_out.iter().chain(&row.comparison.left_out);
    let count = row.baseline.left_out.len() + row.comparison.left_out.len();
    let mut output: Vec<String> = runs
        .take(LISTED_MAX)
        .map(|(run, reason)| format!("left out: {run}: {reason}"))
        .collect();
    if let Some(more) = count.checked_sub(LISTED_MAX).filter(|more| *more > 0) {
        output.push(format!("left out: {more} more"));
    }
    output
}

/// Everything to say below a row's numbers, in order.
fn below(row: &ComparisonRow) -> Vec<String> {
    let mut output = Vec::new();
    if let Some(reason) = &row.reason {
        let verdict = row.verdict.map_or_else(
            || NO_VERDICT.to_owned(),
            |verdict| format!("{} {}", words::symbol(verdict), verdict.name()),
        );
        output.push(format!("{verdict}: {reason}"));
    }
    output.extend(method(row));
    output.extend(row.remarks.iter().cloned());
    output.extend(left_out(row));
    output
}

/// Counts the experiments of each verdict.
fn tally(report: &ComparisonReport) -> String {
    let mut counts = BTreeMap::<&str, u32>::new();
    for group in &report.groups {
        let verdict = group.rows.iter().find(|row| row.primary);
        let verdict = verdict.and_then(|row| row.verdict);
        *counts
            .entry(verdict.map_or(NO_VERDICT, Verdict::name))
            .or_default() += 1;
    }
    let counts = counts.iter().map(|(word, count)| format!("{count} {word}"));
    counts.collect::<Vec<_>>().join(", ")
}

/// The first line.
fn headline(report: &ComparisonReport) -> String {
    let mut text = format!("{} compared with {}", report.comparison, report.baseline);
    if report.groups.len() > 1 {
        let number = count(report.groups.len());
        let number = words::counted(number, "experiment", "experiments");
        text.push_str(&format!(" in {number}: {}", tally(report)));
    }
    text
}
