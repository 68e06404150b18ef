//! Instructions of the target.

use stillwell_capture::{Capture, SeriesTable};
use stillwell_metric::{CountingState, catalogue};

use super::RunFigures;
use crate::limits;
use crate::run_note::RunNote;
use crate::window::Window;

/// Instructions for each event, or the reason why there is no such number.
pub(super) fn per_event(
    capture: &Capture,
    window: &Window<'_>,
    figures: &RunFigures,
) -> Result<f64, String> {
    match state(&capture.series) {
        Some(CountingState::None(obstacle)) => return Err(obstacle.to_string()),
        Some(CountingState::All | CountingState::User { .. }) => {}
        None => return Err("instructions were not counted: no goal requested them".to_owned()),
    }
    if !capture.manifest.restarts.is_empty() {
        let reason = "the target was restarted, and the first instructions of the new process were not counted";
        return Err(reason.to_owned());
    }
    if !is_whole(window) {
        return Err(
            "instructions were counted only during a part of the measured phase".to_owned(),
        );
    }
    if running_share(window).is_some_and(|share| share < limits::COUNTER_RUNNING_SHARE) {
        return Err("the CPU's counter of instructions was shared with other programs".to_owned());
    }
    let grown = window.grown(catalogue::TARGET_INSTRUCTIONS, |_| true);
    let events = figures.measured.events_sent.filter(|events| *events > 0.0);
    let grown = grown.ok_or("instructions were not recorded")?;
    Ok(grown / events.ok_or("no event was sent while measuring")?)
}

/// Notes about what was counted.
pub(super) fn notes(capture: &Capture, window: &Window<'_>) -> Vec<RunNote> {
    let mut notes = Vec::new();
    match state(&capture.series) {
        Some(CountingState::None(obstacle)) => {
            notes.push(RunNote::InstructionsNotCounted { obstacle });
        }
        Some(CountingState::User { paranoid }) => {
            notes.push(RunNote::UserInstructions { paranoid });
        }
        Some(CountingState::All) | None => {}
    }
    if let Some(share) = running_share(window)
        && share < limits::COUNTER_RUNNING_SHARE
    {
        notes.push(RunNote::CounterShared { share });
    }
    notes
}

/// The latest state of the counter; `None` if none was requested.
fn state(series: &SeriesTable) -> Option<CountingState> {
    let states = series.of(catalogue::TARGET_COUNTER_STATE);
    let latest = states.max_by_key(|(_, series)| series.points.last().map(|point| point.moment));
    CountingState::of_labels(latest?.0)
}

/// True if it was counted from the first beat of the window on.
fn is_whole(window: &Window<'_>) -> bool {
    let mut series = window.table().of(catalogue::TARGET_INSTRUCTIONS);
    series.all(|(_, series)| {
        let first = series.at_or_after(window.start);
        first.is_some_and(|point| point.moment == window.start)
    })
}

/// The share of the target's CPU time in which the counter ran.
fn running_share(window: &Window<'_>) -> Option<f64> {
    let grown = |metric| window.grown(metric, |_| true);
    let enabled = grown(catalogue::TARGET_COUNTER_ENABLED).filter(|enabled| *enabled > 0.0)?;
    Some(grown(catalogue::TARGET_COUNTER_RUNNING)? / enabled)
}
