//! HTTP/3 (RFC 9114) without I/O: bytes of streams in, events out.
//!
//! QUIC carries the streams and is not part of this crate; their content is read and written
//! here.
//!
//! * [`H3RequestBlock`] and [`H3ResponseBlock`] are heads, made once and written often;
//!   [`write_data_head`] goes before a body.
//! * [`H3Connection`] is one side of a connection: it reads the streams of one
//!   direction (control, and those of header compression), and the messages of
//!   requests' streams by a [`H3MessageReader`] each.
//!
//! Readers are fed with what a stream gave, cut anywhere, until there is no event.
//!
//! Header compression ([`qpack`], RFC 9204) goes without a table that changes:
//! none is offered, so no stream ever waits for another one, and a head that
//! comes again as it came before is compared, not decoded.
//!
//! Promises (server push) are refused; priorities and datagrams are skipped.
//!
//! ```
//! use stillwell_http::h3::{BodyLength, H3Connection, H3MessageReader, H3RequestBlock, H3RequestEvent};
//!
//! let request = H3RequestBlock::new("GET", "localhost", "/", &[])?;
//! let mut stream = Vec::new();
//! request.write(&[], BodyLength::None, &mut stream);
//!
//! let (mut server, mut reader) = (H3Connection::server(64 << 10), H3MessageReader::request());
//! let (taken, event) = server.read_request(&mut reader, &stream)?;
//! assert!(matches!(event, Some(H3RequestEvent::Head(head)) if head.path == "/"));
//! assert_eq!(taken, stream.len());
//! reader.finish()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod block;
mod connection;
mod control;
mod error;
pub(crate) mod frame;
mod message;
pub mod qpack;
mod sections;
#[cfg(test)]
mod tests;
mod varint;

pub use crate::h2::{BodyLength, Fields, RequestHead, ResponseHead};
pub use block::{H3RequestBlock, H3ResponseBlock, write_data_head};
pub use connection::{H3Connection, UniStream};
pub use error::{H3ConnectionError, H3ErrorCode, H3MessageError, H3StreamFailure};
pub use frame::write_go_away;
pub use message::{H3MessageReader, H3RequestEvent, H3ResponseEvent};
