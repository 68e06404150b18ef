//! Owns threads and tasks: the only place that starts any.
//!
//! A [`Scope`] owns the threads of one run (or of one part of it). Every thread has a [`Place`]
//! (CPUs and network namespace), a name, a CPU clock and the scope's [`Token`]. The end of each is
//! a [`PartEnd`], collected by [`Scope::close`] under a deadline. A part that fails cancels nothing
//! by itself: the conductor receives the end through [`Scope::ends`] and decides, so no part ends
//! alone and no evidence is lost.
//!
//! A *worker* is a thread with a current-thread runtime of its own, on which it
//! runs `!Send` futures; [`Tasks`] bounds those that it starts per connection, and
//! [`Stopping`] ends its loops over sockets without losing what has arrived.
//!
//! [`clock`] is the one clock of a process.

pub mod clock;
mod place;
mod stopping;
mod tasks;
mod thread;

pub use place::{NetworkNamespace, Place, PlaceError, permitted_cpus};
pub use stillwell_units::explain;
pub use stopping::{Drain, Stopping};
pub use tasks::Tasks;
pub use thread::{PartEnd, PartError, PartFailure, Scope, ThreadInfo};
/// Requests the end of parts; clones share the state.
pub use tokio_util::sync::CancellationToken as Token;
