//! One question to an engine at a time, each over a connection of its own.

use std::path::{Path, PathBuf};

use serde_json::Value;
use stillwell_http::{RequestTemplate, Response};
use stillwell_scope::clock;
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::{Timer, dial};

use super::body::State;
use super::{ANSWER_MAX, ContainerError};
use crate::exchange::{exchange, with_source};

/// What an engine says of a container is some kilobytes.
const BODY_MAX: ByteSize = ByteSize::mib(4);

/// Where an engine listens, and how long it may take to answer.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    socket: PathBuf,
    patience: Nanos,
}

impl Engine {
    pub(super) fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            patience: ANSWER_MAX,
        }
    }

    /// The same, asked for what takes longer.
    pub(super) fn patient(&self, patience: Nanos) -> Self {
        Self {
            patience,
            ..self.clone()
        }
    }

    /// Asks, with `body` as JSON where there is any.
    async fn ask(&self, method: &str, path: &str, body: &[u8]) -> Result<Response, ContainerError> {
        let failed = |reason: String| ContainerError::Engine {
            socket: self.socket.clone(),
            reason,
        };
        let mut timer = Timer::new().map_err(|error| failed(error.to_string()))?;
        tokio::select! {
            // What is given up is a connection.
            answer = self.answer(method, path, body) => answer.map_err(failed),
            // Cancel-safe.
            () = timer.until(clock::now() + self.patience) => {
                Err(failed(format!("no answer within {}", self.patience)))
            }
        }
    }

    async fn answer(&self, method: &str, path: &str, body: &[u8]) -> Result<Response, String> {
        let headers = [
            ("user-agent", "stillwell"),
            ("content-type", "application/json"),
            ("connection", "close"),
        ];
        let template = RequestTemplate::new(method, path, "localhost", &headers);
        let template = template.map_err(with_source)?;
        let mut request = Vec::new();
        template.write_head(body.len() as u64, &mut request);
        request.extend_from_slice(body);
        let stream = dial::unix_stream(&self.socket).await.map_err(with_source)?;
        exchange(stream, &request, BODY_MAX).await
    }

    /// Has it do `what`.
    pub(super) async fn order(
        &self,
        what: &str,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, ContainerError> {
        let answer = self.ask(method, path, body).await?;
        match answer.status {
            200..=299 | 304 => Ok(answer),
            status => Err(ContainerError::Refused {
                what: what.to_owned(),
                status,
                message: message_of(&answer),
            }),
        }
    }

    /// What it knows of a container; in words, if it knows none of that name.
    pub(super) async fn inspect(
        &self,
        name: &str,
    ) -> Result<Result<State, String>, ContainerError> {
        let path = format!("/containers/{name}/json");
        let answer = self.ask("GET", &path, b"").await?;
        if answer.status == 404 {
            return Ok(Err(message_of(&answer)));
        }
        let unread = || ContainerError::Refused {
            what: "tell of it".to_owned(),
            status: answer.status,
            message: message_of(&answer),
        };
        let is_told = answer.status == 200;
        let state = is_told.then(|| State::read(&answer.body)).flatten();
        state.map(Ok).ok_or_else(unread)
    }

    /// Creates a container from `image`; its id.
    pub(super) async fn create(&self, image: &str, body: &[u8]) -> Result<String, ContainerError> {
        let what = format!("create a container from `{image}`");
        let answer = self.order(&what, "POST", "/containers/create", body).await;
        let answer = answer.map_err(|error| match error {
            ContainerError::Refused {
                what,
                status: 404,
                message,
            } => ContainerError::Refused {
                message: format!("{message} (images are not pulled: do that before)"),
                status: 404,
                what,
            },
            other => other,
        })?;
        let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
        let id = said.and_then(|said| Some(said.get("Id")?.as_str()?.to_owned()));
        let is_plain =
            |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        // It becomes part of a path.
        id.filter(is_plain).ok_or_else(|| ContainerError::Refused {
            what,
            status: answer.status,
            message: "without an id".to_owned(),
        })
    }

    /// Ends it at once and removes it with what it wrote.
    pub(super) async fn remove(&self, id: &str) {
        let path = format!("/containers/{id}?force=true&v=true");
        // An engine that does not answer cannot be helped; the label tells what is left.
        drop(self.ask("DELETE", &path, b"").await);
    }
}

/// An engine's words, from an answer that is an error.
fn message_of(answer: &Response) -> String {
    let said: Option<Value> = serde_json::from_slice(&answer.body).ok();
    let message = said.and_then(|said| Some(said.get("message")?.as_str()?.to_owned()));
    message.unwrap_or_else(|| "and does not say why".to_owned())
}
