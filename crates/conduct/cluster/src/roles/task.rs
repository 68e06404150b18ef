//! One part of a run, as a task.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::path::Path;

use serde::Serialize;
use stillwell_capture::RunTaskResult;
use stillwell_plan::RunPlan;
use stillwell_run::{Interrupt, RunFleet, RunRequest, conduct};
use stillwell_scope::{clock, explain};
use stillwell_units::Nanos;

use super::exchange::{Exchange, STORE_MAX};
use super::figures::PartFigures;
use super::{Member, Members, RunJob};
use crate::attempt::Attempt;
use crate::bundle;
use crate::clocks::{ClockAnswers, ClockReading, ClockStage};
use crate::controller::FleetError;
use crate::job::{ABORT, Abort, Failed, MEMBERS, failed_name, ready_name, result_name};
use crate::pause::pause;
use crate::store::{Created, JobStore, StoreError};

/// Time between two looks at the store.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// The longest wait for the other tasks.
const MEMBERS_MAX: Nanos = Nanos::from_secs(15 * 60);
/// Most attempts of one task.
const ATTEMPTS_MAX: u32 = 64;
/// The longest time that the last exchange with other tasks takes, beyond that of a store that does not answer.
const CLOSE_MAX: Nanos = Nanos::from_secs(10);
/// Time after the end of the run in which a task answers pings.
const CLOCKS_MAX: Nanos = Nanos::from_secs(10);
/// Variable with the address of the host on the network of the run.
const ADDRESS: &str = "STILLWELL_ADDRESS";

/// The end of a task of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RunTaskEnd {
    /// Its result is in the store.
    Committed,
    /// Another attempt of the same task counts.
    NotNeeded,
    /// The run was given up before its start.
    GivenUp,
}

/// A task of a run.
#[derive(Debug)]
pub struct RunTaskContext<'a> {
    /// Objects of the job.
    pub store: &'a JobStore,
    /// The attempt.
    pub attempt: &'a Attempt,
    /// The run.
    pub job: &'a RunJob,
    /// Requests the early end.
    pub interrupt: &'a Interrupt,
}

impl RunTaskContext<'_> {
    /// Does the part of `plan` that is this task. `request` makes the run of the part; its capture
    /// goes to the store, and its folder is removed.
    ///
    /// # Errors
    /// [`FleetError`]; the reason is in the store, too, if that can be reached.
    pub fn carry_out(
        &self,
        plan: &RunPlan,
        request: impl FnOnce(RunPlan, RunFleet) -> Result<RunRequest, String>,
    ) -> Result<RunTaskEnd, FleetError> {
        let end = self.try_carry_out(plan, request);
        if let Err(error) = &end {
            self.fail(explain(error));
        }
        end
    }

    /// Writes the reason why there is no result.
    pub fn fail(&self, why: String) {
        let attempt = self.attempt.name.clone();
        let failed = Failed { attempt, why };
        let name = failed_name(self.attempt.task.into());
        // The engine still says that the process ended.
        drop(self.store.create_json(&Interrupt::new(), &name, &failed));
    }

    fn try_carry_out(
        &self,
        plan: &RunPlan,
        request: impl FnOnce(RunPlan, RunFleet) -> Result<RunRequest, String>,
    ) -> Result<RunTaskEnd, FleetError> {
        let roles = self.job.roles;
        let role = roles.role(self.attempt.task);
        let role =
            role.ok_or_else(|| FleetError::NoStart("the run has no such task".to_owned()))?;
        let whole = plan.over(roles).map_err(FleetError::NoStart)?;
        let this_member = Member {
            attempt: self.attempt.name.clone(),
            node: self.attempt.node.clone(),
            boot: self.attempt.boot.clone(),
            address: address(self.attempt)?,
            began: clock::wall(),
        };
        register(self.store, self.interrupt, self.attempt, &this_member)?;
        let Some(members) = self.members()? else {
            return Ok(RunTaskEnd::GivenUp);
        };
        let task = usize::from(self.attempt.task);
        if members.tasks.get(task).map(|member| &member.attempt) != Some(&this_member.attempt) {
            return Ok(RunTaskEnd::NotNeeded);
        }
        let placed = whole.between(&members.hosts);
        let fleet = RunFleet::new(roles, role, placed.generators.clone());
        let request = request(placed.part_of(roles, role), fleet.clone());
        let request = request.map_err(FleetError::NoStart)?;
        let folder = request.folder.clone();
        let figures = PartFigures::default();
        let exchange = Exchange {
            store: self.store.clone(),
            job: self.job.clone(),
            members,
            attempt: self.attempt.clone(),
            fleet,
            figures: figures.clone(),
        };
        let exchange = exchange.start().map_err(FleetError::Thread)?;
        let conducted = conduct(request, self.interrupt, &mut |progress| {
            figures.take(progress)
        });
        exchange.close(STORE_MAX + CLOSE_MAX);
        conducted.map_err(|error| FleetError::NoStart(explain(&error)))?;
        let end = self.commit(&folder, &this_member);
        if matches!(end, Ok(RunTaskEnd::Committed)) {
            // Generators end before the others. A store that does not answer costs the drift alone.
            let rest = whole.phases.drain + whole.target.stop.grace + CLOCKS_MAX;
            self.answer_at_end(rest).unwrap_or_default();
        }
        match &end {
            // What counts is in the store.
            Ok(_) => drop(std::fs::remove_dir_all(&folder)),
            Err(error) => self.fail(format!(
                "{}; its capture is in {} on {}",
                explain(error),
                folder.display(),
                this_member.node
            )),
        }
        end
    }

    /// Waits until all tasks are there; `None` if the run was given up.
    fn members(&self) -> Result<Option<Members>, FleetError> {
        let until = clock::now() + MEMBERS_MAX;
        loop {
            if self.interrupt.signal().is_some() || self.is_aborted()? {
                return Ok(None);
            }
            if let Some(members) = self.store.get_json(self.interrupt, MEMBERS)? {
                return Ok(Some(members));
            }
            if clock::now() >= until {
                let why = format!("not all tasks joined the run within {MEMBERS_MAX}");
                return Err(FleetError::NoStart(why));
            }
            pause(self.interrupt, LOOK_EVERY);
        }
    }

    fn is_aborted(&self) -> Result<bool, StoreError> {
        let abort: Option<Abort> = self.store.get_json(self.interrupt, ABORT)?;
        Ok(abort.is_some())
    }

    /// Writes the result; the interrupt that ended the run does not end this.
    fn commit(&self, folder: &Path, this_member: &Member) -> Result<RunTaskEnd, FleetError> {
        let result = RunTaskResult {
            attempt: this_member.attempt.clone(),
            node: this_member.node.clone(),
            boot: this_member.boot.clone(),
            address: this_member.address,
            began: this_member.began,
            ended: clock::wall(),
        };
        let bytes = bundle::pack(folder, &result).map_err(FleetError::Pack)?;
        let quiet = Interrupt::new();
        let name = result_name(self.attempt.task.into());
        Ok(match self.store.create(&quiet, &name, &bytes)? {
            Created::Now => RunTaskEnd::Committed,
            Created::Before => RunTaskEnd::NotNeeded,
        })
    }

    /// Answers pings after the result, for as long as `rest` unless the run was given up.
    fn answer_at_end(&self, rest: Nanos) -> Result<(), StoreError> {
        let (task, name) = (usize::from(self.attempt.task), &self.attempt.name);
        let mut answers = ClockAnswers::new(self.store, task, name, ClockStage::AfterEnd);
        let until = clock::now() + rest;
        let read = || self.attempt.shift.apply(ClockReading::now());
        while !answers.is_complete() && clock::now() < until && self.interrupt.signal().is_none() {
            let soon = answers.look(self.interrupt, &read)?;
            if soon.is_none() && self.is_aborted()? {
                break;
            }
            pause(self.interrupt, soon.unwrap_or(LOOK_EVERY));
        }
        Ok(())
    }
}

/// Makes an attempt known; several of one task have numbers in turn.
pub(super) fn register(
    store: &JobStore,
    interrupt: &Interrupt,
    attempt: &Attempt,
    member: &impl Serialize,
) -> Result<(), FleetError> {
    let task = usize::from(attempt.task);
    for number in 0..ATTEMPTS_MAX {
        let name = ready_name(task, number);
        if store.create_json(interrupt, &name, member)? == Created::Now {
            return Ok(());
        }
    }
    Err(FleetError::NoStart(format!(
        "task {task} was started more than {ATTEMPTS_MAX} times"
    )))
}

/// Returns the address of this host on the network of the run.
fn address(attempt: &Attempt) -> Result<IpAddr, FleetError> {
    if let Ok(text) = std::env::var(ADDRESS) {
        let why = || FleetError::NoStart(format!("{ADDRESS}={text} is not an IP address"));
        return text.parse().map_err(|_| why());
    }
    if attempt.name.starts_with("local-") {
        return Ok(IpAddr::from([127, 0, 0, 1]));
    }
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let resolve = |name: &str| {
        let addresses = (name, 0).to_socket_addrs().ok()?;
        let mut addresses: Vec<IpAddr> = addresses.map(|address| address.ip()).collect();
        addresses.sort_by_key(|address| (address.is_loopback(), !address.is_ipv4()));
        addresses.first().copied()
    };
    resolve(&attempt.node)
        .or_else(|| resolve(&host))
        .ok_or_else(|| {
            FleetError::NoStart(format!(
                "the host name of node {} does not resolve to an address; set {ADDRESS} on it",
                attempt.node
            ))
        })
}
