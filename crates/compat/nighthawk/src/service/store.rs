//! Results of one execution by several services, kept until a client requests all of them
//! together.

use std::cell::RefCell;
use std::collections::VecDeque;

use crate::wire::{ExecutionResponse, encode_response};

use crate::service::grpc::{CallFailed, StatusCode};
use crate::service::samples::merge_responses;

/// Executions that are kept; the oldest one goes for a new one.
const EXECUTIONS_MAX: usize = 64;

/// Results of one execution.
const RESULTS_MAX: usize = 256;

/// Bytes of all results together, as they come over the wire; the oldest executions
/// go for new ones.
const BYTES_MAX: usize = 256 << 20;

/// Results by the id of their execution.
#[derive(Debug)]
pub(crate) struct Store {
    bytes_max: usize,
    /// The oldest first.
    executions: RefCell<VecDeque<Execution>>,
}

#[derive(Debug)]
struct Execution {
    id: String,
    results: Vec<ExecutionResponse>,
    bytes: usize,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            bytes_max: BYTES_MAX,
            executions: RefCell::default(),
        }
    }
}

impl Store {
    /// Keeps one more result of the execution `id`.
    pub(crate) fn put(&self, id: &str, response: ExecutionResponse) -> Result<(), CallFailed> {
        let bytes = bytes_of(&response)?;
        let mut executions = self.executions.borrow_mut();
        let known = executions.iter().position(|execution| execution.id == id);
        let mut execution = match known.and_then(|at| executions.get(at)) {
            Some(execution) if execution.results.len() >= RESULTS_MAX => {
                let why = format!("{id} already has {RESULTS_MAX} results, which is the maximum");
                return Err(CallFailed::new(StatusCode::ResourceExhausted, why));
            }
            Some(execution) if execution.bytes.saturating_add(bytes) > self.bytes_max => {
                return Err(self.too_long(id));
            }
            Some(_) => known.and_then(|at| executions.remove(at)),
            None => None,
        }
        .unwrap_or_else(|| Execution {
            id: id.to_owned(),
            results: Vec::new(),
            bytes: 0,
        });
        execution.results.push(response);
        execution.bytes = execution.bytes.saturating_add(bytes);
        self.push(&mut executions, execution)
    }

    /// Keeps `responses` as all results of the execution `id`, in place of those that
    /// there were.
    pub(crate) fn replace(
        &self,
        id: &str,
        responses: Vec<ExecutionResponse>,
    ) -> Result<(), CallFailed> {
        let mut bytes: usize = 0;
        for response in &responses {
            bytes = bytes.saturating_add(bytes_of(response)?);
        }
        let mut executions = self.executions.borrow_mut();
        executions.retain(|execution| execution.id != id);
        let execution = Execution {
            id: id.to_owned(),
            results: responses,
            bytes,
        };
        self.push(&mut executions, execution)
    }

    /// Keeps `execution` as the newest execution; older ones make room.
    fn push(
        &self,
        executions: &mut VecDeque<Execution>,
        execution: Execution,
    ) -> Result<(), CallFailed> {
        if execution.bytes > self.bytes_max {
            return Err(self.too_long(&execution.id));
        }
        let bytes =
            |all: &VecDeque<Execution>| all.iter().map(|execution| execution.bytes).sum::<usize>();
        while executions.len() >= EXECUTIONS_MAX
            || bytes(executions) > self.bytes_max - execution.bytes
        {
            executions.pop_front();
        }
        executions.push_back(execution);
        Ok(())
    }

    fn too_long(&self, id: &str) -> CallFailed {
        let why = format!(
            "the results of {id} exceed the limit of {} bytes",
            self.bytes_max
        );
        CallFailed::new(StatusCode::ResourceExhausted, why)
    }

    /// All results of the execution `id` together.
    pub(crate) fn get(&self, id: &str) -> Result<ExecutionResponse, CallFailed> {
        let executions = self.executions.borrow();
        let known = executions.iter().find(|execution| execution.id == id);
        let execution = known.ok_or_else(|| {
            let why = format!("there are no results of execution `{id}`");
            CallFailed::new(StatusCode::NotFound, why)
        })?;
        Ok(ExecutionResponse {
            execution_id: id.to_owned(),
            ..merge_responses(&execution.results)
        })
    }
}

/// Returns the encoded length of a response.
fn bytes_of(response: &ExecutionResponse) -> Result<usize, CallFailed> {
    let bytes = encode_response(response);
    let bytes = bytes.map_err(|error| CallFailed::new(StatusCode::Internal, error.to_string()))?;
    Ok(bytes.len())
}

#[cfg(test)]
mod tests {
    use crate::wire::Status;

    use super::*;

    fn response(message: &str) -> ExecutionResponse {
        ExecutionResponse {
            error_detail: Some(Status {
                code: 14,
                message: message.to_owned(),
            }),
            ..ExecutionResponse::default()
        }
    }

    fn messages(store: &Store, id: &str) -> String {
        let whole = store
            .get(id)
            .map(|whole| whole.error_detail.unwrap().message);
        whole.unwrap_or_else(|ended| format!("{:?}", ended.code))
    }

    #[test]
    fn an_execution_that_is_run_again_replaces_what_there_was() {
        let store = Store::default();
        store
            .replace("one", vec![response("a"), response("b")])
            .unwrap();
        store.put("one", response("c")).unwrap();
        assert_eq!(messages(&store, "one"), "a; b; c");
        store.replace("one", vec![response("d")]).unwrap();
        assert_eq!(messages(&store, "one"), "d");
    }

    #[test]
    fn the_oldest_go_where_bytes_run_out_and_what_is_too_long_is_refused() {
        let length = bytes_of(&response("a")).unwrap();
        let store = Store {
            bytes_max: 2 * length,
            ..Store::default()
        };
        for id in ["one", "two", "three"] {
            store.put(id, response("a")).unwrap();
        }
        assert_eq!(messages(&store, "one"), "NotFound");
        store.put("two", response("b")).unwrap();
        assert_eq!(messages(&store, "two"), "a; b");
        assert_eq!(messages(&store, "three"), "NotFound");
        let refused = store.put("two", response("c")).unwrap_err();
        assert_eq!(refused.code, StatusCode::ResourceExhausted);
        assert_eq!(messages(&store, "two"), "a; b");
    }
}
