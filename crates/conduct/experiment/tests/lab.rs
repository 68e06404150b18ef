//! Every test of this crate that needs only its public face.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "lab/bisect.rs"]
mod bisect;
#[path = "lab/builds.rs"]
mod builds;
#[path = "lab/local.rs"]
mod local;
#[path = "lab/mock.rs"]
mod mock;
#[path = "lab/orchestration.rs"]
mod orchestration;
#[path = "lab/resume.rs"]
mod resume;
#[path = "lab/sequential.rs"]
mod sequential;
#[path = "lab/subjects.rs"]
mod subjects;
