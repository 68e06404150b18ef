//! The part of the APIs of GitHub and GitLab that comments on pull requests need: list, create, replace.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::api::{ApiRequest, json_response, listen};

/// Comments of one page of a list.
const PER_PAGE: usize = 100;

/// A host of repositories with one thread of comments, and a record of its requests. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct Forge(Arc<Mutex<ForgeState>>);

#[derive(Debug, Default)]
struct ForgeState {
    /// Texts of comments; the number of a comment is its place, from 1.
    comments: Vec<String>,
    requests: Vec<ApiRequest>,
    /// Statuses for the next requests with a method: method, status, remaining uses.
    scripted: Vec<(String, u16, u32)>,
}

impl Forge {
    /// Returns a URL on loopback and a function that serves it until the process ends. Run the function on its own
    /// thread.
    ///
    /// # Panics
    /// If no port is available.
    pub fn listen(&self) -> (String, impl FnOnce() + Send + use<>) {
        let forge = self.clone();
        listen(move |request| forge.respond(request))
    }

    /// Answers the next `times` requests of this method with `status`.
    pub fn script(&self, method: &str, status: u16, times: u32) {
        let scripted = (method.to_owned(), status, times);
        self.state().scripted.push(scripted);
    }

    /// Adds a comment of another person.
    pub fn put(&self, text: &str) {
        self.state().comments.push(text.to_owned());
    }

    /// Returns the comments.
    #[must_use]
    pub fn comments(&self) -> Vec<String> {
        self.state().comments.clone()
    }

    /// Returns the requests since the last call.
    #[must_use]
    pub fn take_requests(&self) -> Vec<ApiRequest> {
        std::mem::take(&mut self.state().requests)
    }

    fn state(&self) -> MutexGuard<'_, ForgeState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the response to `request`; `None` if the request is incomplete.
    fn respond(&self, request: &[u8]) -> Option<String> {
        let api_request = ApiRequest::read(request)?;
        let mut state = self.state();
        let (status, response) = state.respond(&api_request);
        state.requests.push(api_request);
        Some(json_response(status, "", &response))
    }
}

impl ForgeState {
    fn respond(&mut self, request: &ApiRequest) -> (u16, String) {
        let (method, path) = request.method_and_path.split_once(' ').unwrap_or_default();
        let scripted = self.scripted.iter_mut();
        let mut scripted = scripted.filter(|(of, _, left)| of == method && *left > 0);
        if let Some((_, status, left)) = scripted.next() {
            *left -= 1;
            return (*status, r#"{"message": "scripted"}"#.to_owned());
        }
        if request.authorization.is_empty() {
            return (401, r#"{"message": "no token"}"#.to_owned());
        }
        let text = serde_json::from_str(&request.body).ok();
        let text =
            text.and_then(|body: serde_json::Value| body["body"].as_str().map(str::to_owned));
        match (method, text) {
            ("GET", _) => {
                let page = path.rsplit_once("&page=");
                let page: usize = page.and_then(|(_, page)| page.parse().ok()).unwrap_or(1);
                let comments = self.comments.iter().enumerate();
                let comments = comments.skip((page - 1) * PER_PAGE).take(PER_PAGE);
                let comments: Vec<_> = comments
                    .map(|(index, body)| serde_json::json!({ "id": index + 1, "body": body }))
                    .collect();
                (200, serde_json::Value::from(comments).to_string())
            }
            ("POST", Some(text)) => {
                self.comments.push(text);
                (201, format!("{{\"id\": {}}}", self.comments.len()))
            }
            ("PATCH" | "PUT", Some(text)) => {
                let id = path.rsplit_once('/');
                let id: Option<usize> = id.and_then(|(_, id)| id.parse().ok());
                let comment = id.and_then(|id| self.comments.get_mut(id.checked_sub(1)?));
                match comment {
                    Some(comment) => {
                        *comment = text;
                        (200, "{}".to_owned())
                    }
                    None => (404, "{}".to_owned()),
                }
            }
            _ => (400, "{}".to_owned()),
        }
    }
}
