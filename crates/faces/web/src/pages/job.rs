//! The page of a command that this server started.

use bytes::Bytes;
use maud::{Markup, PreEscaped, html};
use stillwell_report::{AxisScale, Band, Curve, curve_figure};
use stillwell_units::{Moment, human};

use super::{Chrome, Section, page};
use crate::jobs::{Course, CourseInterval, CoursePoint, IntervalPoint, JobEnd, JobState, JobView};
use crate::orders::OrderKind;

/// Returns the page of a command.
pub(crate) fn job(view: &JobView, now: Moment, chrome: Chrome<'_>) -> String {
    let has_ended = view.state.has_ended();
    let events = (!has_ended).then(|| format!("/commands/{}/events", view.id));
    let body = html! {
        h1 { "Command " (view.id) }
        pre tabindex="0" class="line" { (line(&view.words)) }
        div id="job" data-events=[events] { (state(view, now)) }
    };
    let title = format!("Command {}", view.id);
    page(Section::Start, &title, chrome, !has_ended, &body)
}

/// Returns the state as an event: everything that changes on the page.
pub(crate) fn job_event(view: &JobView, now: Moment) -> Bytes {
    let name = if view.state.has_ended() { "end" } else { "job" };
    let mut event = format!("event: {name}\n");
    for line in state(view, now).into_string().split('\n') {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

fn state(view: &JobView, now: Moment) -> Markup {
    let stop = |label: &str| {
        html! {
            form action={ "/commands/" (view.id) "/stop" } method="post" { button type="submit" class="stop" { (label) } }
        }
    };
    let (words, time) = words_and_time(&view.state, now);
    html! {
        p class="state" role="status" { (words) }
        // Outside the status, which is read out after each change.
        @if !time.is_empty() { p class="dim" { (time) } }
        @match &view.state {
            JobState::Queued => (stop("Remove from the queue")),
            JobState::Running { is_stopping: false, .. } => (stop("Stop")),
            JobState::Running { .. } => {}
            JobState::Ended { end: JobEnd::Exited(code), .. } if has_file_only(&view.words) => {
                @if *code == 0 {
                    p {
                        a class="button" href={ "/edit/" (view.results.join("experiment.yaml").link()) } { "Open the experiment" }
                    }
                }
            },
            JobState::Ended { end: JobEnd::Exited(0 | 1 | 4 | 130 | 143), .. } if view.has_results => p {
                a class="button" href={ "/report/" (view.results.link()) } { "Open the report" }
            },
            JobState::Ended { .. } => {}
        }
        @for interval in &view.course.intervals { (result_so_far(interval)) }
        (charts(&view.course))
        @if !view.answer.is_empty() {
            h2 { "Answer" }
            pre id="answer" tabindex="0" { (view.answer.text()) }
        }
        @if !view.progress.is_empty() {
            h2 { "Messages" }
            pre id="messages" tabindex="0" data-tail { (view.progress.text()) }
        }
    }
}

/// Returns true for a command that leaves an experiment file and no results.
fn has_file_only(words: &[String]) -> bool {
    words
        .first()
        .is_some_and(|word| word == OrderKind::Init.command())
}

/// Returns a result so far in words, and its interval over time.
fn result_so_far(interval: &CourseInterval) -> Markup {
    let line = |value: &dyn Fn(&IntervalPoint) -> Option<f64>| {
        let points = interval.points.iter();
        let points = points.filter_map(|point| Some((point.seconds, value(point)?)));
        points.collect::<Vec<_>>()
    };
    let band = interval.points.iter().filter_map(|point| {
        let (low, high) = (point.lower?, point.upper?);
        point.value.map(|_| (point.seconds, low, high))
    });
    let estimate = line(&|point| point.value);
    let is_change = interval.unit == "share";
    // A search has both ends before it has a value.
    let series = match is_change {
        true => vec![("estimate", estimate)],
        false => vec![
            ("held", line(&|point| point.lower)),
            ("failed", line(&|point| point.upper)),
        ],
    };
    let series = series.into_iter().filter(|(_, points)| points.len() > 1);
    let series = series.map(|(name, points)| (name.to_owned(), points));
    let series: Vec<_> = series.collect();
    let bands = match is_change && !series.is_empty() {
        true => vec![Band {
            series: 0,
            points: band.collect(),
        }],
        false => Vec::new(),
    };
    let (name, unit) = match is_change {
        true => (interval.name.clone(), "share"),
        false => (interval.unit.clone(), ""),
    };
    let chart = curve_figure(&Curve {
        x: ("time".to_owned(), "s"),
        y: (name, unit),
        series,
        bands,
        ..Curve::default()
    });
    html! {
        p { (interval.name) " so far: " (interval.text) }
        @if let Some(chart) = chart { (PreEscaped(chart)) }
    }
}

/// Returns the rate and the latency over time, as far as the command has got.
fn charts(course: &Course) -> Markup {
    let over_time = |name: &str, unit, scale, value: &dyn Fn(&CoursePoint) -> Option<f64>| {
        let series = course.seconds.iter().map(|(name, points)| {
            let points = points.iter();
            let points = points.filter_map(|point| Some((point.seconds, value(point)?)));
            (name.clone(), points.collect::<Vec<_>>())
        });
        curve_figure(&Curve {
            scales: (AxisScale::FromZero, scale),
            x: ("time".to_owned(), "s"),
            y: (name.to_owned(), unit),
            // A single point is no line.
            series: series.filter(|(_, points)| points.len() > 1).collect(),
            ..Curve::default()
        })
    };
    let rate = |point: &CoursePoint| Some(point.rate);
    let charts = [
        over_time("rate per second", "", AxisScale::FromZero, &rate),
        over_time("latency p99", "ns", AxisScale::Log, &|point| point.p99),
    ];
    html! {
        @for chart in charts.into_iter().flatten() { (PreEscaped(chart)) }
    }
}

/// Returns the state of a command in one line.
pub(super) fn status(state: &JobState, now: Moment) -> String {
    match words_and_time(state, now) {
        (words, time) if time.is_empty() => words,
        (words, time) => format!("{words}, {time}"),
    }
}

/// Returns the state of a command in words, and its time, which may be empty.
fn words_and_time(state: &JobState, now: Moment) -> (String, String) {
    match state {
        JobState::Queued => ("Waiting for earlier commands".to_owned(), String::new()),
        JobState::Running { since, is_stopping } => {
            let word = if *is_stopping { "Stopping" } else { "Running" };
            (word.to_owned(), human::clock(now.since(*since)))
        }
        JobState::Ended { took, end } => {
            let end = match end {
                JobEnd::Exited(0) => "Done".to_owned(),
                JobEnd::Exited(1) => {
                    "Done: a regression, or a failed check (exit code 1)".to_owned()
                }
                JobEnd::Exited(2) => "Usage or configuration error (exit code 2)".to_owned(),
                JobEnd::Exited(3) => "Could not run (exit code 3)".to_owned(),
                JobEnd::Exited(4) => "Not reliable enough (exit code 4)".to_owned(),
                JobEnd::Exited(130 | 143) => "Stopped".to_owned(),
                JobEnd::Exited(code) => format!("Ended with exit code {code}"),
                JobEnd::Killed(signal) => format!("Killed by signal {signal}"),
                JobEnd::NotStarted(error) => format!("Did not start: {error}"),
                JobEnd::Withdrawn => return ("Removed from the queue".to_owned(), String::new()),
            };
            (end, format!("after {}", human::clock(*took)))
        }
    }
}

/// Returns words as a line for a shell.
pub(super) fn line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./:,@%+".contains(c);
    let quoted = words
        .iter()
        .map(|word| match !word.is_empty() && word.chars().all(plain) {
            true => word.clone(),
            false => format!("'{}'", word.replace('\'', "'\\''")),
        });
    let all: Vec<String> = std::iter::once("stillwell".to_owned())
        .chain(quoted)
        .collect();
    all.join(" ")
}
