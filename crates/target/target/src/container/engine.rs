//! Requests to a container engine, with the errors of this crate.

use std::path::{Path, PathBuf};

use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::Response;
use stillwell_wire::client::docker::{Docker, id_of, message_of};

use super::body::State;
use super::{ANSWER_MAX, ContainerError};
use crate::failure::with_source;

/// What an engine says of a container is some kilobytes.
const BODY_MAX: ByteSize = ByteSize::mib(4);

/// A container engine whose failures name its socket.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    socket: PathBuf,
    docker: Docker,
}

impl Engine {
    pub(super) fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
            docker: Docker::new(socket, BODY_MAX).within(ANSWER_MAX),
        }
    }

    /// The same engine, with another deadline for each response.
    pub(super) fn within(&self, deadline: Nanos) -> Self {
        Self {
            docker: self.docker.within(deadline),
            ..self.clone()
        }
    }

    /// Sends one request, with `body` as JSON where there is any.
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, ContainerError> {
        let sent = self.docker.send(method, path, body).await;
        sent.map_err(|error| ContainerError::Engine {
            socket: self.socket.clone(),
            reason: with_source(error),
        })
    }

    /// Has it do `what`.
    pub(super) async fn order(
        &self,
        what: &str,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, ContainerError> {
        let answer = self.send(method, path, body).await?;
        match answer.status {
            200..=299 | 304 => Ok(answer),
            status => Err(ContainerError::Refused {
                what: what.to_owned(),
                status,
                message: message_of(&answer.body),
            }),
        }
    }

    /// What it knows of a container; in words, if it knows none of that name.
    pub(super) async fn inspect(
        &self,
        name: &str,
    ) -> Result<Result<State, String>, ContainerError> {
        let path = format!("/containers/{name}/json");
        let answer = self.send("GET", &path, b"").await?;
        if answer.status == 404 {
            return Ok(Err(message_of(&answer.body)));
        }
        let unread = || ContainerError::Refused {
            what: "tell of it".to_owned(),
            status: answer.status,
            message: message_of(&answer.body),
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
        id_of(&answer.body).ok_or_else(|| ContainerError::Refused {
            what,
            status: answer.status,
            message: "without an id".to_owned(),
        })
    }

    /// Stops a container at once and removes it with its volumes.
    pub(super) async fn remove(&self, id: &str) {
        self.docker.remove(id).await;
    }
}
