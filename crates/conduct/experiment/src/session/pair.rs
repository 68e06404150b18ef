//! One pair: all variants next to each other in time, or at the same time.

use stillwell_capture::{RunIdentity, RunStage};
use stillwell_plan::ExperimentPlan;
use stillwell_plan::stopping::DesignPlan;
use stillwell_scope::{clock, explain};
use stillwell_verdict::RunSummary;

use super::course::Course;
use super::{Listener, NoRun, Session, last_words, pairs_part};
use crate::order::of_stage;
use crate::policy::{Consequence, consequence, describe_outcome};
use crate::quiet::pause_before;
use crate::request::Circumstances;
use crate::{SuiteProgress, order_within};

/// Identity of a pair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair<'p> {
    /// The experiment's place in the suite.
    pub(super) index: usize,
    pub(super) plan: &'p ExperimentPlan,
    pub(super) stage: RunStage,
    /// From 1 within the stage.
    pub(super) number: u32,
}

/// The end of a pair.
#[derive(Debug)]
pub(super) enum PairEnd {
    Finished,
    Lost(String),
    GivenUp(String),
    CannotStart { reason: String, last_words: String },
    Storage(String),
    Interrupted,
}

impl PairEnd {
    /// Returns the reason why the pair is lost, if it is.
    pub(super) const fn lost(&self) -> Option<&str> {
        match self {
            Self::Finished => None,
            Self::Interrupted => Some("interrupted"),
            Self::Lost(reason)
            | Self::GivenUp(reason)
            | Self::CannotStart { reason, .. }
            | Self::Storage(reason) => Some(reason.as_str()),
        }
    }

    /// Severity of the end: of two simultaneous runs the worse end counts.
    const fn severity(&self) -> u8 {
        match self {
            Self::Finished => 0,
            Self::Lost(_) => 1,
            Self::GivenUp(_) => 2,
            Self::CannotStart { .. } => 3,
            Self::Storage(_) => 4,
            Self::Interrupted => 5,
        }
    }
}

impl<'a> Session<'a> {
    /// Carries a pair out, as far as it goes. The runs that it has are judged
    /// also where the pair is lost: a verdict says why.
    pub(super) fn pair(
        &mut self,
        pair: Pair<'_>,
        course: &Course,
        progress: &mut Listener<'_>,
    ) -> (Vec<RunSummary>, PairEnd) {
        let Pair { plan, stage, .. } = pair;
        if let Err(error) = self.results.set_aside(&plan.name, stage, pair.number) {
            return (Vec::new(), PairEnd::Storage(explain(&error)));
        }
        let mut runs = Vec::new();
        let order = self.order(pair);
        let end = match plan.design {
            DesignPlan::Paired => self.one_by_one(pair, &order, course, &mut runs, progress),
            DesignPlan::Duet | DesignPlan::Sliced { .. } => {
                self.together(pair, &order, course, &mut runs, progress)
            }
        };
        (runs, end)
    }

    /// The variants of a pair, by their places in the plan, in their order.
    pub(super) fn order(&self, pair: Pair<'_>) -> Vec<usize> {
        let Pair { plan, stage, .. } = pair;
        let variants = plan.variants.len();
        order_within(&self.plan.seed, &plan.name, stage, variants, pair.number)
    }

    fn one_by_one(
        &mut self,
        pair: Pair<'_>,
        order: &[usize],
        course: &Course,
        runs: &mut Vec<RunSummary>,
        progress: &mut Listener<'_>,
    ) -> PairEnd {
        for (position, variant) in (0..).zip(order) {
            let (about, identity) = self.half(pair, position, *variant);
            let summary = match self.execute(&about, identity, progress) {
                Ok(summary) => summary,
                Err(NoRun::Interrupted) => return PairEnd::Interrupted,
                Err(NoRun::Storage(reason)) => return PairEnd::Storage(reason),
            };
            match self.end_of(pair, &summary, course) {
                PairEnd::Finished => runs.push(summary),
                // It is run again, and says nothing.
                PairEnd::Interrupted => return PairEnd::Interrupted,
                // The rest of the pair would have nothing to be compared with.
                end => {
                    runs.push(summary);
                    return end;
                }
            }
        }
        PairEnd::Finished
    }

    /// Runs both variants of a pair at the same time.
    fn together(
        &mut self,
        pair: Pair<'_>,
        order: &[usize],
        course: &Course,
        runs: &mut Vec<RunSummary>,
        progress: &mut Listener<'_>,
    ) -> PairEnd {
        let started = clock::now();
        let place = (pair.stage, pair.number, 0);
        let pause = pause_before(&self.plan.seed, pair.plan, place);
        self.executor.pause(pause, self.interrupt);
        let mut halves = (0..).zip(order).map(|(position, variant)| {
            let (about, identity) = self.half(pair, position, *variant);
            self.prepare(&about, identity)
        });
        let (first, second) = match (halves.next(), halves.next()) {
            (Some(Ok(first)), Some(Ok(second))) => (first, second),
            (Some(Err(error)), _) | (_, Some(Err(error))) => {
                return match error {
                    NoRun::Interrupted => PairEnd::Interrupted,
                    NoRun::Storage(reason) => PairEnd::Storage(reason),
                };
            }
            // Refused before anything was run.
            _ => return PairEnd::Lost("it has fewer than two variants".to_owned()),
        };
        drop(halves);
        for request in [&first, &second] {
            if let Some(identity) = &request.identity {
                let left = self.forecast.left();
                progress(SuiteProgress::RunStarted { identity, left });
            }
        }
        let states = [&first, &second].map(|request| request.places.state.clone());
        let names = [&first, &second].map(|request| {
            let identity = request.identity.as_ref();
            identity.map_or_else(String::new, |identity| identity.variant.clone())
        });
        let seed = of_stage(self.plan.seed.derive("turns", 0), pair.stage)
            .derive(&pair.plan.name, u64::from(pair.number));
        let ended = self.executor.execute_pair(
            [first, second],
            pair.plan.design,
            &seed,
            self.interrupt,
            &mut |run, of_run| {
                progress(SuiteProgress::RunAtOnce {
                    variant: names.get(run).map_or("", String::as_str),
                    progress: of_run,
                });
            },
        );
        self.forecast
            .ran(pairs_part(pair.index), clock::now().since(started));
        for state in &states {
            self.clear_state(state, progress);
        }
        let mut most_severe = PairEnd::Finished;
        for result in ended {
            let end = match result {
                Ok(summary) => {
                    progress(SuiteProgress::RunEnded { summary: &summary });
                    let end = self.end_of(pair, &summary, course);
                    if !matches!(end, PairEnd::Interrupted) {
                        runs.push(summary);
                    }
                    end
                }
                Err(error) => PairEnd::Storage(explain(&error)),
            };
            if end.severity() > most_severe.severity() {
                most_severe = end;
            }
        }
        most_severe
    }

    /// One variant, in its place within its pair.
    fn half<'p>(
        &self,
        pair: Pair<'p>,
        position: u32,
        variant: usize,
    ) -> (Circumstances<'p>, RunIdentity)
    where
        'a: 'p,
    {
        let about = Circumstances {
            options: self.options,
            experiment: pair.plan,
            index: pair.index,
            variant,
            target: self.targets[pair.index]
                .of_pair(variant, pair.stage, pair.number)
                .unwrap_or(&pair.plan.run_plan.target),
        };
        let identity = RunIdentity {
            experiment: pair.plan.name.clone(),
            variant: pair.plan.variants[variant].name.clone(),
            stage: pair.stage,
            pair: pair.number,
            position,
        };
        (about, identity)
    }

    /// The effect of a run's end on its pair.
    fn end_of(&self, pair: Pair<'_>, summary: &RunSummary, course: &Course) -> PairEnd {
        let what = describe_outcome(&summary.outcome);
        let last_words = || {
            let identity = summary.identity.as_ref();
            let last_words = identity.map(|identity| {
                let name = &pair.plan.name;
                let results = self.results;
                last_words(&results.run_of(name, pair.stage, pair.number, &identity.variant))
            });
            last_words.unwrap_or_default()
        };
        match consequence(&summary.outcome, course.finished, course.lost) {
            Consequence::GoOn => PairEnd::Finished,
            // The cause is printed at once: the next pairs may be lost by it as well.
            Consequence::LosePair => PairEnd::Lost(what + &last_words()),
            Consequence::GiveUp => PairEnd::GivenUp(what + &last_words()),
            Consequence::CannotStart => PairEnd::CannotStart {
                reason: what,
                last_words: last_words(),
            },
            Consequence::StorageFull => PairEnd::Storage(what),
            Consequence::Interrupted => PairEnd::Interrupted,
        }
    }
}
