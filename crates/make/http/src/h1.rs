//! HTTP/1.1 (RFC 9112).

mod body;
mod build;
mod head;
mod one_shot;
mod reply;
mod request_parser;
mod request_template;
mod response_parser;
#[cfg(test)]
mod tests;

pub use build::HeadError;
pub(crate) use build::check_headers;
pub use one_shot::{OneShot, OneShotError, Response};
pub use reply::{CONTINUE, PreparedResponse, write_response};
pub use request_parser::{H1RequestEvent, H1RequestHead, RequestParser};
pub use request_template::{RequestTemplate, connect_head};
pub(crate) use request_template::{check_authority, check_request_line};
pub use response_parser::{H1ResponseEvent, H1ResponseHead, ResponseParser};

/// Bytes that are not a message that can be framed without guessing. A parser that has failed
/// stays failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ParseError {
    /// A line that does not end in CR LF.
    #[error("a line of the head ends without a carriage return")]
    BareLineFeed,
    /// A head whose end is not within its first 64 KiB.
    #[error("the head exceeds 64 KiB")]
    HeadTooLarge,
    /// A head with over 100 headers.
    #[error("the head has more than 100 headers")]
    TooManyHeaders,
    /// Bytes of another protocol.
    #[error("the peer answered in {protocol}, not in plain HTTP/1.1")]
    OtherProtocol {
        /// Name of the protocol.
        protocol: &'static str,
    },
    /// A head that does not follow the grammar.
    #[error("malformed {part} in the head")]
    Malformed {
        /// The part that was read.
        part: &'static str,
    },
    /// A `Content-Length` that is not a decimal number of at most 64 bits.
    #[error("content-length is not a number")]
    ContentLength,
    /// Two `Content-Length` headers that differ.
    #[error("two content-length headers differ")]
    ContentLengthsDiffer,
    /// Both `Content-Length` and `Transfer-Encoding`.
    #[error("both content-length and transfer-encoding are given")]
    BothLengths,
    /// A `Transfer-Encoding` other than `chunked` alone.
    #[error("the transfer-encoding is not `chunked` alone")]
    TransferEncoding,
    /// A header that may be given once only is given again.
    #[error("the header {name} is given more than once")]
    HeaderRepeated {
        /// Its name, in lower case.
        name: &'static str,
    },
    /// A header that the sink reads is not UTF-8.
    #[error("the header {name} is not text")]
    HeaderNotText {
        /// Its name, in lower case.
        name: &'static str,
    },
    /// A chunk that does not follow the grammar.
    #[error("malformed chunk")]
    Chunk,
    /// Chunk extensions or trailers above 64 KiB.
    #[error("chunk extensions or trailers exceed 64 KiB")]
    ChunkOverhead,
    /// The response `101 Switching Protocols` without a request for it.
    #[error("the protocol was switched without a request for it")]
    Upgrade,
    /// A response, or bytes behind one, without a request for it.
    #[error("the peer sent a response without a request")]
    Unrequested,
    /// Over 100 interim responses to one request.
    #[error("more than 100 interim responses (1xx) came before the final response")]
    InterimFlood,
    /// The connection ended within a message.
    #[error("the connection ended within a message")]
    Truncated,
}
