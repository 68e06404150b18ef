//! When the next send is due.
//!
//! A [`Schedule`] says, from `(now, sent)` alone, how many units are due and at
//! which moment the next one is. Units are bytes, events, requests or blocks:
//! the pacer does not care. The schedule is absolute, counted from its start, so
//! nothing drifts, however long it runs and however uneven its queries are.
//!
//! Several workers divide one schedule by [`Share`]; together they send exactly
//! what one worker would have sent, interleaved and never at the top of each
//! second. [`TimeAccount`] is where a worker's time went. [`Turns`] let two schedules
//! share a host: each goes on only while it has its turn.
//!
//! [`Arrivals`] are the moments of single requests, in bursts, jittered or drawn
//! if requested; [`Part`] divides them among targets.
//!
//! This crate reads no clock and never waits: `now` is an argument.
//!
//! ```
//! use stillwell_pacer::{Schedule, Share};
//! use stillwell_plan::RateShape;
//! use stillwell_units::{Moment, Nanos};
//!
//! let start = Moment::new(1_000);
//! let shape = RateShape::Constant { per_second: 1_000.0 };
//! let mut schedule = Schedule::new(&shape, Share::WHOLE, start);
//! assert_eq!(schedule.next_due(start), start + Nanos::from_millis(1));
//! let now = start + Nanos::from_millis(3);
//! assert_eq!(schedule.due(now), 3);
//! schedule.advance(3);
//! assert_eq!(schedule.due(now), 0);
//! assert_eq!(schedule.next_due(now), start + Nanos::from_millis(4));
//! ```

mod account;
mod arrivals;
mod curve;
mod lateness;
mod part;
mod schedule;
mod share;
mod turns;

pub use account::TimeAccount;
pub use arrivals::Arrivals;
pub use lateness::lateness;
pub use part::Part;
pub use schedule::Schedule;
pub use share::Share;
pub use turns::{TurnPlan, Turns};
