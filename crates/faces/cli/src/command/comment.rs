//! `stillwell comment`.

mod annotation;
mod host;
mod post;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;

use anyhow::Context as _;
use stillwell_report::{
    CommentOptions, comment, decision_json, gate_findings, junit, regression_detector,
};
use stillwell_verdict::GatePolicy;

use self::host::{CommentThread, HostKind, Surroundings};
use self::post::Posted;
use crate::arguments::{CommentArguments, CommentHost, CommentLayout};
use crate::command::{output, report};
use crate::exit::{CommandError, Exit, exit_of_verdicts};
use crate::paint::Paint;
use crate::secrets;

pub(crate) fn run(arguments: &CommentArguments) -> Result<Exit, CommandError> {
    let surroundings = Surroundings::of_process();
    let kind = match arguments.to {
        CommentHost::Auto => surroundings.host(),
        CommentHost::Github => Some(HostKind::Github),
        CommentHost::Gitlab => Some(HostKind::Gitlab),
        CommentHost::Stdout => None,
    };
    let report = match (report::suite(&arguments.results), kind) {
        (Ok(report), _) => report,
        (Err(error), None) => return Err(error),
        // Readers of the pull request learn it too: a comment on an earlier commit may be there.
        (Err(error), Some(_)) => report::without_results(
            &arguments.results,
            &format!("{error}; see the log of the job"),
        ),
    };
    let policy = GatePolicy::from(arguments.gate);
    let exit = Exit::from_code(report.exit_code(policy));
    let exit = exit_of_verdicts(exit, arguments.exit_zero);
    let secrets = secrets::handling();
    if let Some(file) = &arguments.junit {
        write(file, &junit(&report, secrets))?;
    }
    if let Some(file) = &arguments.decision {
        write(file, &decision_json(&report, policy, secrets))?;
    }
    let mut links = arguments.links.clone();
    links.extend(surroundings.job_link(kind));
    let options = CommentOptions {
        suite: arguments.suite.clone(),
        links,
    };
    let text = match arguments.layout {
        CommentLayout::Stillwell => comment(&report, &options),
        // That layout has no words for a run that could not start.
        CommentLayout::RegressionDetector if report.experiments.is_empty() => {
            comment(&report, &options)
        }
        CommentLayout::RegressionDetector => regression_detector(&report, &options, policy),
    };
    let text = secrets.text(&text);
    let Some(kind) = kind else {
        output::print(&text)?;
        return Ok(exit);
    };
    if kind == HostKind::Github {
        summarise(&surroundings, &text);
        let findings = gate_findings(&report, secrets);
        output::print(&annotation::github(&findings))?;
    }
    let thread = surroundings.thread(kind, arguments.pull_request);
    let message = match thread {
        Ok(thread) => outcome(&thread, &post::post(&thread, &options.marker(), &text)),
        Err(reason) => format!("no comment: {reason}"),
    };
    Paint::print_message(&message);
    Ok(exit)
}

fn outcome(thread: &CommentThread, posted: &Result<Posted, post::PostError>) -> String {
    match posted {
        Ok(Posted::Created) => format!("commented on {thread}"),
        Ok(Posted::Updated) => format!("updated the comment on {thread}"),
        Ok(Posted::Unchanged) => format!("the comment on {thread} is up to date"),
        Err(error) => format!("no comment on {thread}: {error}"),
    }
}

/// Appends the comment to the summary of the job. A failure is reported and changes nothing else.
fn summarise(surroundings: &Surroundings, text: &str) {
    let Some(file) = surroundings.variable("GITHUB_STEP_SUMMARY") else {
        return;
    };
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).open(file);
    if let Err(error) = file.and_then(|mut file| file.write_all(text.as_bytes())) {
        Paint::print_message(&format!("the job summary could not be written: {error}"));
    }
}

fn write(file: &Path, text: &str) -> Result<(), CommandError> {
    std::fs::write(file, text)
        .with_context(|| format!("write {}", file.display()))
        .map_err(|error| CommandError::new(Exit::CouldNotRun, error))
}
