//! `stillwell bench`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use stillwell_capture::{Capture, RunOutcome};
use stillwell_config::{BenchOptions, BenchTarget};
use stillwell_plan::target::ContainerOrigin;
use stillwell_plan::{BenchPlan, TargetKind};
use stillwell_report::{BenchReport, Format, FullReport, Style, bench_json, run_curves};
use stillwell_verdict::RunSummary;
use stillwell_verdict::bench::bench_figures;

use crate::arguments::{BenchArguments, BenchFormat};
use crate::command::{observe, output, places, privileges, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

pub(crate) fn run(arguments: &BenchArguments, paint: &Paint) -> Result<Exit, CommandError> {
    places::refuse_store(arguments.results.as_deref())?;
    let names = arguments.pipeline.environment.iter();
    let variables = names.filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)));
    let variables = variables.collect();
    let loaded = loader()
        .bench(arguments.file.as_deref(), options_of(arguments))
        .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
    select::warn(&loaded.warnings, paint);
    let mut plan = loaded.plan;
    let privileges = privileges::prepare(plan.run_plan.uses_namespaces());
    output::check_writable(&arguments.output)?;
    output::report_privileges(privileges.as_ref(), arguments.quiet);
    add_environment(&mut plan.run_plan.target.kind, variables);
    if let Some(why) = &plan.unstamped {
        let is_timed = plan.run_plan.sinks.iter().any(|sink| sink.prefix.is_some());
        let and_latencies = if is_timed {
            ""
        } else {
            ", and latencies are not measured"
        };
        Paint::print_message(&format!(
            "events have no stamps, because {why}: they are only counted; lost events are not identified{and_latencies}"
        ));
    }
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let folder = arguments
        .results
        .clone()
        .unwrap_or_else(|| places::fresh("benches", &places::name_of(Path::new(&plan.name))));
    observe::check_results(&folder)?;
    let file = arguments
        .file
        .clone()
        .unwrap_or_else(|| "bench.yaml".into());
    let request =
        observe::request(plan.run_plan.clone(), folder.clone(), &file).map_err(could_not)?;
    let (summary, capture) = observe::carry_out(request, None, arguments.quiet, paint)?;
    let report = report(&plan, &summary, &capture, &folder);
    let format = arguments.format.unwrap_or(match plan.structured {
        true => BenchFormat::Json,
        false => BenchFormat::Text,
    });
    let full = FullReport::from(&report);
    let kept = output::write_files(&arguments.output, &full, None);
    let has_run = !matches!(
        summary.outcome,
        RunOutcome::CouldNotStart { .. } | RunOutcome::NeverReady { .. }
    );
    observe::print_last_lines(&summary, &capture);
    Paint::print_message(&format!("capture: {}", output::show_path(&folder)));
    let printed = if format != BenchFormat::Text || has_run {
        print_report(&report, &full, format).map_err(could_not)
    } else {
        paint.error(&CommandError::new(
            Exit::CouldNotRun,
            anyhow::anyhow!("{}", report.outcome),
        ));
        Ok(())
    };
    let exit = exit_of(&summary.outcome, &report, arguments.strict);
    output::exit_after(exit, kept.and(printed), paint)
}

/// Adds `variables` to those of a target that the bench starts. Those of its file stay.
fn add_environment(target: &mut TargetKind, variables: BTreeMap<String, String>) {
    let environment = match target {
        TargetKind::Child(child) => &mut child.environment.variables,
        TargetKind::Container(container) => match &mut container.origin {
            ContainerOrigin::Image(image) => &mut image.environment,
            ContainerOrigin::Named(_) => return,
        },
        TargetKind::Pid(_) | TargetKind::Url(_) | TargetKind::None => return,
    };
    for (name, value) in variables {
        environment.entry(name).or_insert(value);
    }
}

fn report(plan: &BenchPlan, summary: &RunSummary, capture: &Capture, folder: &Path) -> BenchReport {
    let figures = bench_figures(plan, summary, capture);
    let generator = plan.run_plan.generators.first();
    let files = generator.map(|generator| generator.payload.format.files());
    let source = files.and_then(<[_]>::first);
    BenchReport {
        name: plan.name.clone(),
        target: summary.target.clone(),
        source: source.map_or_else(String::new, |path| path.display().to_string()),
        outcome: figures.outcome,
        warnings: figures.warnings,
        unstamped: plan.unstamped.clone(),
        latency: figures.latency,
        transit: figures.transit,
        window: figures.window,
        received: figures.received,
        sent: figures.sent,
        ledger: capture.manifest.ledger.clone(),
        answers: figures.answers,
        rounds_cut: figures.rounds_cut,
        lossy: plan.lossy,
        significant_figures: plan.significant_figures,
        version: capture.manifest.version.clone(),
        command: output::command_line(),
        capture: output::show_path(folder),
        curves: run_curves(capture),
    }
}

/// Values of the flags.
fn options_of(arguments: &BenchArguments) -> BenchOptions {
    let (pipeline, replay) = (&arguments.pipeline, &arguments.replay);
    let target = match arguments.command.as_slice() {
        [] if pipeline.no_target => Some(BenchTarget::Absent),
        [] => None,
        words => Some(BenchTarget::Command(words.to_vec())),
    };
    BenchOptions {
        name: None,
        target,
        input: pipeline.input.clone(),
        output: pipeline.output.clone(),
        source: replay.source.as_ref().map(|path| absolute(path)),
        codec: replay.codec.clone(),
        interval: replay.interval,
        rate: replay.rate.clone(),
        chunk_size: replay.chunk_size,
        iters: replay.iters,
        base64: replay.base64.then_some(true),
        is_transactional: pipeline.transactional.then_some(true),
        structured: None,
        stop_after: replay.stop_after,
        warmup: replay.warmup,
        limit: replay.limit,
        drain: replay.drain,
        significant_figures: arguments.significant_figures,
        stamps: replay.no_stamps.then_some(false),
        sent_prefix: None,
        received_prefix: None,
        batch: replay.batch,
        connections: pipeline.connections,
        retries: pipeline.retries,
        token: pipeline.token.clone(),
        lossy: arguments.lossy.then_some(true),
        shared_network: pipeline.shared_network.then_some(true),
    }
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf())
}

fn print_report(
    report: &BenchReport,
    full: &FullReport,
    format: BenchFormat,
) -> anyhow::Result<()> {
    let text = match format {
        BenchFormat::Text => full.render(
            Format::Terminal,
            Style {
                width: Paint::columns(),
                ..output::plain()
            },
        ),
        BenchFormat::Html => full.render(Format::Html, output::plain()),
        // One line, as programs expect it that read a line for each bench.
        BenchFormat::Json => format!("{}\n", serde_json::to_string(&bench_json(report))?),
    };
    Paint::data(&text)?;
    Ok(())
}

/// That events are lost goes before warnings about how fast they were.
fn exit_of(outcome: &RunOutcome, report: &BenchReport, is_strict: bool) -> Exit {
    match outcome {
        RunOutcome::CouldNotStart { .. } | RunOutcome::NeverReady { .. } => Exit::CouldNotRun,
        RunOutcome::Interrupted { signal } => Exit::Interrupted(*signal),
        RunOutcome::Completed => {
            if !report.failures().is_empty() {
                Exit::Failed
            } else if is_strict && !report.warnings.is_empty() {
                Exit::Invalid
            } else {
                Exit::Held
            }
        }
        _ => Exit::Invalid,
    }
}
