//! Preparation of a generator: its transport from the catalogue, and its blocks.

use stillwell_payload::Sources;
use stillwell_plan::GeneratorPlan;

use stillwell_worker::{PrepareError, Prepared};

use crate::catalogue;

/// Builds the blocks of every worker of `plan`, each from a seed of its own and
/// of an even share of the plan's cache. `sources` holds the contents of the files
/// for payloads that are the lines of one. Opens nothing. Environments are prepared by
/// crate `environment`.
///
/// # Errors
/// [`PrepareError`] where the plan cannot be carried out.
pub fn prepare<'s>(
    plan: &GeneratorPlan,
    sources: impl Into<Sources<'s>>,
) -> Result<Prepared, PrepareError> {
    let opener = catalogue::opener(plan);
    let opener = opener.map_err(|error| PrepareError::transport(plan, error))?;
    Prepared::new(plan, sources.into(), opener)
}
