//! Preparation of an environment.

use stillwell_payload::Sources;
use stillwell_plan::GeneratorPlan;
use stillwell_worker::{PrepareError, Prepared};

use crate::catalogue;
use crate::log_fs::LogFs;

/// Builds the simulation of `plan` with the blocks that pace it or fill its files. `sources` holds the files
/// whose lines are payloads. Returns `None` if `plan` simulates nothing: crate `generator` prepares it.
///
/// A container engine must accept a connection, and a program that logs in to a cluster runs: call it on a
/// thread without a runtime. A folder that looks like `/proc` is created, because a target reads it from its
/// start.
///
/// # Errors
/// [`PrepareError`] if the plan is not possible.
pub fn prepare<'s>(
    plan: &GeneratorPlan,
    sources: impl Into<Sources<'s>>,
) -> Result<Option<Prepared>, PrepareError> {
    let sources = sources.into();
    if let Some(logs) = LogFs::of(plan) {
        return Prepared::mounted(plan, sources, |set, load| logs.serve(set, load)).map(Some);
    }
    let opener = catalogue::opener(plan);
    let opener = opener.map_err(|error| PrepareError::transport(plan, error))?;
    opener
        .map(|opener| Prepared::new(plan, sources, opener))
        .transpose()
}
