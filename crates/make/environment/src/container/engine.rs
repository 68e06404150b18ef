//! One question to an engine at a time, each over a connection of its own.

use std::path::{Path, PathBuf};

use stillwell_http::{OneShot, RequestTemplate};
use stillwell_metric::Outcome;
use stillwell_units::ByteSize;
use stillwell_wire::dial;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use stillwell_wire::stream_outcome;

/// An engine's longest answer is what it tells while it pulls an image.
const ANSWER_MAX: ByteSize = ByteSize::mib(16);

/// Where an engine listens.
#[derive(Clone, Debug)]
pub(super) struct Engine {
    socket: PathBuf,
}

/// What an engine said.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Vec<u8>,
}

impl Answer {
    pub(super) fn outcome(&self) -> Outcome {
        Outcome::of_status(self.status)
    }
}

impl Engine {
    pub(super) fn new(socket: &Path) -> Self {
        Self {
            socket: socket.to_owned(),
        }
    }

    /// Asks, with `body` as JSON where there is any.
    pub(super) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: &[u8],
    ) -> Result<Answer, Outcome> {
        let headers = [
            ("user-agent", "stillwell"),
            ("content-type", "application/json"),
            ("connection", "close"),
        ];
        let template = RequestTemplate::new(method, path, "localhost", &headers);
        // A name that cannot stand in a request is none that an engine knows.
        let template = template.map_err(|_| Outcome::SendFailed)?;
        let mut request = Vec::new();
        template.write_head(body.len() as u64, &mut request);
        request.extend_from_slice(body);
        let dialled = dial::unix_stream(&self.socket).await;
        let mut stream = dialled.map_err(|error| error.outcome())?;
        let lost = |error| stream_outcome(&error);
        stream.write_all(&request).await.map_err(lost)?;
        let mut answer = OneShot::new(ANSWER_MAX);
        let mut buffer = vec![0; 16 << 10];
        let response = loop {
            let length = stream.read(&mut buffer).await.map_err(lost)?;
            if length == 0 {
                break answer.finish().map_err(|_| Outcome::PeerClosed)?;
            }
            let pushed = answer.push(&buffer[..length]);
            if let Some(response) = pushed.map_err(|_| Outcome::Malformed)? {
                break response;
            }
        };
        Ok(Answer {
            status: response.status,
            body: response.body,
        })
    }
}
