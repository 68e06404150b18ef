//! One user: follows the steps of a flow.

use rand_core::Rng as _;
use stillwell_http::ResponseParser;
use stillwell_plan::scenario::ScenarioPlan;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Connection;
use stillwell_worker::Backoff;
use tokio::time::sleep;

use super::super::alarm::Alarm;
use super::ScenarioWorker;
use super::exchange::{StepError, parts};
use super::extract::PreparedStep;
use super::result::StepFailure;

const BUFFER_BYTES: usize = 8 << 10;

/// A user, or the buffers and the connection of one that ended.
pub(super) struct User {
    pub(super) connection: Option<Connection>,
    pub(super) parser: ResponseParser,
    pub(super) alarm: Alarm,
    pub(super) input: Box<[u8]>,
    pub(super) output: Vec<u8>,
    pub(super) body: Vec<u8>,
    /// Headers of the last response from which a value is taken.
    pub(super) headers: Vec<(String, String)>,
    pub(super) cookies: Vec<(String, String)>,
    /// Values of variables, by index.
    pub(super) values: Vec<String>,
    backoff: Backoff,
}

impl User {
    pub(super) fn new(plan: &ScenarioPlan) -> Self {
        Self {
            connection: None,
            parser: ResponseParser::new(),
            alarm: Alarm::new(plan.timeout),
            input: vec![0; BUFFER_BYTES].into_boxed_slice(),
            output: Vec::new(),
            body: Vec::new(),
            headers: Vec::new(),
            cookies: Vec::new(),
            values: Vec::new(),
            backoff: Backoff::new(),
        }
    }

    /// Becomes a new user and follows a flow from `intended`. Returns true if all steps
    /// succeeded.
    pub(super) async fn follow(&mut self, worker: &ScenarioWorker, intended: Moment) -> bool {
        self.begin(worker);
        let flow = &worker.flows[choose(worker)];
        let mut due = intended;
        for step in flow {
            if !self.step(worker, step, due).await {
                return false;
            }
            let pause = think_time(worker, step.plan.think);
            if pause > Nanos::ZERO {
                sleep(pause.as_duration()).await;
            }
            due = clock::now();
        }
        true
    }

    /// Waits after a flow that failed: a target that refuses everything gets no tight loop of
    /// requests.
    pub(super) async fn recover(&mut self, is_well: bool) {
        match is_well {
            true => self.backoff.reset(),
            false => sleep(self.backoff.pause().as_duration()).await,
        }
    }

    fn begin(&mut self, worker: &ScenarioWorker) {
        self.cookies.clear();
        let variables = &worker.plan.variables;
        self.values.resize(variables.len(), String::new());
        for (value, variable) in self.values.iter_mut().zip(variables) {
            value.clone_from(&variable.value);
        }
        let row = worker.row().unwrap_or_default();
        for (variable, value) in worker.plan.columns.iter().zip(row) {
            self.values[*variable].clone_from(value);
        }
    }

    /// Takes one step; its time counts from `due`.
    async fn step(&mut self, worker: &ScenarioWorker, step: &PreparedStep, due: Moment) -> bool {
        let answered = self.request(worker, step).await;
        let latency = clock::now().since(due);
        let verdict = match &answered {
            Ok(status) => self.check(step, *status),
            Err(_) => Ok(()),
        };
        let mut result = worker.result.borrow_mut();
        let result = &mut result.steps[step.number];
        result.requests += 1;
        if let Ok(status) = answered {
            result.record_answer(status, latency);
        }
        match answered.map(drop).and(verdict) {
            Ok(()) => true,
            Err(StepError { reason, text }) => {
                result.record_failure(reason, || text);
                false
            }
        }
    }

    /// Checks the response and takes its values.
    fn check(&mut self, step: &PreparedStep, status: u16) -> Result<(), StepError> {
        let is_accepted = match step.plan.status {
            Some(accepted) => status == accepted,
            None => (200..400).contains(&status),
        };
        if !is_accepted {
            let text = match step.plan.status {
                Some(accepted) => format!("status {status} instead of {accepted}"),
                None => format!("status {status}"),
            };
            return Err(StepError::new(StepFailure::Status, text));
        }
        for expected in &step.plan.contains {
            let text: String = parts(expected, &self.values).collect();
            if !contains(&self.body, text.as_bytes()) {
                let text = format!("the body does not contain {text:?}");
                return Err(StepError::new(StepFailure::Contains, text));
            }
        }
        let values = &mut self.values;
        let taken = step.take(&self.headers, &self.body, |variable, value| {
            values[variable] = value;
        });
        taken.map_err(|text| StepError::new(StepFailure::Take, text))
    }
}

fn contains(body: &[u8], text: &[u8]) -> bool {
    text.is_empty() || body.windows(text.len()).any(|window| window == text)
}

/// Chooses a flow by weight.
fn choose(worker: &ScenarioWorker) -> usize {
    let flows = &worker.plan.flows;
    let weights = flows.iter().map(|flow| u64::from(flow.weight));
    let sum: u64 = weights.clone().sum();
    if flows.len() == 1 || sum == 0 {
        return 0;
    }
    let mut left = worker.random.borrow_mut().next_u64() % sum;
    for (index, weight) in weights.enumerate() {
        match left.checked_sub(weight) {
            Some(rest) => left = rest,
            None => return index,
        }
    }
    0
}

fn think_time(worker: &ScenarioWorker, (shortest, longest): (Nanos, Nanos)) -> Nanos {
    let spread = longest.saturating_sub(shortest).as_u64();
    if spread == 0 {
        return shortest;
    }
    shortest + Nanos::new(worker.random.borrow_mut().next_u64() % (spread + 1))
}
