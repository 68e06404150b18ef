//! The highest rate at which something holds, from probes that may err.
//!
//! Whether a probe at some rate keeps its bounds is a yes or a no that falls
//! evenly from yes to no as the rate rises, with noise around the threshold and
//! a stray answer anywhere. [`CapacitySearch`] is the state machine: it returns
//! the rate to probe next and takes the result of each probe, until it has an answer
//! or has used up its probes. It runs nothing itself.
//!
//! It grows the rate by a factor until bounds fail. Then it probes where half of
//! all probes would hold, by a posterior over threshold, width and stray answers
//! together, as experiments on thresholds of perception have done for long
//! (Watson and Pelli, QUEST, 1983; Kontsevich and Tyler, the psi method, 1999).
//! Last it probes just below and just above the threshold. An answer is confirmed if
//! probes hold below and fail above, and if the curve fits all probes.
//!
//! [`usl`] fits the other question, at which load a system gets the most for
//! the time that its answers take.

mod fit;
mod posterior;
#[cfg(test)]
mod tests;
pub mod usl;

use crate::estimate::Estimate;
use crate::level::Level;
use posterior::Posterior;

/// The factor between two rates while nothing has failed yet.
const GROWTH: f64 = 2.0;
/// Share of cases in which a confirmation is tried before the answer stays unconfirmed.
const CONFIRMATIONS_MAX: u32 = 3;
/// So many times longer an unclear rate is probed again below one that failed.
const UNCLEAR_MAX: u32 = 2;
/// Share of the posterior that must lie within the requested width before the
/// surroundings are probed: those probes narrow it further.
const NARROW_LEVEL: f64 = 0.9;
/// Largest and smallest relative width of a plan.
const WITHIN: (f64, f64) = (0.001, 0.5);
/// Confirming probes are this many widths of the transition away from the threshold.
const REACH_WIDTHS: f64 = 2.0;
/// One in so many confirming probes may disagree, at each rate.
const EXCEPTION_IN: u32 = 5;
/// Fewest probes that can find anything.
const PROBES_MIN: u32 = 5;

/// The plan of a capacity search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchPlan {
    /// The lowest rate that is probed, above zero; the first one.
    pub from: f64,
    /// The highest rate that is probed, above `from`.
    pub to: f64,
    /// Requested precision of the answer, as a share of it: half the width of the
    /// interval, from 0.001 to 0.5.
    pub within: f64,
    /// Probes at each rate that must be certain: the two that confirm, and both
    /// ends. At least one.
    pub repeats: u32,
    /// Probes in all, at least five.
    pub probes_max: u32,
    /// Share of intervals that should hold the truth.
    pub level: Level,
}

/// Reason why a [`SearchPlan`] cannot be carried out.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum SearchPlanError {
    /// Rates that are none, or in the wrong order.
    #[error("the lower rate, {from}/s, must be above zero and below the higher one, {to}/s")]
    Rates {
        /// The lower one.
        from: f64,
        /// The higher one.
        to: f64,
    },
    /// A width that cannot be reached or says nothing.
    #[error("`within` is {actual}: use a share from {} to {}", WITHIN.0, WITHIN.1)]
    Within {
        /// The given value.
        actual: f64,
    },
    /// Too few probes.
    #[error(
        "{actual} probes are too few: at least {PROBES_MIN} are needed, and at least one repeat"
    )]
    Probes {
        /// The given value.
        actual: u32,
    },
}

/// Result of one probe.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Observed {
    /// All bounds held.
    Held,
    /// A bound did not hold.
    Failed,
    /// The probe says nothing: the load generator was the limit.
    Unclear,
}

/// The next step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SearchStep {
    /// Probe at this rate and observe the result.
    Probe {
        /// The rate.
        rate: f64,
        /// Purpose.
        purpose: Purpose,
    },
    /// Nothing more: this is the answer.
    Done(CapacityFound),
}

/// Purpose of a probe.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum Purpose {
    /// To find a rate at which bounds fail.
    Grow,
    /// To find the threshold.
    Narrow,
    /// To see that bounds hold just below the threshold.
    Below,
    /// To see that bounds fail just above the threshold.
    Above,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CapacityFound {
    /// Result of the search.
    pub end: SearchEnd,
    /// The rate at which half of all probes would hold, with the interval that
    /// should hold it; `None` where no probe failed, or none held.
    pub capacity: Option<Estimate>,
    /// The highest rate at which most probes held, and how many.
    pub held: Option<Votes>,
    /// The lowest rate above it at which most probes failed, and how many.
    pub failed: Option<Votes>,
    /// Probes that were made, unclear ones among them.
    pub probes: u32,
    /// Unclear ones.
    pub unclear: u32,
}

/// Votes of several probes at one rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Votes {
    /// The rate.
    pub rate: f64,
    /// Probes in which all bounds held.
    pub held: u32,
    /// Probes in which one did not.
    pub failed: u32,
}

/// End of a search.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SearchEnd {
    /// Probes just below held, those just above failed, and the curve fits all probes.
    Confirmed,
    /// The threshold was found, and probes around it said something else.
    NotConfirmed,
    /// Bounds hold at the highest rate: the capacity is at least that.
    AboveMaximum,
    /// Bounds fail at the lowest rate.
    BelowMinimum,
    /// The load generator was the limit before bounds failed.
    GeneratorLimit,
    /// No probe was left.
    BudgetSpent,
    /// No time was left.
    TimeSpent,
    /// The search was interrupted, or a probe could not be made.
    Stopped,
}

impl SearchEnd {
    /// Every end.
    pub const ALL: [Self; 8] = [
        Self::Confirmed,
        Self::NotConfirmed,
        Self::AboveMaximum,
        Self::BelowMinimum,
        Self::GeneratorLimit,
        Self::BudgetSpent,
        Self::TimeSpent,
        Self::Stopped,
    ];

    /// A word for programs.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::NotConfirmed => "not_confirmed",
            Self::AboveMaximum => "above_maximum",
            Self::BelowMinimum => "below_minimum",
            Self::GeneratorLimit => "generator_limit",
            Self::BudgetSpent => "budget_spent",
            Self::TimeSpent => "time_spent",
            Self::Stopped => "stopped",
        }
    }
}

/// State machine that requests one probe after the other.
#[derive(Clone, Debug)]
pub struct CapacitySearch {
    plan: SearchPlan,
    posterior: Posterior,
    step: SearchStep,
    votes: Vec<Votes>,
    /// Rates of the probes that held or failed, in order; true for held.
    results: Vec<(f64, bool)>,
    probes: u32,
    unclear: u32,
    /// Consecutive unclear probes at the last requested rate.
    unclear_here: u32,
    /// The lowest rate at which probes stayed unclear.
    ceiling: Option<f64>,
    /// The rates just below and just above, while it confirms.
    around: Option<Confirming>,
    confirmations: u32,
}

#[derive(Clone, Copy, Debug)]
struct Confirming {
    below: Votes,
    above: Votes,
}

impl Votes {
    const fn none(rate: f64) -> Self {
        Self {
            rate,
            held: 0,
            failed: 0,
        }
    }

    const fn count(&mut self, held: bool) {
        if held {
            self.held += 1;
        } else {
            self.failed += 1;
        }
    }

    const fn cast(&self) -> u32 {
        self.held + self.failed
    }
}

impl CapacitySearch {
    /// Creates a search without any probe.
    ///
    /// # Errors
    /// [`SearchPlanError`] where `plan` cannot be carried out.
    pub fn try_new(plan: SearchPlan) -> Result<Self, SearchPlanError> {
        let SearchPlan {
            from, to, within, ..
        } = plan;
        if !(from > 0.0 && to > from && to.is_finite()) {
            return Err(SearchPlanError::Rates { from, to });
        }
        if !(WITHIN.0..=WITHIN.1).contains(&within) {
            return Err(SearchPlanError::Within { actual: within });
        }
        if plan.probes_max < PROBES_MIN || plan.repeats == 0 {
            return Err(SearchPlanError::Probes {
                actual: plan.probes_max.min(plan.repeats),
            });
        }
        Ok(Self {
            posterior: Posterior::new(from, to, within),
            step: SearchStep::Probe {
                rate: from,
                purpose: Purpose::Grow,
            },
            plan,
            votes: Vec::new(),
            results: Vec::new(),
            probes: 0,
            unclear: 0,
            unclear_here: 0,
            ceiling: None,
            around: None,
            confirmations: 0,
        })
    }

    /// The next step; the same until something is observed.
    #[must_use]
    pub const fn step(&self) -> SearchStep {
        self.step
    }

    /// The threshold as far as it is known, with its interval; `None` as long as
    /// not one probe held and one failed.
    #[must_use]
    pub fn estimate(&self) -> Option<Estimate> {
        let any = |of: fn(&Votes) -> u32| self.votes.iter().any(|votes| of(votes) > 0);
        let is_bracketed = any(|votes| votes.held) && any(|votes| votes.failed);
        is_bracketed.then(|| self.posterior.share(self.plan.level.share()))
    }

    /// Takes the result of the probe that [`CapacitySearch::step`] returned.
    /// Nothing happens once the search is done.
    pub fn observe(&mut self, observed: Observed) {
        let SearchStep::Probe { rate, purpose } = self.step else {
            return;
        };
        self.probes += 1;
        let held = match observed {
            Observed::Held => Some(true),
            Observed::Failed => Some(false),
            Observed::Unclear => None,
        };
        if let Some(held) = held {
            self.unclear_here = 0;
            self.posterior.observe(rate, held);
            self.vote(rate, held);
            self.results.push((rate, held));
            if let Some(around) = &mut self.around {
                match purpose {
                    Purpose::Below => around.below.count(held),
                    Purpose::Above => around.above.count(held),
                    Purpose::Grow | Purpose::Narrow => {}
                }
            }
        } else {
            self.unclear += 1;
            self.unclear_here += 1;
            // Where something failed further up, the rate itself is available: it is
            // the machine that is busy now and then.
            let is_failed = |votes: &Votes| votes.failed > votes.held && votes.rate >= rate;
            let unclear_max = if self.votes.iter().any(is_failed) {
                UNCLEAR_MAX
            } else {
                1
            };
            if self.unclear_here >= unclear_max * self.plan.repeats {
                self.unclear_here = 0;
                self.ceiling = Some(self.ceiling.map_or(rate, |ceiling| ceiling.min(rate)));
            }
        }
        self.step = self.following(rate, purpose);
    }

    fn vote(&mut self, rate: f64, held: bool) {
        // Rates are the machine's own: the same one has the same bits.
        let here = |votes: &&mut Votes| votes.rate.to_bits() == rate.to_bits();
        if let Some(votes) = self.votes.iter_mut().find(here) {
            votes.count(held);
        } else {
            let mut votes = Votes::none(rate);
            votes.count(held);
            self.votes.push(votes);
        }
    }

    fn votes_at(&self, rate: f64) -> Votes {
        let here = |votes: &&Votes| votes.rate.to_bits() == rate.to_bits();
        let result = self.votes.iter().find(here);
        result.copied().unwrap_or_else(|| Votes::none(rate))
    }

    fn following(&mut self, rate: f64, purpose: Purpose) -> SearchStep {
        let next = match purpose {
            Purpose::Grow => self.grown(rate),
            Purpose::Narrow => self.narrowed(),
            Purpose::Below | Purpose::Above => self.confirmed(),
        };
        match next {
            SearchStep::Probe { .. } if self.probes >= self.plan.probes_max => {
                self.done(SearchEnd::BudgetSpent)
            }
            next => next,
        }
    }

    fn grown(&mut self, rate: f64) -> SearchStep {
        let again = SearchStep::Probe {
            rate,
            purpose: Purpose::Grow,
        };
        if self.ceiling.is_some_and(|ceiling| rate >= ceiling) {
            return self.under_ceiling();
        }
        let votes = self.votes_at(rate);
        let is_end = rate <= self.plan.from || rate >= self.plan.to;
        let needed = self.plan.repeats / 2 + 1;
        if votes.failed > 0 {
            // One failure may be a stray one; two are none.
            return match (votes.failed, votes.held) {
                (failed, _) if failed >= needed.max(2) && rate <= self.plan.from => {
                    self.done(SearchEnd::BelowMinimum)
                }
                (2.., _) if rate > self.plan.from => self.narrowed(),
                (_, held) if held >= needed.max(2) => self.higher(rate),
                _ => again,
            };
        }
        match votes.held {
            0 => again,
            held if is_end && rate >= self.plan.to && held < needed => again,
            _ => self.higher(rate),
        }
    }

    fn higher(&self, rate: f64) -> SearchStep {
        if rate >= self.plan.to {
            return self.done(SearchEnd::AboveMaximum);
        }
        let mut next = (rate * GROWTH).min(self.plan.to);
        if let Some(ceiling) = self.ceiling
            && next >= ceiling
        {
            next = (rate * ceiling).sqrt();
            if ceiling / rate <= 1.0 + 2.0 * self.plan.within {
                return self.done(SearchEnd::GeneratorLimit);
            }
        }
        SearchStep::Probe {
            rate: next,
            purpose: Purpose::Grow,
        }
    }

    /// Handles unclear probes of the rate just requested: the way between
    /// what held and what cannot be probed.
    fn under_ceiling(&self) -> SearchStep {
        let highest = self.highest_held();
        if highest > 0.0 {
            self.higher(highest)
        } else {
            self.done(SearchEnd::GeneratorLimit)
        }
    }

    fn narrowed(&mut self) -> SearchStep {
        let result = self.posterior.share(NARROW_LEVEL);
        let half_width = 0.5 * (result.upper / result.lower).ln();
        if let Some(ceiling) = self.ceiling
            && result.value >= ceiling
        {
            return self.narrowed_below(ceiling);
        }
        if result.value >= self.plan.to && self.majority_at(self.plan.to) == Some(true) {
            return self.done(SearchEnd::AboveMaximum);
        }
        if result.value <= self.plan.from && self.majority_at(self.plan.from) == Some(false) {
            return self.done(SearchEnd::BelowMinimum);
        }
        // The posterior reaches a little beyond the range.
        let rate = result.value.clamp(self.plan.from, self.plan.to);
        if half_width <= self.plan.within {
            let width = REACH_WIDTHS * self.posterior.width();
            let reach = 1.0 + self.plan.within.max(width);
            self.confirmations += 1;
            self.around = Some(Confirming {
                below: Votes::none((rate / reach).min(result.lower).max(self.plan.from)),
                above: Votes::none((rate * reach).max(result.upper).min(self.plan.to)),
            });
            return self.confirmed();
        }
        SearchStep::Probe {
            rate,
            purpose: Purpose::Narrow,
        }
    }

    /// Narrows the answer from below where the threshold itself stays unclear.
    fn narrowed_below(&self, ceiling: f64) -> SearchStep {
        let held = self.highest_held();
        if held <= 0.0 || ceiling / held <= 1.0 + 2.0 * self.plan.within {
            return self.done(SearchEnd::GeneratorLimit);
        }
        SearchStep::Probe {
            rate: (held * ceiling).sqrt(),
            purpose: Purpose::Narrow,
        }
    }

    /// Returns the highest rate at which most probes held; 0 without one.
    fn highest_held(&self) -> f64 {
        let held = self.votes.iter().filter(|votes| votes.held > votes.failed);
        held.map(|votes| votes.rate).fold(0.0, f64::max)
    }

    fn majority_at(&self, rate: f64) -> Option<bool> {
        let votes = self.votes_at(rate);
        (votes.cast() >= self.plan.repeats).then_some(votes.held > votes.failed)
    }

    fn confirmed(&mut self) -> SearchStep {
        let Some(Confirming { below, above }) = self.around else {
            return self.narrowed();
        };
        if self.ceiling.is_some_and(|ceiling| above.rate >= ceiling) {
            return self.done(SearchEnd::GeneratorLimit);
        }
        let repeats = self.plan.repeats;
        // In turn, so what drifts hits both.
        for (votes, purpose, right) in [
            (below, Purpose::Below, above),
            (above, Purpose::Above, below),
        ] {
            if votes.cast() < repeats && votes.cast() <= right.cast() {
                let rate = votes.rate;
                return SearchStep::Probe { rate, purpose };
            }
        }
        let exceptions = repeats / EXCEPTION_IN;
        let is_agreed = below.failed <= exceptions && above.held <= exceptions;
        if is_agreed && fit::is_good(&self.posterior, &self.results) {
            return self.done(SearchEnd::Confirmed);
        }
        if self.confirmations >= CONFIRMATIONS_MAX {
            return self.done(SearchEnd::NotConfirmed);
        }
        self.around = None;
        self.narrowed()
    }

    fn done(&self, end: SearchEnd) -> SearchStep {
        SearchStep::Done(self.result(end))
    }

    /// Returns the maximum number of probes that follow.
    #[must_use]
    pub const fn probes_left(&self) -> u32 {
        self.plan.probes_max.saturating_sub(self.probes)
    }

    /// Returns the answer so far, as that of a search that ended by `end`.
    #[must_use]
    pub fn result(&self, end: SearchEnd) -> CapacityFound {
        let most_held = |votes: &&Votes| votes.held > votes.failed;
        let most_failed = |votes: &&Votes| votes.failed > votes.held;
        let by_rate = |a: &&Votes, b: &&Votes| a.rate.total_cmp(&b.rate);
        let confirmed = self.around.filter(|_| end == SearchEnd::Confirmed);
        let held = match confirmed {
            Some(around) => Some(around.below),
            None => self.votes.iter().filter(most_held).max_by(by_rate).copied(),
        };
        let floor = held.map_or(0.0, |votes| votes.rate);
        let failed = match confirmed {
            Some(around) => Some(around.above),
            None => {
                let above = self.votes.iter().filter(|votes| votes.rate > floor);
                above.filter(most_failed).min_by(by_rate).copied()
            }
        };
        let is_open = matches!(end, SearchEnd::AboveMaximum | SearchEnd::BelowMinimum);
        CapacityFound {
            end,
            capacity: self.estimate().filter(|_| !is_open),
            held,
            failed,
            probes: self.probes,
            unclear: self.unclear,
        }
    }
}
