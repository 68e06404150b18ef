//! The part that every server of a run shares: a listener, the loop that accepts its
//! connections, and a worker with its counters, its time account and its read buffer.
//!
//! ```text
//! StreamListener ──accept──▶ Stream ──▶ one task per connection
//!                                         ServerWorker::receive
//! ```
//!
//! A worker that is asked to end takes what its sockets already hold, for a bounded time,
//! and then ends ([`ServerWorker::stopping`]).

mod accept;
mod account;
mod listener;
mod worker;

pub use accept::{AcceptEnd, accept, accept_until, finish_connections};
pub use account::{TimeAccount, accounted};
pub use listener::{ListenerSocket, StreamListener};
pub use worker::{ServerWorker, account_ticks};
