//! `lading`: one observed run with lading's arguments.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stillwell_config::{ProgramOverride, RunOverrides, TargetOverride};
use stillwell_lading::capture::{LadingLayout, LadingOutput};
use stillwell_lading::series::lading_series;
use stillwell_lading::{
    LadingRun, LadingSource, LadingTelemetry, TelemetryFormat, TelemetryFormatKind, TelemetryPlace,
};
use stillwell_metric::{Labels, catalogue as metric};
use stillwell_plan::check::{Aggregation, SeriesSelector};
use stillwell_plan::placement::Wanted;
use stillwell_plan::{CheckPlan, RunPlan};
use stillwell_report::{Style, run_terminal};
use stillwell_run::{Exports, PageAddress, PagePlan};
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::RunSummary;

use crate::arguments::{
    LadingCommand, LadingConfigArguments, LadingRunArguments, LadingTargetArguments,
    LadingTelemetryArguments,
};
use crate::command::{observe, output, select, target};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// Holds a configuration, and goes before any file.
const CONFIG_VARIABLE: &str = "LADING_CONFIG";
/// Practically unlimited: ten years.
const INFINITE: Nanos = Nanos::from_secs(315_360_000);

/// Does what `command` says.
pub(crate) fn run(command: &LadingCommand, paint: &Paint) -> Result<Exit, CommandError> {
    match command {
        LadingCommand::Run(run) => run_once(run, paint),
        LadingCommand::ConfigCheck(config) => check(config, paint),
    }
}

fn check(config: &LadingConfigArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let overrides = RunOverrides {
        target: TargetOverride::None,
        ..RunOverrides::default()
    };
    let loaded = stillwell_lading::load_lading(&source(config), &overrides)
        .map_err(|diagnostics| select::refused_as_lading(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    Paint::print_message("the configuration is valid");
    Ok(Exit::Held)
}

/// The text of the environment, or the file or folder.
fn source(config: &LadingConfigArguments) -> LadingSource {
    match std::env::var(CONFIG_VARIABLE) {
        // A text is never the path of anything; a path may be meant.
        Ok(text) if Path::new(text.trim()).exists() => LadingSource::Path(text.trim().into()),
        Ok(text) if !text.trim().is_empty() => LadingSource::Text(text),
        _ => LadingSource::Path(config.config_path.clone()),
    }
}

fn run_once(arguments: &LadingRunArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let from = source(&arguments.config);
    let loaded = stillwell_lading::load_lading(&from, &overrides(arguments)?)
        .map_err(|diagnostics| select::refused_as_lading(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let LadingRun { plan, telemetry } = loaded.plan;
    let (exports, files) = exports(arguments, telemetry)?;
    let plan = adjusted(plan, arguments);
    let quiet = !paint.live;
    // lading writes one file, so the folder is temporary.
    let folder = std::env::temp_dir().join(format!("stillwell-capture-{}", std::process::id()));
    let file = match from {
        LadingSource::Path(path) => path,
        LadingSource::Text(_) => PathBuf::from("."),
    };
    let mut request = observe::request(plan, folder.clone(), &file).map_err(could_not)?;
    request.exports = exports;
    let ended = observe::carry_out(request, None, quiet, paint);
    // It has no such settings; the requested value is elsewhere.
    std::fs::remove_dir_all(&folder).ok();
    let (summary, capture) = ended?;
    let style = Style {
        color: paint.err,
        width: Paint::columns(),
    };
    Paint::print_message(run_terminal(&summary, style).trim_end());
    observe::print_last_lines(&summary, &capture);
    for file in files {
        Paint::print_message(&format!("capture: {}", output::show_path(&file)));
    }
    Ok(exit_of(&summary))
}

/// A run that went to its end worked, however unreliable its numbers are.
fn exit_of(summary: &RunSummary) -> Exit {
    match observe::exit_of(summary) {
        Exit::Invalid if summary.outcome.is_completed() => Exit::Held,
        exit => exit,
    }
}

fn overrides(arguments: &LadingRunArguments) -> Result<RunOverrides, CommandError> {
    let measure = if arguments.experiment_duration_infinite {
        INFINITE
    } else {
        seconds(arguments.experiment_duration_seconds)
    };
    Ok(RunOverrides {
        target: target(&arguments.target)?,
        warmup: Some(seconds(arguments.warmup_duration_seconds)),
        measure: Some(measure),
        ..RunOverrides::default()
    })
}

fn seconds(seconds: u32) -> Nanos {
    Nanos::from_secs(u64::from(seconds))
}

fn target(arguments: &LadingTargetArguments) -> Result<TargetOverride, CommandError> {
    if let Some(name) = &arguments.target_container {
        return target::named(name);
    }
    if let Some(pid) = arguments.target_pid {
        return Ok(TargetOverride::Pid(pid));
    }
    let Some(program) = &arguments.target_path else {
        return Ok(TargetOverride::None);
    };
    let environment = arguments.target_environment_variables.clone();
    Ok(TargetOverride::Path(ProgramOverride {
        program: program.clone(),
        arguments: arguments.target_arguments.clone(),
        environment: environment.unwrap_or_default().0.into_iter().collect(),
        inherit: arguments.target_inherit_environment,
    }))
}

/// `plan` as in lading: in the network of the host, and ended in the time
/// that was given.
fn adjusted(mut plan: RunPlan, arguments: &LadingRunArguments) -> RunPlan {
    let shutdown = Nanos::from_secs(u64::from(arguments.max_shutdown_delay).max(1));
    plan.isolation.network = Wanted::No;
    plan.target.stop.grace = shutdown;
    plan.phases.drain = plan.phases.drain.min(shutdown);
    if arguments.disable_inspector {
        plan.observer.inspector = None;
    }
    if let Some(limit) = arguments.target.target_rss_bytes_limit {
        plan.checks.push(CheckPlan {
            name: "target_rss_bytes_limit".to_owned(),
            description: Some("resident memory that the target may use".to_owned()),
            series: SeriesSelector {
                metric: metric::TARGET_RSS.name.to_owned(),
                id: None,
                aggregation: Aggregation::Each,
            },
            upper: Some(float_from_u64(limit.bytes())),
            lower: None,
        });
    }
    plan
}

fn exports(
    arguments: &LadingRunArguments,
    of_file: Option<LadingTelemetry>,
) -> Result<(Exports, Vec<PathBuf>), CommandError> {
    let telemetry = match (of_flags(&arguments.telemetry)?, of_file) {
        (Some(place), _) => LadingTelemetry {
            place,
            labels: Vec::new(),
        },
        (None, Some(telemetry)) => telemetry,
        (None, None) => {
            let error = anyhow::anyhow!("no destination of telemetry is given");
            let hint = "give `--capture-path`, `--prometheus-addr` or `--prometheus-path`, or \
                        `telemetry` in the configuration";
            return Err(CommandError::new(Exit::Usage, error).hint(hint));
        }
    };
    let global = arguments.global_labels.clone().unwrap_or_default().0;
    let labels: Labels = telemetry.labels.into_iter().chain(global).collect();
    let page = |address, labels| {
        Some(PagePlan {
            address,
            labels,
            naming: lading_series,
        })
    };
    let mut files = Vec::new();
    let target = &arguments.target;
    let mut exports = Exports {
        stdout: log(&target.target_stdout_path)?,
        stderr: log(&target.target_stderr_path)?,
        ..Exports::default()
    };
    match telemetry.place {
        TelemetryPlace::Capture {
            path,
            format,
            expiration,
        } => {
            let output = LadingOutput {
                path: std::path::absolute(&path).map_err(unusable(&path))?,
                layout: layout(format.kind),
                labels,
                expiration,
                flush: format.flush,
                compression_level: format.compression_level,
            };
            files = output.files();
            exports.samples = Some(Arc::new(output));
        }
        TelemetryPlace::Address(address) => {
            exports.page = page(PageAddress::Tcp(on_loopback(address)), labels);
        }
        TelemetryPlace::Socket(path) => exports.page = page(PageAddress::Unix(path), labels),
    }
    Ok((exports, files))
}

const fn layout(kind: TelemetryFormatKind) -> LadingLayout {
    match kind {
        TelemetryFormatKind::Jsonl => LadingLayout::Jsonl,
        TelemetryFormatKind::Parquet => LadingLayout::Parquet,
        TelemetryFormatKind::Multi => LadingLayout::Multi,
    }
}

fn of_flags(arguments: &LadingTelemetryArguments) -> Result<Option<TelemetryPlace>, CommandError> {
    if let Some(path) = &arguments.capture_path {
        let expiration = arguments.capture_expiration_seconds;
        // More than five hundred years are for ever.
        let expiration = expiration.filter(|seconds| *seconds < u64::MAX / 1_000_000_000);
        return Ok(Some(TelemetryPlace::Capture {
            path: path.clone(),
            format: TelemetryFormat {
                kind: arguments.capture_format,
                flush: Nanos::from_secs(arguments.capture_flush_seconds),
                compression_level: arguments.capture_compression_level,
            },
            expiration: expiration.map(Nanos::from_secs),
        }));
    }
    if let Some(path) = &arguments.prometheus_path {
        return Ok(Some(TelemetryPlace::Socket(path.clone())));
    }
    let Some(text) = &arguments.prometheus_addr else {
        return Ok(None);
    };
    let address = text.replacen("localhost:", "127.0.0.1:", 1);
    let address = address.parse::<SocketAddr>().map_err(|_| {
        let error = anyhow::anyhow!("`{text}` is not an address to listen on");
        CommandError::new(Exit::Usage, error).hint("write one such as 127.0.0.1:9000")
    })?;
    Ok(Some(TelemetryPlace::Address(address)))
}

/// Nothing listens on every interface because an ancestor's flag says so.
fn on_loopback(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() {
            std::net::Ipv4Addr::LOCALHOST.into()
        } else {
            std::net::Ipv6Addr::LOCALHOST.into()
        });
        Paint::print_message(&format!(
            "note: metrics are served at {address}, not on every interface"
        ));
    }
    address
}

/// File of a log of the target; `quiet` keeps it in the temporary capture.
fn log(path: &Path) -> Result<Option<PathBuf>, CommandError> {
    if path.as_os_str() == "quiet" {
        return Ok(None);
    }
    std::path::absolute(path).map(Some).map_err(unusable(path))
}

fn unusable(path: &Path) -> impl FnOnce(std::io::Error) -> CommandError + '_ {
    move |error| {
        let error = anyhow::Error::new(error).context(format!("find {}", path.display()));
        CommandError::new(Exit::Usage, error)
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::PhasesPlan;
    use stillwell_units::Seed;

    use super::*;
    use crate::arguments::parse_lading;

    fn arguments(words: &str) -> LadingRunArguments {
        let words = format!("lading --config-path a {words}");
        match parse_lading(words.split_whitespace().map(Into::into)) {
            Ok(LadingCommand::Run(run)) => *run,
            other => panic!("{other:?}"),
        }
    }

    // compat: lading, command line | --target-environment-variables | works
    // compat: lading, command line | --target-inherit-environment | works
    // compat: lading, command line | --target-pid | works
    #[test]
    fn a_program_has_the_environment_that_is_given() {
        let chosen = |words: &str| target(&arguments(words).target).unwrap();
        let started = |words: &str| match chosen(&format!("--target-path /a {words}")) {
            TargetOverride::Path(program) => (program.environment, program.inherit),
            other => panic!("{other:?}"),
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [pair("A", "b,c"), pair("D", "e")].into();
        let flags = "--target-environment-variables A=b,c,D=e --target-inherit-environment";
        assert_eq!(started(flags), (expected, true));
        assert_eq!(started(""), (std::collections::BTreeMap::new(), false));
        assert!(matches!(chosen("--target-pid 7"), TargetOverride::Pid(7)));
    }

    // compat: lading, command line | --capture-flush-seconds | works
    // compat: lading, command line | --capture-compression-level | works
    // compat: lading, command line | --capture-expiration-seconds | works
    // compat: lading, command line | --prometheus-path | works
    #[test]
    fn flags_of_the_telemetry_name_its_destination() {
        let place = |words: &str| of_flags(&arguments(words).telemetry).unwrap();
        let flags = "--capture-format parquet --capture-flush-seconds 5 \
                     --capture-compression-level 7 --capture-expiration-seconds 9";
        let capture = TelemetryPlace::Capture {
            path: "c".into(),
            format: TelemetryFormat {
                kind: TelemetryFormatKind::Parquet,
                flush: Nanos::from_secs(5),
                compression_level: 7,
            },
            expiration: Some(Nanos::from_secs(9)),
        };
        let words = format!("--no-target --capture-path c {flags}");
        assert_eq!(place(&words), Some(capture));
        let socket = TelemetryPlace::Socket("s".into());
        assert_eq!(place("--no-target --prometheus-path s"), Some(socket));
        assert_eq!(place("--no-target"), None);
    }

    // compat: lading, command line | --max-shutdown-delay | works
    #[test]
    fn the_target_and_the_drain_end_within_the_given_time() {
        let plan = RunPlan::idle(Seed::from_number(1));
        let limits = |words: &str| {
            let plan = adjusted(plan.clone(), &arguments(&format!("--no-target {words}")));
            (plan.target.stop.grace, plan.phases.drain)
        };
        let usual = PhasesPlan::default().drain;
        assert_eq!(limits(""), (Nanos::from_secs(30), usual));
        let second = Nanos::SECOND;
        assert_eq!(
            limits("--max-shutdown-delay 1"),
            (second, second.min(usual))
        );
        assert_eq!(limits("--max-shutdown-delay 0").0, second);
    }
}
