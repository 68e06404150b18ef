//! Payload by pacer by transport, to outcomes.
//!
//! [`prepare`] builds everything that one [`GeneratorPlan`](stillwell_plan::GeneratorPlan)
//! sends before the run begins; [`Prepared::start`] then starts its workers. A
//! worker is a thread of its own with its own connections, its own share of the
//! schedule, its own blocks, its own counts and recorders: workers share
//! nothing, and nothing on the way of a block allocates, copies or locks.
//!
//! * *When*: the schedule is absolute and one for all connections of a worker.
//!   Connections take turns; the connection that has the turn waits until something is
//!   due, takes it and passes the turn on before sending. A block is due once all units
//!   before it are due, so no more than one block is ever ahead of the schedule.
//! * *How*: push transports write neighbouring blocks that are due as one slice (a
//!   datagram is always one block); `http` sends a block a request, over the connections
//!   of crate `load`; producers for brokers write due blocks as messages while answers to
//!   earlier ones are under way. Every push connection walks all of its worker's blocks
//!   in order, over and over; the requests of one worker walk them together.
//! * *Fresh blocks*: with [`Prepared::fresh`] they go on, after one round, with blocks
//!   that are built beside, so the blocks of a long run are not repeated.
//! * *Until when*: until stopped. The block under way is then written whole and
//!   the request under way answered, if the peer does its part within
//!   [`GRACE`]; nothing further is begun.
//! * *Outcome*: a refusal, a loss, a bad answer is an
//!   [`Outcome`](stillwell_metric::Outcome) and counted, never an error. Connections that
//!   fail are opened again, after a pause that grows from 10 ms to 1 s.
//! * *In turns*, where two runs share a host ([`Prepared::in_turns`]): a worker whose
//!   turn is over begins nothing further, and its schedule pauses until the next.
//!
//! Where the plan wants events stamped, a slice is copied before it leaves and the
//! copy marked; each connection is a stream of its own ([`Prepared::numbered`]).
//!
//! Time is accounted by worker: *running* while anything of it runs; else
//! *idle* while nothing is due, *blocked* while something is due or half
//! written and every connection waits for its peer, and *late* for what a sleep
//! took beyond its end, where that was more than 1 ms.

mod acknowledged;
mod broker;
mod call;
mod catalogue;
mod contract;
mod dialogue;
mod drive;
mod exchange;
mod grpc;
mod hec;
mod prepare;
mod round_trip;
mod trace_agent;
mod transport;

pub use prepare::prepare;
pub use stillwell_worker::{FileControl, GRACE, PrepareError, Prepared, ShowError};
