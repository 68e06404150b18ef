//! The page of a command that this server started.

use bytes::Bytes;
use maud::{Markup, html};
use stillwell_units::{Moment, human};

use super::{Chrome, Section, page};
use crate::jobs::{JobEnd, JobState, JobView};

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
    html! {
        p class="state" role="status" { (status(&view.state, now)) }
        @match &view.state {
            JobState::Queued => (stop("Remove from the queue")),
            JobState::Running { is_stopping: false, .. } => (stop("Stop")),
            JobState::Running { .. } => {}
            JobState::Ended { end: JobEnd::Exited(0 | 1 | 4 | 130 | 143), .. } => p {
                a class="button" href={ "/report/" (view.results.link()) } { "Open the report" }
            },
            JobState::Ended { .. } => {}
        }
        @if !view.answer.is_empty() {
            h2 { "Answer" }
            pre tabindex="0" { (view.answer.text()) }
        }
        @if !view.progress.is_empty() {
            h2 { "Messages" }
            pre tabindex="0" data-tail { (view.progress.text()) }
        }
    }
}

/// Returns the state of a command in words.
pub(super) fn status(state: &JobState, now: Moment) -> String {
    match state {
        JobState::Queued => "Waits for the commands before it".to_owned(),
        JobState::Running { since, is_stopping } => {
            let word = if *is_stopping { "Stopping" } else { "Running" };
            format!("{word}, {}", human::clock(now.since(*since)))
        }
        JobState::Ended { took, end } => {
            let end = match end {
                JobEnd::Exited(0) => "Done".to_owned(),
                JobEnd::Exited(1) => {
                    "Done: a regression, or a failed check (exit code 1)".to_owned()
                }
                JobEnd::Exited(2) => "Refused: usage or configuration (exit code 2)".to_owned(),
                JobEnd::Exited(3) => "Could not run (exit code 3)".to_owned(),
                JobEnd::Exited(4) => "Not reliable enough (exit code 4)".to_owned(),
                JobEnd::Exited(130 | 143) => "Stopped".to_owned(),
                JobEnd::Exited(code) => format!("Ended with exit code {code}"),
                JobEnd::Killed(signal) => format!("Killed by signal {signal}"),
                JobEnd::NotStarted(error) => format!("Did not start: {error}"),
                JobEnd::Withdrawn => return "Removed from the queue".to_owned(),
            };
            format!("{end}, after {}", human::clock(*took))
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
