//! Applies the values of a command line to the plan of a file.

use std::path::Path;

use stillwell_plan::experiment::{BinarySource, GitSource, OperatingPoint};
use stillwell_plan::goal::Direction;
use stillwell_plan::placement::Wanted;
use stillwell_plan::target::ContainerOrigin;
use stillwell_plan::{
    ExperimentPlan, GeneratorPlan, GoalPlan, PhasesPlan, RatePlan, RateShape, RunPlan, TargetKind,
    TargetPlan, VariantPlan,
};
use stillwell_text::{Diagnostic, Diagnostics, Place, code};
use stillwell_units::{Nanos, Seed};

use super::build_file::RepositoryBuild;
use super::target_from_override;
use crate::overrides::{RunOverrides, SuiteOverrides, TargetOverride, VariantArgument};
use crate::rate::parse_rate;
use crate::rules::builds_problem;
use crate::spec::{
    PROBE_DEFAULT, RateContext, Workload, check_variants, counted_by, goal_problem, parse_goal,
    parse_share, rate_problem,
};

mod course;
mod name;
mod program;

use name::shown;
pub(super) use program::check_commands;

/// Advice for experiments of both kinds in one command.
pub(super) const SEPARATE_COMMANDS: &str =
    "run experiments with `targets` and experiments with `variants` by separate commands";

/// Way in which a program of the command line replaces a file's target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum FileTarget {
    /// It replaces the target.
    Whole,
    /// It runs in the layout of the target: with its mounts and its environment.
    Layout,
    /// Files of the format of this name never have a target.
    Never(&'static str),
}

/// Reports steps that do not come in the measured phase as the command line has it.
pub(super) fn check_timeline(name: &str, run_plan: &RunPlan, diagnostics: &mut Diagnostics) {
    let phases = &run_plan.phases;
    let mut steps = run_plan.timeline.iter();
    if steps.any(|step| !step.comes_in(phases)) {
        let message = format!(
            "{name}: a step of its timeline comes after the measured phase of {}",
            phases.measure
        );
        let error = Diagnostic::error(code::OUT_OF_RANGE, message);
        diagnostics.push(error.help("measure for longer, e.g. `--measure 20s`"));
    }
}

/// Applies the command line to a run that was read from a file.
pub fn to_run(
    run_plan: &mut RunPlan,
    overrides: &RunOverrides,
    target: FileTarget,
    diagnostics: &mut Diagnostics,
) {
    times(
        &mut run_plan.phases,
        overrides.warmup,
        overrides.measure,
        diagnostics,
    );
    if overrides.measure.is_some() {
        check_timeline("the run", run_plan, diagnostics);
    }
    if let Some(seed) = overrides.seed {
        reseed(run_plan, seed);
    }
    if let Some(rate) = &overrides.rate {
        let context = RateContext::default();
        set_rate(&mut run_plan.generators, rate, &context, diagnostics);
    }
    match target_from_override(&overrides.target, run_plan) {
        Some(chosen) if target == FileTarget::Layout => in_layout(&mut run_plan.target, chosen),
        Some(chosen) => run_plan.target = chosen,
        None => {
            if let FileTarget::Never(format) = target {
                let message =
                    "no program is given: load goes directly to the addresses of the generators";
                let warning = Diagnostic::warning(code::NO_TARGET, message);
                let help = format!("a {format} file never names one; name it on the command line");
                diagnostics.push(warning.help(help));
            }
        }
    }
    let is_of_host = match overrides.target {
        TargetOverride::Pid(_) | TargetOverride::Container(_) | TargetOverride::None => true,
        // Without sinks of the run, only others can receive the load.
        TargetOverride::FromFile => {
            matches!(target, FileTarget::Never(_)) || run_plan.sinks.is_empty()
        }
        TargetOverride::Path(_) => false,
    };
    if is_of_host
        && !matches!(run_plan.target.kind, TargetKind::Child(_))
        && run_plan.isolation.network == Wanted::IfPossible
    {
        // What receives the load runs in a network already, and is reached only there.
        run_plan.isolation.network = Wanted::No;
    }
}

/// A program of the command line in a case whose layout has the rest.
fn in_layout(current: &mut TargetPlan, named: TargetPlan) {
    match (&mut current.kind, named.kind) {
        (TargetKind::Child(child), TargetKind::Child(named)) => {
            child.program = named.program;
            child.arguments = named.arguments;
            child.environment.inherit = named.environment.inherit;
            let variables = named.environment.variables;
            child.environment.variables.extend(variables);
        }
        (TargetKind::Child(child), TargetKind::Container(mut container)) => {
            if let ContainerOrigin::Image(image) = &mut container.origin {
                let named = Path::new(&current.name);
                // Without a command in the case it is the image's own that runs.
                let has_command = child.program != named || !child.arguments.is_empty();
                if has_command && image.arguments.is_empty() {
                    image.program = Some(child.program.to_string_lossy().into_owned());
                    image.arguments.clone_from(&child.arguments);
                }
                let mut environment = child.environment.variables.clone();
                environment.append(&mut image.environment);
                image.environment = environment;
                image.mounts.clone_from(&child.mounts);
                current.kind = TargetKind::Container(container);
            } else {
                let kind = TargetKind::Container(container);
                *current = TargetPlan { kind, ..named };
            }
        }
        (_, kind) => {
            *current = TargetPlan { kind, ..named };
        }
    }
}

/// Keys that a file has, valid or invalid.
pub(super) struct Given {
    /// Its target has a program.
    pub(super) program: bool,
    /// It has a target.
    pub(super) target: bool,
    /// It has variants.
    pub(super) variants: bool,
    /// It has several targets.
    pub(super) several_targets: bool,
    /// Place of missing keys.
    pub(super) place: Option<Place>,
    pub(super) rate_context: RateContext,
    /// Its workload, if it is in the native format.
    pub(super) workload: Option<Workload>,
    /// The build that the repository of revisions names.
    pub(super) build: Option<RepositoryBuild>,
}

/// Lays `overrides` over `plan`, whose file is right or has mistakes.
pub(super) fn to_experiment(
    plan: &mut ExperimentPlan,
    overrides: &SuiteOverrides,
    given: &Given,
    is_right: bool,
    diagnostics: &mut Diagnostics,
) {
    course::to_experiment(plan, overrides, diagnostics);
    if let Some(seed) = overrides.seed {
        reseed(&mut plan.run_plan, seed);
    }
    if let Some(goal) = &overrides.goal {
        set_goal(plan, goal, given.workload.as_ref(), diagnostics);
    }
    match &overrides.rate {
        Some(rate) => set_operating_point(plan, rate, &given.rate_context, diagnostics),
        None => set_blocks(
            plan.operating_point,
            &mut plan.run_plan,
            &given.rate_context,
        ),
    }
    if let Some(command) = &overrides.target_command {
        program::set_command(plan, command);
    }
    set_variants(plan, overrides, given, diagnostics);
    program::set_builds(plan, overrides);
    let has_program = given.program || overrides.target_command.is_some();
    check_program(plan, given, has_program, diagnostics);
    // Errors are reported without warnings about their consequences.
    if let Some(problem) = builds_problem(plan)
        && is_right
        && !diagnostics.has_errors()
    {
        let message = format!("{}: {problem}", shown(plan));
        diagnostics.push(Diagnostic::error(code::COURSE, message));
    }
    let is_odd = check_variants(&plan.variants).filter(|_| is_right && !diagnostics.has_errors());
    if let Some(odd) = is_odd {
        let message = format!("{}: {odd}", shown(plan));
        diagnostics.push(Diagnostic::note(code::VARIANTS, message));
    }
}

pub(super) fn times(
    phases: &mut PhasesPlan,
    warmup: Option<Nanos>,
    measure: Option<Nanos>,
    diagnostics: &mut Diagnostics,
) {
    if let Some(warmup) = warmup {
        phases.warmup = warmup;
    }
    if let Some(measure) = measure {
        phases.measure = measure;
        if measure == Nanos::ZERO {
            let message = "nothing would be measured: the measured phase has no length";
            diagnostics.push(Diagnostic::error(code::NOTHING_MEASURED, message));
        }
    }
}

pub(super) fn reseed(run_plan: &mut RunPlan, seed: Seed) {
    run_plan.seed = seed;
    for (index, generator) in (0..).zip(&mut run_plan.generators) {
        generator.seed = seed.derive("payload", index);
    }
}

/// Sets the rate of the only generator, or `max` of all.
pub(super) fn set_rate(
    generators: &mut [GeneratorPlan],
    text: &str,
    context: &RateContext,
    diagnostics: &mut Diagnostics,
) -> bool {
    let rate = match parse_rate(text) {
        Ok(rate) => rate,
        Err(error) => {
            let message = format!("`--rate {text}`: {error}");
            diagnostics.push(Diagnostic::error(code::BAD_VALUE, message));
            return false;
        }
    };
    if generators.len() != 1 && !rate.is_max() {
        let message = format!(
            "`--rate {text}` is for one generator, and there are {}",
            generators.len()
        );
        let error = Diagnostic::error(code::OPERATING_POINT, message);
        diagnostics.push(error.help("write the rates of several generators into the file"));
        return false;
    }
    let mut is_right = true;
    for generator in generators {
        let rate = counted_by(&generator.transport, rate.clone());
        is_right &= check_rate(generator, &rate, (text, context), diagnostics);
        context.set_default_blocks(generator, &rate);
        generator.rate = rate;
    }
    is_right
}

/// Sets the rates and the blocks of generators where the operating point replaces their rates.
pub(super) fn set_rates_and_blocks(
    point: OperatingPoint,
    run_plan: &mut RunPlan,
    context: &RateContext,
) {
    set_blocks(point, run_plan, context);
    if point == OperatingPoint::Max {
        for generator in &mut run_plan.generators {
            generator.rate.shape = RateShape::Max;
        }
    }
}

/// Sets the blocks of generators without `block` where the operating point replaces their rates.
fn set_blocks(point: OperatingPoint, run_plan: &mut RunPlan, context: &RateContext) {
    if point != OperatingPoint::Max {
        return;
    }
    for generator in &mut run_plan.generators {
        context.set_default_blocks(generator, &RatePlan::MAX);
    }
}

/// Reports a rate of the command line that the file could not have either. Returns true if it could.
fn check_rate(
    generator: &GeneratorPlan,
    rate: &RatePlan,
    (text, context): (&str, &RateContext),
    diagnostics: &mut Diagnostics,
) -> bool {
    let id = &generator.id;
    let Some(problem) = rate_problem(generator, rate, context.arrivals.contains(id)) else {
        return true;
    };
    let message = format!("`--rate {text}` of generator `{id}`: {}", problem.message);
    diagnostics.push(Diagnostic::error(problem.code, message).help(problem.help));
    false
}

fn set_operating_point(
    plan: &mut ExperimentPlan,
    text: &str,
    context: &RateContext,
    diagnostics: &mut Diagnostics,
) {
    // Typed rates replace those of the file.
    plan.stated_max.clear();
    if let Some(rest) = text.strip_prefix("probe") {
        let share = match rest.strip_prefix(':') {
            Some(share) => parse_share(share),
            None if rest.is_empty() => Some(0.6),
            None => None,
        };
        plan.operating_point = match (share, PROBE_DEFAULT) {
            (Some(share), OperatingPoint::Probe { length, .. }) => {
                OperatingPoint::Probe { share, length }
            }
            _ => {
                let message = format!("`--rate {text}`: write `probe` or `probe:60%`");
                diagnostics.push(Diagnostic::error(code::BAD_VALUE, message));
                return;
            }
        };
        for generator in &mut plan.run_plan.generators {
            check_rate(generator, &RatePlan::MAX, (text, context), diagnostics);
            context.set_default_blocks(generator, &RatePlan::MAX);
            generator.rate.shape = RateShape::Max;
        }
    } else if set_rate(&mut plan.run_plan.generators, text, context, diagnostics) {
        plan.operating_point = if text == "max" {
            OperatingPoint::Max
        } else {
            OperatingPoint::Stated
        };
    }
}

/// Puts a goal first; what is not typed of it stays as in the file.
fn set_goal(
    plan: &mut ExperimentPlan,
    text: &str,
    workload: Option<&Workload>,
    diagnostics: &mut Diagnostics,
) {
    let typed = match parse_goal(text) {
        Ok(typed) => typed,
        Err(reason) => {
            let message = format!("`--goal {text}`: {reason}");
            diagnostics.push(Diagnostic::error(code::UNKNOWN_WORD, message));
            return;
        }
    };
    if let Some(problem) = workload.and_then(|workload| goal_problem(&typed.metric, workload)) {
        let message = format!("{}: `--goal {text}`: {}", shown(plan), problem.message);
        let error = Diagnostic::error(code::GOAL_WITHOUT_LOAD, message);
        diagnostics.push(error.help(problem.advice));
        return;
    }
    let mut goals = plan.goals.iter();
    let there = goals.position(|goal| goal.metric == typed.metric);
    let mut goal = match there {
        Some(index) => plan.goals.remove(index),
        None => GoalPlan::new(typed.metric.clone()),
    };
    let direction: Option<Direction> = typed.direction.or_else(|| typed.metric.direction());
    if direction.is_none() && there.is_none() {
        let message = format!("`--goal {text}`: its better direction is unknown");
        let error = Diagnostic::error(code::COURSE, message);
        diagnostics.push(error.help(format!("write `{}:lower` or `:higher`", typed.metric)));
    }
    goal.direction = direction.unwrap_or(goal.direction);
    if let Some(tolerance) = typed.tolerance {
        goal = match goal.tolerating(tolerance) {
            Ok(goal) => goal,
            Err(reason) => {
                let message = format!("`--goal {text}`: {reason}");
                diagnostics.push(Diagnostic::error(code::BAD_VALUE, message));
                return;
            }
        };
    }
    plan.goals.insert(0, goal);
}

fn set_variants(
    plan: &mut ExperimentPlan,
    overrides: &SuiteOverrides,
    given: &Given,
    diagnostics: &mut Diagnostics,
) {
    if plan.variants.is_empty() && given.variants {
        return;
    }
    if plan.variants.is_empty() {
        if overrides.baseline.is_none() && overrides.comparison.is_none() {
            if given.several_targets {
                let message = format!(
                    "{}: an experiment with `targets` has no variants",
                    shown(plan)
                );
                let error = Diagnostic::error(code::VARIANTS, message);
                diagnostics.push(error.help(SEPARATE_COMMANDS));
                return;
            }
            let mut error = Diagnostic::error(code::MISSING_KEY, "an experiment needs `variants`")
                .label("nothing to compare")
                .help(
                    "list two under `variants`, or name them with `--baseline` and `--comparison`",
                );
            error.place.clone_from(&given.place);
            diagnostics.push(error);
            return;
        }
        let names = ["baseline", "comparison"];
        plan.variants = names
            .map(|name| VariantPlan::unchanged(name.to_owned()))
            .to_vec();
    }
    if let Some(argument) = &overrides.baseline {
        set_variant(plan, 0, argument, (overrides, given), diagnostics);
    }
    if let Some(argument) = &overrides.comparison {
        let named = plan
            .variants
            .iter()
            .position(|variant| variant.name == "comparison");
        let index = named.unwrap_or(1);
        set_variant(plan, index, argument, (overrides, given), diagnostics);
    }
}

fn set_variant(
    plan: &mut ExperimentPlan,
    index: usize,
    argument: &VariantArgument,
    (overrides, given): (&SuiteOverrides, &Given),
    diagnostics: &mut Diagnostics,
) {
    let known = plan
        .variants
        .iter()
        .find_map(|variant| match &variant.binary {
            BinarySource::Git(git) => Some(git.clone()),
            BinarySource::AsPlanned | BinarySource::Path(_) => None,
        });
    let known = known.or_else(|| {
        let RepositoryBuild { build, output } = given.build.clone()?;
        Some(GitSource {
            repository: absolute(Path::new(".")),
            revision: String::new(),
            build,
            output,
        })
    });
    let is_url = matches!(plan.run_plan.target.kind, TargetKind::Url(_));
    let Some(variant) = plan.variants.get_mut(index) else {
        return;
    };
    let is_of_program = !matches!(argument, VariantArgument::Files(_) | VariantArgument::Same);
    if is_url && is_of_program {
        let message = format!(
            "`{}`: the target is a URL, and no program that a variant could change",
            variant.name
        );
        diagnostics.push(Diagnostic::error(code::ONE_OF_KEYS, message));
        return;
    }
    match argument {
        VariantArgument::Arguments(arguments) => variant.arguments.clone_from(arguments),
        VariantArgument::Environment(variables) => variant.environment.clone_from(variables),
        VariantArgument::Files(folder) => variant.files = Some(absolute(folder)),
        VariantArgument::Same => *variant = VariantPlan::unchanged(variant.name.clone()),
        VariantArgument::Binary(path) => {
            variant.binary = BinarySource::Path(absolute(path));
            variant.command = None;
        }
        VariantArgument::Command(words) => {
            variant.binary = BinarySource::AsPlanned;
            variant.command = Some(words.clone());
        }
        VariantArgument::Git(revision) => {
            variant.command = None;
            match git_source(revision, known, overrides) {
                Some(source) => variant.binary = BinarySource::Git(source),
                None => {
                    let message = format!("`git:{revision}` needs a build command and its output");
                    diagnostics.push(Diagnostic::error(code::BUILD_INCOMPLETE, message).help(
                        "e.g. `--build 'cargo build --release' --build-output target/release/x`, or \
                         `build` and `output` in stillwell.yaml of the repository",
                    ));
                }
            }
        }
    }
}

/// `revision` of what the command line says, else of what the file says.
fn git_source(
    revision: &str,
    known: Option<GitSource>,
    overrides: &SuiteOverrides,
) -> Option<GitSource> {
    let known = known.as_ref();
    let repository = overrides.repository.as_deref().map(absolute);
    let repository = repository.or_else(|| known.map(|git| git.repository.clone()));
    let build = overrides.build.clone();
    let output = overrides.build_output.clone();
    Some(GitSource {
        repository: repository.unwrap_or_else(|| absolute(Path::new("."))),
        revision: revision.to_owned(),
        build: build.or_else(|| known.map(|git| git.build.clone()))?,
        output: output.or_else(|| known.map(|git| git.output.clone()))?,
    })
}

fn absolute(path: &Path) -> std::path::PathBuf {
    crate::files::absolute(path)
}

/// Every variant must come to a program.
fn check_program(
    plan: &ExperimentPlan,
    given: &Given,
    has_program: bool,
    diagnostics: &mut Diagnostics,
) {
    if !given.target {
        let mut error = Diagnostic::error(code::MISSING_KEY, "an experiment needs a `target`")
            .label("nothing to measure")
            .help("e.g. `target: {command: [./program, --flag]}`");
        error.place.clone_from(&given.place);
        diagnostics.push(error);
        return;
    }
    if has_program {
        return;
    }
    for variant in &plan.variants {
        if variant.binary == BinarySource::AsPlanned && variant.command.is_none() {
            let message = format!(
                "{}: its target names no `command`, so variant `{}` has no program",
                shown(plan),
                variant.name
            );
            let flag = format!("--{}", variant.name);
            diagnostics.push(Diagnostic::error(code::NO_TARGET, message).help(format!(
                "name one, e.g. `{flag} bin:PATH`, `{flag} cmd:'PATH ARGUMENTS'`, or for all of \
                 them `--target-command 'PATH ARGUMENTS'`"
            )));
        }
    }
}
