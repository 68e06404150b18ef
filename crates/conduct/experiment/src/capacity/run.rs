//! Probes that are runs: one generator has another rate in each.

use std::path::PathBuf;

use stillwell_capture::{Capture, OpenError, RunOutcome};
use stillwell_config::AdjustableRun;
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
    run: AdjustableRun,
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
    /// Probes of `run` that vary the generator at `place`, each of this warm-up and
    /// measured time.
    #[must_use]
    pub const fn new(
        run: AdjustableRun,
        place: usize,
        bounds: Vec<CapacityBound>,
        lengths: (Nanos, Nanos),
    ) -> Self {
        Self {
            run,
            place,
            bounds,
            lengths,
        }
    }

    /// The generator that is varied.
    #[must_use]
    pub fn generator(&self) -> &GeneratorPlan {
        &self.run.run_plan.generators[self.place]
    }

    /// Strictness of the limits of its runs.
    #[must_use]
    pub const fn validity(&self) -> Validity {
        self.run.run_plan.observer.validity
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &[CapacityBound] {
        &self.bounds
    }

    /// Returns the plan with one generator that sends `load`, in the blocks that a file with this rate has.
    #[must_use]
    pub fn plan(&self, load: ProbeLoad) -> RunPlan {
        let rate = match load {
            ProbeLoad::Rate {
                unit, per_second, ..
            } => RatePlan::constant(unit, per_second),
            ProbeLoad::AtFullSpeed { .. } => RatePlan {
                unit: self.generator().rate.unit,
                shape: RateShape::Max,
            },
        };
        let mut plan = self.run.at_rate(self.place, rate);
        if let ProbeLoad::AtFullSpeed { connections } = load {
            let generator = &mut plan.generators[self.place];
            let connections = u16::try_from(connections).unwrap_or(u16::MAX);
            generator.concurrency = generator.concurrency.with_connections(connections);
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use stillwell_config::files::InMemory;
    use stillwell_config::{Loader, RunOverrides};
    use stillwell_stats::capacity::Purpose;

    use super::*;

    /// A run with one generator of these keys.
    fn run(generator: &str) -> AdjustableRun {
        let text = format!("workload: {{generators: [{{{generator}}}]}}\n");
        let files = InMemory::with([("/run.yaml", text.as_str())]);
        let loader = Loader::new(&files, &[]);
        let loaded = loader.adjustable_run(Path::new("/run.yaml"), &RunOverrides::default());
        loaded.unwrap_or_else(|errors| panic!("{errors}")).plan
    }

    #[test]
    fn a_probe_sends_the_blocks_of_a_file_with_its_rate() {
        let events = |per_second: f64| ProbeLoad::Rate {
            unit: RateUnit::Events,
            per_second,
            purpose: Purpose::Grow,
        };
        for block in ["", ", block: 4 KiB", ", block: {events: 1}"] {
            let with = |rate: &str| {
                run(&format!(
                    "tcp: '127.0.0.1:9100', payload: ascii{block}{rate}"
                ))
            };
            for stated in ["", ", rate: 2k/s", ", rate: 1 MiB/s"] {
                let lengths = (Nanos::ZERO, Nanos::SECOND);
                let probes = RunProbes::new(with(stated), 0, Vec::new(), lengths);
                for (load, rate) in [
                    (events(100.0), ", rate: 100/s"),
                    (events(200_000.0), ", rate: 200k/s"),
                    (ProbeLoad::AtFullSpeed { connections: 1 }, ", rate: max"),
                ] {
                    let probe = probes.plan(load);
                    let in_file = with(rate).run_plan;
                    assert_eq!(
                        probe.generators[0].payload, in_file.generators[0].payload,
                        "{block}{stated}{rate}"
                    );
                }
            }
        }
    }
}
