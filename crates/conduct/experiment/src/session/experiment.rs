//! Pairs one after the other, until what is known is enough.

use stillwell_capture::RunStage;
use stillwell_plan::ExperimentPlan;
use stillwell_units::Nanos;
use stillwell_verdict::{ExperimentVerdict, NextStep};

use super::course::{Course, last_fresh, runs_left, valid_pairs};
use super::pair::{Pair, PairEnd};
use super::{Listener, Next, Session, pairs_part, probe_part};
use crate::quiet::QuietWait;
use crate::results::PairLeft;
use crate::{PairsWanted, ProblemKind, RunsLeft, SuiteProgress};

impl Session<'_> {
    /// Carries one experiment out, as far as it goes.
    pub(super) fn experiment(
        &mut self,
        index: usize,
        experiment: &ExperimentPlan,
        progress: &mut Listener<'_>,
    ) -> Next {
        let mut course = Course::default();
        self.take_over(experiment, &mut course, progress);
        let (plan, next) = match self.at_operating_point(index, experiment, progress) {
            Ok(plan) => {
                let next = self.pairs(index, &plan, &mut course, progress);
                (plan, next)
            }
            Err(next) => (experiment.clone(), next),
        };
        self.forecast.revise(pairs_part(index), RunsLeft::NONE);
        self.forecast.revise(probe_part(index), RunsLeft::NONE);
        self.conclude(&plan, course, progress);
        next
    }

    /// Reads the pairs that an earlier session left: those that were finished,
    /// and those that were lost, which count as repeated. Where none was
    /// finished nothing has begun yet, and the lost ones run again, too, unless
    /// nothing may run.
    fn take_over(
        &mut self,
        experiment: &ExperimentPlan,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) {
        if !self.options.resume {
            return;
        }
        let (mut finished, mut lost) = (Vec::new(), Vec::new());
        for (stage, pair) in self.results.pairs(&experiment.name) {
            match self.results.pair_left(experiment, stage, pair) {
                PairLeft::Finished(runs) => finished.push((stage, pair, runs)),
                PairLeft::Lost(runs) => lost.push((stage, pair, runs)),
                PairLeft::Unfinished => {}
            }
        }
        if finished.is_empty() && !self.options.judge_only {
            return;
        }
        for stage in [RunStage::Search, RunStage::Confirm] {
            let of_stage = finished.iter().filter(|pair| pair.0 == stage);
            let pairs: Vec<u32> = of_stage.map(|pair| pair.1).collect();
            if !pairs.is_empty() {
                progress(SuiteProgress::TakenOver {
                    experiment: &experiment.name,
                    stage,
                    pairs: &pairs,
                });
            }
        }
        for (stage, pair, runs) in finished {
            course.finish(stage, pair, runs);
        }
        for (stage, pair, runs) in lost {
            course.lose(stage, pair, runs);
        }
        course.audit.replay(experiment, &course.runs);
        self.pairs_finished += course.finished;
    }

    fn pairs(
        &mut self,
        index: usize,
        plan: &ExperimentPlan,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> Next {
        let mut ran: Option<(RunStage, u32)> = None;
        let mut quiet = QuietWait::new(plan);
        loop {
            let standing = match self.next_standing(plan, course, progress) {
                Ok(standing) => standing,
                Err(next) => return next,
            };
            if let Some(ran) = ran {
                report_warnings(&standing.verdict, ran, progress);
            }
            let part = pairs_part(index);
            self.forecast.revise(part, runs_left(plan, &standing));
            let news = course.audit.note(&standing);
            if news || matches!(standing.next, NextStep::Stop(_)) {
                progress(SuiteProgress::Look {
                    standing: &standing,
                    left: self.forecast.left_of(part),
                    left_in_all: self.forecast.left(),
                });
            } else if ran.is_some() {
                progress(SuiteProgress::SoFar {
                    standing: &standing,
                    left: self.forecast.left_of(part),
                });
            }
            let (stage, wanted) = match standing.next {
                NextStep::Stop(_) => return Next::Experiment,
                NextStep::Run {
                    stage,
                    valid_pairs_wanted,
                    ..
                } => (stage, valid_pairs_wanted),
            };
            let most = most_pairs(plan, stage);
            if course.is_endless(stage, most, plan.max_time) {
                let reason = "the experiment needs more pairs than the maximum".to_owned();
                self.problem(&plan.name, ProblemKind::GivenUp, reason, progress);
                return Next::Experiment;
            }
            if self.options.judge_only {
                return self.incomplete(plan, progress);
            }
            let pair = Pair {
                index,
                plan,
                stage,
                number: course.next_pair(stage),
            };
            // What is lost is run again, and all that follows has higher numbers.
            let repeated = (pair.number - 1).saturating_sub(valid_pairs(&standing.verdict, stage));
            let wanted = PairsWanted {
                next_look: wanted + repeated,
                most: most + repeated,
                repeated,
            };
            self.wait_for_quiet(pair, &mut quiet, course, progress);
            match self.next_pair(pair, wanted, course, progress) {
                Ok(finished) => ran = finished.then_some((stage, pair.number)),
                Err(next) => return next,
            }
        }
    }

    /// Reports an experiment that is not complete although nothing may run, unless its problem is
    /// known.
    pub(super) fn incomplete(
        &mut self,
        experiment: &ExperimentPlan,
        progress: &mut Listener<'_>,
    ) -> Next {
        let mut problems = self.problems.iter();
        if !problems.any(|problem| problem.experiment == experiment.name) {
            let reason = "it ended before it was complete; see the log of its task".to_owned();
            self.problem(&experiment.name, ProblemKind::GivenUp, reason, progress);
        }
        Next::Experiment
    }

    /// Waits before a pair until the machine is quiet, within limits.
    fn wait_for_quiet(
        &mut self,
        pair: Pair<'_>,
        quiet: &mut QuietWait,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) {
        if !self.options.wait_for_quiet {
            return;
        }
        let waited = quiet.wait(
            |over| self.executor.watch_host(over, self.interrupt),
            |host, up_to| {
                progress(SuiteProgress::Waiting {
                    experiment: &pair.plan.name,
                    host,
                    up_to,
                });
            },
        );
        if waited > Nanos::ZERO {
            let place = (pair.stage, pair.number);
            course.audit.waits.insert(place, waited);
        }
    }

    /// Runs one pair more: whether it was finished, or what comes after the
    /// experiment if that ends it.
    fn next_pair(
        &mut self,
        pair: Pair<'_>,
        wanted: PairsWanted,
        course: &mut Course,
        progress: &mut Listener<'_>,
    ) -> Result<bool, Next> {
        let Pair { plan, stage, .. } = pair;
        let order = self.order(pair);
        let names = order.iter().filter_map(|place| plan.variants.get(*place));
        let names: Vec<&str> = names.map(|variant| variant.name.as_str()).collect();
        progress(SuiteProgress::PairStarted {
            experiment: &plan.name,
            stage,
            pair: pair.number,
            wanted,
            order: &names,
            design: plan.design,
        });
        let (runs, end) = self.pair(pair, course, progress);
        match &end {
            PairEnd::Finished => {
                course.finish(stage, pair.number, runs);
                self.pairs_finished += 1;
            }
            // It is run again, and says nothing.
            PairEnd::Interrupted => {}
            _ => course.lose(stage, pair.number, runs),
        }
        // The problem of an experiment that ends here has the reason.
        if !matches!(end, PairEnd::CannotStart { .. } | PairEnd::GivenUp(_)) {
            progress(SuiteProgress::PairEnded {
                experiment: &plan.name,
                stage,
                pair: pair.number,
                lost: end.lost(),
                left: self.forecast.left(),
            });
        }
        match end {
            PairEnd::Finished => Ok(true),
            PairEnd::Lost(_) => Ok(false),
            PairEnd::GivenUp(reason) => {
                let lost = course.lost;
                let reason = format!("all {lost} pairs failed, the last one because {reason}");
                self.problem(&plan.name, ProblemKind::GivenUp, reason, progress);
                Err(Next::Experiment)
            }
            PairEnd::CannotStart { reason, last_words } => {
                let reason = format!("{reason}{last_words}");
                self.problem(&plan.name, ProblemKind::CouldNotStart, reason, progress);
                Err(Next::Experiment)
            }
            PairEnd::Storage(reason) => {
                self.storage_problem(&plan.name, reason, progress);
                Err(Next::End)
            }
            PairEnd::Interrupted => Err(Next::End),
        }
    }
}

/// Returns the number of the last planned pair of a stage.
fn most_pairs(plan: &ExperimentPlan, stage: RunStage) -> u32 {
    match stage {
        RunStage::Search => plan.stopping.max_pairs(),
        RunStage::Confirm => last_fresh(plan),
    }
}

/// Reports the reason why a finished pair is unreliable, if it is.
fn report_warnings(
    verdict: &ExperimentVerdict,
    (stage, pair): (RunStage, u32),
    progress: &mut Listener<'_>,
) {
    let Some(goal) = verdict.goals.iter().find(|goal| goal.primary) else {
        return;
    };
    let mut runs = verdict.not_used.iter();
    let unreliable = runs.find_map(|run| {
        let here = run.stage == stage && run.pair == pair;
        let mut warnings = run.warnings.iter().filter(|_| here);
        let warning = warnings.find(|warning| warning.spoils(&goal.metric))?;
        Some(format!("{}: {warning}", run.variant))
    });
    if let Some(why) = unreliable {
        progress(SuiteProgress::PairDiscarded {
            experiment: &verdict.name,
            stage,
            pair,
            why: &why,
        });
    }
}
