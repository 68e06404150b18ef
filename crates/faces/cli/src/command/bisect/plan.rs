//! The plan of a search: one experiment, both variants alike but for their
//! revisions.

use stillwell_config::{SuiteOverrides, VariantArgument};
use stillwell_plan::{BinarySource, ExperimentPlan, SuitePlan, VariantPlan};

use crate::arguments::BisectArguments;
use crate::command::select;
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

/// GOOD is the first variant, BAD the second.
pub(super) fn load(arguments: &BisectArguments, paint: &Paint) -> Result<SuitePlan, CommandError> {
    let usage = |error: anyhow::Error| CommandError::new(Exit::Usage, error);
    let loaded = loader()
        .suite(&arguments.paths, &overrides(arguments))
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let mut plan = loaded.plan;
    let [experiment] = plan.experiments.as_mut_slice() else {
        let names = plan.experiments.iter().map(|own| own.name.as_str());
        let names: Vec<&str> = names.collect();
        let error = anyhow::anyhow!(
            "a bisection needs one experiment, and there are {}",
            names.len()
        );
        return Err(usage(error).hint(format!("--only NAME takes one of: {}", names.join(", "))));
    };
    set_ends(experiment, arguments).map_err(usage)?;
    Ok(plan)
}

fn overrides(arguments: &BisectArguments) -> SuiteOverrides {
    let revision = |typed: &str| Some(VariantArgument::Git(typed.to_owned()));
    let ends = [revision(&arguments.good), revision(&arguments.bad)];
    select::overrides_between(ends, &arguments.changes)
}

/// Leaves two variants that are started as the one that is meant, one from GOOD
/// and the other from BAD.
fn set_ends(experiment: &mut ExperimentPlan, arguments: &BisectArguments) -> anyhow::Result<()> {
    let variants = &experiment.variants;
    let built = |revision: &str| {
        let sources = variants.iter().map(|variant| &variant.binary);
        let mut sources = sources.filter_map(|binary| match binary {
            BinarySource::Git(source) => Some(source.clone()),
            BinarySource::AsPlanned | BinarySource::Path(_) => None,
        });
        sources.find(|source| source.revision == revision)
    };
    let (Some(good), Some(bad)) = (built(&arguments.good), built(&arguments.bad)) else {
        anyhow::bail!("neither GOOD nor BAD is a variant of `{}`", experiment.name);
    };
    let names = || -> Vec<&str> { variants.iter().map(|own| own.name.as_str()).collect() };
    let wanted = arguments.variant.as_deref();
    let meant = variants
        .iter()
        .find(|variant| variant.name == wanted.unwrap_or("comparison"))
        .or_else(|| variants.get(1).filter(|_| wanted.is_none()));
    let Some(meant) = meant else {
        anyhow::bail!(
            "`{}` has no variant `{}`, but {}",
            experiment.name,
            wanted.unwrap_or("comparison"),
            names().join(", ")
        );
    };
    let end = |name: &str, source| VariantPlan {
        name: name.to_owned(),
        binary: BinarySource::Git(source),
        command: None,
        ..meant.clone()
    };
    experiment.variants = vec![end("baseline", good), end("comparison", bad)];
    Ok(())
}
