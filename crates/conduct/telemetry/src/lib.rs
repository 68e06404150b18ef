//! Exports metrics and traces to other programs while a load or a run goes on.
//!
//! * [`LoadTelemetry`] exports what a load has counted: to stats receivers (statsd, OpenTelemetry,
//!   Prometheus' remote write), on a page to scrape, and as spans (OpenTelemetry, Zipkin).
//! * [`RunTelemetry`] exports the samples of runs in the same ways, without statsd and spans.
//! * [`SamplePage`] serves the newest sample of each series of a run to Prometheus.
//!
//! `format` makes bytes without I/O. Receivers and pages are tasks of one thread: an export
//! that fails is counted and tried again with the next flush. It never disturbs the load or
//! another receiver.

mod format;
mod load;
mod newest;
mod published;
mod run;
mod samples;
mod server;

pub use load::{LoadTelemetry, TelemetryError, WorkerTimes};
pub use run::{RunMetrics, RunMetricsWriter, RunTelemetry};
pub use samples::{PageAddress, PageError, PagePlan, SamplePage, SeriesNaming};
