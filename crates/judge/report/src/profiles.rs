//! Profiles of one target, without a comparison: of a single run, or of several runs of one of several targets.

use serde_json::{Value, json};
use stillwell_capture::RunProfiles;
use stillwell_profile::{
    FunctionAmount, Profile, ProfileCollector, ProfileFile, ProfileQuantity, ProfileSummary,
    RunWork,
};
use stillwell_verdict::RunSummary;

use crate::document::{Block, Cell, Chart, Column, FlameChart, Medium, Severity, Table, Text};
use crate::suite::{few_samples, named_profile};
use crate::words::{self, profile_amount};

/// Functions that a terminal shows of each quantity.
const SCREEN_FUNCTIONS: usize = 5;

/// Functions that a page shows of each quantity.
const PAGE_FUNCTIONS: usize = 12;

/// Functions that the data has of each quantity.
const DATA_FUNCTIONS: usize = 30;

/// Frames of all flame graphs of a page; it bounds the size of the page.
const FRAMES_OF_PAGE: usize = 1200;

/// Quantities that have a flame graph.
const FLAMES: usize = 2;

/// Profiles of one target in one experiment, summed over its runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TargetProfiles {
    /// Name of the experiment; empty for a single run.
    pub experiment: String,
    /// Name of the target.
    pub target: String,
    /// Divisor of amounts: an event, a request, or a second of a run without load.
    pub unit: &'static str,
    /// One for each quantity.
    pub summaries: Vec<ProfileSummary>,
    /// The first profile that could not be read, with the reason.
    pub unreadable: Option<String>,
}

impl TargetProfiles {
    /// Sums the profiles of runs; a caller that reads them one after the other holds one at a time.
    #[must_use]
    pub fn of<'a>(
        (experiment, target): (&str, &str),
        runs: impl IntoIterator<Item = (&'a RunSummary, RunProfiles)>,
    ) -> Self {
        let mut result = Self {
            experiment: experiment.to_owned(),
            target: target.to_owned(),
            ..Self::default()
        };
        let mut collector = ProfileCollector::default();
        for (run, stored) in runs {
            let (rate, unit) = match work_rate(run).filter(|rate| *rate > 0.0) {
                Some(rate) => (rate, run.figures.work.singular()),
                None => (1.0, "second"),
            };
            // Runs of one plan have the same unit, unless one of them sent nothing.
            if result.unit.is_empty() {
                result.unit = unit;
            } else if result.unit != unit {
                continue;
            }
            let (files, unreadable) = read(run, &stored);
            result.unreadable = result.unreadable.or(unreadable);
            let work = RunWork {
                events_per_second: rate,
                measured_ns: stored.measured_ns,
            };
            collector.add_run(target, &files, &work);
        }
        result.summaries = collector.summary(target);
        result
    }
}

/// Returns the sent events for each second of the measured time.
pub(crate) fn work_rate(run: &RunSummary) -> Option<f64> {
    let events = run.figures.measured.events_sent?;
    Some(events / run.measured.as_secs_f64())
}

/// Returns the profiles of a run that can be read, and the reason for the first one that cannot.
pub(crate) fn read(run: &RunSummary, stored: &RunProfiles) -> (Vec<ProfileFile>, Option<String>) {
    let (mut files, mut unreadable) = (Vec::new(), None);
    for file in &stored.profiles {
        match Profile::read(&file.bytes) {
            Ok(profile) => files.push(ProfileFile {
                page: file.page.clone(),
                profile,
            }),
            Err(error) => {
                let reason = || format!("{} of run {}: {error}", file.page, run.run);
                unreadable.get_or_insert_with(reason);
            }
        }
    }
    (files, unreadable)
}

/// Returns the profiles of a target for readers; `targets` is the number of targets that share the page.
pub(crate) fn blocks(profiles: &TargetProfiles, heading: String, targets: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    if !profiles.summaries.is_empty() {
        let frames_max = (FRAMES_OF_PAGE / targets.max(1) / FLAMES).clamp(40, 300);
        let mut cpu = profiles.summaries.iter();
        let cpu = cpu.find(|entry| entry.quantity == ProfileQuantity::CpuTime);
        let cpu = cpu.and_then(|entry| few_samples(&[entry.samples]));
        let parts = [
            Block::Table(totals(profiles)),
            Block::list(cpu),
            Block::On(Medium::Browser, flames(profiles, frames_max)),
            Block::On(Medium::Screen, functions(profiles, SCREEN_FUNCTIONS)),
            Block::On(Medium::Page, functions(profiles, PAGE_FUNCTIONS)),
        ];
        blocks.push(Block::section(2, heading, parts));
    }
    blocks.extend(profiles.unreadable.iter().map(|reason| {
        let text = format!("a profile is left out: {reason}");
        Block::Note(Severity::Note, text.into())
    }));
    blocks
}

/// Returns the profiles as data.
pub(crate) fn data(profiles: &TargetProfiles) -> Value {
    let function = |function: &FunctionAmount| {
        json!({
            "name": function.name,
            "itself": function.itself,
            "with_callees": function.with_callees,
        })
    };
    let summaries = profiles.summaries.iter().map(|entry| {
        json!({
            "quantity": entry.quantity.name(),
            "per": entry.quantity.is_flow().then_some(profiles.unit),
            "runs": entry.runs,
            "samples": entry.samples,
            "total": entry.total,
            "functions": entry.largest(DATA_FUNCTIONS).map(function).collect::<Vec<_>>(),
        })
    });
    summaries.collect()
}

/// Returns a row for each quantity.
fn totals(profiles: &TargetProfiles) -> Table {
    let rows = profiles.summaries.iter().map(|entry| {
        vec![
            named_profile(entry.quantity, profiles.unit).into(),
            profile_amount(entry.quantity, entry.total).into(),
            entry.runs.to_string().into(),
        ]
    });
    let columns = [
        Column::named("profile"),
        Column::of_numbers("amount"),
        Column::of_numbers("runs"),
    ];
    Table::new(columns, rows)
}

/// Returns a table of functions for each quantity, the largest first.
fn functions(profiles: &TargetProfiles, max: usize) -> Vec<Block> {
    let tables = profiles.summaries.iter().filter_map(|entry| {
        let amount = |amount: f64| {
            let share = words::percent(amount / entry.total);
            Cell::from(format!(
                "{} ({share})",
                profile_amount(entry.quantity, amount)
            ))
        };
        let rows = entry.largest(max).map(|function| {
            vec![
                Cell::from(Text::code(&function.name)),
                amount(function.itself),
                amount(function.with_callees),
            ]
        });
        let rows: Vec<_> = rows.collect();
        let title = named_profile(entry.quantity, profiles.unit);
        let columns = [
            Column::named(format!("{title} by function")),
            Column::of_numbers("itself"),
            Column::of_numbers("with callees"),
        ];
        (!rows.is_empty() && entry.total > 0.0).then(|| {
            let table = Table::new(columns, rows).with_optional(&["with callees"]);
            Block::group([Block::Table(table)])
        })
    });
    tables.collect()
}

/// Returns flame graphs of the first quantities.
fn flames(profiles: &TargetProfiles, frames_max: usize) -> Vec<Block> {
    let legend = "Callers are above the functions that they call. A frame is as wide as its amount; point at a \
                  frame to see its amounts.";
    let shown = profiles.summaries.iter().take(FLAMES).map(|entry| {
        Block::Chart(Chart::Flame(FlameChart {
            title: format!(
                "{} by call stack",
                named_profile(entry.quantity, profiles.unit)
            ),
            quantity: entry.quantity,
            is_difference: false,
            frames_max,
            root: entry.root.clone(),
        }))
    });
    std::iter::once(Block::Paragraph(Text::dim(legend)))
        .chain(shown)
        .collect()
}
