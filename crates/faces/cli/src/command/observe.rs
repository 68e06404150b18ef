//! `stillwell observe`.

pub(crate) mod fleet;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use stillwell_capture::{Capture, Manifest, RunOutcome, write_private};
use stillwell_config::{ProgramOverride, RunOverrides, TargetOverride};
use stillwell_experiment::{Results, host_facts};
use stillwell_plan::target::{ContainerOrigin, Places};
use stillwell_plan::{RunPlan, TargetKind};
use stillwell_report::{Format, FullReport, RunReport};
use stillwell_run::{Exports, Interrupt, RunRequest, RunTelemetry, conduct};
use stillwell_units::{Nanos, RunId};
use stillwell_verdict::{CheckPassed, RunSummary, summarise};

use crate::arguments::ObserveArguments;
use crate::command::random::random;
use crate::command::report::runs::profiles_of;
use crate::command::{export, output, places, privileges, reflection, select, target};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;
use crate::progress::ProgressDisplay;
use crate::secrets;
use crate::signals;

pub(crate) fn run(arguments: &ObserveArguments, paint: &Paint) -> Result<Exit, CommandError> {
    export::check(&arguments.stats)?;
    if let Some(engine) = arguments.fleet.on {
        return fleet::run(arguments, engine, paint);
    }
    let plan = plan(arguments, paint)?;
    let privileges = privileges::prepare(plan.uses_namespaces());
    let quiet = arguments.output.quiet;
    output::check_outputs(&arguments.output)?;
    output::report_privileges(privileges.as_ref(), quiet);
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let folder = arguments
        .results
        .clone()
        .unwrap_or_else(|| places::fresh("runs", &places::name_of(&arguments.file)));
    check_results(&folder)?;
    let mut request = request(plan, folder.clone(), &arguments.file).map_err(could_not)?;
    let telemetry = export::start(&arguments.stats)?;
    request.exports.metrics = telemetry.as_ref().map(RunTelemetry::metrics);
    let (summary, capture) = carry_out(request, telemetry, quiet, paint)?;
    let exit = exit_of(&summary);
    let kept = keep(&summary, &folder);
    let kept = kept.map_err(|error| CommandError::new(Exit::Invalid, error));
    let delivered = deliver(arguments, summary, &capture, (&folder, paint));
    output::exit_after(exit, kept.and(delivered), paint)
}

/// Refuses a folder with the manifest of something else than a run, or with the results of another command.
pub(super) fn check_results(folder: &Path) -> Result<(), CommandError> {
    places::refuse_store(Some(folder))?;
    let error = if !Manifest::can_replace(folder) {
        let manifest = folder.join("manifest.json");
        anyhow::anyhow!("{} is not the manifest of a run", manifest.display())
    } else if Results::new(folder.to_path_buf()).has_results() {
        anyhow::anyhow!("{} contains results of another command", folder.display())
    } else {
        return Ok(());
    };
    Err(CommandError::new(Exit::Usage, error)
        .hint("name a new folder, or one with the capture of a run"))
}

/// Prints the report of the run and writes it to files; then the target's last lines and the folder.
fn deliver(
    arguments: &ObserveArguments,
    summary: RunSummary,
    capture: &Capture,
    (folder, paint): (&Path, &Paint),
) -> Result<(), CommandError> {
    let shown = output::show_path(folder);
    let command = output::command_line();
    let report = RunReport {
        host: host_facts(&capture.manifest),
        profiles: profiles_of(("", &summary.target), [(&summary, folder.to_path_buf())]),
        ..RunReport::new(summary, capture, shown.clone(), command)
    };
    let mut output = arguments.output.clone();
    if arguments.json {
        output.format = Format::Json;
    }
    print_last_lines(&report.summary, capture);
    Paint::print_message(&format!("capture: {shown}"));
    // The answer is what a terminal still shows in the end.
    output::deliver(&output, paint, &FullReport::from(&report))
}

/// Makes the run of `request`, which SIGINT and SIGTERM end, and reads its result. `telemetry` ends with the run.
///
/// # Errors
/// Exit code 3 where not even a capture could be made, 4 where it cannot be read.
pub(crate) fn carry_out(
    request: RunRequest,
    telemetry: Option<RunTelemetry>,
    quiet: bool,
    paint: &Paint,
) -> Result<(RunSummary, Capture), CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let (state, folder) = (request.places.state.clone(), request.folder.clone());
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal))
        .map_err(|error| could_not(error.into()))?;
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned());
    let mut display =
        ProgressDisplay::new(paint, quiet, &interrupt).named(&name.unwrap_or_default());
    let conducted = conduct(request, &interrupt, &mut |progress| display.run(&progress));
    display.clear();
    export::finish(telemetry, &interrupt, quiet);
    signals.close(Nanos::SECOND);
    // The remains are not needed.
    std::fs::remove_dir_all(state.parent().unwrap_or(&state)).ok();
    let manifest = conducted.map_err(|error| could_not(error.into()))?;
    let mut capture =
        Capture::open(&folder).map_err(|error| CommandError::new(Exit::Invalid, error))?;
    // A full disk does not take the news that it is full.
    capture.manifest.outcome = manifest.outcome;
    let summary = summarise(&capture);
    Ok((summary, capture))
}

/// Reads the plan of the run as the command line names it.
fn plan(arguments: &ObserveArguments, paint: &Paint) -> Result<RunPlan, CommandError> {
    let overrides = overrides(arguments)?;
    let loaded = loader()
        .run_plan(&arguments.file, &overrides)
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let mut plan = loaded.plan;
    if let Some(validity) = arguments.validity {
        plan.observer.validity = validity.into();
    }
    let inherit = arguments.inherit_environment;
    let variables = environment(&arguments.environment)?;
    add_environment(&mut plan.target.kind, variables, inherit)?;
    Ok(plan)
}

/// Adds the variables of the command line to those of the target, which the run must start.
///
/// # Errors
/// Exit code 2 if they do not reach the target.
fn add_environment(
    target: &mut TargetKind,
    variables: BTreeMap<String, String>,
    inherit: bool,
) -> Result<(), CommandError> {
    match target {
        TargetKind::Child(child) => {
            child.environment.inherit |= inherit;
            child.environment.variables.extend(variables);
            return Ok(());
        }
        TargetKind::Container(container) => {
            if let ContainerOrigin::Image(image) = &mut container.origin {
                if inherit {
                    return Err(no_environment_for_container());
                }
                image.environment.extend(variables);
                return Ok(());
            }
        }
        TargetKind::Pid(_) | TargetKind::Url(_) | TargetKind::None => {}
    }
    let (flag, accepted) = match (inherit, variables.is_empty()) {
        (true, _) => ("--inherit-environment", "a program"),
        (false, false) => ("--environment", "a program or --target-image"),
        (false, true) => return Ok(()),
    };
    let error = anyhow::anyhow!("{flag} needs {accepted}, and this run starts none");
    let advice = format!("name the program after `--`, or leave {flag} out");
    Err(CommandError::new(Exit::Usage, error).hint(advice))
}

fn no_environment_for_container() -> CommandError {
    let error = anyhow::anyhow!(
        "--inherit-environment has no effect: a container does not get the environment of this \
         command"
    );
    let advice = "leave it out, or pass variables with --environment K=V";
    CommandError::new(Exit::Usage, error).hint(advice)
}

fn overrides(arguments: &ObserveArguments) -> Result<RunOverrides, CommandError> {
    let target = if let Some(name) = &arguments.target_container {
        target::named(name)?
    } else if let Some(image) = &arguments.target_image {
        let environment = environment(&arguments.environment)?;
        target::of_image(image, arguments.target.clone(), environment)?
    } else if let Some(program) = &arguments.target_path {
        program_override(arguments, program.clone(), &arguments.target)?
    } else if let [program, rest @ ..] = arguments.target.as_slice() {
        program_override(arguments, program.into(), rest)?
    } else if let Some(pid) = arguments.target_pid {
        TargetOverride::Pid(pid)
    } else if arguments.no_target {
        TargetOverride::None
    } else {
        TargetOverride::FromFile
    };
    Ok(RunOverrides {
        target,
        warmup: arguments.warmup,
        measure: arguments.measure,
        seed: arguments.seed,
        rate: None,
    })
}

fn program_override(
    arguments: &ObserveArguments,
    program: PathBuf,
    rest: &[String],
) -> Result<TargetOverride, CommandError> {
    Ok(TargetOverride::Path(ProgramOverride {
        program,
        arguments: rest.to_vec(),
        environment: environment(&arguments.environment)?,
        inherit: arguments.inherit_environment,
    }))
}

/// Returns the variables of `pairs`, which are `K=V`.
///
/// # Errors
/// Exit code 2 if one has no `=`.
fn environment(pairs: &[String]) -> Result<BTreeMap<String, String>, CommandError> {
    let pairs = pairs.iter().map(|pair| {
        let (key, value) = pair.split_once('=').ok_or_else(|| {
            let error = anyhow::anyhow!("`{pair}` is not an environment variable");
            CommandError::new(Exit::Usage, error).hint("write K=V")
        })?;
        Ok((key.to_owned(), value.to_owned()))
    });
    pairs.collect()
}

pub(crate) fn request(plan: RunPlan, folder: PathBuf, file: &Path) -> anyhow::Result<RunRequest> {
    let places = Places {
        stillwell: std::env::current_exe()?,
        state: places::guarded_state_root()?.join("run"),
        files: None,
        experiment: experiment_folder(std::path::absolute(file)?),
    };
    let name = random()?;
    Ok(RunRequest {
        plan,
        places,
        folder: std::path::absolute(folder)?,
        identity: None,
        command: secrets::command_words(),
        secrets: secrets::handling(),
        run: RunId::from_bytes(name),
        exports: Exports::default(),
        fleet: None,
        describer: reflection::describer(),
    })
}

/// Returns the folder of the experiment at `path`: the folder itself, or the folder of the file.
fn experiment_folder(path: PathBuf) -> PathBuf {
    match path.parent() {
        Some(parent) if !path.is_dir() => parent.to_path_buf(),
        _ => path,
    }
}

fn keep(summary: &RunSummary, folder: &Path) -> anyhow::Result<()> {
    let path = folder.join("summary.json");
    let text = serde_json::to_string_pretty(summary)?;
    write_private(&path, text).with_context(|| format!("write the summary in {}", path.display()))
}

/// The last lines of the target of a run that did not end as it should.
pub(crate) fn print_last_lines(summary: &RunSummary, capture: &Capture) {
    if matches!(
        summary.outcome,
        RunOutcome::Completed | RunOutcome::Interrupted { .. }
    ) {
        return;
    }
    let end = capture.manifest.target.as_ref();
    let lines = end.map(|end| end.last_lines.as_slice());
    for line in lines.unwrap_or_default() {
        Paint::print_message(&format!("  target: {line}"));
    }
}

pub(crate) fn exit_of(summary: &RunSummary) -> Exit {
    match summary.outcome {
        RunOutcome::CouldNotStart { .. } | RunOutcome::NeverReady { .. } => Exit::CouldNotRun,
        RunOutcome::Interrupted { signal } => Exit::Interrupted(signal),
        RunOutcome::Completed => {
            if summary
                .checks
                .iter()
                .any(|check| check.passed != CheckPassed::Pass)
            {
                Exit::Failed
            } else if summary.warnings.is_empty() {
                Exit::Held
            } else {
                Exit::Invalid
            }
        }
        _ => Exit::Invalid,
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::target::{ContainerTarget, ImagePlan};

    use super::*;

    #[test]
    fn variables_reach_a_target_only_if_the_run_starts_it() {
        let variables = || BTreeMap::from([("A".to_owned(), "b".to_owned())]);
        let socket = PathBuf::from("/socket");
        let container = |origin: ContainerOrigin| {
            let socket = socket.clone();
            TargetKind::Container(Box::new(ContainerTarget { socket, origin }))
        };
        let mut image = container(ContainerOrigin::Image(ImagePlan::default()));
        add_environment(&mut image, variables(), false).unwrap();
        let environment = variables();
        let changed = ContainerOrigin::Image(ImagePlan {
            environment,
            ..ImagePlan::default()
        });
        assert_eq!(image, container(changed));
        let not_started = [
            container(ContainerOrigin::Named("a".to_owned())),
            TargetKind::Pid(1),
            TargetKind::Url("http://a/".to_owned()),
            TargetKind::None,
        ];
        for mut target in not_started {
            add_environment(&mut target, BTreeMap::new(), false).unwrap();
            for (variables, inherit) in [(variables(), false), (BTreeMap::new(), true)] {
                let refused = add_environment(&mut target, variables, inherit).unwrap_err();
                assert_eq!(refused.exit, Exit::Usage, "{target:?}");
                assert!(refused.to_string().contains("needs a program"), "{refused}");
            }
        }
        let refused = add_environment(&mut image, BTreeMap::new(), true).unwrap_err();
        assert_eq!(refused.exit, Exit::Usage);
        let expected = "--inherit-environment has no effect: a container does not get";
        assert!(refused.to_string().contains(expected), "{refused}");
        let advice = refused.hint.unwrap_or_default();
        assert!(advice.contains("--environment K=V"), "{advice}");
    }

    #[test]
    fn a_folder_is_refused_unless_it_is_new_or_has_the_capture_of_a_run() {
        let not_of_run = "manifest.json is not the manifest of a run";
        let of_another = "contains results of another command";
        let run = r#"{"schema": "stillwell/run/v2"}"#;
        let load = r#"{"schema": "stillwell/load-capture/v1"}"#;
        for (file, text, message) in [
            ("a.txt", "", None),
            ("manifest.json", run, None),
            ("manifest.json", load, Some(not_of_run)),
            ("manifest.json", "{}", Some(not_of_run)),
            ("suite.json", "{}", Some(of_another)),
            ("bisect.json", "{}", Some(of_another)),
        ] {
            let folder = tempfile::tempdir().unwrap();
            std::fs::write(folder.path().join(file), text).unwrap();
            match (check_results(folder.path()), message) {
                (Ok(()), None) => {}
                (Err(refused), Some(message)) => {
                    assert_eq!(refused.exit, Exit::Usage, "{file}: {text}");
                    assert!(refused.to_string().ends_with(message), "{refused}");
                    assert!(refused.hint.is_some(), "{file}: {text}");
                }
                (result, _) => panic!("{file}: {text}: {result:?}"),
            }
        }
        let folder = tempfile::tempdir().unwrap();
        check_results(&folder.path().join("new")).unwrap();
    }

    #[test]
    fn the_experiment_folder_is_the_named_folder_or_that_of_the_named_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.yaml");
        std::fs::write(&file, "").unwrap();
        assert_eq!(experiment_folder(file), folder.path());
        assert_eq!(experiment_folder(folder.path().to_owned()), folder.path());
    }
}
