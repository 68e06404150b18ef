//! Requests to a container engine, with the errors of this crate.

use std::path::{Path, PathBuf};

use stillwell_scope::explain;
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::Response;
use stillwell_wire::client::docker::{Docker, id_of, message_of};

use super::body::State;
use super::{ContainerError, RESPONSE_MAX};

/// Limit on the engine's responses, which have some kilobytes.
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
            docker: Docker::new(socket, BODY_MAX).within(RESPONSE_MAX),
        }
    }

    /// The same engine, with another deadline for each response.
    pub(super) fn within(&self, deadline: Nanos) -> Self {
        Self {
            docker: self.docker.within(deadline),
            ..self.clone()
        }
    }

    /// Sends one request, with `body` as JSON if it is not empty.
    async fn send(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, ContainerError> {
        let sent = self.docker.send(method, path, body).await;
        sent.map_err(|error| ContainerError::Engine {
            socket: self.socket.clone(),
            reason: explain(&error),
        })
    }

    /// Has it do `action`.
    pub(super) async fn order(
        &self,
        action: &str,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, ContainerError> {
        let response = self.send(method, path, body).await?;
        match response.status {
            200..=299 | 304 => Ok(response),
            status => Err(ContainerError::Refused {
                action: action.to_owned(),
                status,
                message: message_of(&response.body),
            }),
        }
    }

    /// Returns the state of a container; the engine's message if there is no such container.
    pub(super) async fn inspect(
        &self,
        name: &str,
    ) -> Result<Result<State, String>, ContainerError> {
        let path = format!("/containers/{name}/json");
        let response = self.send("GET", &path, b"").await?;
        if response.status == 404 {
            return Ok(Err(message_of(&response.body)));
        }
        let unread = || ContainerError::Refused {
            action: "inspect it".to_owned(),
            status: response.status,
            message: message_of(&response.body),
        };
        let is_ok = response.status == 200;
        let state = is_ok.then(|| State::read(&response.body)).flatten();
        state.map(Ok).ok_or_else(unread)
    }

    /// Creates a container from `image`. Returns its id.
    pub(super) async fn create(&self, image: &str, body: &[u8]) -> Result<String, ContainerError> {
        let action = format!("create a container from `{image}`");
        let response = self
            .order(&action, "POST", "/containers/create", body)
            .await;
        let response = response.map_err(|error| match error {
            ContainerError::Refused {
                action,
                status: 404,
                message,
            } => ContainerError::Refused {
                message: format!("{message} (images are not pulled: do that before)"),
                status: 404,
                action,
            },
            error => error,
        })?;
        id_of(&response.body).ok_or_else(|| ContainerError::Refused {
            action,
            status: response.status,
            message: "without an id".to_owned(),
        })
    }

    /// Kills a container and removes it with its volumes. The error names the container.
    pub(super) async fn remove(&self, id: &str) -> Result<(), ContainerError> {
        let removed = self.docker.remove(id).await;
        removed.map_err(|error| ContainerError::Remains {
            id: id.to_owned(),
            reason: explain(&error),
        })
    }
}
