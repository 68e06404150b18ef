//! Evidence of an experiment's runs on a page: charts, limits of the answer, delivery, environment.

use stillwell_units::{count, float_from_u64};
use stillwell_verdict::{ExperimentVerdict, GoalVerdict, rarest_visible_fault};

use super::caveats;
use super::runs::{ExperimentRuns, RunDelivery};
use crate::SuiteReport;
use crate::document::{Block, Cell, Chart, Column, Fold, Section, Table, Text};
use crate::words;

/// Returns charts of the runs and the delivery of their events.
pub(super) fn measured(runs: Option<&ExperimentRuns>) -> Vec<Block> {
    let Some(runs) = runs else {
        return Vec::new();
    };
    let charts = charts(runs).into_iter();
    charts.chain(delivery(&runs.delivery)).collect()
}

/// Returns the effort behind the answer, the environment, and how to get the answer again.
pub(super) fn effort(
    experiment: &ExperimentVerdict,
    report: &SuiteReport,
    runs: Option<&ExperimentRuns>,
) -> Vec<Block> {
    let mut blocks = vec![limits(experiment, report, runs)];
    if let Some(runs) = runs {
        blocks.extend(environment(&runs.environment));
    }
    let rows = [
        ("command", &report.command),
        ("seed", &report.seed),
        ("captures", &report.results_folder),
    ];
    let rows = rows.map(|(name, text)| (name.into(), Text::code(text)));
    blocks.push(Block::section(
        3,
        "How to reproduce",
        [Block::KeyValue(rows.into())],
    ));
    blocks
}

/// Returns the charts of the runs.
fn charts(runs: &ExperimentRuns) -> Option<Block> {
    if runs.is_left_out {
        let text =
            "Charts of its runs are left out, because the page of a large suite has to stay small.";
        return Some(Block::Paragraph(Text::dim(text)));
    }
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
    let looks = experiment.stopping.looks().into_iter();
    let looks = looks.filter(|look| *look <= experiment.pairs_used);
    let looks: Vec<String> = looks.map(|look| look.to_string()).collect();
    let looks = match looks.as_slice() {
        [] => "none".to_owned(),
        looks => format!("{}, after {} pairs", looks.len(), looks.join(", ")),
    };
    let mut rows = vec![("pairs", pairs), ("checks", looks)];
    let goal = words::deciding(experiment);
    let visible = goal.and_then(|goal| Some((goal, goal.smallest_visible?)));
    if let Some((goal, visible)) = visible {
        let size = words::size(goal.scale, visible);
        rows.push((
            "detectable change",
            format!("{size} of {}", words::goal_name(goal, experiment)),
        ));
    }
    let pairs = goal.map_or(experiment.pairs_used, GoalVerdict::headline_pairs);
    if pairs > 0 {
        let share = words::percent(rarest_visible_fault(pairs));
        rows.push((
            "may be missed",
            format!("faults in fewer than {share} of runs"),
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
    rows.push(("seed", report.seed.clone()));
    let rows = rows
        .into_iter()
        .map(|(name, text)| (name.into(), text.into()));
    let lines = caveats::of_experiment(experiment).into_iter();
    let lines = lines.chain([super::circumstances(experiment)]);
    let lines = Block::list(lines.map(Text::dim));
    let blocks = [Block::KeyValue(rows.collect()), lines];
    Block::section(3, "How certain this result is", blocks)
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
    let row = |(fact, values): &(String, Vec<String>)| {
        let values = values.iter().map(|value| readable(fact, value));
        let values: Vec<String> = values.filter(|value| !value.is_empty()).collect();
        (!values.is_empty()).then(|| (fact.replace('_', " ").into(), values.join("; ").into()))
    };
    let (differing, mut same): (Vec<_>, Vec<_>) = facts.iter().partition(|fact| fact.1.len() > 1);
    // Pages are sent to others, and a command line can name disks and hosts.
    same.retain(|(fact, _)| fact != "kernel_command_line");
    let mut blocks = Vec::new();
    if !differing.is_empty() {
        let rows = differing.into_iter().filter_map(row).collect();
        let title = "Environment that differs between runs";
        blocks.push(Block::section(3, title, [Block::KeyValue(rows)]));
    }
    if !same.is_empty() {
        blocks.push(Block::Section(Section {
            fold: Fold::Folded("Environment, the same in all runs".into()),
            blocks: vec![Block::KeyValue(same.into_iter().filter_map(row).collect())],
            ..Section::default()
        }));
    }
    blocks
}

/// Returns a recorded value of the environment for people: without JSON's signs, without what is not known or not limited.
fn readable(fact: &str, value: &str) -> String {
    if fact.ends_with("_bytes")
        && let Ok(bytes) = value.parse::<f64>()
    {
        return words::bytes(bytes);
    }
    let Ok(value) = serde_json::from_str::<serde_json::Value>(value) else {
        // Several values, one for each CPU.
        let known = value.split(' ').filter(|part| *part != "null");
        return known.collect::<Vec<_>>().join(" ");
    };
    plain(&value)
}

fn plain(value: &serde_json::Value) -> String {
    use serde_json::Value;
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let parts = parts.iter().filter(|part| !is_no_limit(part)).map(plain);
            let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
            let is_pair = value
                .as_array()
                .is_some_and(|parts| parts.len() == 2 && parts.iter().all(Value::is_string));
            parts.join(if is_pair { " " } else { ", " })
        }
        other => other.to_string(),
    }
}

/// Returns true for a name with the largest number of the kernel, or with -1: no limit.
fn is_no_limit(value: &serde_json::Value) -> bool {
    let limit = value.get(1).and_then(serde_json::Value::as_str);
    limit.is_some_and(|limit| matches!(limit, "max" | "-1") || limit.starts_with("92233720368547"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_shown_without_signs_of_json_and_without_what_is_not_known() {
        for (fact, value, shown) in [
            ("memory_bytes", "25276063744", "23.5 GiB"),
            ("governors", "null null", ""),
            ("governors", "performance null", "performance"),
            ("allowed_cpus", "[0,1]", "0, 1"),
            ("cpus", "0 1", "0 1"),
            ("kernel", "6.18.44", "6.18.44"),
            (
                "cgroup_limits",
                r#"[["memory.limit_in_bytes","9223372036854771712"],["cpuset.effective_cpus","0-1"],["cpu.cfs_quota_us","-1"]]"#,
                "cpuset.effective_cpus 0-1",
            ),
        ] {
            assert_eq!(readable(fact, value), shown, "{fact} {value}");
        }
    }
}
