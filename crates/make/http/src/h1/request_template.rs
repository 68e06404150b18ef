//! Request heads, written once and sent often.

use super::HeadError;
use super::build::{is_token, write_content_length, write_headers};

/// The head of requests that differ in their bodies alone: all of it is checked
/// and laid out once, only the length is written each time.
#[derive(Clone, Debug)]
pub struct RequestTemplate {
    /// Request line and headers, each with its line end, up to the length.
    prefix: Vec<u8>,
    /// True if a length of 0 is written too.
    states_empty: bool,
}

impl RequestTemplate {
    /// `method` is any but `CONNECT`; `authority` becomes `Host`; `headers` are
    /// sent as given, in order, and may not set lengths or `Host`.
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as.
    pub fn new(
        method: &str,
        path_and_query: &str,
        authority: &str,
        headers: &[(&str, &str)],
    ) -> Result<Self, HeadError> {
        check_request_line(method, path_and_query, authority)?;
        let mut prefix = Vec::with_capacity(256);
        for part in [
            method,
            " ",
            path_and_query,
            " HTTP/1.1\r\nhost: ",
            authority,
            "\r\n",
        ] {
            prefix.extend_from_slice(part.as_bytes());
        }
        write_headers(headers, &mut prefix)?;
        let states_empty = !matches!(method, "GET" | "HEAD" | "OPTIONS" | "DELETE" | "TRACE");
        Ok(Self {
            prefix,
            states_empty,
        })
    }

    /// A `CONNECT` request for `authority`, which is a host with its port; `headers` as with
    /// [`Self::new`]. It goes with a length of 0, of which nothing is written.
    ///
    /// What follows the head of an answer from 200 to 299 is the peer's.
    ///
    /// # Errors
    /// [`HeadError`] where any part would not arrive as what it was given as.
    pub fn connect(authority: &str, headers: &[(&str, &str)]) -> Result<Self, HeadError> {
        check_authority(authority)?;
        let mut prefix =
            format!("CONNECT {authority} HTTP/1.1\r\nhost: {authority}\r\n").into_bytes();
        write_headers(headers, &mut prefix)?;
        Ok(Self {
            prefix,
            states_empty: false,
        })
    }

    /// Writes a length of 0 with every method, also with those that need no body.
    #[must_use]
    pub fn stating_empty_length(self) -> Self {
        Self {
            states_empty: true,
            ..self
        }
    }

    /// Appends the head of a request whose body of `content_length` bytes
    /// follows. What `out` holds already stays: requests can be pipelined.
    pub fn write_head(&self, content_length: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.prefix);
        // By default a length of 0 is only written where a body would be expected.
        if self.states_empty || content_length > 0 {
            write_content_length(content_length, out);
        }
        out.extend_from_slice(b"\r\n");
    }

    /// The longest head that is appended, in bytes.
    #[must_use]
    pub const fn head_bytes_max(&self) -> usize {
        self.prefix.len() + "content-length: 18446744073709551615\r\n\r\n".len()
    }
}

/// Returns the head of a `CONNECT` request to a proxy for `authority`, which is a host with
/// its port, as of [`RequestTemplate::connect`].
///
/// # Errors
/// [`HeadError`] where any part would not arrive as what it was given as.
pub fn connect_head(authority: &str, headers: &[(&str, &str)]) -> Result<Vec<u8>, HeadError> {
    let mut head = Vec::new();
    RequestTemplate::connect(authority, headers)?.write_head(0, &mut head);
    Ok(head)
}

pub(crate) fn check_request_line(
    method: &str,
    path_and_query: &str,
    authority: &str,
) -> Result<(), HeadError> {
    if !is_token(method) || method == "CONNECT" {
        let method = method.to_owned();
        return Err(HeadError::Method { method });
    }
    let is_path = path_and_query.starts_with('/') || path_and_query == "*";
    if !is_path || !path_and_query.bytes().all(|byte| byte.is_ascii_graphic()) {
        let path_and_query = path_and_query.to_owned();
        return Err(HeadError::Path { path_and_query });
    }
    check_authority(authority)
}

pub(crate) fn check_authority(authority: &str) -> Result<(), HeadError> {
    let is_authority_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~%:[]".contains(&byte);
    if authority.is_empty() || !authority.bytes().all(is_authority_byte) {
        let authority = authority.to_owned();
        return Err(HeadError::Authority { authority });
    }
    Ok(())
}
