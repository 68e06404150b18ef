//! The embedded target: a small, real event relay.
//!
//! A relay takes events in (TCP, UDP, Unix sockets, HTTP), works on them (parse, rewrite,
//! burn CPU, hoard memory, stall), keeps them in a bounded buffer and sends them on. It is a
//! target to measure without setup, and its cost is known, so tests can check the
//! measurements.
//!
//! [`run`] runs it on one thread until its token is cancelled. Call [`bind`] first to read
//! the addresses that the kernel chose.
//!
//! * An event is a line without its end, or with `--events requests` a whole HTTP request,
//!   which goes on with the stamp of its header if there is one. Lines longer than a mebibyte
//!   are dropped; a last line without an end is an event once its peer has closed.
//! * TCP and Unix streams are not read while the buffer is full. Datagrams are
//!   read and dropped. An HTTP request is taken whole or not at all: 503 where
//!   the buffer has no room for a second, 413 where it can never have. A compressed request is
//!   refused and counted (415, over gRPC `UNIMPLEMENTED`): clients must not compress.
//! * What is sent on arrives at least once over a stream that does not break.
//!   Over one that does, sending resumes with the first event that was not
//!   handed over whole; what the kernel held is lost, as in any relay without
//!   acknowledgements. Bytes that the peer of a stream sends are discarded. A peer that closes
//!   its writing side is connected to again, and the next event goes over the new connection.
//!   Over HTTP every batch is acknowledged, and sent again where that fails. An answer that
//!   comes before the whole request was sent counts.
//! * After a stop it accepts no more connections, takes in data that has arrived for at most
//!   a second, and sends on what it holds for at most five. Within these five seconds it waits
//!   until the peer of a stream that it sends on closes the connection.
//! * With a buffer on disk ([`DiskOptions`]) events are in files from the moment they are
//!   taken in until they are handed over. A client gets its answer once its events are as
//!   safe as the options say. The next relay that uses the folder of a killed relay sends the
//!   events that it left, with the content type of its newest request: at least once. Writes
//!   and syncs that the kernel refuses are tried again.
//! * Every event taken in is sent on or counted as dropped: once a relay has
//!   ended, in = out + dropped; with a buffer on disk, in + recovered = out + dropped +
//!   kept.
//! * It makes faults on request ([`FaultOptions`]): it drops, duplicates, swaps and changes
//!   events, each one in so many, and counts them. Events duplicated on purpose are counted
//!   out twice.
//!
//! The text at `/metrics` is Prometheus' (version 0.0.4); see [`RelayReport`].
//!
//! ```
//! use std::io::Write;
//! use stillwell_relay::{RelayOptions, bind};
//! use stillwell_scope::Token;
//!
//! let mut options = RelayOptions::new("tcp://127.0.0.1:0".parse()?, "discard:".parse()?);
//! options.work_per_event = "300ns".parse()?;
//! let relay = bind(options)?;
//! let address = relay.input_address().ok_or("TCP has an address")?;
//! let mut stream = std::net::TcpStream::connect(address)?;
//! stream.write_all(b"one\ntwo\n")?;
//! let stop = Token::new();
//! stop.cancel();
//! assert_eq!(relay.run(&stop)?.events_out, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod buffer;
mod core;
mod counters;
mod disk;
mod endpoint;
mod fault;
mod input;
mod limit;
mod metrics;
mod options;
mod output;
mod run;
mod server;
mod split;
mod stall;
mod transform;
mod work;

pub use counters::RelayReport;
pub use disk::DiskError;
pub use endpoint::Endpoint;
pub use fault::{FaultOptions, OneIn};
pub use options::{DiskOptions, Format, RelayOptions, Rewrite, Stall, SyncWhen};
pub use run::{BoundRelay, RelayError, bind, run};
pub use work::{WorkAmount, spin};
