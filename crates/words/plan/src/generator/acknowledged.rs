//! Requests that are sent until they are acknowledged.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use super::HecAcknowledgements;

/// One HTTP/1.1 POST a block, one request in flight a connection, and the result
/// of every event: acknowledged, refused, or neither.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct AcknowledgedPlan {
    /// `http://host:port/path`; over Splunk's collector the path follows from it.
    pub url: String,
    /// Kind of acknowledgement.
    pub by: AcknowledgedBy,
    /// Maximum number of repetitions of a request that was answered with 408, 429 or 5xx, or
    /// got no answer, after pauses that double.
    pub retries: u32,
    /// Maximum wait after the end of the load for requests that are not answered or
    /// acknowledged by then.
    #[serde(default = "AcknowledgedPlan::end_timeout_default")]
    pub end_timeout: Nanos,
}

impl AcknowledgedPlan {
    /// The value of plans without this field.
    const fn end_timeout_default() -> Nanos {
        Nanos::SECOND
    }
}

/// Kind of acknowledgement.
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
        /// The token after `Splunk` in `Authorization`.
        token: String,
        /// The polling.
        questions: HecAcknowledgements,
    },
}
