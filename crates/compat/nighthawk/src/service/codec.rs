//! Messages of calls, as JSON.

use serde_json::Value;

use crate::service::grpc::{CallFailed, StatusCode};
use crate::wire::{Schema, UnknownFields};

/// Reads the message `name` and skips unknown fields.
pub(crate) fn decode(name: &str, bytes: &[u8]) -> Result<Value, CallFailed> {
    let value = Schema::shared().decode(name, bytes, UnknownFields::Skip);
    value.map_err(|error| CallFailed::new(StatusCode::InvalidArgument, error.to_string()))
}

/// Returns the bytes of the message `name`.
pub(crate) fn encode(name: &str, value: &Value) -> Result<Vec<u8>, CallFailed> {
    let bytes = Schema::shared().encode(name, value);
    bytes.map_err(|error| CallFailed::new(StatusCode::Internal, error.to_string()))
}
