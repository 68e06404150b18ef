//! Workers of generators: threads that take what is due from a schedule, and account for
//! their time.
//!
//! [`Prepared`] holds the blocks of all workers of a [`GeneratorPlan`](stillwell_plan::GeneratorPlan)
//! before the run begins; an [`Opener`] says what they send through. A
//! worker is a thread of its own with its own connections, its own share of the
//! schedule, its own blocks, its own counts and recorders: workers share
//! nothing, and nothing on the way of a block allocates, copies or locks. Crates `load`,
//! `generator` and `environment` send through it and know nothing of each other's kinds.

mod backoff;
mod error;
mod file_control;
mod fresh;
mod mounted;
mod prepared;
mod slice;
mod stamps;
mod worker;

pub use backoff::Backoff;
pub use error::TransportError;
pub use file_control::FileControl;
pub use fresh::{Sets, Walk};
pub use mounted::{Mounted, ShowError};
pub use prepared::{PrepareError, Prepared};
pub use slice::{Most, Sending, Slice, units};
pub use stamps::{Marks, StampText, Stamping, between, write_header};
pub use worker::{GRACE, Opener, State, Wait, Worker, watched};
