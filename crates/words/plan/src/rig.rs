//! One observed run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::Seed;

use crate::{
    CheckPlan, DiskPlan, FileLayout, FileTreePlan, GeneratorPlan, IsolationPlan, ObserverPlan,
    PhasesPlan, PlacementPlan, Places, SinkPlan, SinkProtocol, StepPlan, TargetPlan, TransportPlan,
};

/// Generators, sinks and observers around one target.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct RigPlan {
    /// From which all that is random in the run follows.
    pub seed: Seed,
    /// Sources of load; none for an idle rig.
    pub generators: Vec<GeneratorPlan>,
    /// Receivers of the target's output.
    pub sinks: Vec<SinkPlan>,
    /// The program being measured.
    pub target: TargetPlan,
    /// Disks that are brought along for it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disks: Vec<DiskPlan>,
    /// The observed figures.
    pub observer: ObserverPlan,
    /// Lengths and deadlines of phases.
    pub phases: PhasesPlan,
    /// Steps during the run, in the order of time.
    pub timeline: Vec<StepPlan>,
    /// Isolation of the run.
    pub isolation: IsolationPlan,
    /// Assignment of CPUs.
    pub placement: PlacementPlan,
    /// Bounds that the run must keep.
    pub checks: Vec<CheckPlan>,
}

impl RigPlan {
    /// The same rig with every place filled in that a file or socket of its
    /// generators and sinks lies in.
    #[must_use]
    pub fn placed(&self, places: &Places) -> Self {
        let mut rig = self.clone();
        let fill = |path: &mut PathBuf| *path = places.fill(&path.to_string_lossy()).into();
        for generator in &mut rig.generators {
            match &mut generator.transport {
                TransportPlan::Files { layout, .. } => match layout {
                    FileLayout::Numbered { template, .. } => *template = places.fill(template),
                    FileLayout::Rotated { root: path, .. }
                    | FileLayout::Log { path, .. }
                    | FileLayout::Mounted { at: path, .. }
                    | FileLayout::Appended { path } => fill(path),
                },
                TransportPlan::PassthruFile { path }
                | TransportPlan::UnixStream { path }
                | TransportPlan::UnixDatagram { path }
                | TransportPlan::FileTree(FileTreePlan { root: path, .. }) => fill(path),
                _ => {}
            }
        }
        for sink in &mut rig.sinks {
            match &mut sink.protocol {
                SinkProtocol::File { path }
                | SinkProtocol::UnixStream { path }
                | SinkProtocol::UnixDatagram { path } => fill(path),
                _ => {}
            }
        }
        rig
    }
}
