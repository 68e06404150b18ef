//! A run at other rates than those of its file.

use stillwell_plan::{RatePlan, RunPlan};

use crate::spec::RateContext;

/// A run whose generators may have other rates than in its file.
#[derive(Clone, Debug)]
pub struct AdjustableRun {
    /// The run at the rates of its file.
    pub run_plan: RunPlan,
    rate_context: RateContext,
}

impl AdjustableRun {
    pub(super) const fn new(run_plan: RunPlan, rate_context: RateContext) -> Self {
        Self {
            run_plan,
            rate_context,
        }
    }

    /// Returns the run with `rate` for the generator at `place`, which must exist. A generator without `block` gets the
    /// default blocks of that rate.
    #[must_use]
    pub fn at_rate(&self, place: usize, rate: RatePlan) -> RunPlan {
        let mut run_plan = self.run_plan.clone();
        let generator = &mut run_plan.generators[place];
        self.rate_context.set_default_blocks(generator, &rate);
        generator.rate = rate;
        run_plan
    }
}
