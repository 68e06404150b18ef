//! Environments against real engines, clusters and folders.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "environment/container.rs"]
mod container;
#[path = "environment/file_tree.rs"]
mod file_tree;
#[path = "../../generator/tests/generator/fixture.rs"]
mod fixture;
#[path = "environment/kubernetes.rs"]
mod kubernetes;
#[path = "environment/log_fs.rs"]
mod log_fs;

use stillwell_payload::Sources;
use stillwell_plan::GeneratorPlan;
use stillwell_worker::{PrepareError, Prepared};

use fixture::{Fixture, LONG, lines, plan, wait_until};

/// Prepares `plan`, which is one of an environment.
fn prepare<'s>(
    plan: &GeneratorPlan,
    sources: impl Into<Sources<'s>>,
) -> Result<Prepared, PrepareError> {
    let prepared = stillwell_environment::prepare(plan, sources)?;
    Ok(prepared.expect("the plan is one of an environment"))
}
