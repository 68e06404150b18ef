//! The plan of a search: one experiment, both variants differ only in their
//! revisions.

use stillwell_config::{SuiteOverrides, VariantArgument};
use stillwell_experiment::bisect::set_ends;
use stillwell_plan::SuitePlan;

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
        let names = plan
            .experiments
            .iter()
            .map(|experiment| experiment.name.as_str());
        let names: Vec<&str> = names.collect();
        let error = anyhow::anyhow!(
            "a bisection needs one experiment, and there are {}",
            names.len()
        );
        return Err(usage(error).hint(format!(
            "--only NAME selects one of them: {}",
            names.join(", ")
        )));
    };
    let [good, bad] = [&arguments.good, &arguments.bad];
    set_ends(experiment, good, bad, arguments.variant.as_deref())
        .map_err(|error| usage(error.into()))?;
    Ok(plan)
}

fn overrides(arguments: &BisectArguments) -> SuiteOverrides {
    let revision = |typed: &str| Some(VariantArgument::Git(typed.to_owned()));
    let ends = [revision(&arguments.good), revision(&arguments.bad)];
    select::overrides_between(ends, &arguments.changes)
}
