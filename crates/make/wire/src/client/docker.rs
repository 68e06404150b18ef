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
    pub async fn remove(&self, id: &str) {
        let path = format!("/containers/{id}?force=true&v=true");
        // An engine that does not answer cannot be helped; the label shows what is left.
        drop(self.send("DELETE", &path, b"").await);
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
}
