//! The text protocol of NATS: <https://docs.nats.io/reference/reference-protocols/nats-protocol>.

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::Malformed;
use crate::bytes::write_decimal;

/// No line of a server is longer; its greeting, the longest, has some hundreds.
const LINE_BYTES_MAX: usize = 64 << 10;
/// No message that a producer is sent is larger: they are answers.
const MESSAGE_BYTES_MAX: usize = 1 << 20;

/// The subscription by which answers come.
const ANSWERS_ID: u8 = b'1';

/// What a server says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ServerWord<'a> {
    /// Its greeting, in JSON: see [`Greeting::read`].
    Info(&'a [u8]),
    /// It wants to hear a `PONG`.
    Ping,
    /// It has taken in all that was written before the `PING`.
    Pong,
    /// It has taken a word; only said where that was asked for.
    Ok,
    /// It refuses something, and says why.
    Refusal(&'a str),
    /// A message, such as JetStream's answer.
    Message {
        /// Where it was sent to.
        subject: &'a str,
        /// With their first line, if it has any.
        headers: &'a [u8],
        /// What it says.
        payload: &'a [u8],
    },
}

/// The first word in `input`, and its length.
///
/// # Errors
/// [`Malformed`] where this is no NATS.
pub fn read(input: &[u8]) -> Result<Option<(ServerWord<'_>, usize)>, Malformed> {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else {
        if input.len() > LINE_BYTES_MAX {
            return Err(Malformed("a line of NATS, which has no end"));
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
        ServerWord::Ping
    } else if is("PONG") {
        ServerWord::Pong
    } else if is("+OK") {
        ServerWord::Ok
    } else if is("INFO") {
        ServerWord::Info(rest)
    } else if is("-ERR") {
        let text = std::str::from_utf8(rest).map_err(|_| Malformed("an error of NATS"))?;
        ServerWord::Refusal(text.trim_matches('\''))
    } else {
        return Err(Malformed("a word of NATS"));
    };
    Ok(Some((word, used)))
}

/// A message whose line has these `parts` and is followed by `behind`.
fn read_message<'a>(
    behind: &'a [u8],
    parts: &'a [u8],
    has_headers: bool,
    line_bytes: usize,
) -> Result<Option<(ServerWord<'a>, usize)>, Malformed> {
    const MALFORMED: Malformed = Malformed("a message of NATS");
    let text = std::str::from_utf8(parts).map_err(|_| MALFORMED)?;
    let parts: Vec<&str> = text.split_ascii_whitespace().collect();
    let lengths = if has_headers { 2 } else { 1 };
    // Its subject, its subscription, where to answer if anywhere, and lengths.
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
    let word = ServerWord::Message {
        subject,
        headers: &body[..headers],
        payload: &body[headers..total],
    };
    Ok(Some((word, line_bytes + total + 2)))
}

/// What a producer needs to know of a server.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq)]
pub struct Greeting {
    /// Whether it takes connections over TLS only.
    #[serde(default)]
    pub tls_required: bool,
    /// Whether it takes connections over TLS.
    #[serde(default)]
    pub tls_available: bool,
    /// Whether it has JetStream.
    #[serde(default)]
    pub jetstream: bool,
}

impl Greeting {
    /// Reads what stands behind `INFO`.
    ///
    /// # Errors
    /// [`Malformed`] where that is no such JSON.
    pub fn read(json: &[u8]) -> Result<Self, Malformed> {
        serde_json::from_slice(json).map_err(|_| Malformed("the greeting of NATS"))
    }
}

/// Who a producer says that it is.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Introduction<'a> {
    /// A user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<&'a str>,
    /// And password.
    #[serde(rename = "pass", skip_serializing_if = "Option::is_none")]
    pub password: Option<&'a str>,
    /// Or a token.
    #[serde(rename = "auth_token", skip_serializing_if = "Option::is_none")]
    pub token: Option<&'a str>,
    /// Whether the connection is one over TLS.
    pub tls_required: bool,
}

/// Appends `CONNECT` and a `PING`, whose `PONG` says that it was taken.
///
/// # Panics
/// Never: texts and truth values are JSON.
pub fn write_introduction(introduction: &Introduction<'_>, out: &mut Vec<u8>) {
    #[derive(Serialize)]
    struct Whole<'a> {
        verbose: bool,
        pedantic: bool,
        name: &'static str,
        lang: &'static str,
        version: &'static str,
        protocol: u8,
        headers: bool,
        no_responders: bool,
        #[serde(flatten)]
        introduction: &'a Introduction<'a>,
    }
    let whole = Whole {
        verbose: false,
        pedantic: false,
        name: "stillwell",
        lang: "rust",
        version: env!("CARGO_PKG_VERSION"),
        protocol: 1,
        headers: true,
        no_responders: true,
        introduction,
    };
    out.extend_from_slice(b"CONNECT ");
    serde_json::to_writer(&mut *out, &whole).expect("texts and truth values are JSON");
    out.extend_from_slice(b"\r\n");
    write_ping(out);
}

/// Appends a question that is answered once all before it was taken in.
pub fn write_ping(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PING\r\n");
}

/// Appends the answer to the server's `PING`.
pub fn write_pong(out: &mut Vec<u8>) {
    out.extend_from_slice(b"PONG\r\n");
}

/// Appends messages to one subject.
#[derive(Clone, Debug)]
pub struct Publisher {
    /// All that stands before a message's number, or its length.
    prefix: Vec<u8>,
    /// Where its answers come to, up to their number, if there are any.
    inbox: Option<String>,
}

impl Publisher {
    /// To `subject`; with answers to subjects that begin with `inbox` and a dot, if
    /// answers are wanted.
    #[must_use]
    pub fn new(subject: &str, inbox: Option<&str>) -> Self {
        let inbox = inbox.map(|inbox| format!("{inbox}."));
        let prefix = format!("PUB {subject} {}", inbox.as_deref().unwrap_or_default());
        Self {
            prefix: prefix.into_bytes(),
            inbox,
        }
    }

    /// Appends the wish to hear answers, if there are any.
    pub fn write_subscription(&self, out: &mut Vec<u8>) {
        if let Some(inbox) = &self.inbox {
            out.extend_from_slice(b"SUB ");
            out.extend_from_slice(inbox.as_bytes());
            out.extend_from_slice(&[b'*', b' ', ANSWERS_ID, b'\r', b'\n']);
        }
    }

    /// Appends a message, whose answer will bear `number`.
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

    /// The number that a message to `subject` answers, if it is an answer.
    #[must_use]
    pub fn number_of(&self, subject: &str) -> Option<u64> {
        let number = subject.strip_prefix(self.inbox.as_deref()?)?;
        number.parse().ok()
    }
}

/// What JetStream says of a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Answer {
    /// It is stored.
    Kept,
    /// It is not, with a code like HTTP's; 503 also where no stream listens.
    Refused(u16),
}

impl Answer {
    /// Reads an answer's `headers` and `payload`.
    ///
    /// # Errors
    /// [`Malformed`] where nothing in it says either.
    pub fn read(headers: &[u8], payload: &[u8]) -> Result<Self, Malformed> {
        #[derive(Deserialize)]
        struct Error {
            code: u16,
        }
        #[derive(Deserialize)]
        struct Whole {
            error: Option<Error>,
            stream: Option<serde::de::IgnoredAny>,
        }
        if let Some(status) = headers.strip_prefix(b"NATS/1.0 ") {
            let digits = status.get(..3).and_then(|it| std::str::from_utf8(it).ok());
            if let Some(code) = digits.and_then(|digits| digits.parse().ok()) {
                return Ok(Self::Refused(code));
            }
        }
        const MALFORMED: Malformed = Malformed("the answer of JetStream");
        let whole: Whole = serde_json::from_slice(payload).map_err(|_| MALFORMED)?;
        match (whole.error, whole.stream) {
            (Some(error), _) => Ok(Self::Refused(error.code)),
            (None, Some(_)) => Ok(Self::Kept),
            (None, None) => Err(MALFORMED),
        }
    }
}
