//! The displayed data of a running suite, or of a single run.

mod layout;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use stillwell_experiment::TimeLeft;
use stillwell_plan::goal::Scale;
use stillwell_plan::stopping::DesignPlan;
use stillwell_report::goal_title;
use stillwell_run::Progress;
use stillwell_units::Moment;
use stillwell_verdict::{Change, ExperimentVerdict, RunSummary, Verdict};

use super::run::{RunCourse, RunFigures};

/// Estimates that are kept: as many as the tallest view shows.
const ESTIMATES_MAX: usize = 40;

/// All that a view shows; plain data.
#[derive(Clone, Debug, Default)]
pub(super) struct SuiteView {
    /// Name of the experiment or run.
    pub(super) name: String,
    /// Its number, and their number, where there are several.
    pub(super) number: Option<(usize, usize)>,
    /// The present pair, probe or block.
    pub(super) step: String,
    pub(super) left: Option<(TimeLeft, Moment)>,
    /// Variants in their order, the baseline first.
    pub(super) variants: Vec<VariantRow>,
    /// Name of the variant that runs.
    pub(super) running: Option<String>,
    /// The present run; of two at once, the one that reported last.
    pub(super) run: RunCourse,
    /// The runs that are made at once, by variant.
    pub(super) at_once: BTreeMap<String, RunCourse>,
    /// True where runs are made at once.
    pub(super) is_at_once: bool,
    /// Reason why nothing runs at the moment.
    pub(super) status: String,
    /// Estimates of the primary goal, the latest last.
    pub(super) estimates: Vec<EstimateRow>,
    /// The latest estimates of all goals.
    pub(super) goals: Vec<EstimateRow>,
    /// Ended experiments.
    pub(super) ended: Vec<EndedRow>,
    pub(super) panel: Panel,
    /// Since when it pauses after the present pair.
    pub(super) paused: Option<Moment>,
    /// Since when it waits for the end of the pause.
    pub(super) waiting_since: Option<Moment>,
    /// True once the user has requested the end.
    pub(super) is_ending: bool,
    /// True for a single run, which has no pairs.
    pub(super) is_single: bool,
}

/// A variant and the figures of its latest run.
#[derive(Clone, Debug, Default)]
pub(super) struct VariantRow {
    pub(super) name: String,
    pub(super) figures: RunFigures,
}

/// A change with its interval.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct EstimateRow {
    /// Pairs, or the goal.
    pub(super) name: String,
    pub(super) metric: String,
    pub(super) change: Change,
    pub(super) tolerance: f64,
    pub(super) scale: Scale,
}

/// An ended experiment.
#[derive(Clone, Debug)]
pub(super) struct EndedRow {
    pub(super) name: String,
    pub(super) verdict: Verdict,
    pub(super) change: Option<(String, Change, Scale)>,
}

/// The part below the variants.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum Panel {
    /// The primary goal after each pair.
    #[default]
    Estimate,
    /// All goals.
    Goals,
    /// The ended experiments.
    Experiments,
}

impl SuiteView {
    /// A single run with this name.
    pub(super) fn single(name: &str) -> Self {
        let mut view = Self {
            is_single: true,
            name: name.to_owned(),
            ..Self::default()
        };
        view.run_started("target");
        view
    }

    /// Updates the view with an event that happens while nothing runs.
    pub(super) fn waits_for(&mut self, status: impl Into<String>) {
        self.status = status.into();
    }

    /// Begins an experiment.
    pub(super) fn experiment(&mut self, name: &str, number: (usize, usize)) {
        *self = Self {
            name: name.to_owned(),
            number: Some(number),
            left: self.left,
            ended: std::mem::take(&mut self.ended),
            panel: self.panel,
            paused: self.paused,
            is_ending: self.is_ending,
            ..Self::default()
        };
    }

    /// Begins a pair, or a block of other runs.
    pub(super) fn pair(&mut self, step: String, order: &[&str], design: DesignPlan) {
        self.step = step;
        self.at_once.clear();
        self.waits_for("pausing for a moment before the run");
        self.is_at_once = design != DesignPlan::Paired;
        // The order of a pair is random; rows keep theirs.
        let mut names: Vec<&str> = order.to_vec();
        names.sort_by_key(|name| (*name != "baseline", *name));
        for name in names {
            self.row(name);
        }
    }

    pub(super) fn run_started(&mut self, variant: &str) {
        self.row(variant);
        self.running = Some(variant.to_owned());
        self.run = RunCourse::default();
    }

    pub(super) fn run_progress(&mut self, progress: &Progress, now: Moment) {
        self.run.update(progress, now);
        let figures = self.run.figures;
        let running = self.running.clone();
        if let Some(name) = running.filter(|_| figures.rate.is_some()) {
            self.row(&name).figures = figures;
        }
    }

    /// Updates the view with the progress of one of two runs that are made at the same time.
    pub(super) fn run_progress_of(&mut self, variant: &str, progress: &Progress, now: Moment) {
        let course = self.at_once.entry(variant.to_owned()).or_default();
        course.update(progress, now);
        let course = course.clone();
        if course.figures.rate.is_some() {
            self.row(variant).figures = course.figures;
        }
        self.run = course;
    }

    pub(super) fn run_ended(&mut self, summary: &RunSummary) {
        if let Some(identity) = &summary.identity {
            self.row(&identity.variant).figures = RunFigures::of(summary);
        }
        self.running = None;
        self.run = RunCourse::default();
        self.waits_for("pausing for a moment before the next run");
    }

    /// Takes in the result of a pair.
    pub(super) fn estimate(&mut self, verdict: &ExperimentVerdict) {
        let several = verdict.variants.len() > 2;
        self.goals.clear();
        for goal in &verdict.goals {
            let Some((pairs, change)) = goal.so_far() else {
                continue;
            };
            let metric = match several {
                true => format!(
                    "{} of {}",
                    goal_title(&goal.metric, verdict.work),
                    goal.comparison
                ),
                false => goal_title(&goal.metric, verdict.work).into_owned(),
            };
            let row = |name: String| EstimateRow {
                name,
                metric: metric.clone(),
                change,
                tolerance: goal.tolerance.share(),
                scale: goal.scale,
            };
            self.goals.push(row(metric.clone()));
            let is_first = goal.comparison == verdict.goals[0].comparison;
            if goal.primary && is_first {
                let fresh = goal.confirmation.as_ref().map_or("", |_| "new ");
                let noun = if pairs == 1 { "pair" } else { "pairs" };
                self.estimates.push(row(format!("{pairs} {fresh}{noun}")));
                let superfluous = self.estimates.len().saturating_sub(ESTIMATES_MAX);
                self.estimates.drain(..superfluous);
            }
        }
    }

    pub(super) fn experiment_ended(&mut self, verdict: &ExperimentVerdict) {
        let goal = verdict.goals.iter().find(|goal| goal.primary);
        let change = goal.and_then(|goal| {
            Some((
                goal_title(&goal.metric, verdict.work).into_owned(),
                goal.change?,
                goal.scale,
            ))
        });
        self.ended.push(EndedRow {
            name: verdict.name.clone(),
            verdict: verdict.verdict,
            change,
        });
    }

    /// Ends a pause: the remaining time is what it was then.
    pub(super) fn resume(&mut self, now: Moment) {
        self.paused = None;
        let since = self.waiting_since.take();
        if let (Some((_, at)), Some(since)) = (&mut self.left, since) {
            *at = *at + now.since(since);
        }
    }

    /// Returns the remaining time at `now`.
    fn left(&self, now: Moment) -> Option<TimeLeft> {
        let (left, at) = self.left?;
        let now = self.waiting_since.unwrap_or(now);
        let passed = now.since(at);
        Some(TimeLeft {
            least: left.least.saturating_sub(passed),
            likely: left.likely.saturating_sub(passed),
            most: left.most.saturating_sub(passed),
        })
    }

    fn row(&mut self, name: &str) -> &mut VariantRow {
        let at = self.variants.iter().position(|row| row.name == name);
        let at = at.unwrap_or_else(|| {
            self.variants.push(VariantRow {
                name: name.to_owned(),
                figures: RunFigures::default(),
            });
            self.variants.len() - 1
        });
        &mut self.variants[at]
    }
}
