//! One observed run.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_units::{Seed, Target};

use crate::disk::DiskPlan;
use crate::generator::{FileLayout, FileTreePlan, ProcFsPlan, StreamTarget};
use crate::placement::{IsolationPlan, Wanted};
use crate::step::StepAction;
use crate::target::{Places, ReadyProbe};
use crate::{
    CheckPlan, GeneratorPlan, GoalMetric, GoalPlan, ObserverPlan, PhasesPlan, PlacementPlan,
    SinkPlan, SinkProtocol, StepPlan, TargetKind, TargetPlan, TransportPlan,
};

/// Generators, sinks and observers around one target.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(remote = "Self")]
pub struct RunPlan {
    /// From which all that is random in the run follows.
    pub seed: Seed,
    /// Sources of load; none for an idle target.
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

crate::json::by_json_value!(RunPlan);

impl RunPlan {
    /// Returns a run with the defaults of all settings, without load and without a target.
    #[must_use]
    pub fn idle(seed: Seed) -> Self {
        Self {
            seed,
            generators: Vec::new(),
            sinks: Vec::new(),
            target: TargetPlan::none(),
            disks: Vec::new(),
            observer: ObserverPlan::default(),
            phases: PhasesPlan::default(),
            timeline: Vec::new(),
            isolation: IsolationPlan::default(),
            placement: PlacementPlan::default(),
            checks: Vec::new(),
        }
    }

    /// Returns true if namespaces are created for the run, where they are permitted.
    #[must_use]
    pub fn uses_namespaces(&self) -> bool {
        self.isolation.network != Wanted::No || self.target.has_mount_namespace()
    }

    /// The same plan around `target`. Generators that send to the URL of the target send to the
    /// new one, and the readiness probe connects to it, unless all of them use HTTP/3.
    #[must_use]
    pub fn around(&self, target: TargetPlan) -> Self {
        let mut run_plan = self.clone();
        run_plan.target = target;
        let TargetKind::Url(url) = &run_plan.target.kind else {
            return run_plan;
        };
        let Ok(to) = Target::from_url(url) else {
            return run_plan;
        };
        for generator in &mut run_plan.generators {
            match &mut generator.transport {
                TransportPlan::Requests(requests) => requests.redirect(url),
                TransportPlan::Scenario(scenario) => scenario.redirect(url),
                _ => {}
            }
        }
        run_plan.target.ready = if run_plan.is_sent_without_tcp() {
            ReadyProbe::Immediately
        } else {
            ReadyProbe::Tcp {
                address: to.dial_address(),
            }
        };
        run_plan
    }

    /// Returns true if generators send to the URL of the target, and none of them over TCP.
    fn is_sent_without_tcp(&self) -> bool {
        let transports = self.generators.iter().map(|generator| &generator.transport);
        let to_target = transports.filter(|transport| match transport {
            TransportPlan::Requests(requests) => requests.is_to_target(),
            TransportPlan::Scenario(scenario) => scenario.is_to_target,
            _ => false,
        });
        let mut over_tcp = to_target.map(|transport| transport.properties().is_ready_by_listening);
        over_tcp.next() == Some(false) && !over_tcp.any(|is_over_tcp| is_over_tcp)
    }

    /// The same plan, which records the series that its checks bound and that `goals` need.
    #[must_use]
    pub fn recording(mut self, goals: &[GoalPlan]) -> Self {
        for check in &self.checks {
            self.observer.request(&check.series.metric);
        }
        let mut metrics = goals.iter().map(|goal| &goal.metric);
        self.observer.instructions |= metrics.any(GoalMetric::needs_instructions);
        self
    }

    /// The same plan with every place filled in that a file or socket of its
    /// generators and sinks lies in.
    #[must_use]
    pub fn placed(&self, places: &Places) -> Self {
        let mut run_plan = self.clone();
        let fill = |path: &mut PathBuf| *path = places.fill(&path.to_string_lossy()).into();
        for generator in &mut run_plan.generators {
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
                | TransportPlan::Tls {
                    to: StreamTarget::Unix(path),
                    ..
                }
                | TransportPlan::FileTree(FileTreePlan { root: path, .. })
                | TransportPlan::ProcFs(ProcFsPlan { root: path, .. }) => fill(path),
                _ => {}
            }
        }
        for sink in &mut run_plan.sinks {
            match &mut sink.protocol {
                SinkProtocol::File { path }
                | SinkProtocol::UnixStream { path }
                | SinkProtocol::UnixDatagram { path } => fill(path),
                _ => {}
            }
        }
        run_plan
    }

    /// The same plan with every place filled in: those of [`Self::placed`], and those of the
    /// target, the disks and their steps, and the inspector.
    #[must_use]
    pub fn filled(&self, places: &Places) -> Self {
        let mut run_plan = self.placed(places);
        run_plan.target = self.target.filled(places);
        let disks = self.disks.iter().map(|disk| disk.filled(places));
        run_plan.disks = disks.collect();
        for step in &mut run_plan.timeline {
            if let StepAction::Disk { path, .. } = &mut step.action {
                *path = places.fill(&path.to_string_lossy()).into();
            }
        }
        let inspector = self.observer.inspector.as_ref();
        run_plan.observer.inspector = inspector.map(|plan| plan.filled(places));
        run_plan
    }
}

#[cfg(test)]
mod tests {
    use stillwell_units::{ByteSize, Nanos};

    use super::*;
    use crate::generator::tests::smallest_file_tree;
    use crate::generator::{Concurrency, WhenFull};
    use crate::{PayloadPlan, RatePlan};

    /// Every kind of transport that has a path of the run, which lies in `place`.
    fn transports(place: &str) -> Vec<TransportPlan> {
        let path = || PathBuf::from(format!("{place}/x"));
        let layouts = [
            FileLayout::Numbered {
                template: format!("{place}/%NNN%"),
                delete: false,
            },
            FileLayout::Rotated {
                root: path(),
                depth_max: 1,
                rotations: 1,
            },
            FileLayout::Log {
                path: path(),
                full: WhenFull::Rename,
                rotations: 1,
                pause: Nanos::SECOND,
            },
            FileLayout::Mounted {
                at: path(),
                depth_max: 1,
                rotations: 1,
            },
            FileLayout::Appended { path: path() },
        ];
        let files = layouts.map(|layout| TransportPlan::Files {
            layout,
            bytes_max: ByteSize::mib(1),
        });
        let rest = [
            TransportPlan::PassthruFile { path: path() },
            TransportPlan::UnixStream { path: path() },
            TransportPlan::UnixDatagram { path: path() },
            TransportPlan::Tls {
                to: StreamTarget::Unix(path()),
                tls: Box::default(),
            },
            TransportPlan::FileTree(smallest_file_tree(path())),
            TransportPlan::ProcFs(ProcFsPlan {
                root: path(),
                processes: 1,
                copies: Vec::new(),
            }),
        ];
        files.into_iter().chain(rest).collect()
    }

    fn run_in(place: &str) -> RunPlan {
        let generators = transports(place).into_iter();
        let generators = generators.map(|transport| GeneratorPlan {
            id: "in".to_owned(),
            transport,
            payload: PayloadPlan::PACE,
            rate: RatePlan::MAX,
            concurrency: Concurrency::ONE,
            seed: Seed::from_number(1),
            stamps: None,
        });
        RunPlan {
            generators: generators.collect(),
            ..RunPlan::idle(Seed::from_number(0))
        }
    }

    #[test]
    fn the_path_of_every_transport_is_filled_in() {
        let places = Places {
            stillwell: "/bin/stillwell".into(),
            state: "/state".into(),
            files: None,
            experiment: "/lab/one".into(),
        };
        assert_eq!(run_in("{state}").placed(&places), run_in("/state"));
    }
}
