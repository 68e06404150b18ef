//! A load that a client requests over gRPC: Nighthawk's message in, its response out.

mod progress;

use std::sync::mpsc::{RecvTimeoutError, sync_channel};

use stillwell_config::requests::{RecordedRequest, request_lines, target, usual_method};
use stillwell_nighthawk::CommandLineOptions;
use stillwell_nighthawk::format::nighthawk_output;
use stillwell_nighthawk::request::{NighthawkRequest, RequestError};
use stillwell_nighthawk::service::{
    AccessPlan, Caller, LoadTask, OfferedRequest, RequestSourceClient, StatusCode, attach_samples,
    interrupt_failure,
};
use stillwell_nighthawk::wire::{ExecutionResponse, Status};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::BodyPlan;
use stillwell_report::load::{LoadReportInput, load_report};
use stillwell_run::{LoadBeside, LoadCapture, LoadEnd, LoadSource, conduct_load_beside};
use stillwell_scope::clock;
use stillwell_units::{Nanos, Seed};
use stillwell_verdict::{LoadRules, load_warnings};

use super::log::Log;
use super::{announce, cpus, log_note, log_problems, original, random_run, warn};
use crate::command::load::add_typed;
use crate::command::load::remedy::OptionNames;
use progress::Progress;

/// Between two looks at the clock and at who wants the end.
const LOOK_EVERY: Nanos = Nanos::from_millis(5);

/// Makes the load of `requested`. A failure is part of the response.
pub(crate) fn execute(
    requested: &CommandLineOptions,
    task: &LoadTask,
    access: &AccessPlan,
) -> ExecutionResponse {
    let response = match prepare(requested, task.caller(), access) {
        Ok(prepared) => prepared.conduct(task),
        Err(why) => refused(why),
    };
    ExecutionResponse {
        execution_id: requested.execution_id.clone().unwrap_or_default(),
        ..response
    }
}

/// Returns the response without a load.
fn refused(message: impl Into<String>) -> ExecutionResponse {
    ExecutionResponse {
        error_detail: Some(internal(message)),
        ..ExecutionResponse::default()
    }
}

/// Nighthawk's service has one code for all failures.
fn internal(message: impl Into<String>) -> Status {
    Status {
        code: StatusCode::Internal.number(),
        message: message.into(),
    }
}

/// A load that makes sense.
struct Prepared {
    request: NighthawkRequest,
    options: CommandLineOptions,
    plan: LoadPlan,
    source: Option<RequestSourceClient>,
    start: Option<Nanos>,
}

fn prepare(
    requested: &CommandLineOptions,
    caller: Caller,
    access: &AccessPlan,
) -> Result<Prepared, String> {
    let explained = |error: RequestError| format!("{:#}", anyhow::Error::from(error));
    let request = NighthawkRequest::try_from(requested).map_err(explained)?;
    request.check().map_err(explained)?;
    let mut options = request.options().map_err(explained)?;
    options.scheduled_start = requested.scheduled_start;
    options.execution_id.clone_from(&requested.execution_id);
    let run = random_run().map_err(|error| format!("{error:#}"))?;
    let start = requested.scheduled_start;
    let wait = start.map_or(Nanos::ZERO, |start| start.saturating_sub(clock::wall()));
    let plan = access.plan(caller, &request, wait, cpus(), run, Seed::from_number(1));
    let plan = plan.map_err(|error| format!("{:#}", anyhow::Error::from(error)))?;
    let source = request.source_client().map_err(explained)?;
    if start.is_some() && wait == Nanos::ZERO {
        return Err("Scheduled execution date already transpired".to_owned());
    }
    Ok(Prepared {
        request,
        options,
        plan,
        source,
        start,
    })
}

impl Prepared {
    fn conduct(self, task: &LoadTask) -> ExecutionResponse {
        let log = Log::new(self.request.output.verbosity);
        warn(&self.request, &self.plan, log);
        announce(&self.request, &self.plan, log);
        if let Some(start) = self.start {
            wait_until(start, task);
        }
        let mut progress = Progress::new(self.plan.counter_facts());
        let family = self.request.target.address_family;
        let source = self.source.as_ref();
        let beside = LoadBeside {
            progress: &mut |snapshot| task.report(progress.take(snapshot)),
            on_note: &mut |note| log_note(note, log),
            source: source.map(|source| source as &dyn LoadSource),
            agree: None,
        };
        let plan = self.plan.clone();
        let capture = conduct_load_beside(plan, family, &[], task.interrupt(), beside);
        let response = match capture {
            Ok(capture) => self.answer(capture, task, log),
            Err(error) => {
                let error = format!("{:#}", anyhow::Error::from(error));
                log.error(&error);
                refused(error)
            }
        };
        log.info("Done.");
        response
    }

    fn answer(&self, mut capture: LoadCapture, task: &LoadTask, log: Log) -> ExecutionResponse {
        let request = &self.request;
        let many = &request.target.multi_target_endpoint;
        let targets: Vec<String> = request.uri.iter().chain(many).cloned().collect();
        let rules = LoadRules::of(&self.plan);
        let warnings = load_warnings(rules, &capture.evidence());
        if let Err(error) = add_typed(&mut capture, &targets, &request.output.label) {
            return refused(error.to_string());
        }
        let report = load_report(&LoadReportInput {
            capture: &capture,
            original: Some(&original(&self.options)),
            warnings: &OptionNames::Nighthawk.health_warnings(rules, &warnings),
        });
        log_problems(&capture, &report.health, log);
        let mut output = nighthawk_output(&report);
        if task.includes_samples() {
            attach_samples(&mut output, &report.global);
        }
        let error_detail = self.failure(&capture.manifest.end);
        if let Some(failure) = &error_detail {
            log.error(&failure.message);
        }
        ExecutionResponse {
            output: Some(output),
            error_detail,
            ..ExecutionResponse::default()
        }
    }

    /// Returns the failure of a load that has a result.
    fn failure(&self, end: &LoadEnd) -> Option<Status> {
        match end {
            LoadEnd::Failure(number) => {
                let predicate = self.plan.until.failure.get(*number);
                let named = predicate.map_or_else(String::new, |predicate| {
                    // By the name under which it was given.
                    let mut names = self.options.failure_predicates.keys();
                    let is_it = |name: &&String| name.parse().ok() == Some(predicate.counter);
                    let name = names.find(is_it).map_or("", String::as_str);
                    format!(": {name} went above {}", predicate.threshold)
                });
                let what = "Exiting due to failing termination predicate";
                Some(internal(format!("{what}{named}")))
            }
            LoadEnd::PartFailed(what) => Some(internal(what)),
            LoadEnd::Interrupted(cause) => interrupt_failure(*cause),
            LoadEnd::Duration | LoadEnd::Requests | LoadEnd::Termination(_) => None,
        }
    }
}

/// The requests that `text` lists, one a line, as a request source hands them out.
pub(crate) fn offered_requests(text: &str) -> anyhow::Result<Vec<OfferedRequest>> {
    let offered_requests = |request: RecordedRequest| {
        let target = target(&request.url)?;
        let body = match &request.body {
            BodyPlan::Bytes(bytes) => u32::try_from(bytes.len()).ok(),
            _ => None,
        };
        Ok(OfferedRequest {
            method: Some(
                request
                    .method
                    .unwrap_or_else(|| usual_method(&request.body).to_owned()),
            ),
            path: Some(target.path_and_query().to_owned()),
            authority: Some(target.authority()),
            body_bytes: body,
            headers: Vec::new(),
        })
    };
    request_lines(text)?
        .into_iter()
        .map(offered_requests)
        .collect()
}

/// Waits until `start` on the wall clock, or until an interrupt.
fn wait_until(start: Nanos, task: &LoadTask) {
    // There are no messages, so each wait has its whole length.
    let (_keep, waiting) = sync_channel::<()>(0);
    while task.interrupt().signal().is_none() {
        let left = start.saturating_sub(clock::wall()).min(LOOK_EVERY);
        if left == Nanos::ZERO
            || waiting.recv_timeout(left.as_duration()) != Err(RecvTimeoutError::Timeout)
        {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use super::*;

    fn refusal_of(requested: CommandLineOptions) -> String {
        let caller = Caller {
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
        };
        let prepared = prepare(&requested, caller, &AccessPlan::default());
        prepared.err().expect("it was not refused")
    }

    #[test]
    fn requests_are_refused_in_nighthawks_words() {
        let uri = || Some("http://127.0.0.1:1/".to_owned());
        for (requested, expected) in [
            (
                CommandLineOptions {
                    uri: uri(),
                    requests_per_second: Some(0),
                    ..CommandLineOptions::default()
                },
                "value must be inside range [1, 1000000]",
            ),
            (
                CommandLineOptions::default(),
                "A URI or --multi-target-* options must be specified.",
            ),
            (
                CommandLineOptions {
                    uri: uri(),
                    scheduled_start: Some(Nanos::from_secs(1)),
                    ..CommandLineOptions::default()
                },
                "Scheduled execution date already transpired",
            ),
            (
                CommandLineOptions {
                    uri: uri(),
                    duration: Some(Nanos::ZERO),
                    ..CommandLineOptions::default()
                },
                "--duration: write a time above zero",
            ),
            (
                CommandLineOptions {
                    uri: uri(),
                    concurrency: Some("many".to_owned()),
                    ..CommandLineOptions::default()
                },
                "Invalid value for --concurrency",
            ),
        ] {
            let why = refusal_of(requested);
            assert!(why.contains(expected), "{why}");
        }
    }
}
