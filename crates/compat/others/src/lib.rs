//! Files of other tools. Pure: text goes in, numbers come out.
//!
//! * [`results`]: results of load generators: Nighthawk and fortio JSON, and columns;
//! * [`harness`]: results of a test harness: tables of dstat;
//! * [`TremorPrograms`]: programs of Tremor that deploy a bench.

pub mod harness;
pub mod results;
mod tremor;

pub use tremor::TremorPrograms;
