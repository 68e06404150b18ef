//! Users that follow the steps of a scenario.
//!
//! A worker runs users as tasks. A user has a connection, cookies and values of variables, and
//! sends one request after the other: see [`user`]. In a closed loop a task runs users one
//! after the other. In an open loop a pacer starts a task for each arrival; the task reuses the
//! buffers and the connection of a user that ended.

mod context;
mod cookies;
mod exchange;
mod extract;
#[cfg(test)]
mod fixture;
mod gate;
mod generator;
mod http2;
mod result;
mod user;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use stillwell_plan::scenario::{ScenarioLoadPlan, UsersPlan};
use stillwell_scope::{PartError, Place, Scope, Tasks, Token, clock};
use stillwell_units::{Moment, Nanos, float_from_u64};
use stillwell_wire::Timer;

use super::usage::ThreadUsage;
use context::{PreparedUsers, StepEnd, StepTally, UserContext, WorkerShare};
use extract::PreparedStep;
pub use generator::ScenarioUsers;
pub use result::{ScenarioError, ScenarioResult, StepFailure, StepResult, UserCounts};

/// A scenario whose workers have not started.
#[derive(Debug)]
pub struct PreparedScenario {
    plan: Arc<ScenarioLoadPlan>,
    users: PreparedUsers,
}

/// Results of workers that have ended.
type Results = Arc<Mutex<Vec<ScenarioResult>>>;

/// Prepares TLS and the steps of `plan`. Opens nothing.
///
/// # Errors
/// [`ScenarioError`] where the plan cannot be carried out.
pub fn prepare_scenario(plan: ScenarioLoadPlan) -> Result<PreparedScenario, ScenarioError> {
    Ok(PreparedScenario {
        users: PreparedUsers::new(plan.scenario.clone())?,
        plan: Arc::new(plan),
    })
}

impl PreparedScenario {
    /// Starts the workers as threads `scenario-0` and on. Each ends with the plan's duration and
    /// grace, `stop` or the scope, and then leaves its result.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub fn start(self, scope: &mut Scope, stop: &Token) -> io::Result<Results> {
        let results = Results::default();
        let start = clock::now();
        let threads = self.plan.threads.max(1);
        for index in 0..threads {
            let share = WorkerShare {
                index: index.into(),
                of: threads.into(),
            };
            let (plan, users) = (Arc::clone(&self.plan), self.users.clone());
            let (results, stop) = (Arc::clone(&results), stop.clone());
            let name = format!("scenario-{index}");
            scope.worker(Place::default(), &name, move |token| async move {
                let worker = Rc::new(ScenarioWorker::new(plan, &users, share, start));
                worker.run(&stop, &token).await?;
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push(worker.tally.result.take());
                Ok(())
            })?;
        }
        Ok(results)
    }
}

/// Records the requests of steps that are due in the measured time.
struct LoadTally {
    measure_from: Moment,
    /// End of the measured time.
    end: Moment,
    result: RefCell<ScenarioResult>,
}

impl StepTally for LoadTally {
    fn record(&self, step: &PreparedStep, ended: StepEnd) {
        if ended.due < self.measure_from {
            return;
        }
        let mut result = self.result.borrow_mut();
        let is_good = ended.failure.is_none();
        if ended.end <= self.end {
            result.requests_in_time += 1;
            result.good_in_time += u64::from(is_good);
        }
        let result = &mut result.steps[step.number];
        result.requests += 1;
        if let Some(status) = ended.status {
            result.record_answer(status, ended.end.since(ended.due), is_good);
        }
        if let Some(failure) = ended.failure {
            result.record_failure(failure.reason, || failure.text);
        }
    }
}

/// State of one worker of a load.
struct ScenarioWorker {
    plan: Arc<ScenarioLoadPlan>,
    context: UserContext,
    share: WorkerShare,
    start: Moment,
    tally: Rc<LoadTally>,
    /// Number of users on their way.
    active: Cell<usize>,
    /// Usage of CPUs at the begin of the measured time.
    usage: Cell<ThreadUsage>,
}

impl ScenarioWorker {
    fn new(
        plan: Arc<ScenarioLoadPlan>,
        users: &PreparedUsers,
        share: WorkerShare,
        start: Moment,
    ) -> Self {
        let result = ScenarioResult::of(plan.scenario.steps().count());
        let measure_from = start + plan.warmup;
        let tally = Rc::new(LoadTally {
            measure_from,
            end: measure_from + plan.duration,
            result: RefCell::new(result),
        });
        let recorded = Rc::clone(&tally) as Rc<dyn StepTally>;
        Self {
            context: UserContext::new(users, &plan.seed, share, recorded),
            tally,
            active: Cell::default(),
            usage: Cell::default(),
            plan,
            share,
            start,
        }
    }

    /// Runs users until the end. With a grace, requests in flight then end by their response or
    /// their timeout; without it they are cut and not counted.
    async fn run(self: &Rc<Self>, stop: &Token, scope: &Token) -> Result<(), PartError> {
        let end = self.tally.end;
        let mut timer = Timer::new()?;
        let mut tasks = Tasks::new(self.users_max() + 1);
        let measured = async {
            timer.until(self.tally.measure_from).await;
            self.usage.set(ThreadUsage::now());
            timer.until(end).await;
        };
        // All arms are cancel-safe, or are not used again.
        tokio::select! {
            biased;
            () = scope.cancelled() => {}
            () = stop.cancelled() => {}
            () = measured => {}
            ended = self.run_users(&mut tasks, end) => ended?,
        }
        self.end_measured_time();
        if self.plan.has_grace {
            // All arms are cancel-safe.
            tokio::select! {
                biased;
                () = scope.cancelled() => {}
                () = stop.cancelled() => {}
                () = self.context.gate.close() => {}
            }
        }
        drop(tasks);
        let users = &mut self.tally.result.borrow_mut().users;
        users.unfinished = users.started - users.completed - users.failed;
        Ok(())
    }

    /// Completes the result with figures of the whole measured time.
    fn end_measured_time(&self) {
        let mut result = self.tally.result.borrow_mut();
        let end = clock::now().min(self.tally.end);
        let measured = end.since(self.tally.measure_from);
        let usage = ThreadUsage::now();
        let before = self.usage.get();
        let share = |now: Nanos, before: Nanos| now.saturating_sub(before).share_of(measured);
        result.busy_share = share(usage.cpu, before.cpu);
        result.cpu_wait_share = share(usage.delay, before.delay);
        result.measured = measured;
    }

    /// Returns the maximum number of users at a time of this worker.
    fn users_max(&self) -> usize {
        let all = match self.plan.users {
            UsersPlan::Closed(users) => users,
            UsersPlan::Arriving { at_a_time_max, .. } => at_a_time_max,
        };
        let all = u64::from(all);
        let part = all / self.share.of + u64::from(self.share.index < all % self.share.of);
        usize::try_from(part).unwrap_or(usize::MAX)
    }

    async fn run_users(self: &Rc<Self>, tasks: &mut Tasks, end: Moment) -> Result<(), PartError> {
        match self.plan.users {
            UsersPlan::Closed(_) => {
                for _ in 0..self.users_max() {
                    let worker = Rc::clone(self);
                    tasks.spawn(async move {
                        let mut user = worker.context.user();
                        loop {
                            worker.context.gate.pass().await;
                            let at = clock::now();
                            worker.begin(at);
                            let is_well = user.follow(&worker.context, at).await;
                            worker.end(at, is_well);
                            user.recover(is_well).await;
                        }
                    });
                }
                tasks.all_ended().await;
                Ok(())
            }
            UsersPlan::Arriving { per_second, .. } => self.receive(tasks, per_second, end).await,
        }
    }

    /// Starts users as they arrive.
    async fn receive(
        self: &Rc<Self>,
        tasks: &mut Tasks,
        per_second: f64,
        end: Moment,
    ) -> Result<(), PartError> {
        let mut timer = Timer::new()?;
        for number in 0_u64.. {
            let number = number * self.share.of + self.share.index;
            let after = Nanos::from_secs_f64(float_from_u64(number) / per_second);
            let at = self.start + after;
            if at >= end {
                break;
            }
            if at > clock::now() {
                timer.until(at).await;
            }
            tasks.reap();
            if self.active.get() >= self.users_max() {
                if at >= self.tally.measure_from {
                    self.tally.result.borrow_mut().users.not_started += 1;
                }
                continue;
            }
            let mut user = self.context.user();
            self.begin(at);
            let worker = Rc::clone(self);
            tasks.spawn(async move {
                worker.record_lateness(at);
                let is_well = user.follow(&worker.context, at).await;
                worker.end(at, is_well);
                worker.context.keep(user);
            });
        }
        timer.until(end).await;
        Ok(())
    }

    /// Counts a user that arrives at `at`.
    fn begin(&self, at: Moment) {
        self.active.set(self.active.get() + 1);
        if at >= self.tally.measure_from {
            self.tally.result.borrow_mut().users.started += 1;
        }
    }

    fn record_lateness(&self, at: Moment) {
        if at >= self.tally.measure_from {
            let late = clock::now().since(at).as_u64().max(1);
            let mut result = self.tally.result.borrow_mut();
            result.lateness.saturating_record(late);
        }
    }

    /// Counts the end of a user that arrived at `at`.
    fn end(&self, at: Moment, is_well: bool) {
        self.active.set(self.active.get() - 1);
        let users = &mut self.tally.result.borrow_mut().users;
        users.count_end(self.tally.measure_from, (at, clock::now()), is_well);
    }
}
