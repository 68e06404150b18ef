//! Wire formats of message brokers for producers, without I/O: bytes in, messages out.
//!
//! * [`nats`]: the text protocol of NATS, and acknowledgements of JetStream;
//! * [`amqp`]: AMQP 0-9-1 with publisher confirms;
//! * [`kafka`]: record batches with any compression, and the requests that a
//!   producer needs.
//!
//! Each module has functions that append to a buffer, and a `read` function for received bytes. `read` returns
//! a message with its length, `None` if the message is incomplete, or [`Malformed`]. Messages borrow from the
//! received bytes; only data that is read once per connection is copied. Lengths are not trusted before their
//! bytes have arrived.
//!
//! ```
//! use stillwell_broker::nats::{ServerMessage, SubjectPublisher, read};
//!
//! let mut out = Vec::new();
//! SubjectPublisher::new("logs", None).write(b"hello", 1, &mut out);
//! assert_eq!(out, b"PUB logs 5\r\nhello\r\n");
//!
//! let (message, used) = read(b"PING\r\nPO")?.expect("a complete message");
//! assert_eq!((message, used), (ServerMessage::Ping, 6));
//! # Ok::<(), stillwell_broker::Malformed>(())
//! ```

pub mod amqp;
mod bytes;
pub mod kafka;
pub mod nats;

pub use bytes::Malformed;
