//! Receives the output of the target, counts it, and answers as configured.
//!
//! [`bind`] turns a plan into a [`BoundSink`], whose sockets take connections from then
//! on; [`BoundSink::start`] starts its workers in a scope. Their counts are in one
//! [`SinkShard`](stillwell_metric::SinkShard) each.
//!
//! There are two loops: one accepts connections (TCP, Unix streams, HTTP), one
//! takes datagrams (UDP, Unix datagrams). What counts as what:
//!
//! | protocol | bytes | messages | events |
//! | --- | --- | --- | --- |
//! | TCP, Unix stream | all | none | lines; an unfinished last one too once the peer has closed |
//! | file | all that is written to it | none | as of a stream, of each file that has the name |
//! | UDP, Unix datagram | all | datagrams | lines in each datagram, at least one |
//! | HTTP | bodies, as encoded | requests | lines of each body, or elements where the body is a JSON array |
//! | an intake, such as `splunk_hec` | bodies, as encoded | requests, and messages of gRPC | what the service calls so |
//! | `tcp_rr` | all | requests | requests |
//!
//! A body is a JSON array where it says `application/json` and begins with `[`.
//! Where a body is encoded by gzip, deflate (`zlib`) or zstd, or at an intake by Snappy, that is
//! undone to see its events; those of any other coding do not count. Requests count,
//! with their events and stamps, once they are whole.
//!
//! Where events are stamped, sinks look for stamps in all that they receive, with any
//! framing, and enter them into one [`SharedLedger`]; bodies in a coding that is not
//! undone are not looked through.
//!
//! Where times are before events (`prefix`), events are what these frame, and their
//! latencies are recorded.
//!
//! Connections that break off within a request or a line, and requests that
//! cannot be framed, count as errors. Nothing that is received can stop a sink;
//! a listener that fails for good ends its worker with an error.
//!
//! At its end, a worker closes its listener, takes what its sockets hold already (for a
//! tenth of a second, where they are filled all the time) and ends. A Unix socket's file
//! goes with its sink.
//!
//! ```
//! use std::io::Write;
//! use stillwell_plan::{SinkPlan, SinkProtocol};
//! use stillwell_scope::{Place, Scope, Token};
//! use stillwell_units::Nanos;
//!
//! let address = "127.0.0.1:0".parse()?;
//! let sink = stillwell_sink::bind(&SinkPlan {
//!     id: "intake".to_owned(),
//!     protocol: SinkProtocol::Tcp { address },
//!     workers: std::num::NonZeroU16::MIN,
//!     limit: None,
//!     lines: None,
//!     prefix: None,
//! })?;
//! let address = sink.address().ok_or("TCP has an address")?;
//! let shards = sink.shards();
//! let mut scope = Scope::new(&Token::new());
//! sink.start(&mut scope, &Place::default())?;
//! std::net::TcpStream::connect(address)?.write_all(b"one\ntwo")?;
//! scope.close(Nanos::from_secs(5));
//! assert_eq!(shards[0].events.total(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod accept;
mod bind;
mod datagram;
mod events;
mod file;
mod fitting;
mod http;
mod intake;
mod json_array;
mod json_classes;
mod ledger;
mod lines;
mod prefixes;
mod round_trip;
mod socket;
mod steering;
mod stream;
mod throttle;
mod worker;

pub use bind::{BindError, BoundSink, bind};
pub use ledger::{SharedLedger, StampedGenerator, StreamAccount};
pub use steering::SinkControl;
