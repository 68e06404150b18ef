//! The plan of a search: both variants differ only in their revisions.

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::{ExperimentPlan, VariantPlan};

/// Variant that is searched if none is named.
const COMPARISON: &str = "comparison";

/// The ends of a search cannot be set.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum EndsError {
    /// No variant is built from GOOD, or none from BAD.
    #[error("neither GOOD nor BAD is a variant of `{experiment}`")]
    NotBuilt {
        /// The experiment.
        experiment: String,
    },
    /// There is no such variant.
    #[error("`{experiment}` has no variant `{variant}`; it has {}", known.join(", "))]
    NoVariant {
        /// The experiment.
        experiment: String,
        /// The requested variant.
        variant: String,
        /// The variants that there are.
        known: Vec<String>,
    },
}

/// Leaves two variants of `experiment`, which start like `variant`: the first is built from the
/// revision `good`, the second from `bad`. Without `variant`, they start like `comparison` or
/// the second variant.
///
/// # Errors
/// [`EndsError`] if a revision or the variant is not in the experiment.
pub fn set_ends(
    experiment: &mut ExperimentPlan,
    good: &str,
    bad: &str,
    variant: Option<&str>,
) -> Result<(), EndsError> {
    let variants = &experiment.variants;
    let built = |revision: &str| {
        let sources = variants.iter().map(|variant| &variant.binary);
        let mut sources = sources.filter_map(|binary| match binary {
            BinarySource::Git(source) => Some(source.clone()),
            BinarySource::AsPlanned | BinarySource::Path(_) => None,
        });
        sources.find(|source| source.revision == revision)
    };
    let (Some(good), Some(bad)) = (built(good), built(bad)) else {
        return Err(EndsError::NotBuilt {
            experiment: experiment.name.clone(),
        });
    };
    let name = variant.unwrap_or(COMPARISON);
    let meant = variants
        .iter()
        .find(|candidate| candidate.name == name)
        .or_else(|| variants.get(1).filter(|_| variant.is_none()));
    let Some(meant) = meant else {
        let names = variants.iter().map(|variant| variant.name.clone());
        return Err(EndsError::NoVariant {
            experiment: experiment.name.clone(),
            variant: name.to_owned(),
            known: names.collect(),
        });
    };
    let end = |name: &str, source| VariantPlan {
        name: name.to_owned(),
        binary: BinarySource::Git(source),
        command: None,
        ..meant.clone()
    };
    experiment.variants = vec![end("baseline", good), end(COMPARISON, bad)];
    Ok(())
}
