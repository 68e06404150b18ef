//! Every test of this crate that needs only its public face.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "suite/bisect.rs"]
mod bisect;
#[path = "suite/builds.rs"]
mod builds;
#[path = "suite/local.rs"]
mod local;
#[path = "suite/mock.rs"]
mod mock;
#[path = "suite/orchestration.rs"]
mod orchestration;
#[path = "suite/resume.rs"]
mod resume;
#[path = "suite/sequential.rs"]
mod sequential;
#[path = "suite/targets.rs"]
mod targets;
