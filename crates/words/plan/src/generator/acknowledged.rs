//! Requests that are sent until they are acknowledged.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use super::HecAcknowledgements;

/// One HTTP/1.1 POST a block, one request in flight a connection, and what became
/// of every event: acknowledged, refused, or neither.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AcknowledgedPlan {
    /// `http://host:port/path`; over Splunk's collector the path follows from it.
    pub url: String,
    /// What an acknowledgement is.
    pub by: AcknowledgedBy,
    /// How often a request is sent again that was answered with 408, 429 or 5xx, or
    /// got no answer, after pauses that double.
    pub retries: u32,
    /// How long after the end of the load it is waited for what is not answered or
    /// acknowledged by then.
    #[serde(default = "AcknowledgedPlan::patience_before")]
    pub patience: Nanos,
}

impl AcknowledgedPlan {
    /// What plans had that do not say.
    const fn patience_before() -> Nanos {
        Nanos::SECOND
    }
}

/// What an acknowledgement is.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AcknowledgedBy {
    /// An answer with a status from 200 to 299.
    Status {
        /// Headers besides Host and Content-Length, in this order.
        headers: Vec<(String, String)>,
    },
    /// Splunk's HTTP event collector says later that it has kept the request.
    SplunkHec {
        /// What stands after `Splunk` in `Authorization`.
        token: String,
        /// How it is asked.
        questions: HecAcknowledgements,
    },
}
