//! Users that follow the steps of a scenario.

use stillwell_units::{Nanos, Seed};

use crate::tls::ClientTlsPlan;

/// A load of users. Each user follows the steps of one flow over a connection of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioPlan {
    /// Host and port of the target.
    pub address: String,
    /// Value of the header `host`.
    pub authority: String,
    /// Name in the certificate, with TLS.
    pub tls_host: Option<String>,
    /// Settings of TLS.
    pub tls: ClientTlsPlan,
    /// Number of users at a time, or their arrival rate.
    pub users: UsersPlan,
    /// Length of the load.
    pub duration: Nanos,
    /// Threads of the generator, at least one.
    pub threads: u16,
    /// Timeout of a request.
    pub timeout: Nanos,
    /// Timeout of connecting.
    pub connect_timeout: Nanos,
    /// Names of all variables and their first values, by index.
    pub variables: Vec<VariablePlan>,
    /// Rows of data: values of [`Self::columns`]. Users take rows in turn.
    pub rows: Vec<Vec<String>>,
    /// Indices of the variables that a row sets.
    pub columns: Vec<usize>,
    /// Flows, at least one.
    pub flows: Vec<FlowPlan>,
    /// Seed of the choice of flows and of think times.
    pub seed: Seed,
}

/// Number of users at a time, or their arrival rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UsersPlan {
    /// Closed loop: so many users at a time. A user that ends is replaced at once.
    Closed(u32),
    /// Open loop: users arrive evenly, independent of responses.
    Arriving {
        /// Users per second.
        per_second: f64,
        /// Maximum number of users at a time. Users beyond it are counted and not started.
        at_a_time_max: u32,
    },
}

/// A variable.
#[derive(Clone, Debug, PartialEq)]
pub struct VariablePlan {
    /// Name.
    pub name: String,
    /// First value for each user.
    pub value: String,
}

/// Steps that one user follows.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowPlan {
    /// Name; empty if it is the only flow.
    pub name: String,
    /// Share of users, relative to other flows.
    pub weight: u32,
    /// Steps, at least one.
    pub steps: Vec<ScenarioStepPlan>,
}

/// One request of a flow.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioStepPlan {
    /// Name in the report.
    pub name: String,
    /// Method.
    pub method: String,
    /// Path and query.
    pub path: TextTemplate,
    /// Headers.
    pub headers: Vec<(String, TextTemplate)>,
    /// Body; empty for none.
    pub body: TextTemplate,
    /// Values to take from the response.
    pub takes: Vec<TakePlan>,
    /// Accepted status; all from 200 to 399 if `None`.
    pub status: Option<u16>,
    /// Texts that the response body must contain.
    pub contains: Vec<TextTemplate>,
    /// Shortest and longest think time after the step.
    pub think: (Nanos, Nanos),
}

/// A text with variables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TextTemplate(pub Vec<TextPart>);

/// Part of a text with variables.
#[derive(Clone, Debug, PartialEq)]
pub enum TextPart {
    /// Text as it is.
    Text(String),
    /// Value of the variable with this index.
    Variable(usize),
}

/// A value that a step takes from its response.
#[derive(Clone, Debug, PartialEq)]
pub struct TakePlan {
    /// Index of the variable that keeps it.
    pub variable: usize,
    /// Place of the value.
    pub from: TakeFrom,
}

/// Place of a value in a response.
#[derive(Clone, Debug, PartialEq)]
pub enum TakeFrom {
    /// JSON pointer (RFC 6901) into the body.
    Json(String),
    /// Value of a header.
    Header(String),
    /// Group 1 of a regular expression, or the whole match if it has no group.
    Regex(String),
}

impl ScenarioStepPlan {
    /// Returns true if the response body must be kept.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        let is_of_body = |take: &TakePlan| !matches!(take.from, TakeFrom::Header(_));
        !self.contains.is_empty() || self.takes.iter().any(is_of_body)
    }
}
