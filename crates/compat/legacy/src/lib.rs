//! Shapes of other tools: lading and SMP YAML, read into plans.
//!
//! Everything here is pure and stands on the reader of `stillwell-text`.
//!
//! * [`lading`]: `lading.yaml`, list and map shape;
//! * [`lint`]: old spellings in both, and today's;
//! * [`smp`]: `experiment.yaml` and `config.yaml` of SMP cases;
//! * [`tremor`]: the keys of its `bench` connector;
//! * [`kubernetes`] has manifests.

pub mod kubernetes;
pub mod lading;
pub mod lint;
pub mod smp;
pub mod tremor;
