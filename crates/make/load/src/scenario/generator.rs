//! Users of a scenario as a generator of a run.
//!
//! The worker of the generator decides when a user is due and accounts for time. Each of its
//! connections is a place for one user. A user that is due while no place is free waits for one,
//! and the latency of its first step has that wait.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};

use stillwell_metric::{AnswerTimes, Outcome};
use stillwell_plan::GeneratorPlan;
use stillwell_plan::scenario::ScenarioPlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::{Nanos, Seed};
use stillwell_worker::{Opener, TransportError, Worker as Generator};
use tokio::time::sleep;

use super::super::routes::RouteTally;
use super::super::web::WebRecorder;
use super::context::{PreparedUsers, StepEnd, StepTally, UserContext, WorkerShare};
use super::extract::PreparedStep;
use super::result::StepFailure;

/// Interval at which recorded times are handed over while no request ends.
const BEAT: Nanos = Nanos::from_millis(100);

/// Users of a scenario for the workers of a generator.
#[derive(Debug)]
pub struct ScenarioUsers {
    prepared: PreparedUsers,
    seed: Seed,
    workers: u64,
    /// Index of the next worker.
    next_worker: AtomicU64,
    is_closed_loop: bool,
}

impl ScenarioUsers {
    /// Prepares TLS and the steps of `scenario` for the workers of `plan`.
    ///
    /// # Errors
    /// [`TransportError`] if the scenario cannot be carried out.
    pub fn new(plan: &GeneratorPlan, scenario: &ScenarioPlan) -> Result<Self, TransportError> {
        let prepared = PreparedUsers::new(scenario.clone());
        Ok(Self {
            prepared: prepared
                .map_err(|error| TransportError::new("prepare the scenario", error))?,
            seed: plan.seed,
            workers: plan.concurrency.workers().into(),
            next_worker: AtomicU64::new(0),
            is_closed_loop: plan.rate.is_max(),
        })
    }
}

impl Opener for ScenarioUsers {
    /// Tasks of all users, and the one that hands over what was recorded.
    fn tasks_of(&self, connections: u16) -> usize {
        usize::from(connections) + 1
    }

    fn open(&self, worker: &Rc<Generator>, connections: u16, tasks: &mut Tasks) {
        let share = WorkerShare {
            index: self.next_worker.fetch_add(1, Ordering::Relaxed),
            of: self.workers,
        };
        let tally = Rc::new(GeneratorTally::new(worker, &self.prepared.plan));
        let recorded = Rc::clone(&tally) as Rc<dyn StepTally>;
        let context = UserContext::new(&self.prepared, &self.seed, share, recorded);
        let context = Rc::new(context);
        for _ in 0..connections {
            let (worker, context) = (Rc::clone(worker), Rc::clone(&context));
            tasks.spawn(run_users(worker, context, self.is_closed_loop));
        }
        let worker = Rc::clone(worker);
        tasks.spawn(async move {
            let beat = || worker.unless_ending(sleep(BEAT.as_duration()));
            while beat().await.is_some() {
                tally.web.borrow_mut().publish(clock::now());
            }
        });
    }
}

/// Runs one user after the other, each as soon as it is due.
async fn run_users(worker: Rc<Generator>, context: Rc<UserContext>, is_closed_loop: bool) {
    while let Some((_, slice)) = worker.next_block().await {
        worker.shard.sent_units.add(1);
        let due = match is_closed_loop {
            true => clock::now(),
            false => worker.state.borrow().clock_time(slice.intended),
        };
        let mut user = context.user();
        accounted(&worker, async {
            let is_well = user.follow(&context, due).await;
            if is_closed_loop {
                user.recover(is_well).await;
            }
        })
        .await;
        context.keep(user);
        worker.finish_slices(1);
    }
}

/// Runs `what`. The worker accounts for its running and waiting.
async fn accounted<F: Future>(worker: &Generator, what: F) -> F::Output {
    let mut what = pin!(what);
    let output = poll_fn(|context| {
        worker.enter(clock::now());
        let polled = what.as_mut().poll(context);
        worker.leave(clock::now());
        polled
    });
    let output = output.await;
    worker.enter(clock::now());
    output
}

/// Records the requests of a worker of a generator.
struct GeneratorTally {
    generator: Rc<Generator>,
    web: RefCell<WebRecorder>,
}

impl GeneratorTally {
    fn new(generator: &Rc<Generator>, plan: &ScenarioPlan) -> Self {
        let routes = plan.routes();
        let tally = RouteTally::of_steps(&routes, plan.steps().count());
        Self {
            web: RefCell::new(WebRecorder::new(&generator.shard, &routes, tally)),
            generator: Rc::clone(generator),
        }
    }
}

impl StepTally for GeneratorTally {
    fn record(&self, step: &PreparedStep, ended: StepEnd) {
        let generator = &self.generator;
        generator.begin_paced();
        generator.end_exchange();
        generator.shard.bytes.add(ended.bytes as u64);
        let outcome = outcome_of(&ended);
        generator.shard.count(outcome);
        let request = (0, Some(step.number));
        let mut web = self.web.borrow_mut();
        match ended.status {
            Some(status) => {
                let mut state = generator.state.borrow_mut();
                let due = state.worker_time(ended.due);
                let response = state.record_answer(due, ended.sent, ended.end);
                drop(state);
                let times = AnswerTimes {
                    response: Some(response),
                    service: ended.end.since(ended.sent),
                    first_byte: ended.first_byte.since(ended.sent),
                };
                web.answered(request, (status, outcome), times);
            }
            None => web.failed(request, outcome),
        }
        web.publish(ended.end);
    }
}

/// Returns the outcome of a request. A status that a check accepts is no error; one that it
/// refuses is.
fn outcome_of(ended: &StepEnd) -> Outcome {
    let is_error = |outcome: &Outcome| !matches!(outcome, Outcome::Ok | Outcome::Status3xx);
    let of_status = ended.status.map_or(Outcome::Ok, Outcome::of_status);
    let Some(failure) = &ended.failure else {
        return Some(of_status)
            .filter(|of| !is_error(of))
            .unwrap_or(Outcome::Ok);
    };
    match failure.reason {
        StepFailure::Connect => failure.outcome.unwrap_or(Outcome::ConnectFailed),
        StepFailure::TimedOut => Outcome::TimedOut,
        StepFailure::ConnectionLost => Outcome::PeerClosed,
        StepFailure::Malformed => Outcome::Malformed,
        StepFailure::Status if is_error(&of_status) => of_status,
        StepFailure::Status | StepFailure::Contains | StepFailure::Take | StepFailure::Value => {
            Outcome::UnexpectedAnswer
        }
    }
}
