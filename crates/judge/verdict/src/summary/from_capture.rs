//! From a capture to the numbers of its run.

use std::collections::BTreeMap;

use stillwell_capture::Capture;
use stillwell_plan::Validity;
use stillwell_units::Nanos;

use super::{
    RunSummary, SUMMARY_SCHEMA, environment, figures, machines, notes, series, steady, values,
    warnings,
};
use crate::check;
use crate::run_note::RunNote;
use crate::run_warning::RunWarning;
use crate::window::Window;

/// One run in numbers, with the warm-up that its plan states.
///
/// Every total is the counter at the end of the measured phase less the counter
/// at its start, at the beats taken there; nothing is an average of seconds.
/// Figures for each second are for each second of load: where a run records
/// [`ACTIVE_TIME`](stillwell_metric::catalogue::ACTIVE_TIME), by that. Memory is
/// the mean of resident memory over time, for all variants alike: resident
/// memory is sampled at every beat, proportional memory only at phase marks and
/// every few seconds, too rarely to represent a run.
#[must_use]
pub fn summarise(capture: &Capture) -> RunSummary {
    summarise_from(capture, Nanos::ZERO)
}

/// One run in numbers, without the load of the first `warmup` (from the start of
/// the warm-up on); at least what the plan states is left out.
#[must_use]
pub fn summarise_from(capture: &Capture, warmup: Nanos) -> RunSummary {
    let manifest = &capture.manifest;
    let warmup = warmup.max(manifest.plan.phases.warmup);
    let window = Window::of(capture, warmup);
    let mut figures = figures::figures(capture, window.as_ref().ok());
    if let Ok(window) = &window {
        figures.warmup = steady::warmup(capture, window);
        figures.beats = steady::beats(window);
    }
    let values = values::values(capture, &window, &figures);
    let checks = manifest.plan.checks.iter();
    let clock_error = machines::clock_error(manifest);
    let recorded = (&manifest.plan, window.as_ref().ok());
    let checks = checks.map(|plan| check::check(plan, recorded, (&values, clock_error)));
    let (series, series_left_out) = window.as_ref().map_or_else(
        |_| (BTreeMap::new(), 0),
        |window| series::numbers(window, &figures),
    );
    let mut warnings = warnings::warnings(capture, window.as_ref().ok(), &figures);
    machines::add(manifest, &mut warnings);
    let mut notes = notes::notes(
        capture,
        window.as_ref().ok(),
        &figures,
        (warmup, series_left_out),
    );
    relax(manifest.plan.observer.validity, &mut warnings, &mut notes);
    RunSummary {
        schema: SUMMARY_SCHEMA.to_owned(),
        run: manifest.run,
        target: manifest.plan.target.name.clone(),
        identity: manifest.identity.clone(),
        outcome: manifest.outcome.clone(),
        measured: window.as_ref().map_or(Nanos::ZERO, Window::length),
        warmup,
        length: length(capture),
        warnings,
        notes,
        checks: checks.collect(),
        values,
        series,
        series_left_out,
        environment: environment::environment(manifest),
        figures,
    }
}

/// Reports validity other than the normal one. Without any, warnings of limits become notes.
fn relax(validity: Validity, warnings: &mut Vec<RunWarning>, notes: &mut Vec<RunNote>) {
    match validity {
        Validity::Normal => {}
        Validity::Strict => notes.push(RunNote::Strict),
        Validity::Off => {
            let all = std::mem::take(warnings).into_iter();
            let (relaxed, kept): (Vec<_>, Vec<_>) = all.partition(RunWarning::is_of_limit);
            *warnings = kept;
            notes.extend(relaxed.into_iter().map(|warning| RunNote::Relaxed {
                warning: Box::new(warning),
            }));
        }
    }
}

fn length(capture: &Capture) -> Nanos {
    let phases = &capture.manifest.phases;
    let ends = phases.first().zip(phases.last());
    ends.map_or(Nanos::ZERO, |(first, last)| last.moment.since(first.moment))
}
