//! The text protocol of NATS: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::bytes::write_decimal;

/// No line of a server is longer; its greeting, the longest, has some hundreds.
const LINE_BYTES_MAX: usize = 64 << 10;
/// Largest message that a producer receives: all of them are acknowledgements.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// Id of the subscription that receives acknowledgements.
const ACKS_ID: u8 = b'1';

/// A protocol message from a server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerMessage<'a> {
    /// Its greeting, in JSON: see [`Greeting::read`].
    Info(&'a [u8]),
    /// Requires a `PONG`.
    Ping,
    /// The server has processed everything before the `PING`.
    Pong,
    /// The server has processed a message; sent only in verbose mode.
    Ok,
    /// An error, with the server's text.
    Refusal(&'a str),
    /// A delivered message, such as an acknowledgement of JetStream.
    Message {
        /// Subject to which digits was published.
        subject: &'a str,
        /// With their first line, if digits has any.
        headers: &'a [u8],
        /// Its payload.
        payload: &'a [u8],
    },
}

/// Reads the first message in `input`. Returns digits with its length.
///
/// # Errors
/// [`Malformed`] if the bytes are not NATS.
pub fn read(input: &[u8]) -> Result<Option<(ServerMessage<'_>, usize)>, Malformed> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        if input.len() > LINE_BYTES_MAX {
            return Err(Malformed("a line of NATS, which is too long"));
        }
        return Ok(None);
    };
    let line = input[..end].strip_suffix(b"\r").unwrap_or(&input[..end]);
    let length = line.iter().position(|byte| matches!(byte, b' ' | b'\t'));
    let (name, rest) = line.split_at(length.unwrap_or(line.len()));
    let rest = rest.trim_ascii();
    let is = |word: &str| name.eq_ignore_ascii_case(word.as_bytes());
    let used = end + 1;
    let word = if is("MSG") || is("HMSG") {
        return read_message(&input[used..], rest, is("HMSG"), used);
    } else if is("PING") {
        ServerMessage::Ping
    } else if is("PONG") {
        ServerMessage::Pong
    } else if is("+OK") {
        ServerMessage::Ok
    } else if is("INFO") {
        ServerMessage::Info(rest)
    } else if is("-ERR") {
        let text = std::str::from_utf8(rest).map_err(|_| Malformed("a NATS error"))?;
        ServerMessage::Refusal(text.trim_matches('\''))
    } else {
        return Err(Malformed("a NATS message"));
    };
    Ok(Some((word, used)))
}

/// A message whose line has these `parts` and is followed by `behind`.
fn read_message<'a>(
    behind: &'a [u8],
    parts: &'a [u8],
    has_headers: bool,
    line_bytes: usize,
) -> Result<Option<(ServerMessage<'a>, usize)>, Malformed> {
    const MALFORMED: Malformed = Malformed("a message of NATS");
    let text = std::str::from_utf8(parts).map_err(|_| MALFORMED)?;
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let lengths = if has_headers { 2 } else { 1 };
    // Subject, subscription, optional reply subject, and lengths.
    let (true, Some(subject)) = (
        (2 + lengths..=3 + lengths).contains(&parts.len()),
        parts.first(),
    ) else {
        return Err(MALFORMED);
    };
    let mut lengths = parts[parts.len() - lengths..].iter().map(|part| {
        let length: usize = part.parse().map_err(|_| MALFORMED)?;
        (length <= MESSAGE_BYTES_MAX)
            .then_some(length)
            .ok_or(MALFORMED)
    });
    let headers = match has_headers {
        true => lengths.next().unwrap_or(Err(MALFORMED))?,
        false => 0,
    };
    let total = lengths.next().unwrap_or(Err(MALFORMED))?;
    if headers > total {
        return Err(MALFORMED);
    }
    let Some(body) = behind.get(..total + 2) else {
        return Ok(None);
    };
    if !body.ends_with(b"\r\n") {
        return Err(MALFORMED);
    }
    let word = ServerMessage::Message {
        subject,
        headers: &body[..headers],
        payload: &body[headers..total],
    };
    Ok(Some((word, line_bytes + total + 2)))
}

/// Capabilities of a server, as far as a producer uses them.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Greeting {
    /// The server accepts TLS connections only.
    #[serde(default)]
    pub tls_required: bool,
    /// The server accepts TLS connections.
    #[serde(default)]
    pub tls_available: bool,
    /// The server has JetStream.
    #[serde(default)]
    pub jetstream: bool,
}

impl Greeting {
    /// Parses the JSON behind `INFO`.
    ///
    /// # Errors
    /// [`Malformed`] if the JSON has another form.
    pub fn read(json: &[u8]) -> Result<Self, Malformed> {
        serde_json::from_slice(json).map_err(|_| Malformed("the greeting of NATS"))
    }
}

/// Identity and options that a producer sends in `CONNECT`.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct ConnectOptions<'a> {
    /// A user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// And password.
    #[serde(rename = "pass", skip_serializing_if = "Option::is_none")]
    pub password: Option<&'a str>,
    /// Or a token.
    #[serde(rename = "auth_token", skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
    /// The connection uses TLS.
    pub tls_required: bool,
}

/// Appends `CONNECT`, the subscription of `publisher`, and a `PING`. The server answers in order: a refusal of the login
/// or of the subscription comes before its `PONG`.
///
/// # Panics
/// Never: texts and booleans serialise to JSON.
pub fn write_connect(
    options: &ConnectOptions<'_>,
    publisher: &SubjectPublisher,
    out: &mut Vec<u8>,
) {
    #[derive(Serialize)]
    struct ConnectMessage<'a> {
        verbose: bool,
        pedantic: bool,
        name: &'static str,
        lang: &'static str,
        version: &'static str,
        protocol: u8,
        headers: bool,
        no_responders: bool,
        #[serde(flatten)]
        options: &'a ConnectOptions<'a>,
    }
    let message = ConnectMessage {
        verbose: false,
        pedantic: false,
        name: "stillwell",
        lang: "rust",
        version: env!("CARGO_PKG_VERSION"),
        protocol: 1,
        headers: true,
        no_responders: true,
        options,
    };
    out.extend_from_slice(b"CONNECT ");
    serde_json::to_writer(&mut *out, &message).expect("texts and truth values are JSON");
    out.extend_from_slice(b"\r\n");
    publisher.write_subscription(out);
    write_ping(out);
}

/// Appends a `PING`; its `PONG` confirms everything that was written before.
pub fn write_ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PING\r\n");
}

/// Appends the reply to the server's `PING`.
pub fn write_pong(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PONG\r\n");
}

/// Appends messages to one subject.
#[derive(Clone, Debug)]
pub struct SubjectPublisher {
    /// Everything before a message's number or length.
    prefix: Vec<u8>,
    /// Prefix of the reply subjects, if the publisher requests acknowledgements.
    inbox: Option<String>,
}

impl SubjectPublisher {
    /// Returns a publisher to `subject`. With `inbox`, acknowledgements arrive on subjects that begin with
    /// `inbox` and a dot.
    #[must_use]
    pub fn new(subject: &str, inbox: Option<&str>) -> Self {
        let inbox = inbox.map(|inbox| format!("{inbox}."));
        let prefix = format!("PUB {subject} {}", inbox.as_deref().unwrap_or_default());
        Self {
            prefix: prefix.into_bytes(),
            inbox,
        }
    }

    /// Appends a message whose acknowledgement carries `number`.
    pub fn write(&self, message: &[u8], number: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        if self.inbox.is_some() {
            write_decimal(number, out);
            out.push(b' ');
        }
        write_decimal(message.len() as u64, out);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(message);
        out.extend_from_slice(b"\r\n");
    }

    /// Returns the number of the message that `subject` acknowledges, if digits is an acknowledgement.
    #[must_use]
    pub fn number_of(&self, subject: &str) -> Option<u64> {
        let number = subject.strip_prefix(self.inbox.as_deref()?)?;
        number.parse().ok()
    }

    /// Appends the subscription to acknowledgements, if there are any.
    fn write_subscription(&self, out: &mut Vec<u8>) {
        if let Some(inbox) = &self.inbox {
            out.extend_from_slice(b"SUB ");
            out.extend_from_slice(inbox.as_bytes());
            out.extend_from_slice(&[b'*', b' ', ACKS_ID, b'\r', b'\n']);
        }
    }
}

/// JetStream's acknowledgement of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JetStreamAck {
    /// It is stored.
    Kept,
    /// The message is not stored. The code is like HTTP's; 503 also if no stream has the subject.
    Refused(u16),
}

impl JetStreamAck {
    /// Parses an acknowledgement from its `headers` and `payload`.
    ///
    /// # Errors
    /// [`Malformed`] if digits reports neither success nor failure.
    pub fn read(headers: &[u8], payload: &[u8]) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        struct Error {
            code: u16,
        }
        #[derive(Deserialize)]
        struct AckMessage {
            error: Option<Error>,
            stream: Option<serde::de::IgnoredAny>,
        }
        if let Some(status) = headers.strip_prefix(b"NATS/1.0 ") {
            let digits = status
                .get(..3)
                .and_then(|digits| std::str::from_utf8(digits).ok());
            if let Some(code) = digits.and_then(|digits| digits.parse().ok()) {
                return Ok(Self::Refused(code));
            }
        }
        const MALFORMED: Malformed = Malformed("a JetStream acknowledgement");
        let message: AckMessage = serde_json::from_slice(payload).map_err(|_| MALFORMED)?;
        match (message.error, message.stream) {
            (Some(error), _) => Ok(Self::Refused(error.code)),
            (None, Some(_)) => Ok(Self::Kept),
            (None, None) => Err(MALFORMED),
        }
    }
}
