//! Conducts a scenario.

use std::sync::PoisonError;

use stillwell_load::{ScenarioError, ScenarioResult, prepare_scenario};
use stillwell_plan::scenario::ScenarioLoadPlan;
use stillwell_scope::{Scope, Token, explain};
use stillwell_units::as_usize;

use super::{CLOSE_MARGIN, LOOK_RARELY, Pause, Watch};
use crate::interrupt::Interrupt;

/// Reasons why a scenario has no result.
#[derive(Debug, thiserror::Error)]
pub enum ConductScenarioError {
    /// A plan that cannot be carried out.
    #[error(transparent)]
    Prepare(#[from] ScenarioError),
    /// The kernel starts no more threads.
    #[error("start the workers")]
    Start(#[source] std::io::Error),
    /// A worker ended with an error.
    #[error("{name}: {why}")]
    Worker {
        /// Name of its thread.
        name: String,
        /// Reason.
        why: String,
    },
}

/// Runs the users of `plan` until its end or `interrupt`.
///
/// # Errors
/// [`ConductScenarioError`] if it could not begin or a worker failed.
pub fn conduct_scenario(
    plan: ScenarioLoadPlan,
    interrupt: &Interrupt,
) -> Result<ScenarioResult, ConductScenarioError> {
    let workers = as_usize(plan.threads.max(1));
    let prepared = prepare_scenario(plan)?;
    let mut scope = Scope::new(&Token::new());
    let stop = interrupt.token().child_token();
    let results = prepared.start(&mut scope, &stop);
    let results = results.map_err(ConductScenarioError::Start)?;
    let mut watch = Watch {
        ends: Vec::new(),
        scope,
    };
    let pause = Pause::new();
    while watch.running(workers) {
        pause.wait(LOOK_RARELY);
    }
    watch.ends.extend(watch.scope.close(CLOSE_MARGIN));
    for end in &watch.ends {
        if let Err(failure) = &end.result {
            return Err(ConductScenarioError::Worker {
                name: end.name.clone(),
                why: explain(failure),
            });
        }
    }
    let results = results.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all = ScenarioResult::default();
    results.iter().for_each(|result| all.add(result));
    Ok(all)
}
