//! One run of a comparison, and its numbers by name.

use std::path::PathBuf;

use stillwell_metric::Unit;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_units::Tolerance;

use crate::summary::{Measured, RunSummary};

/// A number, and what is known of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunNumber {
    /// The number, in base units.
    pub value: f64,
    /// Unit of a value.
    pub unit: Unit,
    /// True if it is for each second.
    pub per_second: bool,
    /// Better direction, where that is known.
    pub better: Option<Direction>,
}

/// Reason why there is no number.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Missing {
    /// Nothing of this name was recorded.
    Unknown,
    /// It was, and there is no number for this reason.
    Because(String),
}

/// A run of one side of a comparison.
pub trait ComparableRun {
    /// Returns where it is from, for readers.
    fn label(&self) -> &str;

    /// Returns the experiment that it belongs to, if to any.
    fn experiment(&self) -> Option<&str>;

    /// Returns the variant of the experiment that it is, if of any.
    fn variant(&self) -> Option<&str>;

    /// Returns the name of the tool that measured it; empty for plain numbers.
    fn tool(&self) -> &'static str;

    /// Returns the run with what its experiment wanted to know, where it is a run of
    /// Stillwell.
    fn saved(&self) -> Option<&SavedRun>;

    /// Returns the number of this name.
    ///
    /// # Errors
    /// Why there is none.
    fn number(&self, name: &str) -> Result<RunNumber, Missing>;

    /// Returns the names that are compared by default, the most important first.
    fn usual_names(&self) -> Vec<String>;

    /// Returns all names that have a number.
    fn all_names(&self) -> Vec<String>;
}

/// A run of Stillwell, and what its experiment wanted to know of it.
#[derive(Clone, Debug)]
pub struct SavedRun {
    /// The run in numbers.
    pub summary: RunSummary,
    /// The capture, where there is more than the summary.
    pub folder: Option<PathBuf>,
    /// The pair that it belongs to, if to any.
    pub pair: Option<PairKey>,
    /// Way in which the runs of its pair share the machine, if known. Without it the environments
    /// of a pair are not compared.
    pub design: Option<DesignPlan>,
    /// The goals by which its experiment compares, if they are known.
    pub goals: Vec<GoalPlan>,
    /// The variants of its experiment in the order of its plan, if known.
    pub variants: Vec<String>,
    /// True if its experiment looked at its runs more than once.
    pub looked_at: bool,
}

/// The pair a run belongs to.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct PairKey {
    /// The folder of results.
    pub suite: PathBuf,
    /// The experiment.
    pub experiment: String,
    /// The number of the pair.
    pub pair: u32,
}

impl SavedRun {
    /// A run of which only this is known.
    #[must_use]
    pub const fn new(summary: RunSummary) -> Self {
        Self {
            summary,
            folder: None,
            pair: None,
            design: None,
            goals: Vec::new(),
            variants: Vec::new(),
            looked_at: false,
        }
    }

    /// The names of its experiment's goals, or of all goals.
    #[must_use]
    pub fn usual_names(&self) -> Vec<String> {
        let name = |metric: &GoalMetric| metric.name().into_owned();
        if self.goals.is_empty() {
            return GoalMetric::ALL.iter().map(name).collect();
        }
        self.goals.iter().map(|goal| name(&goal.metric)).collect()
    }

    /// The names of everything that was recorded.
    #[must_use]
    pub fn all_names(&self) -> Vec<String> {
        let goals = self.summary.values.keys();
        let goals = goals.map(|goal| goal.name().into_owned());
        goals.chain(self.summary.series.keys().cloned()).collect()
    }

    /// The number of this name.
    ///
    /// # Errors
    /// Why there is none.
    pub fn number(&self, name: &str) -> Result<RunNumber, Missing> {
        let summary = &self.summary;
        if !summary.outcome.is_completed() {
            return Err(Missing::Because("the run did not complete".to_owned()));
        }
        let goal = name.parse::<GoalMetric>().ok();
        let goal = goal.or_else(|| recorded_series(summary, name));
        let goal = goal.ok_or(Missing::Unknown)?;
        if let Some(warning) = summary.warning_about(&goal) {
            return Err(Missing::Because(warning.to_string()));
        }
        let (unit, per_second) = unit_of(&goal);
        match summary.measured(&goal) {
            Measured::Value(value) => Ok(RunNumber {
                value,
                unit,
                per_second,
                better: goal.direction(),
            }),
            Measured::Missing { reason } => Err(Missing::Because(reason)),
        }
    }
}

/// The series that `name` means, with the reduction that suits it where none is
/// given.
fn recorded_series(summary: &RunSummary, name: &str) -> Option<GoalMetric> {
    let name = name.strip_prefix("series:").unwrap_or(name);
    let full = |name: &str| {
        let there = summary.series.contains_key(name);
        there
            .then(|| format!("series:{name}").parse().ok())
            .flatten()
    };
    full(name)
        .or_else(|| full(&format!("{name}:mean")))
        .or_else(|| full(&format!("{name}:rate")))
}

/// The unit of a goal's number, and whether it is for each second.
#[must_use]
pub const fn unit_of(goal: &GoalMetric) -> (Unit, bool) {
    match goal {
        GoalMetric::EgressThroughput | GoalMetric::IngressThroughput => (Unit::Bytes, true),
        GoalMetric::InstructionsPerEvent => (Unit::Count, false),
        GoalMetric::RequestThroughput => (Unit::Count, true),
        GoalMetric::Route(goal) => unit_of(goal.metric()),
        GoalMetric::CpuPerEvent
        | GoalMetric::EventLatency(_)
        | GoalMetric::FirstByte(_)
        | GoalMetric::Latency(_)
        | GoalMetric::ServiceTime(_) => (Unit::Nanoseconds, false),
        GoalMetric::Memory | GoalMetric::MemoryPeak => (Unit::Bytes, false),
        GoalMetric::Duplicated
        | GoalMetric::ErrorShare
        | GoalMetric::Loss
        | GoalMetric::MemorySlope
        | GoalMetric::Status(_) => (Unit::Ratio, false),
        GoalMetric::Cpu | GoalMetric::Series(_) => (Unit::Unknown, false),
    }
}

/// The scale on which a metric of this name is compared: shares of errors may be zero.
pub(super) fn scale_of(name: &str, goal: Option<&GoalMetric>) -> Scale {
    match goal {
        Some(goal) => goal.scale(),
        None if name == "errors" => Scale::Difference,
        None => Scale::Ratio,
    }
}

/// The tolerance of a metric of this name, where none is given.
pub(super) fn tolerance_of(name: &str, goal: Option<&GoalMetric>) -> Tolerance {
    match goal {
        Some(goal) => goal.default_tolerance(),
        None if name == "errors" => GoalMetric::Loss.default_tolerance(),
        None if name == "requests_per_second" => GoalMetric::IngressThroughput.default_tolerance(),
        None => Tolerance::DEFAULT,
    }
}

/// Names as a list for readers, the first few.
#[must_use]
pub fn listed(names: &[String]) -> String {
    const LISTED_MAX: usize = 12;
    if names.is_empty() {
        return "none that has a name".to_owned();
    }
    let mut text = names
        .iter()
        .take(LISTED_MAX)
        .map(|name| format!("`{name}`"));
    let text = text.by_ref().collect::<Vec<_>>().join(", ");
    match names.len().checked_sub(LISTED_MAX) {
        Some(more) if more > 0 => format!("{text} and {more} more"),
        _ => text,
    }
}
