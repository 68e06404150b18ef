//! Evidence of an experiment's runs on a page: charts, limits of the answer, delivery, environment.

use stillwell_units::{count, float_from_u64};
use stillwell_verdict::{ExperimentVerdict, rarest_visible_fault};

use super::honesty;
use super::runs::{ExperimentRuns, RunDelivery};
use crate::SuiteReport;
use crate::document::{Block, Cell, Chart, Column, Fold, Section, Table, Text};
use crate::words;

/// Returns the blocks, in the order of the page.
pub(super) fn blocks(experiment: &ExperimentVerdict, report: &SuiteReport) -> Vec<Block> {
    let mut runs = report.runs.iter();
    let runs = runs.find(|runs| runs.experiment == experiment.name);
    let mut blocks: Vec<Block> = runs.and_then(charts).into_iter().collect();
    blocks.push(limits(experiment, report, runs));
    if let Some(runs) = runs {
        blocks.extend(delivery(&runs.delivery));
        blocks.extend(environment(&runs.environment));
    }
    blocks
}

/// Returns the charts of the runs.
fn charts(runs: &ExperimentRuns) -> Option<Block> {
    let legend = format!(
        "Each line is the median of {} of a variant, and its band reaches from the lowest run to \
         the highest. Shaded times are not measured.",
        if runs.drawn == runs.valid {
            words::counted(count(runs.drawn), "run", "runs")
        } else {
            format!("{} of {} runs", runs.drawn, runs.valid)
        }
    );
    let charts = runs.curves.iter().cloned();
    let charts = charts.map(|curve| Block::Chart(Chart::Curve(curve)));
    let blocks = std::iter::once(Block::Paragraph(Text::dim(legend))).chain(charts);
    (!runs.curves.is_empty()).then(|| Block::section(3, "Over time and by percentile", blocks))
}

/// Returns the effort behind the answer and the limits of what it can show.
fn limits(
    experiment: &ExperimentVerdict,
    report: &SuiteReport,
    runs: Option<&ExperimentRuns>,
) -> Block {
    let pairs = format!(
        "{} used, {} valid, {} discarded",
        experiment.pairs_used, experiment.pairs_valid, experiment.pairs_discarded
    );
    let mut rows = vec![("pairs", pairs), ("checks", honesty::looked(experiment))];
    let goal = words::deciding(experiment);
    let visible = goal.and_then(|goal| Some((goal, goal.smallest_visible?)));
    if let Some((goal, visible)) = visible {
        let size = words::percent(visible);
        rows.push((
            "detectable change",
            format!("{size} of {}", words::goal_name(goal, experiment)),
        ));
    }
    if experiment.pairs_used > 0 {
        let share = words::percent(rarest_visible_fault(experiment.pairs_used));
        rows.push((
            "rarest visible fault",
            format!("one that happens in {share} of all runs"),
        ));
    }
    if let Some(steal) = runs.and_then(|runs| runs.steal_max) {
        rows.push((
            "CPU steal",
            format!(
                "at most {} of the host's CPU time in a run",
                words::percent(steal)
            ),
        ));
    }
    rows.extend([
        ("seed", report.seed.clone()),
        ("reproduce", report.command.clone()),
    ]);
    let rows = rows
        .into_iter()
        .map(|(name, text)| (name.into(), text.into()));
    Block::section(
        3,
        "How certain this result is",
        [Block::KeyValue(rows.collect())],
    )
}

/// Returns the delivery of stamped events for each variant.
fn delivery(variants: &[RunDelivery]) -> Option<Block> {
    const HEADS: [&str; 6] = [
        "variant",
        "sent",
        "lost",
        "duplicated",
        "reordered",
        "damaged",
    ];
    let rows = variants.iter().map(|variant| {
        let counts = [
            variant.sent,
            variant.lost,
            variant.duplicated,
            variant.reordered,
            variant.damaged,
        ];
        let counts = counts.map(|count| {
            let count = float_from_u64(count);
            Cell::number(words::grouped(count), count, "events")
        });
        let name = Cell::from(variant.variant.as_str());
        std::iter::once(name).chain(counts).collect::<Vec<_>>()
    });
    let table = Table::new(HEADS.map(Column::named), rows);
    (!variants.is_empty())
        .then(|| Block::section(3, "Delivery of stamped events", [Block::Table(table)]))
}

/// Returns the facts that differ between runs, and all others folded.
fn environment(facts: &[(String, Vec<String>)]) -> Vec<Block> {
    let row =
        |(fact, values): &(String, Vec<String>)| (fact.as_str().into(), values.join("; ").into());
    let (differing, same): (Vec<_>, Vec<_>) = facts.iter().partition(|fact| fact.1.len() > 1);
    let mut blocks = Vec::new();
    if !differing.is_empty() {
        let rows = differing.into_iter().map(row).collect();
        let title = "Environment that differs between runs";
        blocks.push(Block::section(3, title, [Block::KeyValue(rows)]));
    }
    if !same.is_empty() {
        blocks.push(Block::Section(Section {
            fold: Fold::Folded("Environment, the same in all runs".into()),
            blocks: vec![Block::KeyValue(same.into_iter().map(row).collect())],
            ..Section::default()
        }));
    }
    blocks
}
