//! The part of the APIs of GitHub and GitLab that comments on pull requests need: list, create, replace.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cluster::ApiRequest;

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
        let listener = TcpListener::bind("127.0.0.1:0");
        let listener = listener.unwrap_or_else(|error| panic!("listen on loopback: {error}"));
        let address = listener.local_addr();
        let address = address.unwrap_or_else(|error| panic!("where it listens: {error}"));
        let forge = self.clone();
        let serve = move || {
            while let Ok((peer, _)) = listener.accept() {
                // The server ignores errors of a connection.
                forge.serve_connection(peer).unwrap_or_default();
            }
        };
        (format!("http://{address}"), serve)
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

    fn serve_connection(&self, mut peer: TcpStream) -> io::Result<()> {
        let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
        loop {
            let length = peer.read(&mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            read.extend_from_slice(&buffer[..length]);
            if let Some(response) = self.respond(&read) {
                return peer.write_all(response.as_bytes());
            }
        }
    }

    /// Returns the response to `request`; `None` if the request is incomplete.
    fn respond(&self, request: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(request);
        let (head, body) = text.split_once("\r\n\r\n")?;
        let header = |wanted: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            let line = lines.find(|(name, _)| name.eq_ignore_ascii_case(wanted));
            line.map(|(_, value)| value)
        };
        let length = header("content-length").and_then(|length| length.parse().ok());
        if body.len() < length.unwrap_or(0) {
            return None;
        }
        let token = header("authorization").or_else(|| header("private-token"));
        let line = head.lines().next().unwrap_or_default();
        let api_request = ApiRequest {
            method_and_path: line.trim_end_matches(" HTTP/1.1").to_owned(),
            authorization: token.unwrap_or_default().to_owned(),
            body: body.to_owned(),
        };
        let mut state = self.state();
        let (status, response) = state.respond(&api_request);
        state.requests.push(api_request);
        let length = response.len();
        Some(format!(
            "HTTP/1.1 {status} Any\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{response}"
        ))
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
