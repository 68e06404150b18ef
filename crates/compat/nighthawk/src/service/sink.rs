//! `nighthawk.NighthawkSink`: stores results, and returns those of one execution together.

use std::rc::Rc;

use serde_json::{Value, json};

use crate::service::codec::{decode, encode};
use crate::service::grpc::{Call, CallFailed, StatusCode};
use crate::service::samples::strip_samples;
use crate::service::state::ServiceState;
use crate::wire::{response_json, response_of_json};

/// `StoreExecutionResponseStream`.
pub(crate) async fn put(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    while let Some(bytes) = call.next().await {
        let mut request = decode("nighthawk.StoreExecutionRequest", &bytes)?;
        let response = request["execution_response"].take();
        let invalid = |why: String| CallFailed::new(StatusCode::InvalidArgument, why);
        let response = response_of_json(response).map_err(|error| invalid(error.to_string()))?;
        let id = response.execution_id.clone();
        if id.is_empty() {
            return Err(invalid("execution_response has no execution_id".to_owned()));
        }
        state.store.put(&id, response)?;
    }
    call.send(encode("nighthawk.StoreExecutionResponse", &json!({}))?)
        .await
}

/// `SinkRequestStream`.
pub(crate) async fn get(state: Rc<ServiceState>, mut call: Call) -> Result<(), CallFailed> {
    while let Some(bytes) = call.next().await {
        let request = decode("nighthawk.SinkRequest", &bytes)?;
        let id = request.get("execution_id").and_then(Value::as_str);
        let id = id.filter(|id| !id.is_empty()).ok_or_else(|| {
            let why = "execution_id: value length must be at least 1 characters";
            CallFailed::new(StatusCode::InvalidArgument, why)
        })?;
        let mut response = state.store.get(id)?;
        if let Some(output) = response.output.as_mut().filter(|_| !call.includes_samples) {
            strip_samples(output);
        }
        let response = json!({ "execution_response": response_json(&response) });
        call.send(encode("nighthawk.SinkResponse", &response)?)
            .await?;
    }
    Ok(())
}
