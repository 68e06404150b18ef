//! One call of gRPC on a connection of its own.

use stillwell_http::Scheme;
use stillwell_http::grpc::{MessageReader, status, write_message};
use stillwell_http::h2::{BodyLength, Client, ClientEvent, Fields, Limits, RequestBlock, Stream};
use stillwell_scope::explain;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::post::{Opened, Receiver};

/// The longest answer that is read, in bytes.
const ANSWER_BYTES_MAX: u32 = 1 << 20;

/// Calls `method`, such as `/package.Service/Method`, and gives the message that
/// it answers.
pub(super) async fn call(
    receiver: &Receiver,
    method: &str,
    message: &[u8],
) -> Result<Vec<u8>, String> {
    let plan = receiver.plan();
    let scheme = match plan.tls_host {
        Some(_) => Scheme::Https,
        None => Scheme::Http,
    };
    let headers = [
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", "stillwell"),
    ];
    let block = RequestBlock::new("POST", scheme, &plan.authority, method, &headers);
    let block = block.map_err(|error| explain(&error))?;
    let mut body = Vec::new();
    write_message(message, false, &mut body).map_err(|error| explain(&error))?;
    let mut call = Call {
        client: Client::new(Limits::default()),
        body,
        sent: 0,
        answer: Vec::new(),
        reader: MessageReader::new(ANSWER_BYTES_MAX),
        outcome: None,
    };
    let stream = call
        .client
        .request(&block, BodyLength::Unknown)
        .map_err(|error| explain(&error))?;
    call.send_more(stream)?;
    match receiver.open().await? {
        Opened::Plain(connection) => call.attend(connection, stream).await,
        Opened::Tls(connection) => call.attend(*connection, stream).await,
    }
}

struct Call {
    client: Client,
    body: Vec<u8>,
    /// How much of the body has left.
    sent: usize,
    answer: Vec<u8>,
    reader: MessageReader,
    /// What the receiver says of the call, and why.
    outcome: Option<(u32, String)>,
}

/// What a call comes to after some input.
enum Step {
    /// More is to come.
    On,
    /// There is room for more of the body.
    Room,
    /// The answer is whole.
    Whole,
}

impl Call {
    fn send_more(&mut self, stream: Stream) -> Result<(), String> {
        let rest = &self.body[self.sent..];
        let sent = self.client.send_body(stream, rest, true);
        self.sent += sent.map_err(|error| explain(&error))?;
        Ok(())
    }

    async fn attend<S: AsyncRead + AsyncWrite + Unpin>(
        mut self,
        mut connection: S,
        stream: Stream,
    ) -> Result<Vec<u8>, String> {
        let mut buffer = vec![0; 16 << 10];
        loop {
            while !self.client.output().is_empty() {
                let written = connection.write(self.client.output()).await;
                self.client.sent(written.map_err(|error| explain(&error))?);
            }
            connection.flush().await.map_err(|error| explain(&error))?;
            let read = connection.read(&mut buffer).await;
            let length = read.map_err(|error| explain(&error))?;
            if length == 0 {
                return Err("it closes the connection without an answer".to_owned());
            }
            let mut taken = 0;
            loop {
                let (more, step) = self.step(&buffer[taken..length])?;
                taken += more;
                match step {
                    Step::Room => self.send_more(stream)?,
                    Step::Whole => return self.answer(),
                    Step::On if taken == length => break,
                    Step::On => {}
                }
            }
        }
    }

    fn step(&mut self, input: &[u8]) -> Result<(usize, Step), String> {
        let (taken, event) = self
            .client
            .advance(input)
            .map_err(|error| explain(&error))?;
        let step = match event {
            None => return Ok((input.len(), Step::On)),
            Some(ClientEvent::Head { head, .. }) => {
                if head.status != 200 {
                    return Err(format!("it answers {}", head.status));
                }
                self.outcome = outcome(head.fields);
                Step::On
            }
            Some(ClientEvent::Body { bytes, .. }) => {
                let mut read = 0;
                while read < bytes.len() {
                    let next = self.reader.advance(&bytes[read..]);
                    let (more, message) = next.map_err(|error| explain(&error))?;
                    read += more;
                    if let Some(message) = message {
                        self.answer = message.bytes.to_vec();
                    }
                }
                Step::On
            }
            Some(ClientEvent::End { trailers, .. }) => {
                let told = trailers.and_then(outcome);
                self.outcome = told.or_else(|| self.outcome.take());
                Step::Whole
            }
            Some(ClientEvent::Failed { cause, .. }) => {
                return Err(format!("it refuses the request: {cause:?}"));
            }
            Some(ClientEvent::Room { .. }) => Step::Room,
        };
        Ok((taken, step))
    }

    fn answer(self) -> Result<Vec<u8>, String> {
        match self.outcome {
            Some((0, _)) => Ok(self.answer),
            Some((code, why)) => Err(format!("it answers gRPC status {code} {why}")),
            None => Err("it answers without a gRPC status".to_owned()),
        }
    }
}

fn outcome(fields: Fields<'_>) -> Option<(u32, String)> {
    let why = fields.value("grpc-message").unwrap_or_default();
    Some((status(fields)?, String::from_utf8_lossy(why).into_owned()))
}
