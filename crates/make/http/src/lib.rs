//! HTTP framing without I/O: bytes in, events out.
//!
//! The client side of a load generator, the server side of a counting sink and
//! both sides of a relay use the same few types:
//!
//! * [`RequestTemplate`] writes request heads, [`ResponseParser`] reads what is
//!   answered;
//! * [`RequestParser`] reads requests, [`write_response`] and
//!   [`PreparedResponse`] answer them;
//! * [`OneShot`] sends one request and collects the answer: scrapes and probes;
//! * [`Target`] is where requests go, as typed in a URL.
//!
//! Parsers take received bytes, cut anywhere, and give the same events for every cut. A
//! parser takes all of its input before it needs more, so callers keep no unread bytes.
//! Bodies come as slices of that input; a head is copied only where it arrives in parts.
//! Nothing allocates otherwise.
//!
//! Framing that two programs could read differently is refused, never guessed:
//! lines end in CR LF, lengths do not contradict each other, and heads have at
//! most 64 KiB and 100 headers. There is no code here for TLS, for upgrades or
//! for undoing content codings, and nothing here reads a socket or a clock.
//!
//! That is HTTP/1.1; [`h2`] is HTTP/2, [`h3`] HTTP/3, [`grpc`] the messages in its bodies, and
//! [`protobuf`] what most of those are. [`capsule`] is how datagrams go through a proxy.
//!
//! ```
//! use stillwell_http::{H1RequestEvent, RequestParser, RequestTemplate};
//!
//! let template = RequestTemplate::new("POST", "/in", "127.0.0.1:8080", &[])?;
//! let mut bytes = Vec::new();
//! template.write_head(5, &mut bytes);
//! bytes.extend_from_slice(b"hello");
//!
//! let mut parser = RequestParser::new();
//! let (mut read, mut body) = (0, Vec::new());
//! loop {
//!     let (consumed, event) = parser.advance(&bytes[read..])?;
//!     read += consumed;
//!     match event {
//!         Some(H1RequestEvent::Head(head)) => assert_eq!(head.target, "/in"),
//!         Some(H1RequestEvent::Body(part)) => body.extend_from_slice(part),
//!         Some(H1RequestEvent::End) => {}
//!         None => break,
//!     }
//! }
//! assert_eq!((read, body.as_slice()), (bytes.len(), b"hello".as_slice()));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod capsule;
mod decimal;
pub mod grpc;
mod h1;
pub mod h2;
pub mod h3;
pub mod protobuf;
mod signature;

pub use h1::{
    CONTINUE, H1RequestEvent, H1RequestHead, H1ResponseEvent, H1ResponseHead, HeadError, OneShot,
    OneShotError, ParseError, PreparedResponse, RequestParser, RequestTemplate, Response,
    ResponseParser, connect_head, write_response,
};
pub use signature::{StoreKeys, Unsigned, encoded_path, encoded_query};
pub use stillwell_units::{Scheme, Target, TargetError};

/// Largest number of interim responses (1xx) to a request before the final one.
const INTERIM_MAX: u8 = 100;
