//! Validated plans, as data only.
//!
//! A plan is what the configuration door lets through. It cannot be wrong in a
//! way that a check of the text could detect; it holds no handle, reads no
//! clock and does nothing. The running half carries a [`RunPlan`] out, the
//! capture keeps it word for word, and the reading half reads it again, so
//! every type here serialises.
//!
//! * one observed run: [`RunPlan`] of [`GeneratorPlan`]s, [`SinkPlan`]s, one
//!   [`TargetPlan`], an [`ObserverPlan`], [`PhasesPlan`] and [`StepPlan`]s;
//! * one comparison: [`ExperimentPlan`] of a [`RunPlan`], [`VariantPlan`]s,
//!   [`GoalPlan`]s and [`CheckPlan`]s;
//! * several: [`SuitePlan`];
//! * one workload for several programs: [`TargetsPlan`] of [`targets::ComparedTargetPlan`]s;
//! * requests to a service, without a target: [`LoadPlan`].

mod bench;
pub mod capacity;
pub mod check;
pub mod disk;
mod estimate;
pub mod experiment;
pub mod generator;
pub mod goal;
mod json;
pub mod link;
pub mod load;
mod measurable;
pub mod observer;
pub mod payload;
mod phases;
pub mod placement;
pub mod rate;
mod roles;
mod run;
pub mod scenario;
pub mod serve;
pub mod sink;
pub mod stamp;
pub mod step;
pub mod stopping;
pub mod target;
pub mod targets;
pub mod tls;
mod validity;
mod work_unit;

pub use bench::BenchPlan;
pub use check::CheckPlan;
pub use estimate::TimeEstimate;
pub use experiment::{ExperimentPlan, SuitePlan, VariantPlan};
pub use generator::{GeneratorPlan, TransportPlan};
pub use goal::{GoalMetric, GoalPlan};
pub use load::LoadPlan;
pub use observer::ObserverPlan;
pub use payload::{PayloadFormat, PayloadPlan};
pub use phases::{Phase, PhasesPlan};
pub use placement::PlacementPlan;
pub use rate::{RatePlan, RateShape, RateUnit};
pub use roles::{RunHosts, RunRoles, SinkShare, TaskRole};
pub use run::RunPlan;
pub use serve::ServePlan;
pub use sink::{SinkPlan, SinkProtocol};
pub use stamp::StampPlan;
pub use step::StepPlan;
pub use stopping::StoppingPlan;
pub use target::{TargetKind, TargetPlan};
pub use targets::TargetsPlan;
pub use validity::Validity;
pub use work_unit::WorkUnit;
