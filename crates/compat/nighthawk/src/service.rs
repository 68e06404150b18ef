//! Loads from afar: Nighthawk's services over gRPC, and what those who look for
//! services expect beside them.
//!
//! * [`bind_service`]: listens, so that a taken address is known at once;
//!   [`BoundService::start`] then answers calls until its scope ends;
//! * [`Executor`]: who makes the loads. It runs on a thread of its own, one load at
//!   a time, as Nighthawk's service has it;
//! * [`Channel`], [`ClientCall`]: the other side of a call;
//! * [`RemoteLoad`]: a load that another service makes;
//! * [`RequestSourceClient`]: requests that another service hands out;
//! * [`reflected_files`]: what a server tells of a service of its own.
//!
//! What is served is a matter of [`Role`]: making loads, handing requests out, or
//! having several services make one load and putting their results together.
//! Health and reflection are always there.

mod bind;
mod codec;
mod distribute;
mod execution;
mod executor;
mod grpc;
mod health;
mod methods;
mod reflection;
mod remote;
mod requests;
mod role;
mod samples;
mod sink;
mod site;
mod source_client;
mod store;

pub use bind::{BoundService, ServiceError, ServicePlan, bind_service};
pub use executor::{Executor, Task};
pub use grpc::{Channel, ChannelError, ClientCall, Code, Ended};
pub use reflection::{ReflectionError, reflected_files};
pub use remote::{RemoteLoad, RemoteLoadError};
pub use role::{HandedOut, Role};
pub use samples::{SAMPLES, attach_samples, merge_responses};
pub use source_client::{
    RequestPattern, RequestSourceClient, RequestSourceError, conduct_load_from,
};
