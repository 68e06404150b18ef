//! Questions and answers of a search: `bisect.json`.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stillwell_plan::GoalMetric;
use stillwell_plan::goal::Direction;
use stillwell_verdict::{ExperimentVerdict, GoalVerdict, Verdict};

use super::git::Commit;
use super::search::{Answer, Outcome};
use crate::SuiteError;
use crate::files::{read_json, write_json};

/// Names the shape of [`BisectRecord`]; keys are added within a version and never
/// removed.
pub const BISECT_SCHEMA: &str = "stillwell/bisect/v1";

const BISECT: &str = "bisect.json";

/// Questions and answers of a search: `bisect.json`.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct BisectRecord {
    /// [`BISECT_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// The experiment.
    pub experiment: String,
    /// SHA-256 of the plan, from which those of all steps are made.
    pub fingerprint: String,
    /// The repository.
    pub repository: PathBuf,
    /// GOOD, and all commits after it up to BAD.
    pub commits: Vec<Commit>,
    /// The comparisons, in order.
    pub steps: Vec<StepRecord>,
    /// The outcome; `None` while the search goes on.
    #[serde(default)]
    pub outcome: Option<OutcomeRecord>,
}

/// The outcome of a search, by the names of commits.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct OutcomeRecord {
    /// Kind of the outcome.
    pub kind: OutcomeKind,
    /// The last commit known to be good, if the first bad one was looked for.
    pub last_good: Option<String>,
    /// The first commit known to be bad: where it is not that of `kind`
    /// [`Commit`](OutcomeKind::Commit), any from behind `last_good` up to it can
    /// be the one.
    pub first_bad: Option<String>,
}

/// Kind of an outcome.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeKind {
    /// One commit is it, and was confirmed against the one before it.
    Commit,
    /// The commit is one of several that could not be judged.
    Range,
    /// The result was not confirmed.
    Unconfirmed,
    /// BAD is not worse than GOOD.
    NotWorse,
    /// It is not known if BAD is worse than GOOD.
    Unclear,
}

impl OutcomeRecord {
    pub(super) fn new(outcome: Outcome, commits: &[Commit]) -> Self {
        let name = |place: usize| commits.get(place).map(|item| item.revision.clone());
        match outcome {
            Outcome::NotWorse => Self::without_commits(OutcomeKind::NotWorse),
            Outcome::Unclear => Self::without_commits(OutcomeKind::Unclear),
            Outcome::Found(range) => Self {
                kind: match range.confirmed {
                    Answer::Bad if range.is_certain() => OutcomeKind::Commit,
                    Answer::Bad => OutcomeKind::Range,
                    Answer::Good | Answer::Unknown => OutcomeKind::Unconfirmed,
                },
                last_good: name(range.good),
                first_bad: name(range.bad),
            },
        }
    }

    const fn without_commits(kind: OutcomeKind) -> Self {
        Self {
            kind,
            last_good: None,
            first_bad: None,
        }
    }
}

/// One comparison of two commits.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct StepRecord {
    /// The folder of its results, in that of the search.
    pub results: String,
    /// The commit that was the baseline.
    pub baseline: String,
    /// The commit that was compared with it.
    pub comparison: String,
    /// The smallest change that matters.
    pub tolerance: f64,
    /// The answer.
    pub answer: Answer,
    /// The verdict, if there was one.
    pub verdict: Option<String>,
    /// The change, comparison / baseline − 1 or the difference, with the ends of
    /// its 95 % interval, if it was measured: estimate, lower, upper. An end that
    /// is nowhere is the lowest or the highest number that there is.
    pub change: Option<[f64; 3]>,
    /// Metric of the goal that decided, if there was a verdict; missing in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<GoalMetric>,
    /// Number of pairs behind the answer.
    pub pairs: u32,
    /// The reason why there is no answer.
    pub reason: Option<String>,
}

impl BisectRecord {
    /// Returns the metric that decided between the ends. A goal that the machine cannot measure is skipped, so
    /// it need not be the first of the plan.
    #[must_use]
    pub fn metric(&self) -> Option<&GoalMetric> {
        self.steps.first()?.metric.as_ref()
    }

    /// Returns the results folder in `root` of the search that was begun last. Names sort by age.
    #[must_use]
    pub fn newest(root: &Path) -> Option<PathBuf> {
        let entries = fs::read_dir(root).ok()?.flatten();
        let folders = entries.map(|entry| entry.path());
        folders.filter(|folder| Self::place(folder).is_file()).max()
    }

    /// Returns its path in `folder`.
    #[must_use]
    pub fn place(folder: &Path) -> PathBuf {
        folder.join(BISECT)
    }

    /// The record in `folder`.
    ///
    /// # Errors
    /// [`SuiteError::Read`] where there is none, or it is not readable.
    pub fn read(folder: &Path) -> Result<Self, SuiteError> {
        read_json(&Self::place(folder))
    }

    pub(super) fn write(&self, folder: &Path) -> Result<(), SuiteError> {
        write_json(&Self::place(folder), self)
    }
}

impl StepRecord {
    /// Without an answer.
    pub(super) fn unknown(self, reason: String) -> Self {
        Self {
            answer: Answer::Unknown,
            reason: Some(reason),
            ..self
        }
    }

    /// With the answer that `verdict` gives.
    pub(super) fn answered(self, verdict: &ExperimentVerdict) -> Self {
        let goal = verdict.goals.iter().find(|goal| goal.primary);
        let change = goal.and_then(|goal| goal.change);
        let answer = answer_of(verdict.verdict, goal);
        let reason = goal.and_then(|goal| goal.reason.clone());
        let confirmation = goal.and_then(|goal| goal.confirmation.as_ref());
        Self {
            answer,
            verdict: Some(verdict.verdict.name().to_owned()),
            change: change.map(|item| [item.estimate, item.lower, item.upper].map(bounded)),
            metric: goal.map(|goal| goal.metric.clone()),
            pairs: confirmation.map_or(verdict.pairs_used, |fresh| fresh.pairs),
            reason: reason.filter(|_| answer == Answer::Unknown),
            ..self
        }
    }
}

/// JSON has no infinity, and a record must be readable again.
const fn bounded(value: f64) -> f64 {
    value.clamp(f64::MIN, f64::MAX)
}

/// A change for the worse that is certain but small could belong to either side.
fn answer_of(verdict: Verdict, goal: Option<&GoalVerdict>) -> Answer {
    match verdict {
        Verdict::Regressed => Answer::Bad,
        Verdict::Equivalent | Verdict::Improved => Answer::Good,
        Verdict::Different if goal.is_some_and(is_better) => Answer::Good,
        Verdict::Different | Verdict::Inconclusive | Verdict::Invalid => Answer::Unknown,
    }
}

fn is_better(goal: &GoalVerdict) -> bool {
    goal.change.is_some_and(|change| match goal.direction {
        Direction::HigherIsBetter => change.estimate > 0.0,
        Direction::LowerIsBetter => change.estimate < 0.0,
    })
}
