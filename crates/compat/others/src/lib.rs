//! Results that other tools wrote. Pure: text goes in, numbers come out.
//!
//! * [`results`]: results of load generators: Nighthawk and fortio JSON, and columns;
//! * [`harness`]: results of a test harness: tables of dstat.

pub mod harness;
pub mod results;
