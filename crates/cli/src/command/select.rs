//! From flags to overrides of a lab.

use stillwell_config::{Diagnostics, LabOverrides};

use crate::arguments::SelectArguments;
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// What `select` changes in the files.
pub(crate) fn overrides(select: &SelectArguments) -> LabOverrides {
    LabOverrides {
        only: select.only.clone(),
        pairs: select.pairs,
        warmup: select.warmup,
        measure: select.measure,
        seed: select.seed,
        baseline: select.baseline.clone(),
        comparison: select.comparison.clone(),
        repository: select.repo.clone(),
        build: select.build.clone(),
        build_output: select.build_output.clone(),
        goal: select.goal.clone(),
        rate: select.rate.clone(),
    }
}

/// Tells everything that is wrong with a configuration.
pub(crate) fn refused(diagnostics: &Diagnostics, paint: &Paint) -> CommandError {
    Paint::say(&diagnostics.render(paint.err));
    let count = diagnostics.errors();
    let plural = if count == 1 { "" } else { "s" };
    CommandError::new(
        Exit::Usage,
        anyhow::anyhow!("{count} error{plural} in the configuration; nothing was run"),
    )
}

/// Tells what readers should know of a configuration that is accepted.
pub(crate) fn warn(warnings: &Diagnostics, paint: &Paint) {
    let text = warnings.render(paint.err);
    if !text.is_empty() {
        Paint::say(&text);
    }
}
