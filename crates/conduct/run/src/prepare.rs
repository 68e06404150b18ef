//! Preparation of a generator or an environment of a plan.

use stillwell_payload::Sources;
use stillwell_plan::GeneratorPlan;
use stillwell_worker::{PrepareError, Prepared};

/// Prepares `plan` by the crate that has its kind. `sources` holds the contents of the
/// files for payloads that are the lines of one.
///
/// # Errors
/// [`PrepareError`] where the plan cannot be carried out.
pub fn prepare<'s>(
    plan: &GeneratorPlan,
    sources: impl Into<Sources<'s>>,
) -> Result<Prepared, PrepareError> {
    let sources = sources.into();
    match stillwell_environment::prepare(plan, sources.clone())? {
        Some(prepared) => Ok(prepared),
        None => stillwell_generator::prepare(plan, sources),
    }
}
