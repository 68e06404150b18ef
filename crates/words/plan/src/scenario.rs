//! Users that follow the steps of a scenario.

use serde::{Deserialize, Serialize};
use stillwell_units::{Nanos, Scheme, Seed, Target};

use crate::load::{LoadProtocol, Routes};
use crate::tls::ClientTlsPlan;

/// Steps that users follow, and where they send requests. Each user has a connection.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ScenarioPlan {
    /// Base URL.
    pub url: String,
    /// Host and port of the target.
    pub address: String,
    /// Value of the header `host`.
    pub authority: String,
    /// Path before the path of each step; empty for none.
    pub base: String,
    /// Name in the certificate, with TLS.
    pub tls_host: Option<String>,
    /// Settings of TLS.
    pub tls: ClientTlsPlan,
    /// True if the base URL is that of the target, which may change with the variant.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_to_target: bool,
    /// Protocol of the connections.
    #[serde(default = "http1")]
    pub protocol: LoadProtocol,
    /// Timeout of a request.
    pub timeout: Nanos,
    /// Timeout of connecting.
    pub connect_timeout: Nanos,
    /// Names of all variables and their first values, by index.
    pub variables: Vec<VariablePlan>,
    /// Rows of data: values of [`Self::columns`]. Users take rows in turn. They may be many and
    /// have passwords, so no record of a run has them.
    #[serde(skip)]
    pub rows: Vec<Vec<String>>,
    /// Indices of the variables that a row sets.
    pub columns: Vec<usize>,
    /// Flows, at least one.
    pub flows: Vec<FlowPlan>,
}

/// The protocol of records of earlier versions.
const fn http1() -> LoadProtocol {
    LoadProtocol::Http1
}

/// A scenario as a load by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct ScenarioLoadPlan {
    /// Steps of the users.
    pub scenario: ScenarioPlan,
    /// Number of users at a time, or their arrival rate.
    pub users: UsersPlan,
    /// Time before the measured time, in which users come and nothing is recorded.
    pub warmup: Nanos,
    /// Length of the measured time.
    pub duration: Nanos,
    /// True if the load waits at its end until each request in flight is answered or fails: bounds
    /// need the end of every request.
    pub has_grace: bool,
    /// Threads of the generator, at least one.
    pub threads: u16,
    /// Seed of the choice of flows and of think times.
    pub seed: Seed,
}

impl ScenarioPlan {
    /// Steps of all flows, in their order.
    pub fn steps(&self) -> impl Iterator<Item = &ScenarioStepPlan> {
        self.flows.iter().flat_map(|flow| &flow.steps)
    }

    /// Returns a route for each step. Its name is that of the step, after that of the flow if there
    /// are several flows.
    #[must_use]
    pub fn routes(&self) -> Routes {
        Routes::of_names(self.flows.iter().flat_map(|flow| {
            let steps = flow.steps.iter();
            steps.map(|step| match flow.name.as_str() {
                "" => step.name.clone(),
                flow => format!("{flow}: {}", step.name),
            })
        }))
    }

    /// Sends requests below `url`, if they go to the target.
    pub(crate) fn redirect(&mut self, url: &str) {
        if let (true, Ok(target)) = (self.is_to_target, Target::from_url(url)) {
            self.send_to(url, &target);
        }
    }

    /// Sends requests below `url`, which `target` is read from.
    pub fn send_to(&mut self, url: &str, target: &Target) {
        url.clone_into(&mut self.url);
        self.address = target.dial_address();
        self.authority = target.authority();
        let path = target.path_and_query().trim_end_matches('/');
        path.clone_into(&mut self.base);
        let is_secure = target.scheme() == Scheme::Https;
        self.tls_host = is_secure.then(|| target.host().to_owned());
    }
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
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct VariablePlan {
    /// Name.
    pub name: String,
    /// First value for each user.
    pub value: String,
}

/// Steps that one user follows.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct FlowPlan {
    /// Name; empty if it is the only flow.
    pub name: String,
    /// Share of users, relative to other flows.
    pub weight: u32,
    /// Steps, at least one.
    pub steps: Vec<ScenarioStepPlan>,
}

/// One request of a flow.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
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
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct TextTemplate(pub Vec<TextPart>);

/// Part of a text with variables.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TextPart {
    /// Text as it is.
    Text(String),
    /// Value of the variable with this index.
    Variable(usize),
}

/// A value that a step takes from its response.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TakePlan {
    /// Index of the variable that keeps it.
    pub variable: usize,
    /// Place of the value.
    pub from: TakeFrom,
}

/// Place of a value in a response.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
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
