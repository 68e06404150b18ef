//! Users that follow the steps of a scenario.
//!
//! A worker runs users as tasks. A user has a connection, cookies and values of variables, and
//! sends one request after the other: see [`user`]. In a closed loop a task runs users one
//! after the other. In an open loop a pacer starts a task for each arrival; the task reuses the
//! buffers and the connection of a user that ended.

mod exchange;
mod extract;
mod result;
mod user;

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use rand_core::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use stillwell_plan::scenario::{ScenarioPlan, UsersPlan};
use stillwell_plan::tls::{Alpn, ClientTlsPlan};
use stillwell_scope::{PartError, Place, Scope, Tasks, Token, clock};
use stillwell_units::{Moment, Nanos, as_usize, float_from_u64};
use stillwell_wire::Timer;
use stillwell_wire::client::Endpoint;
use stillwell_wire::tls::{ClientTls, TlsError};

use extract::PreparedStep;
pub use result::{ScenarioResult, StepFailure, StepResult, UserCounts};
use user::User;

/// A scenario that cannot be prepared.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// TLS that cannot be configured.
    #[error("prepare TLS")]
    Tls(#[from] TlsError),
    /// A regular expression that is none.
    #[error("read a regular expression of step {step}")]
    Regex {
        /// Name of the step.
        step: String,
        /// Reason.
        source: regex::Error,
    },
}

/// A scenario whose workers have not started.
#[derive(Debug)]
pub struct PreparedScenario {
    plan: Arc<ScenarioPlan>,
    endpoint: Endpoint,
    flows: Arc<[Vec<PreparedStep>]>,
}

/// Results of workers that have ended.
type Results = Arc<Mutex<Vec<ScenarioResult>>>;

/// Prepares TLS and the steps of `plan`. Opens nothing.
///
/// # Errors
/// [`ScenarioError`] where the plan cannot be carried out.
pub fn prepare_scenario(plan: ScenarioPlan) -> Result<PreparedScenario, ScenarioError> {
    let endpoint = match &plan.tls_host {
        None => Endpoint::tcp(plan.address.clone()),
        Some(host) => Endpoint::Tls {
            address: plan.address.clone(),
            tls: ClientTls::new(&ClientTlsPlan {
                alpn: vec![Alpn::Http1],
                ..plan.tls.clone()
            })?,
            host: host.clone(),
        },
    };
    let mut number = 0;
    let mut flows = Vec::new();
    for flow in &plan.flows {
        let mut steps = Vec::new();
        for step in &flow.steps {
            steps.push(PreparedStep::new(step, number)?);
            number += 1;
        }
        flows.push(steps);
    }
    Ok(PreparedScenario {
        endpoint,
        flows: flows.into(),
        plan: Arc::new(plan),
    })
}

impl PreparedScenario {
    /// Starts the workers as threads `scenario-0` and on. Each ends with the plan's duration,
    /// `stop` or the scope, and then leaves its result.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub fn start(self, scope: &mut Scope, stop: &Token) -> io::Result<Results> {
        let results = Results::default();
        let start = clock::now();
        let threads = self.plan.threads.max(1);
        for index in 0..threads {
            let share = Share {
                index: index.into(),
                of: threads.into(),
            };
            let (plan, flows) = (Arc::clone(&self.plan), Arc::clone(&self.flows));
            let endpoint = self.endpoint.clone().for_worker();
            let (results, stop) = (Arc::clone(&results), stop.clone());
            let name = format!("scenario-{index}");
            scope.worker(Place::default(), &name, move |token| async move {
                let worker = Rc::new(ScenarioWorker::new(plan, flows, endpoint, share, start));
                worker.run(&stop, &token).await?;
                let mut results = results.lock().unwrap_or_else(PoisonError::into_inner);
                results.push(worker.result.take());
                Ok(())
            })?;
        }
        Ok(results)
    }
}

/// One of several workers.
#[derive(Clone, Copy, Debug)]
struct Share {
    index: u64,
    of: u64,
}

/// State that the users of one worker share.
struct ScenarioWorker {
    plan: Arc<ScenarioPlan>,
    flows: Arc<[Vec<PreparedStep>]>,
    endpoint: Endpoint,
    share: Share,
    start: Moment,
    result: RefCell<ScenarioResult>,
    random: RefCell<Xoshiro256PlusPlus>,
    next_row: Cell<usize>,
    /// Users that ended, with their connections.
    idle: RefCell<Vec<User>>,
    /// Number of users on their way.
    active: Cell<usize>,
}

impl ScenarioWorker {
    fn new(
        plan: Arc<ScenarioPlan>,
        flows: Arc<[Vec<PreparedStep>]>,
        endpoint: Endpoint,
        share: Share,
        start: Moment,
    ) -> Self {
        let seed = plan.seed.derive("scenario", share.index);
        Self {
            result: RefCell::new(ScenarioResult::of(flows.iter().map(Vec::len).sum())),
            random: RefCell::new(Xoshiro256PlusPlus::from_seed(*seed.bytes())),
            next_row: Cell::new(usize::try_from(share.index).unwrap_or(0)),
            idle: RefCell::default(),
            active: Cell::default(),
            plan,
            flows,
            endpoint,
            share,
            start,
        }
    }

    /// Runs users until the end; requests under way are then cut and not counted.
    async fn run(self: &Rc<Self>, stop: &Token, scope: &Token) -> Result<(), PartError> {
        let end = self.start + self.plan.duration;
        let mut timer = Timer::new()?;
        let mut tasks = Tasks::new(self.users_max() + 1);
        // All arms are cancel-safe, or are not used again.
        tokio::select! {
            biased;
            () = scope.cancelled() => {}
            () = stop.cancelled() => {}
            () = timer.until(end) => {}
            ended = self.run_users(&mut tasks, end) => ended?,
        }
        drop(tasks);
        let mut result = self.result.borrow_mut();
        result.measured = clock::now().min(end).since(self.start);
        result.users.unfinished = self.active.get() as u64;
        Ok(())
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
                        let mut user = User::new(&worker.plan);
                        loop {
                            worker.begin();
                            let is_well = user.follow(&worker, clock::now()).await;
                            worker.end(is_well);
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
                self.result.borrow_mut().users.not_started += 1;
                continue;
            }
            let idle = self.idle.borrow_mut().pop();
            let mut user = idle.unwrap_or_else(|| User::new(&self.plan));
            self.begin();
            let worker = Rc::clone(self);
            tasks.spawn(async move {
                let is_well = user.follow(&worker, at).await;
                worker.end(is_well);
                worker.idle.borrow_mut().push(user);
            });
        }
        timer.until(end).await;
        Ok(())
    }

    fn begin(&self) {
        self.active.set(self.active.get() + 1);
        self.result.borrow_mut().users.started += 1;
    }

    fn end(&self, is_well: bool) {
        self.active.set(self.active.get() - 1);
        let users = &mut self.result.borrow_mut().users;
        match is_well {
            true => users.completed += 1,
            false => users.failed += 1,
        }
    }

    /// Returns the next row of data, if there is any.
    fn row(&self) -> Option<&[String]> {
        let rows = &self.plan.rows;
        let number = self.next_row.get();
        self.next_row
            .set(number + as_usize(self.plan.threads.max(1)));
        rows.get(number.checked_rem(rows.len())?).map(Vec::as_slice)
    }
}
