//! Calls: what is sent by gRPC.

use serde::{Deserialize, Serialize};
use stillwell_units::Nanos;

use crate::PayloadPlan;

/// A call of one method. It goes over HTTP/2, and what gRPC needs of headers is
/// added to those of its request.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GrpcPlan {
    /// The sent messages.
    pub messages: GrpcMessages,
    /// Number of messages that each call sends, at least one, over and over those that
    /// there are. With one, each message makes a request of its own, and these take
    /// turns.
    pub count: u64,
    /// Interval between messages of a call, if not as soon as
    /// there is room.
    pub every: Option<Nanos>,
    /// Deadline of a call, which is sent to the server and held here.
    pub deadline: Option<Nanos>,
    /// True if the answer may have any number of messages, rather than one.
    pub server_streams: bool,
}

/// Messages without their prefix on the wire.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum GrpcMessages {
    /// These, at least one.
    Given(Vec<Vec<u8>>),
    /// The blocks of a payload.
    Payload(PayloadPlan),
    /// As they were typed: the server describes the method when the run starts.
    Typed(TypedMessages),
}

/// Messages of a method that is not described yet.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct TypedMessages {
    /// JSON values, at least one; `None` for an empty message.
    pub json: Option<String>,
    /// Messages in each call, if not all of them once.
    pub count: Option<u64>,
}
