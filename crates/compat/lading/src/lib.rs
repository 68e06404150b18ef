//! lading and SMP: their configurations and captures.
//!
//! * [`FORMATS`]: `lading.yaml` and SMP cases, for the loader of `stillwell-config`;
//! * [`load_lading`]: a run with lading's own arguments;
//! * [`capture`]: reads and checks captures of lading, and writes a run in its formats;
//! * [`series`]: lading's names and labels of series.

pub mod capture;
mod case;
mod experiment;
mod file;
mod format;
mod run;
pub mod series;
mod spelling;

pub use file::{
    LadingTelemetry, Size, TelemetryFormat, TelemetryFormatKind, TelemetryPlace, parse_size,
};
pub use format::{FORMATS, LadingFiles, SmpCases};
pub use run::{LadingRun, LadingSource, load_lading};

#[cfg(test)]
mod tests;
