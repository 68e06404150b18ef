//! Profiles of the variants: totals by unit of work, functions by change, flame graphs.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use stillwell_plan::WorkUnit;
use stillwell_profile::{FunctionChange, ProfileComparison, ProfileQuantity};

use super::runs::ExperimentRuns;
use crate::SuiteReport;
use crate::document::{Block, Cell, Chart, Column, FlameChart, Medium, Severity, Table, Text};
use crate::words::{profile_amount, profile_change, profile_difference};

/// Profiles of the runs of one experiment, compared with its baseline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExperimentProfiles {
    /// One for each variant that has comparable profiles; the name is that of the variant.
    pub comparisons: Vec<(String, Vec<ProfileComparison>)>,
    /// The first profile that could not be read, with the reason.
    pub unreadable: Option<String>,
}

/// Functions that a terminal shows of each quantity.
const SCREEN_FUNCTIONS: usize = 5;

/// Functions that a page shows of each quantity.
const PAGE_FUNCTIONS: usize = 8;

/// Functions that the data has of each quantity.
const DATA_FUNCTIONS: usize = 30;

/// Frames of all flame graphs of a page; it bounds the size of the page.
const FRAMES_OF_PAGE: usize = 1200;

/// Number of samples of the CPU below which the report warns: 3 % of 1000 samples are 30 ± 5.
const SAMPLES_MIN: u64 = 1000;

/// Columns of the table of all experiments, where a profile has them.
const OVERVIEW: [ProfileQuantity; 4] = [
    ProfileQuantity::CpuTime,
    ProfileQuantity::Allocations,
    ProfileQuantity::LiveHeap,
    ProfileQuantity::MutexTime,
];

/// Returns a table of the changes of all experiments that have profiles.
pub(super) fn overview(report: &SuiteReport) -> Option<Block> {
    let comparisons = report
        .runs
        .iter()
        .flat_map(|runs| &runs.profiles.comparisons);
    let known: BTreeSet<ProfileQuantity> = comparisons
        .flat_map(|(_, comparisons)| comparisons.iter().map(|entry| entry.quantity))
        .collect();
    let shown: Vec<ProfileQuantity> = OVERVIEW
        .into_iter()
        .filter(|quantity| known.contains(quantity))
        .collect();
    let rows = report.runs.iter().flat_map(|runs| {
        let comparisons = runs.profiles.comparisons.iter();
        comparisons.map(|(variant, comparisons)| {
            let name = match runs.profiles.comparisons.len() {
                1 => runs.experiment.clone(),
                _ => format!("{}: {variant}", runs.experiment),
            };
            let change = |quantity| {
                let mut all = comparisons.iter();
                let entry = all.find(|entry| entry.quantity == quantity);
                entry.map_or_else(Cell::default, |entry| change_cell(quantity, entry.totals))
            };
            let changes = shown.iter().copied().map(change);
            std::iter::once(Cell::from(name)).chain(changes).collect()
        })
    });
    let rows: Vec<Vec<Cell>> = rows.collect();
    let columns = std::iter::once(Column::named("experiment"));
    let work = WorkUnit::common(report.experiments.iter().map(|experiment| experiment.work));
    let titles = shown.iter().map(|quantity| title(*quantity, work));
    let columns = columns.chain(titles.map(Column::of_numbers));
    (!rows.is_empty())
        .then(|| Block::section(2, "Profiles", [Block::Table(Table::new(columns, rows))]))
}

/// Returns the profiles of one experiment.
pub(super) fn blocks(runs: &ExperimentRuns, work: WorkUnit, report: &SuiteReport) -> Vec<Block> {
    let profiles = &runs.profiles;
    let mut blocks = Vec::new();
    for (variant, comparisons) in &profiles.comparisons {
        let heading = match profiles.comparisons.len() {
            1 => "Profiles".to_owned(),
            _ => format!("Profiles of {variant}"),
        };
        let frames_max = if runs.is_left_out {
            0
        } else {
            frames_max(report)
        };
        let parts = [
            Block::Table(totals(comparisons, work)),
            Block::list(few_cpu_samples(comparisons)),
            Block::On(Medium::Browser, flames(comparisons, work, frames_max)),
            Block::On(
                Medium::Screen,
                functions(comparisons, work, SCREEN_FUNCTIONS),
            ),
            Block::On(Medium::Page, functions(comparisons, work, PAGE_FUNCTIONS)),
        ];
        blocks.push(Block::section(3, heading, parts));
    }
    blocks.extend(profiles.unreadable.iter().map(|reason| {
        let text = format!("a profile is left out: {reason}");
        Block::Note(Severity::Note, text.into())
    }));
    blocks
}

/// Returns the profiles as data.
pub(crate) fn data(profiles: &ExperimentProfiles) -> Value {
    let side = |[baseline, comparison]: [f64; 2]| json!([baseline, comparison]);
    let function = |function: &FunctionChange| {
        json!({
            "name": function.name,
            "itself": side(function.itself),
            "with_callees": side(function.with_callees),
        })
    };
    let quantity = |entry: &ProfileComparison| {
        let functions = entry.clearest_changes(DATA_FUNCTIONS).map(function);
        json!({
            "quantity": entry.quantity.name(),
            "per_event": entry.quantity.is_flow(),
            "runs": entry.runs,
            "samples": entry.samples,
            "totals": side(entry.totals),
            "functions": functions.collect::<Vec<_>>(),
        })
    };
    let variants = profiles.comparisons.iter().map(|(variant, comparisons)| {
        json!({
            "variant": variant,
            "quantities": comparisons.iter().map(quantity).collect::<Vec<_>>(),
        })
    });
    variants.collect()
}

fn frames_max(report: &SuiteReport) -> usize {
    let drawn = report.runs.iter();
    let drawn = drawn.filter(|runs| !runs.profiles.comparisons.is_empty());
    (FRAMES_OF_PAGE / drawn.count().max(1)).clamp(40, 300)
}

/// Returns a row for each quantity.
fn totals(comparisons: &[ProfileComparison], work: WorkUnit) -> Table {
    let rows = comparisons.iter().map(|entry| {
        let quantity = entry.quantity;
        let [baseline, comparison] = entry.totals;
        vec![
            title(quantity, work).into(),
            number(quantity, baseline),
            number(quantity, comparison),
            change_cell(quantity, entry.totals),
            format!("{} and {}", entry.runs[0], entry.runs[1]).into(),
        ]
    });
    let columns = [
        Column::named("profile"),
        Column::of_numbers("baseline"),
        Column::of_numbers("comparison"),
        Column::of_numbers("change"),
        Column::named("runs"),
    ];
    Table::new(columns, rows).with_optional(&["runs"])
}

/// Returns a remark if the CPU profiles have too few samples to name functions.
fn few_cpu_samples(comparisons: &[ProfileComparison]) -> Option<String> {
    let mut all = comparisons.iter();
    let cpu = all.find(|entry| entry.quantity == ProfileQuantity::CpuTime)?;
    few_samples(&cpu.samples)
}

/// Returns a remark if one of these numbers of samples is too small to name functions.
pub(crate) fn few_samples(samples: &[u64]) -> Option<String> {
    let counts: Vec<String> = samples.iter().map(u64::to_string).collect();
    let small = match samples.len() {
        1 => "functions with small shares",
        _ => "functions with small changes",
    };
    let is_small = samples.iter().any(|count| *count < SAMPLES_MIN);
    is_small.then(|| {
        format!(
            "the CPU profiles have {} samples; below {SAMPLES_MIN}, {small} appear by chance: use \
             longer runs, more load or a higher frequency",
            counts.join(" and ")
        )
    })
}

/// Returns a table of functions for each quantity.
fn functions(comparisons: &[ProfileComparison], work: WorkUnit, max: usize) -> Vec<Block> {
    let tables = comparisons.iter().filter_map(|entry| {
        let quantity = entry.quantity;
        let rows = entry.clearest_changes(max).map(|function| {
            let [baseline, comparison] = function.with_callees;
            let itself = function.itself[1] - function.itself[0];
            vec![
                Cell::from(Text::code(&function.name)),
                number(quantity, baseline),
                number(quantity, comparison),
                change_cell(quantity, function.with_callees),
                profile_difference(quantity, itself).into(),
            ]
        });
        let rows: Vec<_> = rows.collect();
        let columns = [
            Column::named(format!("{} by function", title(quantity, work))),
            Column::of_numbers("baseline"),
            Column::of_numbers("comparison"),
            Column::of_numbers("change"),
            Column::of_numbers("itself"),
        ];
        (!rows.is_empty()).then(|| {
            let table =
                Table::new(columns, rows).with_optional(&["itself", "baseline", "comparison"]);
            Block::group([Block::Table(table)])
        })
    });
    tables.collect()
}

/// Returns flame graphs of the first quantities.
fn flames(comparisons: &[ProfileComparison], work: WorkUnit, frames_max: usize) -> Vec<Block> {
    if frames_max == 0 {
        return Vec::new();
    }
    let legend = "Callers are above the functions that they call. A frame is as wide as its amounts in both variants \
                  together. Red frames grew, green frames shrank; point at a frame to see its amounts.";
    let shown = comparisons.iter().take(2).map(|entry| {
        Block::Chart(Chart::Flame(FlameChart {
            title: format!("{} by call stack", title(entry.quantity, work)),
            quantity: entry.quantity,
            is_difference: true,
            frames_max,
            root: entry.root.clone(),
        }))
    });
    std::iter::once(Block::Paragraph(Text::dim(legend)))
        .chain(shown)
        .collect()
}

/// Returns the name of a quantity with its unit of work: `CPU time per event`.
fn title(quantity: ProfileQuantity, work: WorkUnit) -> String {
    named(quantity, work.singular())
}

/// Returns the name of a quantity of which `unit` has an amount: `CPU time per second`.
pub(crate) fn named(quantity: ProfileQuantity, unit: &str) -> String {
    match quantity.is_flow() {
        true => format!("{} per {unit}", quantity.name()),
        false => quantity.name().to_owned(),
    }
}

fn number(quantity: ProfileQuantity, value: f64) -> Cell {
    profile_amount(quantity, value).into()
}

fn change_cell(quantity: ProfileQuantity, amounts: [f64; 2]) -> Cell {
    profile_change(quantity, amounts).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_named_by_the_unit_of_work() {
        let cpu = ProfileQuantity::CpuTime;
        assert_eq!(title(cpu, WorkUnit::Events), "CPU time per event");
        assert_eq!(title(cpu, WorkUnit::Requests), "CPU time per request");
        assert_eq!(
            title(ProfileQuantity::LiveHeap, WorkUnit::Events),
            "live heap"
        );
    }
}
