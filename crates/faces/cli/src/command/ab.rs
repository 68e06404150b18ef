//! `stillwell ab`.

use std::num::NonZero;
use std::path::PathBuf;
use std::thread::available_parallelism;

use stillwell_config::AbSpec;
use stillwell_config::requests::{ConnectingSpec, RequestSpec};
use stillwell_plan::SuitePlan;
use stillwell_plan::placement::CpuChoice;

use crate::arguments::AbArguments;
use crate::command::run::{SuiteRun, new_folder};
use crate::command::{load, output};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

pub(crate) fn run(arguments: &AbArguments, paint: &Paint) -> Result<Exit, CommandError> {
    let plan = plan(arguments)?;
    output::check_writable(&arguments.output.output)?;
    let run = SuiteRun {
        plan: &plan,
        title: "ab".to_owned(),
        labels: (
            format!("A, {}", arguments.baseline),
            format!("B, {}", arguments.comparison),
        ),
        results: results_folder(arguments)?,
        can_resume: false,
        resume: false,
        cache: None,
        gate: arguments.gate,
        exit_zero: arguments.exit_zero,
        output: &arguments.output,
    };
    run.carry_out(paint, None)
}

fn plan(arguments: &AbArguments) -> Result<SuitePlan, CommandError> {
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
        seed,
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
    Ok(plan)
}

fn results_folder(arguments: &AbArguments) -> Result<PathBuf, CommandError> {
    match &arguments.results {
        None => new_folder("ab"),
        Some(folder) => {
            std::path::absolute(folder).map_err(|error| CommandError::new(Exit::CouldNotRun, error))
        }
    }
}
