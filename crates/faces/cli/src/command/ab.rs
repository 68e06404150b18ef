//! `stillwell ab`.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use stillwell_config::AbSpec;
use stillwell_config::requests::{ConnectingSpec, RequestSpec};
use stillwell_metric::Outcome;
use stillwell_plan::placement::CpuChoice;
use stillwell_plan::{GoalMetric, LoadPlan, SuitePlan};
use stillwell_run::{AddressFamily, Interrupt, LoadCapture, conduct_load};
use stillwell_units::Nanos;

use crate::arguments::AbArguments;
use crate::command::fleet::{could_not, interrupted_by};
use crate::command::run::{SuiteRun, new_folder};
use crate::command::{counters, load, output, places, problems};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;
use crate::{secrets, signals};

pub(crate) fn run(arguments: &AbArguments, paint: &Paint) -> Result<Exit, CommandError> {
    problems::keep_error(arguments.results.as_deref(), start(arguments, paint))
}

fn start(arguments: &AbArguments, paint: &Paint) -> Result<Exit, CommandError> {
    places::refuse_store(arguments.results.as_deref())?;
    let (spec, plan) = plan(arguments)?;
    output::check_outputs(&arguments.output)?;
    if let Some(signal) = check_responses(arguments, &spec, &plan)? {
        Paint::print_message(&format!(
            "interrupted before the first run; to continue: {}",
            output::repeat_line()
        ));
        return Ok(Exit::Interrupted(signal));
    }
    counters::warn(&plan);
    let label = |side: &str, url: &str| format!("{side}, {}", secrets::handling().text(url));
    let run = SuiteRun {
        plan: &plan,
        title: "ab".to_owned(),
        labels: (
            label("A", &arguments.baseline),
            label("B", &arguments.comparison),
        ),
        results: results_folder(arguments)?,
        store: None,
        can_resume: false,
        resume: false,
        judge_only: false,
        problems: Vec::new(),
        cache: None,
        gate: arguments.gate,
        exit_zero: arguments.exit_zero,
        output: &arguments.output,
        stats: None,
    };
    run.carry_out(paint, None)
}

/// Sends a few requests to both sides. Times of errors are no times of the service, so a side
/// without one good response is refused, unless the goal is about errors. Returns the signal that ended the check, if
/// one came.
fn check_responses(
    arguments: &AbArguments,
    spec: &AbSpec,
    plan: &SuitePlan,
) -> Result<Option<i32>, CommandError> {
    let goals = plan
        .experiments
        .iter()
        .filter_map(|experiment| experiment.goals.first());
    if goals.clone().any(|goal| is_about_errors(&goal.metric)) {
        return Ok(None);
    }
    let trials = spec.trials(plan);
    let trials = trials.map_err(|error| CommandError::new(Exit::Usage, error))?;
    let interrupt = Interrupt::new();
    let raised = interrupt.clone();
    let signals = signals::listen(move |signal| raised.raise(signal)).map_err(could_not)?;
    let checked = check_sides(arguments, trials, &interrupt);
    signals.close(Nanos::SECOND);
    interrupted_by(&interrupt, checked)?;
    Ok(interrupt.signal())
}

/// Sends `trials`, one for each side. A signal ends them without an error. A side that only redirects
/// is not compared with one that answers.
fn check_sides(
    arguments: &AbArguments,
    trials: Vec<LoadPlan>,
    interrupt: &Interrupt,
) -> Result<(), CommandError> {
    let urls = [&arguments.baseline, &arguments.comparison];
    let mut has_ok = false;
    let mut redirecting: Vec<String> = Vec::new();
    for ((side, url), trial) in ["A", "B"].into_iter().zip(urls).zip(trials) {
        let trial = conduct_load(trial, AddressFamily::Any, &[], interrupt, &mut |_| {});
        if interrupt.signal().is_some() {
            return Ok(());
        }
        let trial = trial.map_err(could_not)?;
        let url = secrets::handling().text(url);
        if let Some(what) = bad_responses(&trial) {
            return Err(could_not(anyhow::anyhow!("{side}, {url}: {what}")));
        }
        has_ok |= trial.sum(|counts| counts.ended(Outcome::Ok)) > 0;
        let hint = load::redirect_hint(&trial);
        redirecting.extend(hint.map(|hint| format!("{side}, {url}: {hint}")));
    }
    for message in redirecting {
        if has_ok {
            return Err(could_not(anyhow::anyhow!(message)));
        }
        Paint::print_message(&format!("warning: {message}"));
    }
    Ok(())
}

fn is_about_errors(metric: &GoalMetric) -> bool {
    match metric {
        GoalMetric::Route(goal) => is_about_errors(goal.metric()),
        metric => matches!(metric, GoalMetric::ErrorShare | GoalMetric::Status(_)),
    }
}

/// Describes the responses of a load if all of its requests ended and none of them well.
fn bad_responses(capture: &LoadCapture) -> Option<String> {
    let ended = |outcome: Outcome| capture.sum(|counts| counts.ended(outcome));
    if ended(Outcome::Ok) + ended(Outcome::Status3xx) > 0 {
        return None;
    }
    let mut statuses = BTreeMap::new();
    for (status, count) in capture.counts().flat_map(|counts| &counts.statuses) {
        *statuses.entry(*status).or_insert(0) += count;
    }
    let answered: u64 = statuses.values().sum();
    if answered > 0 {
        let statuses = statuses.keys().map(u16::to_string);
        let statuses: Vec<_> = statuses.collect();
        return Some(format!(
            "every response is an error (status {}), and a comparison of errors says nothing about \
             the service; correct the request, or compare errors with --goal error_share",
            statuses.join(", ")
        ));
    }
    let trouble = capture.evidence().first_trouble;
    if let Some(trouble) = trouble {
        return Some(format!("no request was answered: {}", trouble.why));
    }
    let failures = Outcome::FAILURES.into_iter();
    let failure = failures.max_by_key(|outcome| ended(*outcome))?;
    (ended(failure) > 0).then(|| format!("no request was answered: {}", failure.explanation()))
}

fn plan(arguments: &AbArguments) -> Result<(AbSpec, SuitePlan), CommandError> {
    let seed = match arguments.seed {
        Some(seed) => seed,
        None => load::random_seed().map_err(|error| CommandError::new(Exit::CouldNotRun, error))?,
    };
    let (over, connecting) = (&arguments.over, &arguments.connecting);
    let spec = AbSpec {
        urls: [arguments.baseline.clone(), arguments.comparison.clone()],
        rate: arguments.rate.clone(),
        shape: load::shape(&arguments.shape),
        concurrency: over.concurrency,
        request: RequestSpec {
            method: arguments.method.clone(),
            headers: arguments.header.clone(),
            body: arguments.body.clone(),
            requests_file: arguments.requests_file.clone(),
            har: arguments.har.clone(),
            list: None,
        },
        connecting: ConnectingSpec {
            connections: over.connections,
            protocol: over.protocol.into(),
            streams: over.streams,
            timeout: connecting.timeout,
            connect_timeout: connecting.connect_timeout,
            late: false,
            over: None,
            requests_max: connecting.max_requests_per_connection,
            reuse: connecting.connection_reuse.map(Into::into),
            idle: None,
        },
        tls: load::tls(&arguments.tls),
        warmup: arguments.warmup,
        measure: arguments.duration,
        max_pairs: arguments.max_pairs,
        confirm: !arguments.no_confirm,
        goal: arguments.goal.clone(),
        tolerance: arguments.tolerance,
        seed,
        secrets: secrets::handling(),
    };
    let cpus = available_parallelism().map_or(1, NonZero::get);
    let mut plan = spec
        .plan(cpus)
        .map_err(|error| CommandError::new(Exit::Usage, error))?;
    for experiment in &mut plan.experiments {
        if !over.cpus.is_empty() {
            experiment.run_plan.placement.ours = CpuChoice::List(over.cpus.clone());
        }
        if let Some(validity) = arguments.validity {
            experiment.run_plan.observer.validity = validity.into();
        }
    }
    Ok((spec, plan))
}

fn results_folder(arguments: &AbArguments) -> Result<PathBuf, CommandError> {
    match &arguments.results {
        None => new_folder("ab"),
        Some(folder) => {
            std::path::absolute(folder).map_err(|error| CommandError::new(Exit::CouldNotRun, error))
        }
    }
}
