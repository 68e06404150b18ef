//! What a producer says to a message broker and hears from it, without I/O: bytes
//! in, words out.
//!
//! * [`nats`]: the text protocol of NATS, and acknowledgements of JetStream;
//! * [`amqp`]: AMQP 0-9-1 with publisher confirms;
//! * [`kafka`]: record batches, with any compression, and the few requests that a
//!   producer needs.
//!
//! Each has functions that append to a buffer what is to be written, and one that
//! reads from the beginning of what was received: it gives a word and how many bytes
//! that was, `None` where more must come first, or [`Malformed`]. Words borrow from
//! what was received; only what is read once a connection is copied. Nothing here
//! reads a socket or a clock, and no length is believed before its bytes are there.
//!
//! ```
//! use stillwell_broker::nats::{Publisher, ServerWord, read};
//!
//! let mut out = Vec::new();
//! Publisher::new("logs", None).write(b"hello", 1, &mut out);
//! assert_eq!(out, b"PUB logs 5\r\nhello\r\n");
//!
//! let (word, used) = read(b"PING\r\nPO")?.expect("a whole word");
//! assert_eq!((word, used), (ServerWord::Ping, 6));
//! # Ok::<(), stillwell_broker::Malformed>(())
//! ```

pub mod amqp;
mod bytes;
pub mod kafka;
pub mod nats;

pub use bytes::Malformed;
