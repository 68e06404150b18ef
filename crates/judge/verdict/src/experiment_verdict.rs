//! Verdict on an experiment.

use stillwell_metric::CountingObstacle;
use stillwell_plan::experiment::{FamilyPlan, ReportLink};
use stillwell_plan::stopping::DesignPlan;
use stillwell_plan::{GoalMetric, StoppingPlan, WorkUnit};
use stillwell_units::{Nanos, RunId};

use crate::erratic::ErraticSign;
use crate::gate::Gate;
use crate::goal_verdict::GoalVerdict;
use crate::moved::Moved;
use crate::rule::Verdict;
use crate::run_note::RunNote;
use crate::run_warning::RunWarning;
use crate::standing::StopReason;

/// Verdict on an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct ExperimentVerdict {
    /// The experiment.
    pub name: String,
    /// The first line of prose of its README or its description.
    pub summary: Option<String>,
    /// The matrix that it is one cell of, if it is.
    pub family: Option<FamilyPlan>,
    /// True if its file says that it is shown but never gates.
    pub erratic: bool,
    /// Evidence that it cannot be measured steadily; none if it can.
    pub erratic_signs: Vec<ErraticSign>,
    /// Unit of the work that costs are divided by.
    pub work: WorkUnit,
    /// Its variants; the first is the baseline.
    pub variants: Vec<String>,
    /// When it has seen enough.
    pub stopping: StoppingPlan,
    /// Isolation between the variants of a pair.
    pub design: DesignPlan,
    /// Builds of each variant that comes from a revision.
    pub builds: u32,
    /// True if a regression is to be confirmed on fresh pairs.
    pub confirm: bool,
    /// The most pairs that it may be judged by.
    pub pairs_planned: u32,
    /// Pairs that the primary goal was judged by: those of the latest look; with
    /// more than two variants the fewest of all comparisons.
    pub pairs_used: u32,
    /// Valid pairs of the search, those beyond the latest look included.
    pub pairs_valid: u32,
    /// Pairs of both stages that were run and say nothing about the primary
    /// goal; each was to be repeated.
    pub pairs_discarded: u32,
    /// For each variant, how many of its runs caused that.
    pub discards: Vec<ArmDiscards>,
    /// True if one variant's runs were left out more often than chance explains:
    /// a finding of its own, since a crash is not an outlier.
    pub discards_unbalanced: bool,
    /// Runs with warnings, by stage, pair and variant.
    pub not_used: Vec<RunNotUsed>,
    /// Reason why no more pairs are run; `None` while more would be.
    pub stopped: Option<StopReason>,
    /// Valid pairs in all after which the verdict is likely certain; `None` when
    /// stopped, when unknown, and when the last look is unlikely to be decisive.
    pub likely_pairs: Option<u32>,
    /// Time that these still take.
    pub likely_left: Option<Nanos>,
    /// The goals of the plan in its order, the primary one first; with more than
    /// two variants all goals of the first comparison, then all of the second.
    pub goals: Vec<GoalVerdict>,
    /// Goals of the plan that this machine cannot measure.
    pub skipped: Vec<SkippedGoal>,
    /// The checks of the plan in its order.
    pub checks: Vec<CheckVerdict>,
    /// If the primary verdict is not `equivalent` or `invalid`: other metrics that
    /// changed, the surest and largest change first. Exploratory: a tenth of it
    /// may be chance.
    pub moved: Vec<Moved>,
    /// Among how many series that was looked for; 0 where it was not.
    pub moved_of: u32,
    /// Notes for readers, each once.
    pub notes: Vec<RunNoteCount>,
    /// Changes that would improve the answer, one sentence each.
    pub advice: Vec<String>,
    /// CPUs that it had.
    pub cpus: PlacedCpus,
    /// Rates as they were carried out, one for each generator.
    pub rate: Vec<RateFigure>,
    /// Length of each run's load that was not measured.
    pub warmup: Nanos,
    /// Length of each run's measured phase, without what `warmup` takes of it.
    pub measure: Nanos,
    /// Links that reports carry.
    pub report_links: Vec<ReportLink>,
    /// The primary goal's; with more than two variants the worst of them.
    pub verdict: Verdict,
    /// Exit state for a script.
    pub gate: Gate,
}

/// A goal of the plan that no run on this machine can measure.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SkippedGoal {
    /// Its metric.
    pub metric: GoalMetric,
    /// The reason.
    pub obstacle: CountingObstacle,
    /// True if it was the primary goal; the first goal that is measured is that now.
    pub was_primary: bool,
}

/// Number of times that one variant caused a discarded pair.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ArmDiscards {
    /// The variant.
    pub variant: String,
    /// Its runs that say nothing about the primary goal.
    pub runs: u32,
    /// Those of them in which the target itself failed: it died, started again
    /// or was killed for memory.
    pub target_failures: u32,
}

/// The compared variant whose target failed in most runs, if these are more than those of the
/// baseline, the first.
#[must_use]
pub fn failing_more(discards: &[ArmDiscards]) -> Option<&ArmDiscards> {
    let (baseline, compared) = discards.split_first()?;
    let worst = compared.iter().max_by_key(|arm| arm.target_failures)?;
    (worst.target_failures > baseline.target_failures).then_some(worst)
}

/// A run with warnings.
#[derive(Clone, Debug, PartialEq)]
pub struct RunNotUsed {
    /// Purpose of the run.
    pub stage: stillwell_capture::RunStage,
    /// Its pair within the stage, from 1.
    pub pair: u32,
    /// Its variant.
    pub variant: String,
    /// The run.
    pub run: RunId,
    /// At least one.
    pub warnings: Vec<RunWarning>,
    /// Its numbers of the goals, unreliable where a warning is about them.
    pub values: Vec<(GoalMetric, f64)>,
}

/// A check's answer over all completed runs.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckVerdict {
    /// Name in reports of it.
    pub name: String,
    /// Its purpose.
    pub description: Option<String>,
    /// Runs that kept it.
    pub passed: u32,
    /// Runs in which there was nothing to hold against it.
    pub not_measured: u32,
    /// Runs in all.
    pub runs: u32,
    /// The observed value nearest to or farthest beyond a bound, in `unit`.
    pub worst_observed: Option<f64>,
    /// It must not lie above.
    pub upper: Option<f64>,
    /// It must not lie below.
    pub lower: Option<f64>,
    /// Unit of values and bounds, as the catalogue has it.
    pub unit: String,
    /// Variants with a run that broke it.
    pub failed_variants: Vec<String>,
}

impl CheckVerdict {
    /// Runs that broke it.
    #[must_use]
    pub const fn failed(&self) -> u32 {
        self.runs
            .saturating_sub(self.passed)
            .saturating_sub(self.not_measured)
    }

    /// Returns true if a run broke it or did not measure it.
    #[must_use]
    pub const fn is_broken(&self) -> bool {
        self.failed() > 0 || self.not_measured > 0
    }
}

/// A note, and how many runs carry one like it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunNoteCount {
    /// The first of its kind.
    pub note: RunNote,
    /// Runs that carry one like it.
    pub runs: u32,
    /// Runs in all.
    pub of: u32,
}

/// CPUs of an experiment's runs; `None` for any.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlacedCpus {
    /// The target's.
    pub target: Option<Vec<u16>>,
    /// Those of generators, sinks and observers.
    pub workers: Option<Vec<u16>>,
}

/// A generator's rate as it was carried out: the mean over all runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RateFigure {
    /// The generator.
    pub id: String,
    /// Unit of its rate.
    pub unit: WorkUnit,
    /// Requested units per second; `None` at full speed.
    pub requested_per_second: Option<f64>,
    /// Units sent for each second.
    pub achieved_per_second: Option<f64>,
}
