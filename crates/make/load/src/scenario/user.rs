//! One user: follows the steps of a flow.

use stillwell_http::ResponseParser;
use stillwell_plan::scenario::ScenarioPlan;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};
use stillwell_wire::Connection;
use stillwell_worker::Backoff;
use tokio::time::sleep;

use super::super::alarm::Alarm;
use super::context::{StepEnd, UserContext};
use super::cookies::Cookie;
use super::exchange::{StepError, parts};
use super::extract::PreparedStep;
use super::http2::Http2Exchange;
use super::result::StepFailure;

const BUFFER_BYTES: usize = 8 << 10;

/// A user, or the buffers and the connection of one that ended.
pub(super) struct User {
    pub(super) connection: Option<Connection>,
    pub(super) parser: ResponseParser,
    pub(super) http2: Http2Exchange,
    pub(super) alarm: Alarm,
    pub(super) input: Box<[u8]>,
    /// The request, or its body with HTTP/2.
    pub(super) output: Vec<u8>,
    /// Length of the last request, its head included.
    pub(super) request_bytes: usize,
    pub(super) body: Vec<u8>,
    /// Headers of the last response from which a value is taken.
    pub(super) headers: Vec<(String, String)>,
    /// Path of the last request, without its query.
    pub(super) path: Vec<u8>,
    pub(super) cookies: Vec<Cookie>,
    /// Values of variables, by index.
    pub(super) values: Vec<String>,
    /// Time at which the last request was sent.
    pub(super) sent: Option<Moment>,
    /// Time of the first byte of its response.
    pub(super) first_byte: Option<Moment>,
    backoff: Backoff,
}

impl User {
    pub(super) fn new(plan: &ScenarioPlan) -> Self {
        Self {
            connection: None,
            parser: ResponseParser::new(),
            http2: Http2Exchange::default(),
            alarm: Alarm::new(plan.timeout),
            input: vec![0; BUFFER_BYTES].into_boxed_slice(),
            output: Vec::new(),
            request_bytes: 0,
            body: Vec::new(),
            headers: Vec::new(),
            path: Vec::new(),
            cookies: Vec::new(),
            values: Vec::new(),
            sent: None,
            first_byte: None,
            backoff: Backoff::new(),
        }
    }

    /// Becomes a new user and follows a flow from `intended`. Returns true if all steps
    /// succeeded.
    pub(super) async fn follow(&mut self, context: &UserContext, intended: Moment) -> bool {
        self.begin(context);
        let mut due = intended;
        for step in context.choose_flow() {
            if !self.step(context, step, due).await {
                return false;
            }
            let pause = context.think_time(step.plan.think);
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

    fn begin(&mut self, context: &UserContext) {
        self.cookies.clear();
        let variables = &context.plan.variables;
        self.values.resize(variables.len(), String::new());
        for (value, variable) in self.values.iter_mut().zip(variables) {
            value.clone_from(&variable.value);
        }
        let row = context.row().unwrap_or_default();
        for (variable, value) in context.plan.columns.iter().zip(row) {
            self.values[*variable].clone_from(value);
        }
    }

    /// Takes one step; its time counts from `due`.
    async fn step(&mut self, context: &UserContext, step: &PreparedStep, due: Moment) -> bool {
        let _in_flight = context.gate.begin().await;
        (self.sent, self.first_byte) = (None, None);
        let answered = self.request(context, step).await;
        let end = clock::now();
        let (status, checked) = match answered {
            Ok(status) => (Some(status), self.check(step, status)),
            Err(error) => (None, Err(error)),
        };
        let is_well = checked.is_ok();
        let ended = StepEnd {
            due,
            sent: self.sent.unwrap_or(due),
            first_byte: self.first_byte.unwrap_or(end),
            end,
            bytes: self.request_bytes,
            status,
            failure: checked.err(),
        };
        context.tally.record(step, ended);
        is_well
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
