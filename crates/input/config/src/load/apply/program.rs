//! Programs of the command line: a command for all variants, and the build of revisions.

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::{ExperimentPlan, TargetKind};
use stillwell_text::{Diagnostic, Diagnostics, code};

use super::name::shown;
use crate::files::absolute;
use crate::overrides::{CommandArgument, SuiteOverrides, VariantArgument};

/// Puts `command` in place of the program of the target.
pub(super) fn set_command(
    plan: &mut ExperimentPlan,
    command: &CommandArgument,
    diagnostics: &mut Diagnostics,
) {
    if let TargetKind::Child(child) = &mut plan.run_plan.target.kind {
        child.program.clone_from(&command.program);
        child.arguments.clone_from(&command.arguments);
    } else if matches!(plan.run_plan.target.kind, TargetKind::Url(_)) {
        let message = format!(
            "{}: `--target-command` has no effect: the target is a URL",
            shown(plan)
        );
        let error = Diagnostic::error(code::NO_EFFECT, message);
        diagnostics.push(error.help("leave it out, or write `command` in place of `url`"));
    }
}

/// Lays the repository and the build of the command line over all revisions.
pub(super) fn set_builds(plan: &mut ExperimentPlan, overrides: &SuiteOverrides) {
    for variant in &mut plan.variants {
        let BinarySource::Git(source) = &mut variant.binary else {
            continue;
        };
        if let Some(repository) = &overrides.repository {
            source.repository = absolute(repository);
        }
        if let Some(build) = &overrides.build {
            source.build.clone_from(build);
        }
        if let Some(output) = &overrides.build_output {
            source.output.clone_from(output);
        }
    }
}

/// Reports variants that run a command of the file in place of the one for all variants.
pub(super) fn check_commands(
    plan: &ExperimentPlan,
    overrides: &SuiteOverrides,
    diagnostics: &mut Diagnostics,
) {
    if overrides.target_command.is_none() {
        return;
    }
    let typed = [&overrides.baseline, &overrides.comparison];
    let is_typed = |command: &[String]| {
        let command = VariantArgument::Command(command.to_vec());
        typed
            .into_iter()
            .flatten()
            .any(|argument| *argument == command)
    };
    for variant in &plan.variants {
        let Some(command) = &variant.command else {
            continue;
        };
        if is_typed(command) {
            continue;
        }
        let message = format!(
            "{}: `--target-command` has no effect on variant `{}`, which has a `command`",
            shown(plan),
            variant.name
        );
        let error = Diagnostic::error(code::NO_EFFECT, message);
        diagnostics.push(error.help("leave out one of the two"));
    }
}
