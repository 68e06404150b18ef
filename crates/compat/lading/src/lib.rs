//! lading and SMP: their configurations and captures.
//!
//! * [`FORMATS`]: `lading.yaml` and SMP cases, for the loader of `stillwell-config`;
//! * [`load_lading`]: a run as lading itself is asked for it;
//! * [`capture`]: captures that lading wrote are read and checked; a run is written
//!   as lading would write it;
//! * [`series`]: names and labels that lading gives to series.

pub mod capture;
mod case;
mod experiment;
mod format;
mod rig;
mod run;
pub mod series;
mod spelling;

pub use format::{FORMATS, LadingFiles, SmpCases};
pub use rig::{
    LadingTelemetry, Size, TelemetryFormat, TelemetryFormatKind, TelemetryPlace, parse_size,
};
pub use run::{LadingRun, LadingSource, load_lading};

#[cfg(test)]
mod tests;
