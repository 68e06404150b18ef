//! Counts, times and traces in the formats of others: data in, bytes out.
//!
//! What a load has counted until now is a [`Page`] of [`Point`]s, and one request
//! that is traced a [`Span`]. Both become bytes here and nowhere else; who sends
//! them where, and when, is for others to say.
//!
//! * [`Statsd`]: lines of statsd, with or without tags, in datagrams;
//! * [`prometheus_text`]: a page to scrape, and [`prometheus_samples`] one of samples
//!   under any names;
//! * [`remote_write`]: Prometheus' remote write;
//! * [`otlp_metrics`], [`otlp_spans`]: OpenTelemetry's protobuf, and
//!   [`otlp_rejected`], which reads what its receivers refuse;
//! * [`zipkin_spans`]: Zipkin's JSON;
//! * [`TraceIds`], [`TraceValues`]: which request is traced as what, and the headers
//!   that say so. These two are for the hot path: they allocate nothing.
//!
//! Names are those of [`stillwell_metric::catalogue`], made to fit each format.

mod names;
mod otlp;
mod page;
mod prometheus;
mod remote_write;
mod snappy;
mod statsd;
mod trace;
mod zipkin;

pub use otlp::{otlp_metrics, otlp_rejected, otlp_spans};
pub use page::{Origin, Page, Point, PointValue, RECENT_QUANTILES, Times};
pub use prometheus::{PROMETHEUS_TEXT, prometheus_samples, prometheus_text};
pub use remote_write::remote_write;
pub use statsd::{Datagram, Statsd};
pub use trace::{Span, SpanBatch, SpanRequest, TraceContext, TraceIds, TraceValues};
pub use zipkin::zipkin_spans;

#[cfg(test)]
mod fixture;
