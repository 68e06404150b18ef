//! What `nighthawk.client.NighthawkService` speaks, as data.

use serde_json::{Map, Value, json};

use super::decode::UnknownFields;
use super::error::WireError;
use super::schema::Schema;
use crate::fields::{Fields, whole_message};
use crate::{CommandLineOptions, MessageError, Output, read, write};

const REQUEST: &str = "nighthawk.client.ExecutionRequest";
const RESPONSE: &str = "nighthawk.client.ExecutionResponse";

/// `nighthawk.client.ExecutionRequest`.
#[derive(Clone, Debug, PartialEq)]
pub enum ExecutionRequest {
    /// Make this load.
    Start(Box<CommandLineOptions>),
    /// Nighthawk knows it and does nothing with it; here it asks how far the load
    /// is.
    Update,
    /// End the load.
    Cancel,
    /// It asks for nothing.
    Nothing,
}

/// `nighthawk.client.ExecutionResponse`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionResponse {
    /// What the load found, also where it failed on the way.
    pub output: Option<Output>,
    /// Why it failed, if it did.
    pub error_detail: Option<Status>,
    /// Which execution of several services this belongs to; may be empty.
    pub execution_id: String,
}

/// `google.rpc.Status`, without details.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// 0 for success, else as gRPC numbers them.
    pub code: u32,
    /// What went wrong.
    pub message: String,
}

/// Why bytes are no request or response.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// They are no such message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A field holds what it cannot.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// The request that `bytes` hold. Options that are not known are refused: they
/// would not be done.
///
/// # Errors
/// [`RequestError`] with the field that is wrong.
pub fn decode_request(bytes: &[u8]) -> Result<ExecutionRequest, RequestError> {
    let value = Schema::own().decode(REQUEST, bytes, UnknownFields::Refuse)?;
    Ok(request_of_json(value)?)
}

/// The request that `value` says in the JSON form, as it stands in messages that
/// hold one.
///
/// # Errors
/// [`MessageError`] with the field that is wrong.
pub fn request_of_json(value: Value) -> Result<ExecutionRequest, MessageError> {
    whole_message(value, "", request)
}

fn request(fields: &mut Fields) -> Result<ExecutionRequest, MessageError> {
    if let Some(start) = fields.raw("start_request") {
        let options = start.get("options").cloned().unwrap_or_else(|| json!({}));
        let options = read::options(options)?;
        return Ok(ExecutionRequest::Start(Box::new(options)));
    }
    Ok(
        match (
            fields.raw("update_request"),
            fields.raw("cancellation_request"),
        ) {
            (Some(_), _) => ExecutionRequest::Update,
            (None, Some(_)) => ExecutionRequest::Cancel,
            (None, None) => ExecutionRequest::Nothing,
        },
    )
}

/// The bytes of `request`.
///
/// # Errors
/// [`WireError`] where options hold a message of Envoy that is not known.
pub fn encode_request(request: &ExecutionRequest) -> Result<Vec<u8>, WireError> {
    let value = match request {
        ExecutionRequest::Start(options) => {
            json!({ "start_request": { "options": Value::from(write::options(options)) } })
        }
        ExecutionRequest::Update => json!({ "update_request": {} }),
        ExecutionRequest::Cancel => json!({ "cancellation_request": {} }),
        ExecutionRequest::Nothing => json!({}),
    };
    Schema::own().encode(REQUEST, &value)
}

/// The response that `bytes` hold; what is not known in it is passed over.
///
/// # Errors
/// [`RequestError`] with the field that is wrong.
pub fn decode_response(bytes: &[u8]) -> Result<ExecutionResponse, RequestError> {
    let value = Schema::own().decode(RESPONSE, bytes, UnknownFields::PassOver)?;
    Ok(response_of_json(value)?)
}

/// The response that `value` says in the JSON form, as it stands in messages that
/// hold one.
///
/// # Errors
/// [`MessageError`] with the field that is wrong.
pub fn response_of_json(value: Value) -> Result<ExecutionResponse, MessageError> {
    whole_message(value, "", |fields| {
        Ok(ExecutionResponse {
            output: fields.message("output", read::output)?,
            error_detail: fields.message("error_detail", status)?,
            execution_id: fields.text("execution_id")?.unwrap_or_default(),
        })
    })
}

fn status(fields: &mut Fields) -> Result<Status, MessageError> {
    let status = Status {
        code: fields.short("code")?.unwrap_or(0),
        message: fields.text("message")?.unwrap_or_default(),
    };
    // Details are for programs that know their types.
    fields.rest();
    Ok(status)
}

/// The bytes of `response`.
///
/// # Errors
/// [`WireError`] where it holds a message of Envoy that is not known.
pub fn encode_response(response: &ExecutionResponse) -> Result<Vec<u8>, WireError> {
    Schema::own().encode(RESPONSE, &response_json(response))
}

/// The JSON form of `response`.
#[must_use]
pub fn response_json(response: &ExecutionResponse) -> Value {
    let mut map = Map::new();
    if let Some(output) = &response.output {
        map.insert("output".to_owned(), write::output(output).into());
    }
    if let Some(Status { code, message }) = &response.error_detail {
        let status = json!({ "code": code, "message": message });
        map.insert("error_detail".to_owned(), status);
    }
    if !response.execution_id.is_empty() {
        let id = Value::from(response.execution_id.clone());
        map.insert("execution_id".to_owned(), id);
    }
    Value::Object(map)
}
