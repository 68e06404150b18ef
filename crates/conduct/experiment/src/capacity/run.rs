//! Probes that are runs: one generator has another rate in each.

use std::path::PathBuf;

use stillwell_capture::{Capture, OpenError, RunOutcome};
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::{GeneratorPlan, RatePlan, RateShape, RateUnit, RunPlan, Validity};
use stillwell_run::{ConductError, Interrupt, Progress, RunRequest, conduct};
use stillwell_units::Nanos;
use stillwell_verdict::capacity::{CapacityProbe, ProbeLoad, judge_run_probe};
use stillwell_verdict::{RunSummary, RunWarning, summarise};

use super::load::probe_length;

/// A run whose generator has another rate in each probe.
#[derive(Debug)]
pub struct RunProbes {
    plan: RunPlan,
    place: usize,
    bounds: Vec<CapacityBound>,
    lengths: (Nanos, Nanos),
}

/// The reason why a run could not be a probe.
#[derive(Debug, thiserror::Error)]
pub enum RunProbeError {
    /// The run could not be conducted.
    #[error(transparent)]
    Conduct(#[from] ConductError),
    /// Its capture cannot be read.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The target never became ready.
    #[error("probe {}: {why}", folder.display())]
    NeverReady {
        /// The folder of its capture.
        folder: PathBuf,
        /// Why.
        why: String,
        /// Result of the run.
        summary: Box<RunSummary>,
        /// Its capture.
        capture: Box<Capture>,
    },
    /// The run did not go as it should.
    #[error("{0}")]
    Broken(RunWarning),
}

impl RunProbes {
    /// Probes of `plan` that vary the generator at `place`, each of this warm-up and
    /// measured time.
    #[must_use]
    pub const fn new(
        plan: RunPlan,
        place: usize,
        bounds: Vec<CapacityBound>,
        lengths: (Nanos, Nanos),
    ) -> Self {
        Self {
            plan,
            place,
            bounds,
            lengths,
        }
    }

    /// The generator that is varied.
    #[must_use]
    pub fn generator(&self) -> &GeneratorPlan {
        &self.plan.generators[self.place]
    }

    /// Strictness of the limits of its runs.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.plan.observer.validity
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &[CapacityBound] {
        &self.bounds
    }

    /// Returns the plan with one generator that sends `load`.
    #[must_use]
    pub fn plan(&self, load: ProbeLoad) -> RunPlan {
        let mut plan = self.plan.clone();
        let generator = &mut plan.generators[self.place];
        match load {
            ProbeLoad::Rate {
                unit, per_second, ..
            } => {
                let shape = RateShape::Constant { per_second };
                generator.rate = RatePlan { unit, shape };
            }
            ProbeLoad::AtFullSpeed { connections } => {
                generator.rate.shape = RateShape::Max;
                let connections = u16::try_from(connections).unwrap_or(u16::MAX);
                generator.concurrency = generator.concurrency.with_connections(connections);
            }
        }
        let (warmup, measure) = self.lengths;
        plan.phases.warmup = warmup;
        plan.phases.measure = match load {
            ProbeLoad::Rate {
                unit: RateUnit::Events,
                per_second,
                ..
            } => probe_length(per_second, &self.bounds, measure),
            _ => measure,
        };
        // Steps and bounds are meant for runs as the file has them.
        plan.timeline.clear();
        plan.checks.clear();
        plan
    }

    /// Conducts and judges one run, reports it to `progress`; its request comes from [`RunProbes::plan`] of the same
    /// `load`.
    ///
    /// # Errors
    ///
    /// [`RunProbeError`] where the run has no figures of its target.
    pub fn probe(
        &self,
        load: ProbeLoad,
        request: RunRequest,
        interrupt: &Interrupt,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<CapacityProbe, RunProbeError> {
        let (summary, capture) = carry_out(request, interrupt, progress)?;
        judge_run_probe(&summary, &capture, (self.place, load), &self.bounds)
            .map_err(RunProbeError::Broken)
    }
}

fn carry_out(
    request: RunRequest,
    interrupt: &Interrupt,
    progress: &mut dyn FnMut(Progress),
) -> Result<(RunSummary, Capture), RunProbeError> {
    let (state, folder) = (request.places.state.clone(), request.folder.clone());
    let conducted = conduct(request, interrupt, progress);
    // Nothing in the folder is needed any more.
    std::fs::remove_dir_all(state.parent().unwrap_or(&state)).ok();
    let manifest = conducted?;
    let mut capture = Capture::open(&folder)?;
    capture.manifest.outcome = manifest.outcome;
    let summary = summarise(&capture);
    if matches!(
        summary.outcome,
        RunOutcome::CouldNotStart { .. } | RunOutcome::NeverReady { .. }
    ) {
        let why = summary
            .warnings
            .first()
            .map_or_else(String::new, ToString::to_string);
        return Err(RunProbeError::NeverReady {
            folder,
            why,
            summary: Box::new(summary),
            capture: Box::new(capture),
        });
    }
    Ok((summary, capture))
}
