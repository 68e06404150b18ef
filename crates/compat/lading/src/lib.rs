//! lading: its captures, and its names of what is recorded.
//!
//! * [`capture`]: captures that lading wrote are read and checked; a run is written
//!   as lading would write it;
//! * [`series`]: names and labels that lading gives to series.

pub mod capture;
pub mod series;
