//! Formats of exported metrics and traces: data in, bytes out, no I/O.
//!
//! Names come from [`stillwell_metric::catalogue`], fitted to each format.

#[cfg(test)]
mod dashboard;
#[cfg(test)]
pub(crate) mod fixture;
mod names;
pub(crate) mod otlp;
pub(crate) mod page;
pub(crate) mod prometheus;
pub(crate) mod remote_write;
pub(crate) mod spans;
pub(crate) mod statsd;
pub(crate) mod zipkin;
