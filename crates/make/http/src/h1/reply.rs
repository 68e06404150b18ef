//! Answers.

use super::HeadError;
use super::build::{write_content_length, write_headers};
use crate::decimal::write_decimal;

/// Lets a client that waits with `Expect: 100-continue` send its body.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// Appends a whole response to `out`; what is there already stays. `headers` may
/// not set lengths; `connection: close` is theirs to set.
///
/// # Errors
/// [`HeadError`] for a status outside 200 to 599, for headers that would not
/// arrive as given, and for a body with 204 or 304. `out` is then unchanged.
pub fn write_response(
    status: u16,
    headers: &[(&str, &str)],
    body: &[u8],
    out: &mut Vec<u8>,
) -> Result<(), HeadError> {
    let before = out.len();
    let has_body = !matches!(status, 204 | 304);
    let content_length = has_body.then_some(body.len() as u64);
    let written = if has_body || body.is_empty() {
        write_head(status, headers, content_length, out)
    } else {
        Err(HeadError::BodyNotAllowed { status })
    };
    match written {
        Ok(()) => out.extend_from_slice(body),
        Err(_) => out.truncate(before),
    }
    written
}

/// A response that is the same each time: laid out once, sent as it is.
#[derive(Clone, Debug)]
pub struct PreparedResponse {
    bytes: Vec<u8>,
    head_bytes: usize,
}

impl PreparedResponse {
    /// As [`write_response`].
    ///
    /// # Errors
    /// As [`write_response`].
    pub fn new(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Result<Self, HeadError> {
        let mut bytes = Vec::new();
        write_response(status, headers, body, &mut bytes)?;
        let head_bytes = bytes.len() - body.len();
        Ok(Self { bytes, head_bytes })
    }

    /// The whole response.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its head alone, with the length of the body: what answers `HEAD`.
    #[must_use]
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.head_bytes]
    }
}

fn write_head(
    status: u16,
    headers: &[(&str, &str)],
    content_length: Option<u64>,
    out: &mut Vec<u8>,
) -> Result<(), HeadError> {
    if !(200..600).contains(&status) {
        return Err(HeadError::Status { status });
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(u64::from(status), out);
    out.extend_from_slice(b" ");
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
    write_headers(headers, out)?;
    if let Some(length) = content_length {
        write_content_length(length, out);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// The phrase for people; programs do not read it.
const fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        304 => "Not Modified",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}
