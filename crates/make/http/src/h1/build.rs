//! Checks of heads that this crate writes.

use crate::decimal::write_decimal;

/// Reasons for which a head would not have its intended meaning.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeadError {
    /// A method that is not a token.
    #[error("`{method}` is not a method: write letters only, such as `POST`")]
    Method {
        /// The given method.
        method: String,
    },
    /// A path and query that would not arrive as one target.
    #[error(
        "`{path_and_query}` is not a path: it starts with `/` and holds printable ASCII \
         without spaces"
    )]
    Path {
        /// The given path and query.
        path_and_query: String,
    },
    /// An authority that would not arrive as one `Host`.
    #[error("`{authority}` is not a host with or without a port")]
    Authority {
        /// The given authority.
        authority: String,
    },
    /// A header's name that is not a token.
    #[error("`{name}` is not a header name: it holds letters, digits and `-`")]
    HeaderName {
        /// The given name.
        name: String,
    },
    /// A header's value with a line end or another control character.
    #[error("the value of header `{name}` holds a line end or another control character")]
    HeaderValue {
        /// The header.
        name: String,
    },
    /// A header that is written here and so cannot be given.
    #[error("header `{name}` is set automatically: leave it out")]
    HeaderReserved {
        /// The header.
        name: String,
    },
    /// A body with `CONNECT`.
    #[error("CONNECT has no body: it opens a tunnel")]
    ConnectBody,
    /// More headers than a parser of ours takes.
    #[error("{count} headers are given, but at most 90 are supported")]
    TooManyHeaders {
        /// The given number.
        count: usize,
    },
    /// A status that does not end an exchange.
    #[error("{status} cannot be the status of a response: use 200 to 599")]
    Status {
        /// The given status.
        status: u16,
    },
    /// A body with a status that has none.
    #[error("status {status} has no body")]
    BodyNotAllowed {
        /// The given status.
        status: u16,
    },
}

/// Headers that our side writes itself.
const RESERVED: [&str; 3] = ["content-length", "transfer-encoding", "host"];

const HEADERS_MAX: usize = 90;

/// Appends `headers`, each on its line.
pub(super) fn write_headers(headers: &[(&str, &str)], out: &mut Vec<u8>) -> Result<(), HeadError> {
    check_headers(headers)?;
    for (name, value) in headers {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    Ok(())
}

pub(crate) fn check_headers(headers: &[(&str, &str)]) -> Result<(), HeadError> {
    if headers.len() > HEADERS_MAX {
        let count = headers.len();
        return Err(HeadError::TooManyHeaders { count });
    }
    for (name, value) in headers {
        let owned = || (*name).to_owned();
        if !is_token(name) {
            return Err(HeadError::HeaderName { name: owned() });
        }
        if RESERVED
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
        {
            return Err(HeadError::HeaderReserved { name: owned() });
        }
        if !value.bytes().all(is_value_byte) {
            return Err(HeadError::HeaderValue { name: owned() });
        }
    }
    Ok(())
}

/// RFC 9110, 5.6.2.
pub(super) fn is_token(text: &str) -> bool {
    let is_token_byte =
        |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(is_token_byte)
}

const fn is_value_byte(byte: u8) -> bool {
    matches!(byte, b'\t' | b' '..=b'~' | 0x80..)
}

/// `content-length: N` and the line end, without allocation once `out` has room.
pub(super) fn write_content_length(content_length: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"content-length: ");
    write_decimal(content_length, out);
    out.extend_from_slice(b"\r\n");
}
