//! Loads: from flags, files of requests, recordings and gRPC descriptors to a plan.
//!
//! A command fills a [`LoadSpec`] with what was typed and gets a [`LoadPlan`] from
//! [`LoadSpec::plan`]. Values with a grammar of their own, such as [`Header`], read
//! themselves by `FromStr`.

mod check;
mod endpoint;
mod error;
mod grpc;
mod host;
mod listed;
mod mix;
mod parts;
mod receivers;
mod recorded;
mod reflection;
mod spec;
mod telemetry;
mod tls;
mod tunnel;
mod values;

use stillwell_plan::LoadPlan;
use stillwell_plan::load::LoadPlanParts;

use crate::files::Disk;
use host::ReadLoad;

pub(crate) use check::tls_flag_without_effect;
pub(crate) use endpoint::read as read_requests_file;
pub(crate) use endpoint::suggested_path;
pub use endpoint::{read_text, target, tls_host, usual_method};
pub use error::LoadSpecError;
pub use grpc::described_calls;
pub(crate) use grpc::endpoint_of_calls;
pub use host::LoadHost;
pub use listed::{
    RequestDefaults, RequestSource, SourceBody, SourceRequest, filled_body, is_host_header,
    is_same_header, listed_request,
};
pub(crate) use mix::{MixedRequest, RequestOrigin, endpoint_of};
pub(crate) use parts::spacing;
pub use receivers::{SpanSink, StatsSink};
pub use recorded::{RecordedRequest, har, request_lines};
pub use reflection::{Reflection, ReflectionFailure, ReflectionFailureKind, ReflectionRequest};
pub use spec::{
    ConnectingSpec, GrpcSpec, LoadSpec, RequestSpec, ShapeSpec, StatsSpec, Streaming, TlsSpec,
    TraceSpec, TunnelSpec,
};
pub(crate) use tls::plan as tls_plan;
pub use values::{
    Concurrency, Header, MessageRate, PageListen, Predicate, StatsLabel, above_zero, share,
};

impl LoadSpec {
    /// Reads the files that it names and makes its plan.
    ///
    /// # Errors
    /// The first mistake: a file that cannot be read, flags that contradict each other, or
    /// a plan that makes no sense.
    pub fn plan(&self, host: LoadHost<'_>) -> Result<LoadPlan, LoadSpecError> {
        Ok(LoadPlan::try_new(self.parts(host)?)?)
    }

    /// The same, for a command that changes some parts before they become a plan.
    ///
    /// # Errors
    /// As [`LoadSpec::plan`], except a plan that makes no sense.
    pub fn parts(&self, host: LoadHost<'_>) -> Result<LoadPlanParts, LoadSpecError> {
        let context = ReadLoad { files: &Disk, host };
        parts::parts(self, &context)
    }
}
