//! One request and its response over the connection of a user.

use std::future::poll_fn;
use std::io::{self, Write as _};
use std::pin::Pin;
use std::task::Poll;

use stillwell_http::{H1ResponseEvent, ResponseParser};
use stillwell_metric::Outcome;
use stillwell_plan::load::LoadProtocol;
use stillwell_plan::scenario::{ScenarioPlan, ScenarioStepPlan, TextPart, TextTemplate};
use stillwell_plan::tls::Alpn;
use stillwell_scope::{clock, explain};
use tokio::io::AsyncWrite as _;
use tokio::time::timeout;

use super::super::http1::poll_read;
use super::context::UserContext;
use super::cookies::{keep_cookie, write_cookies};
use super::extract::PreparedStep;
use super::result::StepFailure;
use super::user::User;

/// Methods whose requests may be sent again: nothing happens twice by them (RFC 9110, 9.2.2).
const IDEMPOTENT: [&str; 6] = ["GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE"];

/// Largest response body that is kept.
const BODY_BYTES_MAX: usize = 16 << 20;

/// A step that failed.
#[derive(Clone, Debug)]
pub(super) struct StepError {
    pub(super) reason: StepFailure,
    pub(super) text: String,
    /// Outcome of an attempt to connect.
    pub(super) outcome: Option<Outcome>,
}

impl StepError {
    pub(super) const fn new(reason: StepFailure, text: String) -> Self {
        Self {
            reason,
            text,
            outcome: None,
        }
    }

    pub(super) fn lost(error: &io::Error) -> Self {
        Self::new(StepFailure::ConnectionLost, error.to_string())
    }

    pub(super) fn timed_out(_: Outcome) -> Self {
        Self::new(
            StepFailure::TimedOut,
            "no response within the timeout".to_owned(),
        )
    }
}

/// An exchange that failed.
pub(super) struct Broken {
    pub(super) error: StepError,
    /// Nothing came back.
    pub(super) is_unanswered: bool,
    /// The server said that it did not begin with it.
    pub(super) is_refused: bool,
}

impl User {
    /// Sends the request of `step` and reads its response. Returns the status.
    pub(super) async fn request(
        &mut self,
        context: &UserContext,
        step: &PreparedStep,
    ) -> Result<u16, StepError> {
        self.request_bytes = 0;
        match context.plan.protocol {
            LoadProtocol::Http2 => self.encode_request(context, step)?,
            LoadProtocol::Http1 | LoadProtocol::Http3 => self.write_request(context, step)?,
        }
        self.drop_ended(context).await;
        let is_reused = self.connection.is_some();
        self.connect(context).await?;
        let answered = self.exchange(context, step).await;
        let broken = match answered {
            Ok(status) => return Ok(status),
            Err(broken) => broken,
        };
        self.connection = None;
        let is_lost = broken.error.reason == StepFailure::ConnectionLost;
        let may_repeat = broken.is_refused || IDEMPOTENT.contains(&step.plan.method.as_str());
        if !(is_reused && is_lost && broken.is_unanswered && may_repeat) {
            return Err(broken.error);
        }
        // Mostly the server has just closed an idle connection.
        self.connect(context).await?;
        let answered = self.exchange(context, step).await;
        answered.map_err(|broken| {
            self.connection = None;
            broken.error
        })
    }

    /// Drops a connection that the server closed while it was idle.
    async fn drop_ended(&mut self, context: &UserContext) {
        let has_ended = match (context.plan.protocol, &mut self.connection) {
            (_, None) => return,
            (LoadProtocol::Http2, _) => self.has_ended_http2().await,
            (LoadProtocol::Http1 | LoadProtocol::Http3, Some(connection)) => {
                let input = &mut self.input;
                poll_fn(|task| Poll::Ready(poll_read(connection, input, task).is_ready())).await
            }
        };
        if has_ended {
            self.connection = None;
        }
    }

    async fn connect(&mut self, context: &UserContext) -> Result<(), StepError> {
        if self.connection.is_some() {
            return Ok(());
        }
        let limit = context.plan.connect_timeout;
        let connected = timeout(limit.as_duration(), context.endpoint.connect()).await;
        let failed = |text: String, outcome: Outcome| StepError {
            outcome: Some(outcome),
            ..StepError::new(StepFailure::Connect, text)
        };
        let connected = connected.map_err(|_| {
            let text = format!("no connection within {limit}");
            failed(text, Outcome::ConnectTimedOut)
        })?;
        let connected = connected.map_err(|error| failed(explain(&error), error.outcome()))?;
        let handshake = connected.handshake();
        if context.plan.protocol == LoadProtocol::Http2 {
            if handshake.is_some_and(|agreed| agreed.alpn != Some(Alpn::Http2)) {
                let text = format!("{} does not speak HTTP/2 over TLS", context.plan.address);
                return Err(failed(text, Outcome::HandshakeFailed));
            }
            self.http2.begin();
        }
        self.connection = Some(connected);
        self.parser = ResponseParser::new();
        Ok(())
    }

    async fn exchange(
        &mut self,
        context: &UserContext,
        step: &PreparedStep,
    ) -> Result<u16, Broken> {
        let sent = clock::now();
        // Of a request that is sent again, the first time counts.
        self.sent.get_or_insert(sent);
        self.alarm.deadline = sent + context.plan.timeout;
        self.body.clear();
        self.headers.clear();
        if context.plan.protocol == LoadProtocol::Http2 {
            return self.exchange_http2(step).await;
        }
        self.request_bytes = self.output.len();
        if step.plan.method == "HEAD" {
            self.parser.answers_head();
        }
        let sent = self.send().await;
        let refused = sent.map_err(|error| Broken {
            error,
            is_unanswered: true,
            is_refused: false,
        })?;
        let mut is_unanswered = true;
        let received = self.receive(step, &mut is_unanswered).await;
        if refused.is_some() {
            // The server answers before it has read all, or not at all, and reads no more.
            self.connection = None;
        }
        received.map_err(|error| Broken {
            error: refused.unwrap_or(error),
            is_unanswered,
            is_refused: false,
        })
    }

    /// Writes the request. Returns an error where the kernel refused: there may still be an answer
    /// that says why.
    async fn send(&mut self) -> Result<Option<StepError>, StepError> {
        let Some(connection) = &mut self.connection else {
            return Ok(None);
        };
        let mut bytes = self.output.as_slice();
        while !bytes.is_empty() {
            let written = self
                .alarm
                .wait(|task| Pin::new(&mut *connection).poll_write(task, bytes))
                .await;
            match written.map_err(StepError::timed_out)? {
                Ok(0) => return Ok(Some(StepError::lost(&io::ErrorKind::WriteZero.into()))),
                Ok(count) => bytes = &bytes[count..],
                Err(error) => return Ok(Some(StepError::lost(&error))),
            }
        }
        let flushed = self
            .alarm
            .wait(|task| Pin::new(&mut *connection).poll_flush(task))
            .await;
        let flushed = flushed.map_err(StepError::timed_out)?;
        Ok(flushed.err().map(|error| StepError::lost(&error)))
    }

    async fn receive(
        &mut self,
        step: &PreparedStep,
        is_unanswered: &mut bool,
    ) -> Result<u16, StepError> {
        let mut status = 0;
        let mut keep_alive = false;
        loop {
            let Some(connection) = &mut self.connection else {
                return Err(StepError::lost(&io::ErrorKind::NotConnected.into()));
            };
            let input = &mut self.input;
            let read = self
                .alarm
                .wait(|task| poll_read(connection, input, task))
                .await;
            let read = read.map_err(StepError::timed_out)?;
            let count = read.map_err(|error| StepError::lost(&error))?;
            if count == 0 {
                // The end of the connection may be the end of the response.
                return match self.parser.finish() {
                    Ok(Some(_)) => {
                        self.connection = None;
                        Ok(status)
                    }
                    Ok(None) | Err(_) => Err(StepError::lost(&io::ErrorKind::UnexpectedEof.into())),
                };
            }
            if std::mem::take(is_unanswered) {
                self.first_byte = Some(clock::now());
            }
            if self.advance(step, count, &mut status, &mut keep_alive)? {
                if !keep_alive {
                    self.connection = None;
                }
                return Ok(status);
            }
        }
    }

    /// Reads `count` bytes that arrived. Returns true at the end of the response.
    fn advance(
        &mut self,
        step: &PreparedStep,
        count: usize,
        status: &mut u16,
        keep_alive: &mut bool,
    ) -> Result<bool, StepError> {
        let mut read = 0;
        loop {
            let (cookies, headers) = (&mut self.cookies, &mut self.headers);
            let path = &self.path;
            let header = |name: &str, value: &[u8]| {
                if name.eq_ignore_ascii_case("set-cookie") {
                    keep_cookie(cookies, value, path);
                }
                if step.takes_header(name) {
                    let value = String::from_utf8_lossy(value).into_owned();
                    headers.push((name.to_ascii_lowercase(), value));
                }
            };
            let advanced = self
                .parser
                .advance_reading(&self.input[read..count], header);
            let (taken, event) = advanced.map_err(|error| malformed(error.to_string()))?;
            read += taken;
            match event {
                None => return Ok(false),
                Some(H1ResponseEvent::Head(head)) => {
                    *status = head.status;
                    *keep_alive = head.keep_alive;
                }
                Some(H1ResponseEvent::Body(part)) if step.needs_body => {
                    add_body(&mut self.body, part)?;
                }
                Some(H1ResponseEvent::Body(_)) => {}
                Some(H1ResponseEvent::End) => {
                    // Bytes without a request belong to no response.
                    *keep_alive &= read == count;
                    return Ok(true);
                }
            }
        }
    }

    /// Writes the request with the current values of variables.
    fn write_request(
        &mut self,
        context: &UserContext,
        step: &PreparedStep,
    ) -> Result<(), StepError> {
        let Self {
            output,
            values,
            path,
            cookies,
            ..
        } = self;
        let plan = &step.plan;
        output.clear();
        output.extend_from_slice(plan.method.as_bytes());
        output.push(b' ');
        append_path(&context.plan, plan, values, path, output);
        output.extend_from_slice(b" HTTP/1.1\r\nhost: ");
        output.extend_from_slice(context.plan.authority.as_bytes());
        let mut kept_cookies = cookies.as_slice();
        for (name, value) in &plan.headers {
            output.extend_from_slice(b"\r\n");
            output.extend_from_slice(name.as_bytes());
            output.extend_from_slice(b": ");
            let from = output.len();
            fill(value, values, output);
            if output[from..]
                .iter()
                .any(|byte| *byte < b' ' && *byte != b'\t')
            {
                let text = format!("a value in header {name} has control characters");
                return Err(StepError::new(StepFailure::Value, text));
            }
            if name.eq_ignore_ascii_case("cookie") {
                // All cookies are in one header (RFC 6265, 5.4).
                let before: &[u8] = if output.len() == from { b"" } else { b"; " };
                write_cookies(std::mem::take(&mut kept_cookies), path, before, output);
            }
        }
        write_cookies(kept_cookies, path, b"\r\ncookie: ", output);
        let length: usize = parts(&plan.body, values).map(str::len).sum();
        if length > 0 || sends_length(&plan.method) {
            // A vector takes every byte.
            drop(write!(output, "\r\ncontent-length: {length}"));
        }
        output.extend_from_slice(b"\r\n\r\n");
        fill(&plan.body, values, output);
        Ok(())
    }
}

/// Returns the parts of a text with the current values of variables.
pub(super) fn parts<'t>(
    template: &'t TextTemplate,
    values: &'t [String],
) -> impl Iterator<Item = &'t str> + use<'t> {
    template.0.iter().map(|part| match part {
        TextPart::Text(text) => text.as_str(),
        TextPart::Variable(index) => values.get(*index).map_or("", String::as_str),
    })
}

pub(super) fn malformed(text: String) -> StepError {
    StepError::new(StepFailure::Malformed, text)
}

/// Keeps a part of a response body.
pub(super) fn add_body(body: &mut Vec<u8>, part: &[u8]) -> Result<(), StepError> {
    if body.len() + part.len() > BODY_BYTES_MAX {
        return Err(malformed(format!(
            "the response body has more than {BODY_BYTES_MAX} bytes"
        )));
    }
    body.extend_from_slice(part);
    Ok(())
}

/// Returns true if a request of `method` gives the length of its body, though it has none.
pub(super) fn sends_length(method: &str) -> bool {
    matches!(method, "POST" | "PUT" | "PATCH")
}

/// Appends the path and query of a request. `path` becomes the path alone.
pub(super) fn append_path(
    scenario: &ScenarioPlan,
    step: &ScenarioStepPlan,
    values: &[String],
    path: &mut Vec<u8>,
    output: &mut Vec<u8>,
) {
    let from = output.len();
    output.extend_from_slice(scenario.base.as_bytes());
    fill(&step.path, values, output);
    encode_path(output, from);
    path.clear();
    path.extend(output[from..].iter().take_while(|byte| **byte != b'?'));
}

pub(super) fn fill(template: &TextTemplate, values: &[String], output: &mut Vec<u8>) {
    parts(template, values).for_each(|part| output.extend_from_slice(part.as_bytes()));
}

/// Percent-encodes bytes that a path and a query cannot have (RFC 3986, 3.3 and 3.4). `%` stays,
/// because values may be encoded already, and so do brackets, which clients send.
fn encode_path(output: &mut Vec<u8>, from: usize) {
    let is_plain = |byte: &u8| matches!(byte, b'!'..=b'~') && !b"#\"<>\\^`{|}".contains(byte);
    if output[from..].iter().all(is_plain) {
        return;
    }
    let path = output.split_off(from);
    for byte in path {
        match is_plain(&byte) {
            true => output.push(byte),
            // A vector takes every byte.
            false => drop(write!(output, "%{byte:02X}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use stillwell_plan::load::LoadProtocol;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::super::fixture::{context_of, one_step};
    use super::*;
    use crate::fixture::block_on;

    /// Uploads to a server that sends `answer` before it has read all, and closes the connection.
    /// Returns the status, and true if the connection would be used again.
    async fn upload(answer: &[u8]) -> (Result<u16, StepFailure>, bool) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let context = context_of(one_step(address, "PUT", LoadProtocol::Http1));
        let mut user = User::new(&context.plan);
        let serve = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_exact(&mut [0; 1024]).await.unwrap();
            stream.write_all(answer).await.unwrap();
        };
        let (status, ()) = tokio::join!(user.request(&context, &context.choose_flow()[0]), serve);
        let status = status.map_err(|error| error.reason);
        (status, user.connection.is_some())
    }

    #[test]
    fn an_answer_that_comes_before_all_was_sent_counts_and_ends_the_connection() {
        block_on(async {
            for (answer, expected) in [
                (
                    &b"HTTP/1.1 413 Too Large\r\ncontent-length: 2\r\n\r\nno"[..],
                    Ok(413),
                ),
                (b"", Err(StepFailure::ConnectionLost)),
            ] {
                assert_eq!(upload(answer).await, (expected, false));
            }
        });
    }

    #[test]
    fn cookies_of_a_user_and_of_a_step_are_one_header() {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let _inside = runtime.enter();
        for (headers, expected) in [
            (&[("Cookie", "c=3")][..], "Cookie: c=3; a=1; b=2"),
            (&[("cookie", "")], "cookie: a=1; b=2"),
            (&[], "cookie: a=1; b=2"),
        ] {
            let mut plan = one_step("127.0.0.1:1".to_owned(), "GET", LoadProtocol::Http1);
            let step = &mut plan.flows[0].steps[0];
            step.body = TextTemplate::default();
            for (name, value) in headers {
                let value = TextTemplate(vec![TextPart::Text((*value).to_owned())]);
                step.headers.push(((*name).to_owned(), value));
            }
            let context = context_of(plan);
            let mut user = User::new(&context.plan);
            keep_cookie(&mut user.cookies, b"a=1", b"/");
            keep_cookie(&mut user.cookies, b"b=2", b"/");
            let step = &context.choose_flow()[0];
            user.write_request(&context, step).unwrap();
            let expected = format!("GET / HTTP/1.1\r\nhost: a\r\n{expected}\r\n\r\n");
            assert_eq!(String::from_utf8_lossy(&user.output), expected);
        }
    }

    #[test]
    fn a_path_with_values_stays_one_word() {
        let mut output = b"GET /a b\r\n\xc3\xa4?c=%20".to_vec();
        encode_path(&mut output, 4);
        assert_eq!(output, b"GET /a%20b%0D%0A%C3%A4?c=%20");
        let mut output = b"GET /#?\"<>\\^`{|}&[~]".to_vec();
        encode_path(&mut output, 4);
        assert_eq!(output, b"GET /%23?%22%3C%3E%5C%5E%60%7B%7C%7D&[~]");
    }
}
