//! The API of a container engine, as Docker defined it, over a Unix socket.

use std::path::Path;

use serde_json::Value;
use stillwell_units::{ByteSize, Nanos};

use super::{Endpoint, Request, RequestError, Response};

/// A container engine.
#[derive(Clone, Debug)]
pub struct Docker {
    endpoint: Endpoint,
    response_max: ByteSize,
    deadline: Option<Nanos>,
}

/// A container that was not removed, or perhaps not.
#[derive(Debug, thiserror::Error)]
pub enum NotRemoved {
    /// No response. Displays the cause alone.
    #[error(transparent)]
    Unanswered(RequestError),
    /// The engine refused.
    #[error("the container engine answers {status}, {message}")]
    Refused {
        /// The status of the response.
        status: u16,
        /// The engine's message.
        message: String,
    },
}

impl Docker {
    /// The engine that listens at `socket`. Responses have at most `response_max`.
    #[must_use]
    pub fn new(socket: &Path, response_max: ByteSize) -> Self {
        Self {
            endpoint: Endpoint::unix(socket),
            response_max,
            deadline: None,
        }
    }

    /// The same engine, whose responses take at most `deadline`.
    #[must_use]
    pub fn within(&self, deadline: Nanos) -> Self {
        Self {
            deadline: Some(deadline),
            ..self.clone()
        }
    }

    /// Sends one request, with `body` as JSON unless it is empty. Cancel-safe.
    ///
    /// # Errors
    /// [`RequestError`].
    pub async fn send(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Response, RequestError> {
        let request = Request {
            method,
            path,
            authority: "localhost",
            headers: &[
                ("user-agent", "stillwell"),
                ("content-type", "application/json"),
                ("connection", "close"),
            ],
            body,
        };
        match self.deadline {
            None => self.endpoint.request(&request, self.response_max).await,
            Some(deadline) => {
                let sent = self
                    .endpoint
                    .request_within(deadline, &request, self.response_max);
                sent.await
            }
        }
    }

    /// Stops a container at once and removes it with its volumes.
    ///
    /// # Errors
    /// [`NotRemoved`]. A container that is not there counts as removed.
    pub async fn remove(&self, id: &str) -> Result<(), NotRemoved> {
        let path = format!("/containers/{id}?force=true&v=true");
        let response = self.send("DELETE", &path, b"").await;
        removed(&response.map_err(NotRemoved::Unanswered)?)
    }
}

/// Returns the result of a removal with this response.
fn removed(response: &Response) -> Result<(), NotRemoved> {
    match response.status {
        200..=299 | 404 => Ok(()),
        status => Err(NotRemoved::Refused {
            status,
            message: message_of(&response.body),
        }),
    }
}

/// The id of a container in the response to its creation. It becomes part of a path, so
/// anything but letters and digits is refused.
#[must_use]
pub fn id_of(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let id = body.get("Id")?.as_str()?;
    let is_plain = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_plain.then(|| id.to_owned())
}

/// The `message` of an error response. Kubernetes has the same form.
#[must_use]
pub fn message_of(body: &[u8]) -> String {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let message = body.and_then(|body| Some(body.get("message")?.as_str()?.to_owned()));
    message.unwrap_or_else(|| "without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_plain_id_is_one() {
        assert_eq!(
            id_of(br#"{"Id":"ab12","Warnings":[]}"#),
            Some("ab12".to_owned())
        );
        for wrong in [r#"{"Id":"../x"}"#, r#"{"Id":""}"#, r#"{"id":"a"}"#, "x"] {
            assert_eq!(id_of(wrong.as_bytes()), None, "{wrong}");
        }
    }

    #[test]
    fn a_container_is_removed_once_the_engine_has_none_of_its_id() {
        let result = |status: u16, body: &[u8]| {
            let body = body.to_vec();
            removed(&Response { status, body }).map_err(|error| error.to_string())
        };
        assert_eq!(result(204, b""), Ok(()));
        assert_eq!(
            result(404, br#"{"message":"No such container: a"}"#),
            Ok(())
        );
        let busy = "the container engine answers 500, device is busy";
        assert_eq!(
            result(500, br#"{"message":"device is busy"}"#),
            Err(busy.to_owned())
        );
    }
}
