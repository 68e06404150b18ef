//! Preparation of an environment.

use stillwell_payload::Sources;
use stillwell_plan::GeneratorPlan;
use stillwell_worker::{PrepareError, Prepared};

use crate::catalogue;
use crate::log_fs::LogFs;

/// Builds what `plan` simulates, and the blocks that pace it or fill its files; `sources`
/// holds the contents of the files for payloads that are the lines of one. `None` where
/// `plan` simulates nothing: crate `generator` prepares it. Opens nothing; only a folder
/// that looks like `/proc` is laid out here, since a subject looks at it from its start.
///
/// # Errors
/// [`PrepareError`] where the plan cannot be carried out.
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
