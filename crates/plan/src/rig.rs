//! One observed run.

use serde::{Deserialize, Serialize};
use stillwell_units::Seed;

use crate::{
    CheckPlan, GeneratorPlan, IsolationPlan, ObserverPlan, PhasesPlan, PlacementPlan, SinkPlan,
    StepPlan, SubjectPlan,
};

/// Generators, sinks and observers around one subject.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RigPlan {
    /// From which all that is random in the run follows.
    pub seed: Seed,
    /// Sources of load; none for an idle rig.
    pub generators: Vec<GeneratorPlan>,
    /// Receivers of what the subject sends on.
    pub sinks: Vec<SinkPlan>,
    /// The program being measured.
    pub subject: SubjectPlan,
    /// What is watched.
    pub observer: ObserverPlan,
    /// How long everything takes.
    pub phases: PhasesPlan,
    /// What happens in the middle, in the order of time.
    pub timeline: Vec<StepPlan>,
    /// What the run is kept apart from.
    pub isolation: IsolationPlan,
    /// Which CPUs are whose.
    pub placement: PlacementPlan,
    /// Bounds that the run must keep.
    pub checks: Vec<CheckPlan>,
}
