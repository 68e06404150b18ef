//! The front door.

use stillwell_config::rules::variants_problem;
use stillwell_plan::SuitePlan;
use stillwell_run::Interrupt;
use stillwell_scope::clock;
use stillwell_units::Nanos;
use stillwell_verdict::apply_error_budget;

use crate::binary::{self, Prepared};
use crate::build::Builds;
use crate::results::Results;
use crate::session::Session;
use crate::{Executor, SuiteError, SuiteOptions, SuiteOutcome, SuiteProgress};

/// Carries `plan` out and reports to `progress`.
///
/// Everything is built before the first run. A run that fails costs its pair, which is repeated. An
/// experiment that cannot start, or that fails twice at its start, is given up, and the next
/// follows. A full results folder and `interrupt` end the suite. Every finished pair is kept and
/// judged.
///
/// # Errors
///
/// [`SuiteError`] where it could not begin. Later failures are part of the outcome.
pub fn run_suite(
    plan: &SuitePlan,
    options: &SuiteOptions,
    executor: &mut dyn Executor,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(SuiteProgress<'_>),
) -> Result<SuiteOutcome, SuiteError> {
    let started = clock::now();
    check_designs(plan)?;
    let results = Results::new(options.results.clone());
    let lock = results.lock()?;
    let record = results.open(options.resume)?;
    if let Some(record) = &record {
        results.check_plan(record, plan)?;
    }
    let prepared = if options.judge_only {
        Some(Prepared::default())
    } else {
        let mut builds = Builds::new(&options.cache, interrupt)?;
        binary::prepare(plan, options, &mut builds, progress)?
    };
    let Some(prepared) = prepared else {
        return Ok(SuiteOutcome {
            verdicts: Vec::new(),
            budget: apply_error_budget(&mut [], &[]),
            interrupted: interrupt.signal(),
            problems: Vec::new(),
            elapsed: clock::now().since(started),
        });
    };
    match &record {
        Some(_) if options.judge_only => {}
        Some(record) => results.check_binaries(record, &prepared.binaries)?,
        None => {
            let wall_millis = clock::wall().as_u64() / Nanos::from_millis(1).as_u64();
            results.write_record(plan, options, wall_millis, &prepared.binaries)?;
        }
    }
    let session = Session::new(
        plan,
        options,
        &results,
        &prepared.targets,
        executor,
        interrupt,
    );
    let ended = session.run(progress);
    drop(lock);
    Ok(SuiteOutcome {
        verdicts: ended.verdicts,
        budget: ended.budget,
        interrupted: interrupt.signal(),
        problems: ended.problems,
        elapsed: clock::now().since(started),
    })
}

fn check_designs(plan: &SuitePlan) -> Result<(), SuiteError> {
    let mut experiments = plan.experiments.iter();
    let problem = experiments.find_map(variants_problem);
    problem.map_or(Ok(()), |reason| Err(SuiteError::Design { reason }))
}
