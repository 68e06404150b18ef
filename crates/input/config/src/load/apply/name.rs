//! Names of experiments in messages.

use stillwell_plan::ExperimentPlan;

/// Name in messages: a message for all cells of a matrix appears once.
pub(super) fn shown(plan: &ExperimentPlan) -> &str {
    let family = plan.family.as_ref();
    family.map_or(&plan.name, |family| &family.name)
}
