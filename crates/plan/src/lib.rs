//! What will be done: validated, data only.
//!
//! A plan is what the configuration door lets through. It cannot be wrong in a
//! way that a look at the text could have told; it holds no handle, reads no
//! clock and does nothing. The running half carries a [`RigPlan`] out, the
//! capture keeps it word for word, and the reading half reads it again, so
//! every type here serialises.
//!
//! * one observed run: [`RigPlan`] of [`GeneratorPlan`]s, [`SinkPlan`]s, one
//!   [`SubjectPlan`], an [`ObserverPlan`], [`PhasesPlan`] and [`StepPlan`]s;
//! * one comparison: [`ExperimentPlan`] of a rig, [`VariantPlan`]s,
//!   [`GoalPlan`]s and [`CheckPlan`]s;
//! * several: [`LabPlan`].

mod check;
mod estimate;
mod experiment;
mod generator;
mod goal;
mod observer;
mod payload;
mod phases;
mod placement;
mod rig;
mod sink;
mod stopping;
mod subject;

pub use check::{Aggregation, CheckPlan, SeriesSelector};
pub use estimate::TimeEstimate;
pub use experiment::{
    BinarySource, ExperimentPlan, FamilyPlan, GitSource, LabPlan, OperatingPoint, ReportLink,
    VariantPlan,
};
pub use generator::{GeneratorPlan, RatePlan, RateShape, RateUnit, TransportPlan};
pub use goal::{
    Direction, GoalMetric, GoalMetricError, GoalPlan, LatencyQuantile, Reduction, Scale, SeriesGoal,
};
pub use observer::{ObserverPlan, ScrapePlan};
pub use payload::{BlockShape, PayloadFormat, PayloadPlan};
pub use phases::{Phase, PhasesPlan, StepAction, StepPlan, SubjectSignal};
pub use placement::{CpuChoice, IsolationPlan, PlacementPlan, Wanted};
pub use rig::RigPlan;
pub use sink::{SinkBody, SinkPlan, SinkProtocol};
pub use stopping::{
    DesignPlan, PAIRS_CONFIRM_MIN, PAIRS_MAX_DEFAULT, PAIRS_MIN, PAIRS_OPEN_DEFAULT, StoppingPlan,
    WarmupPlan,
};
pub use subject::{
    ChildPlan, EnvironmentPlan, MountPlan, Places, ReadyProbe, StopPlan, SubjectKind, SubjectPlan,
};
