//! Sockets, dialers, listeners and the pacing clock.
//!
//! * [`Timer`]: waits for a moment as exactly as the kernel can; the runtime's
//!   own timer counts in milliseconds and never paces.
//! * [`dial`]: opens connections; what goes wrong is a [`DialError`], which
//!   says which [`Outcome`](stillwell_metric::Outcome) it counts as.
//! * [`listen`]: binds sockets of the standard library, so an address that is taken is
//!   an error before any worker starts. A worker gives them to the runtime by tokio's
//!   `from_std`. [`SocketFile`] removes a Unix socket's file again.
//! * [`tls`]: the same connections over TLS, either side, by rustls.
//! * [`quic`]: connections over UDP, either side, by quinn's state machine.
//! * [`client`]: one request at a time for the control plane, over HTTP/1.1 and gRPC.
//! * [`server`]: the accept loop, the worker and the time account that servers share.
//! * [`Connection`], [`Listener`], [`Stream`]: connections and a listener of either kind, for
//!   loops that do not care.
//! * [`stream_outcome`]: the outcome that a failed read or write counts as.
//!
//! Nothing here retries or spawns, and nothing but [`client`] looks at bytes. No wait here has
//! an end of its own, save where a deadline is given: callers wait under their token.

pub mod client;
mod connection;
pub mod dial;
mod either;
pub mod listen;
mod listener;
mod outcome;
pub mod quic;
pub mod server;
mod socket_file;
mod stream;
mod timer;
pub mod tls;

pub use connection::Connection;
pub use dial::DialError;
pub use listen::ListenError;
pub use listener::Listener;
pub use outcome::stream_outcome;
pub use socket_file::SocketFile;
pub use stream::Stream;
pub use timer::Timer;
