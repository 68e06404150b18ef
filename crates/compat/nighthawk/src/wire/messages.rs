//! Messages of `nighthawk.client.NighthawkService`, as data.

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
    /// A request for the results so far. Nighthawk ignores it.
    Update,
    /// End the load.
    Cancel,
    /// An empty request.
    Nothing,
}

/// `nighthawk.client.ExecutionResponse`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExecutionResponse {
    /// The result of the load, also of one that failed.
    pub output: Option<Output>,
    /// The failure, if there is one.
    pub error_detail: Option<Status>,
    /// Identifier of an execution by several services; may be empty.
    pub execution_id: String,
}

/// `google.rpc.Status`, without details.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Status {
    /// 0 for success, else as gRPC numbers them.
    pub code: u32,
    /// The reason.
    pub message: String,
}

/// Bytes that are no request or response.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ExecutionMessageError {
    /// They are no such message.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A field has a wrong value.
    #[error(transparent)]
    Message(#[from] MessageError),
}

/// The request that `bytes` hold. Options that are not known are refused: they
/// would not be done.
///
/// # Errors
/// [`ExecutionMessageError`] with the field that is wrong.
pub fn decode_request(bytes: &[u8]) -> Result<ExecutionRequest, ExecutionMessageError> {
    let value = Schema::shared().decode(REQUEST, bytes, UnknownFields::Refuse)?;
    Ok(request_of_json(value)?)
}

/// Reads a request from its JSON form, as inside of other messages.
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
    Schema::shared().encode(REQUEST, &value)
}

/// Reads a response and skips unknown fields.
///
/// # Errors
/// [`ExecutionMessageError`] with the field that is wrong.
pub fn decode_response(bytes: &[u8]) -> Result<ExecutionResponse, ExecutionMessageError> {
    let value = Schema::shared().decode(RESPONSE, bytes, UnknownFields::Skip)?;
    Ok(response_of_json(value)?)
}

/// Reads a response from its JSON form, as inside of other messages.
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
    Schema::shared().encode(RESPONSE, &response_json(response))
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
