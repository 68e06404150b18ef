//! HTTP/2 (RFC 9113) without I/O: bytes in, events out.
//!
//! * [`Client`] sends [`H2RequestBlock`]s and reports the result of each;
//! * [`Server`] hands out requests and sends [`H2ResponseBlock`]s;
//! * [`StreamTable`] holds a value for each open stream;
//! * [`Limits`] bound what either takes from its peer.
//!
//! Both are fed with what was read, by `advance`, until there is no event, and
//! lay out what is to be written in `output`. Output arises from calls and from
//! input, so look at it after either; once some was sent, `advance(&[])` says
//! which bodies have got room.
//!
//! Received bytes count as consumed: windows are opened again at once, in steps of half a
//! window. A slow reader stops reading the socket.
//!
//! Nothing allocates once the most streams that are ever open have been open and
//! the largest headers have come and gone. Heads are prebuilt; headers that come
//! again as they came before are compared, not decoded.
//!
//! Promises (server push) are refused, priorities are skipped, and there is no upgrade from
//! HTTP/1.1: both sides know the version beforehand, or by ALPN (`h2`).
//!
//! The layers below can be used alone: [`frame`] and [`hpack`].
//!
//! ```
//! use stillwell_http::Scheme;
//! use stillwell_http::h2::{BodyLength, Client, ClientEvent, Limits, H2RequestBlock, H2ResponseBlock};
//! use stillwell_http::h2::{Server, ServerEvent};
//!
//! let (mut client, mut server) = (Client::new(Limits::default()), Server::new(Limits::default()));
//! let request = H2RequestBlock::new("GET", Scheme::Http, "h", "/", &[])?;
//! let response = H2ResponseBlock::new(204, &[])?;
//! let requested = client.request(&request, BodyLength::None)?;
//!
//! let (mut input, mut read) = (client.output().to_vec(), 0);
//! client.sent(input.len());
//! let mut ended = None;
//! while let (taken, Some(event)) = server.advance(&input[read..])? {
//!     read += taken;
//!     if let ServerEvent::End { stream, .. } = event {
//!         ended = Some(stream);
//!     }
//! }
//! server.respond(ended.ok_or("no request")?, &response, BodyLength::None)?;
//!
//! (input, read) = (server.output().to_vec(), 0);
//! let mut status = 0;
//! while let (taken, Some(event)) = client.advance(&input[read..])? {
//!     read += taken;
//!     match event {
//!         ClientEvent::Head { head, .. } => status = head.status,
//!         ClientEvent::End { stream, .. } => assert_eq!((stream, status), (requested, 204)),
//!         _ => unreachable!(),
//!     }
//! }
//! # assert_eq!(status, 204);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod block;
mod client;
mod connection;
mod error;
mod fields;
mod flood;
pub mod frame;
pub(crate) mod head;
pub mod hpack;
mod limits;
mod output;
pub(crate) mod section;
mod sections;
mod server;
mod side;
mod streams;
mod table;
#[cfg(test)]
mod tests;

pub use block::{BodyLength, H2RequestBlock, H2ResponseBlock, TrailerBlock};
pub use client::{Client, ClientEvent, RequestRefused};
pub use error::{H2ConnectionError, H2ErrorCode, H2StreamFailure, StreamEnded};
pub use fields::{FieldList, Fields};
pub use head::{RequestHead, ResponseHead};
pub use limits::Limits;
pub use server::{Server, ServerEvent};
pub use streams::Stream;
pub use table::StreamTable;

/// First bytes of a client.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Returns true if a connection that begins with `bytes` speaks HTTP/2, for servers of both
/// versions; `None` where that is not clear yet.
#[must_use]
pub fn is_http2(bytes: &[u8]) -> Option<bool> {
    let length = bytes.len().min(PREFACE.len());
    let is_same = bytes[..length] == PREFACE[..length];
    (!is_same || length == PREFACE.len()).then_some(is_same)
}
