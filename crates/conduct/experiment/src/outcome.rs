//! The outcome of a suite.

use stillwell_units::Nanos;
use stillwell_verdict::{ErrorBudget, ExperimentVerdict};

/// The outcome of a suite.
#[derive(Debug)]
pub struct SuiteOutcome {
    /// One for each experiment of which there is any run, in the plan's order.
    pub verdicts: Vec<ExperimentVerdict>,
    /// Correction that keeps the experiments from raising a false alarm together.
    pub budget: ErrorBudget,
    /// The signal that ended it before its time, if one did. Finished pairs are
    /// kept and judged.
    pub interrupted: Option<i32>,
    /// Problems that are not part of the verdicts.
    pub problems: Vec<Problem>,
    /// Elapsed time, builds included.
    pub elapsed: Nanos,
}

impl SuiteOutcome {
    /// Returns the worst problem, if there is any.
    #[must_use]
    pub fn most_severe(&self) -> Option<&Problem> {
        self.problems.iter().max_by_key(|problem| problem.kind)
    }
}

/// Something that went wrong.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Problem {
    /// The experiment.
    pub experiment: String,
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// Description for readers.
    pub reason: String,
}

/// Kinds of problems, the worst last.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum ProblemKind {
    /// The experiment was given up because none of its pairs was finished: it is
    /// invalid.
    GivenUp,
    /// Results could not be written after a pair had been finished: the suite is invalid.
    Storage,
    /// The experiment's first run, or its probe, could not be made.
    CouldNotStart,
    /// Results could not be written before any pair was finished.
    StorageAtStart,
}

impl ProblemKind {
    /// True if nothing could be run, as opposed to what was run being invalid.
    #[must_use]
    pub const fn is_about_starting(self) -> bool {
        matches!(self, Self::CouldNotStart | Self::StorageAtStart)
    }
}
