//! Manifests of Kubernetes.
//!
//! Everything here is pure and uses the reader of `stillwell-text`.
//!
//! * [`kubernetes`] has manifests.

pub mod kubernetes;
