//! Messages of calls, as JSON.

use serde_json::Value;

use crate::service::grpc::{Code, Ended};
use crate::wire::{Schema, UnknownFields};

/// The message `name` in `bytes`; what is not known in it is passed over.
pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Value, Ended> {
    let value = Schema::own().decode(name, bytes, UnknownFields::PassOver);
    value.map_err(|error| Ended::new(Code::InvalidArgument, error.to_string()))
}

/// The bytes of the message `name`.
pub(crate) fn encode(name: &str, value: &Value) -> Result<Vec<u8>, Ended> {
    let bytes = Schema::own().encode(name, value);
    bytes.map_err(|error| Ended::new(Code::Internal, error.to_string()))
}
