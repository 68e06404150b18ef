//! One request and its response over HTTP/2, alone on the connection of a user.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use stillwell_http::Scheme;
use stillwell_http::h2::{
    BodyLength, Client, ClientEvent, H2ErrorCode, H2RequestBlock, H2StreamFailure, Limits,
};
use stillwell_scope::{clock, explain};
use stillwell_units::Moment;
use stillwell_wire::Connection;
use tokio::io::AsyncWrite as _;

use super::super::http1::poll_read;
use super::context::UserContext;
use super::cookies::{Cookie, keep_cookie, write_cookies};
use super::exchange::{
    Broken, StepError, add_body, append_path, fill, malformed, parts, sends_length,
};
use super::extract::PreparedStep;
use super::result::StepFailure;
use super::user::User;

/// The state of HTTP/2 of a user.
#[derive(Default)]
pub(super) struct Http2Exchange {
    /// The connection, if there is one.
    client: Option<Box<Client>>,
    /// The head of the next request.
    head: Option<H2RequestBlock>,
}

impl Http2Exchange {
    /// Begins a connection.
    pub(super) fn begin(&mut self) {
        self.client = Some(Box::new(Client::new(Limits {
            concurrent_streams_max: 1,
            ..Limits::default()
        })));
    }
}

/// A response as far as it was read.
struct Http2Answer<'u> {
    step: &'u PreparedStep,
    path: &'u [u8],
    cookies: &'u mut Vec<Cookie>,
    headers: &'u mut Vec<(String, String)>,
    body: &'u mut Vec<u8>,
    status: u16,
    first_byte: Option<Moment>,
    is_whole: bool,
    /// Reason why it will stay incomplete.
    failure: Option<Broken>,
}

impl Http2Answer<'_> {
    fn take(&mut self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::Head { head, .. } => {
                self.status = head.status;
                self.first_byte = Some(clock::now());
                for (name, value) in head.fields.iter() {
                    if name == b"set-cookie" {
                        keep_cookie(self.cookies, value, self.path);
                    }
                    let name = String::from_utf8_lossy(name);
                    if self.step.takes_header(&name) {
                        let value = String::from_utf8_lossy(value).into_owned();
                        self.headers.push((name.into_owned(), value));
                    }
                }
            }
            ClientEvent::Body { bytes, .. } if self.step.needs_body => {
                if let Err(error) = add_body(self.body, bytes) {
                    self.failure = Some(self.broken(error));
                }
            }
            ClientEvent::End { .. } => self.is_whole = true,
            ClientEvent::Failed { cause, .. } => self.failure = Some(self.failed(cause)),
            ClientEvent::Body { .. } | ClientEvent::Room { .. } => {}
        }
    }

    fn failed(&self, cause: &H2StreamFailure) -> Broken {
        match cause {
            H2StreamFailure::Malformed { .. } | H2StreamFailure::HeadersTooLarge => {
                self.broken(malformed(cause.to_string()))
            }
            // The server has begun with it.
            H2StreamFailure::Reset(_) => Broken {
                error: StepError::new(StepFailure::ConnectionLost, cause.to_string()),
                is_unanswered: false,
                is_refused: false,
            },
            H2StreamFailure::Refused | H2StreamFailure::ConnectionLost => Broken {
                is_refused: matches!(cause, H2StreamFailure::Refused),
                ..self.broken(StepError::new(
                    StepFailure::ConnectionLost,
                    cause.to_string(),
                ))
            },
        }
    }

    /// Nothing came back if there is no head.
    fn broken(&self, error: StepError) -> Broken {
        Broken {
            error,
            is_unanswered: self.first_byte.is_none(),
            is_refused: false,
        }
    }
}

impl User {
    /// Encodes the head of the request with the current values of variables. Its body becomes the
    /// output.
    pub(super) fn encode_request(
        &mut self,
        context: &UserContext,
        step: &PreparedStep,
    ) -> Result<(), StepError> {
        let Self {
            output,
            values,
            path,
            cookies,
            http2,
            ..
        } = self;
        let (plan, scenario) = (&step.plan, &context.plan);
        output.clear();
        append_path(scenario, plan, values, path, output);
        let path_and_query = String::from_utf8_lossy(output).into_owned();
        let mut headers: Vec<(String, String)> = Vec::new();
        for (name, value) in &plan.headers {
            headers.push((name.to_ascii_lowercase(), parts(value, values).collect()));
        }
        output.clear();
        write_cookies(cookies, path, b"", output);
        if !output.is_empty() {
            let cookies = String::from_utf8_lossy(output).into_owned();
            headers.push(("cookie".to_owned(), cookies));
        }
        let headers = headers.iter();
        let headers: Vec<(&str, &str)> = headers.map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let scheme = match scenario.tls_host {
            Some(_) => Scheme::Https,
            None => Scheme::Http,
        };
        let (method, authority) = (&plan.method, &scenario.authority);
        let head = H2RequestBlock::new(method, scheme, authority, &path_and_query, &headers);
        let head = head.map_err(|error| StepError::new(StepFailure::Value, explain(&error)))?;
        http2.head = Some(head);
        output.clear();
        fill(&plan.body, values, output);
        Ok(())
    }

    /// Reads what the server sent while nothing was requested. Returns true if it has ended the connection, or takes no
    /// more requests.
    pub(super) async fn has_ended_http2(&mut self) -> bool {
        let (Some(connection), Some(client)) = (&mut self.connection, &mut self.http2.client)
        else {
            return false;
        };
        let input = &mut self.input;
        loop {
            let read = poll_fn(|task| Poll::Ready(poll_read(connection, input, task))).await;
            let count = match read {
                Poll::Pending => return client.going_away().is_some(),
                Poll::Ready(Ok(0) | Err(_)) => return true,
                Poll::Ready(Ok(count)) => count,
            };
            let mut taken = 0;
            loop {
                match client.advance(&input[taken..count]) {
                    Ok((_, None)) => break,
                    Ok((more, Some(_))) => taken += more,
                    Err(_) => return true,
                }
            }
        }
    }

    /// Sends the request and reads its response.
    pub(super) async fn exchange_http2(&mut self, step: &PreparedStep) -> Result<u16, Broken> {
        let Self {
            connection: open,
            http2,
            alarm,
            input,
            output,
            request_bytes,
            first_byte,
            ..
        } = self;
        let mut answer = Http2Answer {
            step,
            path: &self.path,
            cookies: &mut self.cookies,
            headers: &mut self.headers,
            body: &mut self.body,
            status: 0,
            first_byte: None,
            is_whole: false,
            failure: None,
        };
        let lost = |kind: io::ErrorKind| StepError::lost(&kind.into());
        let (Some(connection), Some(client), Some(head)) =
            (open.as_mut(), &mut http2.client, &http2.head)
        else {
            return Err(answer.broken(lost(io::ErrorKind::NotConnected)));
        };
        let length = body_length(&step.plan.method, output.len());
        let before = client.output().len();
        let stream = client.request(head, length).map_err(|refused| {
            let reason = StepFailure::ConnectionLost;
            answer.broken(StepError::new(reason, refused.to_string()))
        })?;
        *request_bytes = client.output().len() - before + output.len();
        let mut rest = output.as_slice();
        let (mut is_closed, mut is_refused) = (false, false);
        while !answer.is_whole {
            if !rest.is_empty() {
                // A server may end the request before it has read all.
                let sent = client.send_body(stream, rest, true);
                rest = &rest[sent.unwrap_or(rest.len())..];
            }
            let read =
                alarm.wait(|task| poll_exchange(connection, client, input, &mut is_refused, task));
            let read = read.await.map_err(StepError::timed_out);
            let read = read.and_then(|read| read.map_err(|error| StepError::lost(&error)));
            let count = read.map_err(|error| answer.broken(error))?;
            is_closed = count == Some(0);
            match is_closed {
                true => finish(client, &mut answer),
                false => digest(client, &input[..count.unwrap_or(0)], &mut answer),
            }
            *first_byte = answer.first_byte;
            if let Some(failure) = answer.failure.take() {
                return Err(failure);
            }
            if is_closed && !answer.is_whole {
                return Err(answer.broken(lost(io::ErrorKind::UnexpectedEof)));
            }
        }
        let status = answer.status;
        if !rest.is_empty() {
            client.reset(stream, H2ErrorCode::CANCEL);
        }
        if is_closed || is_refused || client.going_away().is_some() {
            *open = None;
        }
        Ok(status)
    }
}

/// Returns the length that a request states.
fn body_length(method: &str, bytes: usize) -> BodyLength {
    match bytes {
        0 if !sends_length(method) => BodyLength::None,
        bytes => BodyLength::Bytes(bytes as u64),
    }
}

/// Takes what was read. A mistake after the end of the response is found with the next request.
fn digest(client: &mut Client, input: &[u8], answer: &mut Http2Answer<'_>) {
    let mut read = 0;
    loop {
        match client.advance(&input[read..]) {
            Ok((_, None)) => return,
            Ok((taken, Some(event))) => {
                read += taken;
                answer.take(&event);
            }
            Err(_) if answer.is_whole => return,
            // It says more than the failure of the request before it.
            Err(error) => {
                answer.failure = Some(answer.broken(malformed(explain(&error))));
                return;
            }
        }
    }
}

/// Takes the end of the connection.
fn finish(client: &mut Client, answer: &mut Http2Answer<'_>) {
    while let Ok(Some(event)) = client.finish() {
        answer.take(&event);
    }
}

/// Writes what the connection takes, then reads. Returns the number of bytes read, none at the end
/// of the connection; `None` if there is room for more of the body. Sets `is_refused` if the
/// connection takes no more.
fn poll_exchange(
    connection: &mut Connection,
    client: &mut Client,
    input: &mut [u8],
    is_refused: &mut bool,
    task: &mut Context<'_>,
) -> Poll<io::Result<Option<usize>>> {
    if poll_output(connection, client, task).is_err() {
        *is_refused = true;
        // What arrived before the server closed the connection comes first, then its end.
        return poll_read(connection, input, task).map_ok(Some);
    }
    if client.has_room() {
        return Poll::Ready(Ok(None));
    }
    poll_read(connection, input, task).map_ok(Some)
}

/// Writes what the connection takes.
fn poll_output(
    connection: &mut Connection,
    client: &mut Client,
    task: &mut Context<'_>,
) -> io::Result<()> {
    while !client.output().is_empty() {
        match Pin::new(&mut *connection).poll_write(task, client.output()) {
            Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(Ok(count)) => client.sent(count),
            Poll::Ready(Err(error)) => return Err(error),
            Poll::Pending => break,
        }
    }
    match Pin::new(connection).poll_flush(task) {
        Poll::Ready(Err(error)) => Err(error),
        Poll::Ready(Ok(())) | Poll::Pending => Ok(()),
    }
}

#[cfg(test)]
mod tests;
