//! Pairs one after the other.

use stillwell_capture::RunIdentity;
use stillwell_plan::ExperimentPlan;
use stillwell_verdict::limits::PAIRS_MIN;
use stillwell_verdict::{RunSummary, judge};

use super::{Listener, Next, NoRun, Session, chain, last_words, pairs_part, probe_part};
use crate::policy::{Consequence, consequence, told};
use crate::request::Circumstances;
use crate::{LabProgress, ProblemKind, order_within};

/// How far an experiment has come.
#[derive(Debug, Default)]
struct Course {
    /// All that is to be judged, lost pairs included.
    runs: Vec<RunSummary>,
    finished: u32,
    lost: u32,
}

/// How a pair ended.
#[derive(Debug)]
enum PairEnd {
    Finished,
    Lost(String),
    GivenUp(String),
    CannotStart { reason: String, last_words: String },
    Storage(String),
    Interrupted,
}

impl Session<'_> {
    /// Carries one experiment out, as far as it goes.
    pub(super) fn experiment(
        &mut self,
        index: usize,
        experiment: &ExperimentPlan,
        progress: &mut Listener<'_>,
    ) -> Next {
        let mut course = Course::default();
        let kept = self.take_over(index, experiment, &mut course, progress);
        let (plan, next) = match self.settled(index, experiment, progress) {
            Ok(plan) => {
                let next = self.pairs(index, &plan, &kept, &mut course, progress);
                (plan, next)
            }
            Err(next) => (experiment.clone(), next),
        };
        self.forecast.forgo(pairs_part(index), u64::MAX);
        self.forecast.forgo(probe_part(index), u64::MAX);
        self.conclude(&plan, &course.runs, progress);
        next
    }

    /// Reads the pairs that were finished in an earlier session.
    fn take_over(
        &mut self,
        index: usize,
        experiment: &ExperimentPlan,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> Vec<u32> {
        let mut kept = Vec::new();
        if !self.options.resume {
            return kept;
        }
        for pair in 1..=experiment.pairs {
            let variants = experiment.variants.iter();
            let names = variants.map(|variant| variant.name.as_str());
            if let Some(runs) = self.results.finished_pair(&experiment.name, pair, names) {
                let count = runs.len() as u64;
                self.forecast.forgo(pairs_part(index), count);
                course.runs.extend(runs);
                course.finished += 1;
                self.pairs_finished += 1;
                kept.push(pair);
            }
        }
        if !kept.is_empty() {
            progress(LabProgress::TakenOver {
                experiment: &experiment.name,
                pairs: &kept,
            });
        }
        kept
    }

    fn pairs(
        &mut self,
        index: usize,
        plan: &ExperimentPlan,
        kept: &[u32],
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> Next {
        for pair in (1..=plan.pairs).filter(|pair| !kept.contains(pair)) {
            let end = self.pair(index, plan, pair, course, progress);
            let lost = match &end {
                PairEnd::Finished => None,
                PairEnd::Interrupted => Some("interrupted"),
                PairEnd::Lost(reason)
                | PairEnd::GivenUp(reason)
                | PairEnd::CannotStart { reason, .. }
                | PairEnd::Storage(reason) => Some(reason.as_str()),
            };
            progress(LabProgress::PairEnded {
                experiment: &plan.name,
                pair,
                lost,
                left: self.forecast.left(),
            });
            match end {
                PairEnd::Finished => {
                    course.finished += 1;
                    self.pairs_finished += 1;
                }
                PairEnd::Lost(_) => course.lost += 1,
                PairEnd::GivenUp(reason) => {
                    course.lost += 1;
                    let lost = course.lost;
                    let reason = format!("{lost} pairs are lost, the last because {reason}");
                    self.problem(plan, ProblemKind::GivenUp, reason, progress);
                    return Next::Experiment;
                }
                PairEnd::CannotStart { reason, last_words } => {
                    let reason = format!("{reason}{last_words}");
                    self.problem(plan, ProblemKind::CouldNotStart, reason, progress);
                    return Next::Experiment;
                }
                PairEnd::Storage(reason) => {
                    self.storage_problem(plan, reason, progress);
                    return Next::End;
                }
                PairEnd::Interrupted => return Next::End,
            }
            if course.finished >= PAIRS_MIN && pair < plan.pairs {
                let verdict = judge(plan, &course.runs);
                progress(LabProgress::Interim { verdict: &verdict });
            }
        }
        Next::Experiment
    }

    /// Runs all variants next to each other in time. What it adds to the runs of
    /// `course` is judged, also where the pair is lost: a verdict says why.
    fn pair(
        &mut self,
        index: usize,
        plan: &ExperimentPlan,
        pair: u32,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> PairEnd {
        let order = order_within(&self.plan.seed, &plan.name, plan.variants.len(), pair);
        let names: Vec<&str> = order
            .iter()
            .map(|variant| plan.variants[*variant].name.as_str())
            .collect();
        progress(LabProgress::PairStarted {
            experiment: &plan.name,
            pair,
            of: plan.pairs,
            order: &names,
        });
        if let Err(error) = self.results.set_aside(&plan.name, pair) {
            return PairEnd::Storage(chain(&error));
        }
        for (position, variant) in (0..).zip(order) {
            if let Err(end) = self.half(index, plan, (pair, position, variant), course, progress) {
                // The rest of the pair would have nothing to be compared with.
                let rest = (plan.variants.len() as u64).saturating_sub(u64::from(position) + 1);
                self.forecast.forgo(pairs_part(index), rest);
                return end;
            }
        }
        PairEnd::Finished
    }

    /// Runs one variant, in its place within its pair.
    fn half(
        &mut self,
        index: usize,
        plan: &ExperimentPlan,
        (pair, position, variant): (u32, u32, usize),
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> Result<(), PairEnd> {
        let subjects = self.subjects;
        let about = Circumstances {
            options: self.options,
            experiment: plan,
            index,
            variant,
            subject: &subjects[index].0[variant],
        };
        let identity = RunIdentity {
            experiment: plan.name.clone(),
            variant: plan.variants[variant].name.clone(),
            pair,
            position,
        };
        let folder = self.results.run(&plan.name, pair, &identity.variant);
        let summary = match self.execute(&about, identity, progress) {
            Ok(summary) => summary,
            Err(NoRun::Interrupted) => return Err(PairEnd::Interrupted),
            Err(NoRun::Storage(reason)) => return Err(PairEnd::Storage(reason)),
        };
        let what = told(&summary.outcome);
        let next = consequence(&summary.outcome, course.finished, course.lost);
        if next != Consequence::Interrupted {
            course.runs.push(summary);
        }
        match next {
            Consequence::GoOn => Ok(()),
            Consequence::LosePair => Err(PairEnd::Lost(what)),
            Consequence::GiveUp => Err(PairEnd::GivenUp(what)),
            Consequence::CannotStart => Err(PairEnd::CannotStart {
                reason: what,
                last_words: last_words(&folder),
            }),
            Consequence::StorageFull => Err(PairEnd::Storage(what)),
            Consequence::Interrupted => Err(PairEnd::Interrupted),
        }
    }
}
