//! The API of a Kubernetes cluster, as far as objects are made, looked at and deleted:
//! exchanges as its documentation has them, for no cluster runs where tests do.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::{ApiRequest, json_response, listen};

/// So many times an object that was deleted is still found on its way out.
const LINGERS: u32 = 2;

/// A Kubernetes API with its objects and a record of its requests. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Cluster(Arc<Mutex<ClusterState>>);

#[derive(Debug, Default)]
struct ClusterState {
    /// By path.
    objects: BTreeMap<String, StoredObject>,
    requests: Vec<ApiRequest>,
    /// Responses for the next requests with a prefix: prefix, status, message, remaining uses.
    scripted: Vec<(String, u16, String, u32)>,
    made: u32,
}

#[derive(Debug)]
struct StoredObject {
    uid: String,
    body: String,
    /// Number of requests that still see the object while it is being deleted.
    deletes_after: Option<u32>,
}

impl Cluster {
    /// Returns a URL on loopback and a function that serves it until the process ends. Run the function on its
    /// own thread.
    ///
    /// # Panics
    /// If no port is available.
    pub fn listen(&self) -> (String, impl FnOnce() + Send + use<>) {
        let cluster = self.clone();
        listen(move |request| cluster.respond(request))
    }

    /// Returns the response to `request`; `None` if the request is incomplete.
    #[must_use]
    pub fn respond(&self, request: &[u8]) -> Option<String> {
        let api_request = ApiRequest::read(request)?;
        let mut state = self.state();
        let (status, response) = state.respond(&api_request);
        state.requests.push(api_request);
        Some(json_response(status, "Audit-Id: 1\r\n", &response))
    }

    /// Answers the next `times` requests that begin with `prefix` with `status` and the API's own `message`.
    pub fn script(&self, prefix: &str, status: u16, message: &str, times: u32) {
        let scripted = (prefix.to_owned(), status, message.to_owned(), times);
        self.state().scripted.push(scripted);
    }

    /// Creates `path` with `body`, as another client would.
    pub fn put(&self, path: &str, body: &str) {
        self.state().put(path, body);
    }

    /// Returns the paths of objects that are not being deleted.
    #[must_use]
    pub fn object_paths(&self) -> Vec<String> {
        let state = self.state();
        let kept = state
            .objects
            .iter()
            .filter(|(_, stored)| stored.deletes_after.is_none());
        kept.map(|(path, _)| path.clone()).collect()
    }

    /// Returns all requests so far.
    #[must_use]
    pub fn requests(&self) -> Vec<ApiRequest> {
        self.state().requests.clone()
    }

    /// Counts the requests that begin with `prefix`.
    #[must_use]
    pub fn count(&self, prefix: &str) -> usize {
        let state = self.state();
        state
            .requests
            .iter()
            .filter(|request| request.method_and_path.starts_with(prefix))
            .count()
    }

    fn state(&self) -> MutexGuard<'_, ClusterState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClusterState {
    fn respond(&mut self, request: &ApiRequest) -> (u16, String) {
        let scripted = self.scripted.iter_mut();
        let mut scripted = scripted.filter(|(prefix, _, _, remaining)| {
            *remaining > 0 && request.method_and_path.starts_with(prefix)
        });
        if let Some((_, status, message, remaining)) = scripted.next() {
            *remaining -= 1;
            return (*status, failure(*status, message));
        }
        let (method, path) = request.method_and_path.split_once(' ').unwrap_or_default();
        match method {
            "POST" => self.make(path, &request.body),
            "GET" => match self.objects.get(path) {
                Some(stored) => (200, stored.body.clone()),
                None => (404, failure(404, &format!("{path} not found"))),
            },
            "DELETE" => self.delete(path, &request.body),
            _ => (405, failure(405, "the server does not allow this method")),
        }
    }

    fn make(&mut self, collection: &str, body: &str) -> (u16, String) {
        let Some(name) = after(body, "\"metadata\":").and_then(|rest| after(rest, "\"name\":\""))
        else {
            return (422, failure(422, "metadata.name: Required value"));
        };
        let name = name.split('"').next().unwrap_or_default();
        let path = format!("{collection}/{name}");
        if let Some(stored) = self.objects.get_mut(&path) {
            let kind = collection.rsplit('/').next().unwrap_or_default();
            let exists = format!("{kind} \"{name}\" already exists");
            match &mut stored.deletes_after {
                None => return (409, failure(409, &exists)),
                Some(0) => {}
                Some(remaining) => {
                    *remaining -= 1;
                    let being_deleted = format!("object is being deleted: {exists}");
                    return (409, failure(409, &being_deleted));
                }
            }
        }
        (201, self.put(&path, body))
    }

    fn put(&mut self, path: &str, body: &str) -> String {
        self.made += 1;
        let uid = format!("uid-{}", self.made);
        let body = body.replacen(
            "\"metadata\":{",
            &format!("\"metadata\":{{\"uid\":\"{uid}\","),
            1,
        );
        let stored = StoredObject {
            uid,
            body: body.clone(),
            deletes_after: None,
        };
        self.objects.insert(path.to_owned(), stored);
        body
    }

    fn delete(&mut self, path: &str, body: &str) -> (u16, String) {
        let Some(stored) = self.objects.get_mut(path) else {
            return (404, failure(404, &format!("{path} not found")));
        };
        let wanted = after(body, "\"uid\":\"").and_then(|rest| rest.split('"').next());
        if wanted.is_some_and(|wanted| wanted != stored.uid) {
            return (
                409,
                failure(409, "Precondition failed: UID in precondition"),
            );
        }
        stored.deletes_after.get_or_insert(LINGERS);
        (200, stored.body.clone())
    }
}

fn after<'t>(text: &'t str, part: &str) -> Option<&'t str> {
    text.split_once(part).map(|(_, rest)| rest)
}

/// Returns a `Status` object, as the API reports an error.
fn failure(status: u16, message: &str) -> String {
    let message = message.replace('\\', "\\\\").replace('"', "\\\"");
    format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"status\":\"Failure\",\
         \"message\":\"{message}\",\"reason\":\"Any\",\"code\":{status}}}"
    )
}
