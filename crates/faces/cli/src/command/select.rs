//! Overrides of a suite from flags.

use stillwell_config::{Diagnostics, StoppingOverride, SuiteOverrides, VariantArgument};

use crate::arguments::{ChangeArguments, CourseArguments, SelectArguments};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Overrides from `select`.
pub(crate) fn overrides(select: &SelectArguments) -> SuiteOverrides {
    let variants = [&select.baseline, &select.comparison].map(Clone::clone);
    overrides_between(variants, &select.changes)
}

/// Overrides from `changes`, and from the baseline and the comparison.
pub(crate) fn overrides_between(
    [baseline, comparison]: [Option<VariantArgument>; 2],
    changes: &ChangeArguments,
) -> SuiteOverrides {
    let course = &changes.course;
    SuiteOverrides {
        only: changes.only.clone(),
        stopping: stopping(course),
        design: course.design.map(Into::into),
        max_time: course.max_time,
        builds: course.builds,
        quick: course.quick,
        confirm: course.no_confirm.then_some(false),
        include_startup: course.include_startup,
        warmup: course.warmup,
        measure: course.measure,
        seed: changes.seed,
        baseline,
        comparison,
        repository: changes.repo.clone(),
        build: changes.build.clone(),
        build_output: changes.build_output.clone(),
        target_command: changes.target_command.clone(),
        goal: changes.goal.clone(),
        rate: changes.rate.clone(),
    }
}

/// Returns the names of the flags of `select` that were given.
pub(crate) fn given_flags(select: &SelectArguments) -> Vec<&'static str> {
    let changes = &select.changes;
    let course = &changes.course;
    let flags = [
        ("--baseline", select.baseline.is_some()),
        ("--comparison", select.comparison.is_some()),
        ("--repo", changes.repo.is_some()),
        ("--build", changes.build.is_some()),
        ("--build-output", changes.build_output.is_some()),
        ("--target-command", changes.target_command.is_some()),
        ("--only", !changes.only.is_empty()),
        ("--seed", changes.seed.is_some()),
        ("--goal", changes.goal.is_some()),
        ("--rate", changes.rate.is_some()),
        ("--max-pairs", course.max_pairs.is_some()),
        ("--pairs", course.fixed_pairs.is_some()),
        ("--no-max", course.no_max),
        ("--max-time", course.max_time.is_some()),
        ("--builds", course.builds.is_some()),
        ("--quick", course.quick),
        ("--design", course.design.is_some()),
        ("--no-confirm", course.no_confirm),
        ("--include-startup", course.include_startup),
        ("--warmup", course.warmup.is_some()),
        ("--measure", course.measure.is_some()),
    ];
    let given = flags.into_iter().filter(|(_, is_given)| *is_given);
    given.map(|(flag, _)| flag).collect()
}

/// Of these flags only one is there.
const fn stopping(course: &CourseArguments) -> Option<StoppingOverride> {
    match (course.max_pairs, course.fixed_pairs) {
        (Some(pairs), _) => Some(StoppingOverride::MaxPairs(pairs)),
        (None, Some(pairs)) => Some(StoppingOverride::FixedPairs(pairs)),
        (None, None) if course.no_max => Some(StoppingOverride::NoMax),
        (None, None) => None,
    }
}

/// Prints all errors of a configuration.
pub(crate) fn refused(diagnostics: &Diagnostics, paint: &Paint) -> CommandError {
    Paint::print_message(&diagnostics.render(paint.err));
    let count = diagnostics.errors();
    let plural = if count == 1 { "" } else { "s" };
    let error = anyhow::anyhow!("{count} error{plural} in the configuration; nothing was run");
    CommandError {
        details: Some(diagnostics.render(false)),
        ..CommandError::new(Exit::Usage, error)
    }
}

/// The same for lading and its tools, which exit with 1.
pub(crate) fn refused_as_lading(diagnostics: &Diagnostics, paint: &Paint) -> CommandError {
    CommandError {
        exit: Exit::Failed,
        ..refused(diagnostics, paint)
    }
}

/// Prints the warnings of a configuration.
pub(crate) fn warn(warnings: &Diagnostics, paint: &Paint) {
    let text = warnings.render(paint.err);
    if !text.is_empty() {
        Paint::print_message(&text);
    }
}
