//! Response options as JSON, in the mapping of protocol buffers.

use serde::Deserialize;
use serde::de::{self, Deserializer, IgnoredAny};
use stillwell_units::Nanos;

use super::{RESPONSE_BODY_BYTES_MAX, ResponseDelay, ResponseHeader, ResponseOptions};

/// The longest delay that the mapping can write, in seconds.
const SECONDS_MAX: u64 = 315_576_000_000;

/// Reason why options are not understood.
#[derive(Debug, thiserror::Error)]
pub enum ResponseOptionsError {
    /// They are no JSON, or no JSON of this shape.
    #[error("{message}")]
    Json {
        /// The error and its position.
        message: String,
    },
    /// Both kinds of headers are there.
    #[error("response_headers and v3_response_headers exclude each other: use the latter")]
    BothHeaders,
    /// Both kinds of delay are there.
    #[error("static_delay and concurrency_based_linear_delay exclude each other")]
    BothDelays,
    /// The body is too long.
    #[error("response_body_size is {bytes}: at most {RESPONSE_BODY_BYTES_MAX} is accepted")]
    BodyTooLong {
        /// The requested value.
        bytes: u32,
    },
    /// A status that cannot be sent.
    #[error("`:status` is `{value}`: a number from 200 to 599 is accepted")]
    Status {
        /// The requested value.
        value: String,
    },
    /// A header that cannot be sent.
    #[error("`{name}` is not a header that can be set")]
    Header {
        /// Its name.
        name: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Message {
    #[serde(alias = "responseHeaders", default)]
    response_headers: Vec<HeaderOption>,
    #[serde(alias = "v3ResponseHeaders", default)]
    v3_response_headers: Vec<HeaderOption>,
    #[serde(alias = "responseBodySize", default)]
    response_body_size: Option<Count>,
    #[serde(alias = "echoRequestHeaders", default)]
    echo_request_headers: Option<bool>,
    #[serde(alias = "staticDelay", default)]
    static_delay: Option<Length>,
    #[serde(alias = "concurrencyBasedLinearDelay", default)]
    concurrency_based_linear_delay: Option<LinearDelay>,
    #[serde(alias = "emitPreviousRequestDeltaInResponseHeader", default)]
    emit_previous_request_delta_in_response_header: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HeaderOption {
    header: Header,
    #[serde(default)]
    append: Option<bool>,
    // Nighthawk reads these, and looks at `append` alone.
    #[serde(rename = "append_action", alias = "appendAction", default)]
    _append_action: IgnoredAny,
    #[serde(rename = "keep_empty_value", alias = "keepEmptyValue", default)]
    _keep_empty_value: IgnoredAny,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    key: String,
    #[serde(default)]
    value: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinearDelay {
    #[serde(alias = "minimalDelay", default)]
    minimal_delay: Option<Length>,
    #[serde(alias = "concurrencyDelayFactor", default)]
    concurrency_delay_factor: Option<Length>,
}

/// A number, or the same as text.
struct Count(u32);

/// Seconds with an `s`, such as `1.5s`.
#[derive(Clone, Copy)]
struct Length(Nanos);

pub(super) fn read(text: &[u8]) -> Result<ResponseOptions, ResponseOptionsError> {
    let message = serde_json::from_slice::<Message>(text).or_else(|_| {
        // Protocol buffers read more than JSON, and people write it.
        let strict = strict(text);
        serde_json::from_slice(&strict).map_err(|error| ResponseOptionsError::Json {
            message: error.to_string(),
        })
    })?;
    if !message.response_headers.is_empty() && !message.v3_response_headers.is_empty() {
        return Err(ResponseOptionsError::BothHeaders);
    }
    let headers = message.response_headers.into_iter();
    let headers = headers.chain(message.v3_response_headers);
    let headers = headers
        .map(HeaderOption::checked)
        .collect::<Result<_, _>>()?;
    let body_bytes = message.response_body_size.map(|Count(bytes)| bytes);
    if let Some(bytes) = body_bytes.filter(|bytes| *bytes > RESPONSE_BODY_BYTES_MAX) {
        return Err(ResponseOptionsError::BodyTooLong { bytes });
    }
    let delta = message.emit_previous_request_delta_in_response_header;
    if let Some(name) = delta.as_ref().filter(|name| !is_header_name(name)) {
        let name = name.clone();
        return Err(ResponseOptionsError::Header { name });
    }
    let linear = message.concurrency_based_linear_delay;
    Ok(ResponseOptions {
        headers,
        body_bytes,
        echo_request_headers: message.echo_request_headers,
        delay: match (message.static_delay, linear) {
            (Some(_), Some(_)) => return Err(ResponseOptionsError::BothDelays),
            (Some(Length(delay)), None) => Some(ResponseDelay::Static(delay)),
            (None, Some(linear)) => Some(linear.delay()),
            (None, None) => None,
        },
        delta_header: delta.map(|name| name.to_ascii_lowercase()),
    })
}

/// `text` as JSON where its keys have no quotes, or its quotes are single ones:
/// `{response_body_size: 13}`. What is JSON stays as it is.
fn strict(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    let mut open = Vec::new();
    // Whether a key may begin here.
    let mut before_key = false;
    let mut rest = text.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        match byte {
            b'"' | b'\'' => {
                before_key = false;
                out.push(b'"');
                while let Some(inner) = rest.next_if(|inner| *inner != byte) {
                    if inner == b'\\' {
                        out.push(inner);
                        out.extend(rest.next());
                    } else {
                        // A double quote in single ones.
                        out.extend((inner == b'"').then_some(b'\\'));
                        out.push(inner);
                    }
                }
                out.extend(rest.next().map(|_| b'"'));
                continue;
            }
            byte if before_key && is_of_name(byte) => {
                out.extend([b'"', byte]);
                while let Some(inner) = rest.next_if(|inner| is_of_name(*inner)) {
                    out.push(inner);
                }
                out.push(b'"');
                before_key = false;
                continue;
            }
            b'{' | b'[' => open.push(byte),
            b'}' | b']' => drop(open.pop()),
            _ => {}
        }
        before_key = match byte {
            b'{' | b',' => open.last() == Some(&b'{'),
            byte => before_key && byte.is_ascii_whitespace(),
        };
        out.push(byte);
    }
    out
}

const fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

impl HeaderOption {
    fn checked(self) -> Result<ResponseHeader, ResponseOptionsError> {
        let name = self.header.key.to_ascii_lowercase();
        let value = self.header.value;
        if name == ":status" {
            let status = value.parse::<u16>().ok();
            if !status.is_some_and(|status| (200..600).contains(&status)) {
                return Err(ResponseOptionsError::Status { value });
            }
        } else if !is_header_name(&name) || !is_header_value(&value) || is_framing(&name) {
            return Err(ResponseOptionsError::Header { name });
        }
        Ok(ResponseHeader {
            name,
            value,
            append: self.append.unwrap_or(false),
        })
    }
}

/// Those that say where an answer ends are ours.
fn is_framing(name: &str) -> bool {
    matches!(name, "content-length" | "transfer-encoding")
}

fn is_header_name(name: &str) -> bool {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(is_token)
}

fn is_header_value(value: &str) -> bool {
    let is_text = |byte: u8| byte == b'\t' || (byte >= b' ' && byte != 0x7f);
    value.trim() == value && value.bytes().all(is_text)
}

impl LinearDelay {
    fn delay(self) -> ResponseDelay {
        let length = |given: Option<Length>| given.map_or(Nanos::ZERO, |Length(length)| length);
        ResponseDelay::Linear {
            minimal: length(self.minimal_delay),
            factor: length(self.concurrency_delay_factor),
        }
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl de::Visitor<'_> for Visitor {
            type Value = Count;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a whole number from 0 to 4194304")
            }

            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Count, E> {
                let unexpected = || E::invalid_value(de::Unexpected::Unsigned(value), &self);
                u32::try_from(value).map(Count).map_err(|_| unexpected())
            }

            fn visit_str<E: de::Error>(self, value: &str) -> Result<Count, E> {
                let unexpected = || E::invalid_value(de::Unexpected::Str(value), &self);
                value.parse().map(Count).map_err(|_| unexpected())
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl<'de> Deserialize<'de> for Length {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        length(&text).map(Length).ok_or_else(|| {
            let given = de::Unexpected::Str(&text);
            de::Error::invalid_value(given, &"seconds such as `0.05s`")
        })
    }
}

/// Digits, perhaps a point and up to nine more, and an `s`.
fn length(text: &str) -> Option<Nanos> {
    let number = text.strip_suffix('s')?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let are_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || fraction.len() > 9 || !are_digits(whole) || !are_digits(fraction) {
        return None;
    }
    let seconds: u64 = whole
        .parse()
        .ok()
        .filter(|seconds| *seconds <= SECONDS_MAX)?;
    let nanoseconds: u64 = format!("{fraction:0<9}").parse().ok()?;
    let sum = seconds.saturating_mul(1_000_000_000);
    Some(Nanos::new(sum.saturating_add(nanoseconds)))
}
