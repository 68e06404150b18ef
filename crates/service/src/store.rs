//! `nighthawk.NighthawkSink`: results of one execution by several services, kept
//! until somebody asks for all of them together.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde_json::{Value, json};
use stillwell_legacy::nighthawk::wire::{
    ExecutionResponse, Schema, UnknownFields, response_json, response_of_json,
};

use crate::grpc::{Call, Code, Ended};
use crate::samples::{merge_responses, strip_samples};
use crate::site::Site;

/// Executions that are kept; the oldest one goes for a new one.
const EXECUTIONS_MAX: usize = 64;

/// Results of one execution.
const RESULTS_MAX: usize = 256;

/// Results by the id of their execution.
#[derive(Debug, Default)]
pub(crate) struct Store {
    executions: RefCell<VecDeque<(String, Vec<ExecutionResponse>)>>,
}

impl Store {
    /// Keeps one more result of the execution `id`.
    pub(crate) fn put(&self, id: &str, response: ExecutionResponse) -> Result<(), Ended> {
        let mut executions = self.executions.borrow_mut();
        let known = executions.iter_mut().find(|(own, _)| own == id);
        let Some((_, results)) = known else {
            if executions.len() == EXECUTIONS_MAX {
                executions.pop_front();
            }
            executions.push_back((id.to_owned(), vec![response]));
            return Ok(());
        };
        if results.len() == RESULTS_MAX {
            let why = format!("{RESULTS_MAX} results of {id} are here already");
            return Err(Ended::new(Code::ResourceExhausted, why));
        }
        results.push(response);
        Ok(())
    }

    /// All results of the execution `id` together.
    fn get(&self, id: &str) -> Result<ExecutionResponse, Ended> {
        let executions = self.executions.borrow();
        let known = executions.iter().find(|(own, _)| own == id);
        let (_, results) = known.ok_or_else(|| {
            let why = format!("there are no results of an execution `{id}` here");
            Ended::new(Code::NotFound, why)
        })?;
        Ok(ExecutionResponse {
            execution_id: id.to_owned(),
            ..merge_responses(results)
        })
    }
}

/// `StoreExecutionResponseStream`.
pub(crate) async fn put(site: Rc<Site>, mut call: Call) -> Result<(), Ended> {
    while let Some(bytes) = call.next().await {
        let mut request = decode("nighthawk.StoreExecutionRequest", &bytes)?;
        let response = request["execution_response"].take();
        let invalid = |why: String| Ended::new(Code::InvalidArgument, why);
        let response = response_of_json(response).map_err(|error| invalid(error.to_string()))?;
        let id = response.execution_id.clone();
        if id.is_empty() {
            return Err(invalid("execution_response has no execution_id".to_owned()));
        }
        site.store.put(&id, response)?;
    }
    call.send(encode("nighthawk.StoreExecutionResponse", &json!({}))?)
        .await
}

/// `SinkRequestStream`.
pub(crate) async fn get(site: Rc<Site>, mut call: Call) -> Result<(), Ended> {
    while let Some(bytes) = call.next().await {
        let request = decode("nighthawk.SinkRequest", &bytes)?;
        let id = request.get("execution_id").and_then(Value::as_str);
        let id = id.filter(|id| !id.is_empty()).ok_or_else(|| {
            let why = "execution_id: value length must be at least 1 characters";
            Ended::new(Code::InvalidArgument, why)
        })?;
        let mut response = site.store.get(id)?;
        if let Some(output) = response.output.as_mut().filter(|_| !call.wants_samples) {
            strip_samples(output);
        }
        let response = json!({ "execution_response": response_json(&response) });
        call.send(encode("nighthawk.SinkResponse", &response)?)
            .await?;
    }
    Ok(())
}

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
