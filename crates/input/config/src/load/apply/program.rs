//! Programs of the command line: a command for all variants, and the build of revisions.

use stillwell_plan::experiment::BinarySource;
use stillwell_plan::{ExperimentPlan, TargetKind};
use stillwell_text::{Diagnostic, Diagnostics, code};

use super::name::shown;
use crate::files::absolute;
use crate::overrides::{CommandArgument, SuiteOverrides, VariantArgument};

/// Advice about a command beside a URL.
const AT_URL: &str = "leave it out, write `command` in place of `url`, or select with `--only`";

/// Advice about two commands.
const WITH_COMMAND: &str = "leave out one of the two, or select with `--only`";

/// Puts `command` in place of the program of the target.
pub(super) fn set_command(plan: &mut ExperimentPlan, command: &CommandArgument) {
    if let TargetKind::Child(child) = &mut plan.run_plan.target.kind {
        child.program.clone_from(&command.program);
        child.arguments.clone_from(&command.arguments);
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

/// Reports experiments and variants on which the command for all variants has no effect. These are errors if no variant
/// of any experiment takes it, else warnings. It may be for experiments that `--only` leaves out.
pub(crate) fn check_commands(
    experiments: &[ExperimentPlan],
    overrides: &SuiteOverrides,
    diagnostics: &mut Diagnostics,
) {
    let is_given = overrides.target_command.is_some();
    if !is_given || experiments.is_empty() || diagnostics.has_errors() {
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
    let mut is_taken = false;
    let mut without_effect: Vec<(String, &str)> = Vec::new();
    for plan in experiments {
        if matches!(plan.run_plan.target.kind, TargetKind::Url(_)) {
            let message = format!(
                "{}: `--target-command` has no effect: the target is a URL",
                shown(plan)
            );
            without_effect.push((message, AT_URL));
            continue;
        }
        for variant in &plan.variants {
            match &variant.command {
                None => is_taken = true,
                Some(command) if is_typed(command) => {}
                Some(_) => {
                    let message = format!(
                        "{}: `--target-command` has no effect on variant `{}`, which has a \
                         `command`",
                        shown(plan),
                        variant.name
                    );
                    without_effect.push((message, WITH_COMMAND));
                }
            }
        }
    }
    if !is_taken && without_effect.is_empty() {
        let message = "`--target-command` has no effect: each variant has a command of its own";
        without_effect.push((message.to_owned(), "leave it out"));
    }
    let may_be_left_out = is_taken || !overrides.only.is_empty();
    for (message, help) in without_effect {
        let diagnostic = match may_be_left_out {
            true => Diagnostic::warning(code::NO_EFFECT, message),
            false => Diagnostic::error(code::NO_EFFECT, message),
        };
        diagnostics.push(diagnostic.help(help));
    }
}
