//! Nighthawk's gRPC services for remote loads, with health and reflection.
//!
//! * [`bind_service`]: listens, and fails at once on a taken address;
//!   [`BoundService::start`] answers calls until its scope ends;
//! * [`Executor`]: makes the loads on its own thread, one at a time, as in Nighthawk;
//! * [`Channel`], [`ClientCall`]: the client of a call;
//! * [`RemoteLoad`]: a load that another service makes;
//! * [`RequestSourceClient`]: requests that another service hands out;
//! * [`reflected_files`]: the descriptors of a service, from its server's reflection.
//!
//! [`AccessPlan`] has the rights of callers: token, targets, files and limits.
//!
//! A [`Role`] chooses the services: loads, requests, or the distribution of one load over
//! several services, whose results are merged. Health and reflection are always available.

mod access;
mod bind;
mod codec;
mod distribute;
mod execution;
mod executor;
mod files_below;
mod grpc;
mod health;
mod methods;
mod reflection;
mod remote;
mod requests;
mod role;
mod samples;
mod sink;
mod source_client;
mod state;
mod store;
mod target_pattern;

pub use access::{AccessError, AccessPlan, AccessToken, Caller, LoadLimits};
pub use bind::{BoundService, ServiceError, ServicePlan, bind_service};
pub use executor::{Executor, LoadTask, interrupt_failure};
pub use files_below::AllowedFolder;
pub use grpc::{CallFailed, Channel, ChannelError, ClientCall, StatusCode};
pub use reflection::{ReflectionError, reflected_files};
pub use remote::{RemoteLoad, RemoteLoadError};
pub use role::{OfferedRequest, Role};
pub use samples::{SAMPLES, attach_samples, merge_responses};
pub use source_client::{RequestPattern, RequestSourceClient, RequestSourceError};
pub use target_pattern::TargetPattern;
