//! Probes that are runs: one generator has another rate in each.

use std::path::Path;

use stillwell_config::RunOverrides;
use stillwell_experiment::capacity::{CapacitySearched, RunProbeError, RunProbes};
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::{GeneratorPlan, RateUnit, RunPlan, TransportPlan, Validity, WorkUnit};
use stillwell_stats::capacity::Purpose;
use stillwell_verdict::capacity::{CapacityProbe, ProbeLoad, quantile_of};

use super::{ERRORS, Found, Search, usage, with_defaults};
use crate::arguments::CapacityRate;
use crate::command::{observe, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

/// Default bound of a run: a target that falls behind passes less on than it is sent.
const THROUGHPUT: &str = "throughput>99%";
/// Additional default bound with stamps and a sink.
const LOSS: &str = "loss<1%";
/// Range of the search around the rate in a file.
const AROUND: (f64, f64) = (0.1, 100.0);

/// A run whose generator has another rate in each probe.
pub(super) struct VariedRun<'a> {
    search: &'a Search<'a>,
    file: &'a Path,
    probes: RunProbes,
}

pub(super) fn search(
    search: &Search<'_>,
    file: &Path,
    folder: &Path,
    paint: &Paint,
) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    let run_plan = VariedRun::load(search, file, paint)?;
    let (unit, range) = range(run_plan.probes.generator(), arguments.from, arguments.to)?;
    let counted = WorkUnit::of_rate(unit, &run_plan.probes.generator().transport);
    let mut number = 0;
    let probe = |per_second: f64, purpose: Purpose| {
        number += 1;
        let folder = folder.join(format!("probe-{number:03}"));
        let load = ProbeLoad::Rate {
            unit,
            per_second,
            purpose,
        };
        run_plan.probe(load, &folder)
    };
    let searched = search.highest(range, (counted, run_plan.bounds()), probe)?;
    Ok(run_plan.capacity_search(counted, searched))
}

impl<'a> VariedRun<'a> {
    pub(super) fn load(
        search: &'a Search<'a>,
        file: &'a Path,
        paint: &Paint,
    ) -> Result<Self, CommandError> {
        let arguments = search.arguments;
        let overrides = RunOverrides {
            seed: Some(arguments.seed),
            ..RunOverrides::default()
        };
        let loaded = loader()
            .adjustable_run(file, &overrides)
            .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
        select::warn(&loaded.warnings, paint);
        let mut run = loaded.plan;
        if let Some(validity) = arguments.validity {
            run.run_plan.observer.validity = validity.into();
        }
        let place = chosen(&run.run_plan, arguments.generator.as_deref())?;
        let bounds = with_defaults(&arguments.bound, &default_bounds(&run.run_plan, place));
        for bound in &bounds {
            measurable(bound)?;
        }
        let lengths = search.lengths(arguments.probe);
        Ok(Self {
            search,
            file,
            probes: RunProbes::new(run, place, bounds, lengths),
        })
    }

    pub(super) fn bounds(&self) -> &[CapacityBound] {
        self.probes.bounds()
    }

    /// Strictness of the limits of its runs.
    pub(super) fn validity(&self) -> Validity {
        self.probes.validity()
    }

    /// Unit of the generator's rate.
    pub(super) fn unit(&self) -> WorkUnit {
        let generator = self.probes.generator();
        WorkUnit::of_rate(generator.rate.unit, &generator.transport)
    }

    /// True if the number of connections can be varied.
    pub(super) fn has_connections(&self) -> Result<(), CommandError> {
        let generator = self.probes.generator();
        if matches!(
            generator.transport,
            TransportPlan::Tcp { .. }
                | TransportPlan::UnixStream { .. }
                | TransportPlan::Http { .. }
                | TransportPlan::SplunkHec { .. }
                | TransportPlan::Acknowledged(_)
                | TransportPlan::Grpc { .. }
                | TransportPlan::TraceAgent { .. }
        ) {
            return Ok(());
        }
        let what = format!("generator `{}` has no connections to vary", generator.id);
        Err(usage(&what).hint("leave out --objective to search for the highest rate"))
    }

    /// One run.
    pub(super) fn probe(
        &self,
        load: ProbeLoad,
        folder: &Path,
    ) -> Result<CapacityProbe, CommandError> {
        let request = observe::request(self.probes.plan(load), folder.to_path_buf(), self.file)
            .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
        let interrupt = &self.search.watch.interrupt;
        let display = &self.search.display;
        display.begin_run(&self.probes.generator().id);
        let probe = self
            .probes
            .probe(load, request, interrupt, &mut |progress| {
                display.show_run(&progress);
            });
        probe.map_err(|error| {
            if let RunProbeError::NeverReady {
                summary, capture, ..
            } = &error
            {
                observe::print_last_lines(summary, capture);
            }
            let exit = match &error {
                RunProbeError::Conduct(_) | RunProbeError::NeverReady { .. } => Exit::CouldNotRun,
                RunProbeError::Open(_) | RunProbeError::Broken(_) => Exit::Invalid,
            };
            CommandError::new(exit, error)
        })
    }

    pub(super) fn capacity_search(
        self,
        unit: WorkUnit,
        searched: CapacitySearched<CommandError>,
    ) -> Found {
        let generator = &self.probes.generator().id;
        Found {
            validity: self.validity(),
            target: format!("{}, generator {generator}", self.file.display()),
            unit,
            bounds: self.probes.bounds().to_vec(),
            searched,
        }
    }
}

/// The place of the generator whose rate is varied.
fn chosen(plan: &RunPlan, name: Option<&str>) -> Result<usize, CommandError> {
    let names: Vec<&str> = plan
        .generators
        .iter()
        .map(|generator| generator.id.as_str())
        .collect();
    match (name, names.as_slice()) {
        (_, []) => Err(usage("the experiment has no generator with a rate")),
        (None, [_]) => Ok(0),
        (None, _) => Err(usage("the experiment has several generators"))
            .map_err(|error| error.hint(format!("choose one: --generator {}", names.join(" or ")))),
        (Some(name), _) => names.iter().position(|id| *id == name).ok_or_else(|| {
            let what = format!("the experiment has no generator `{name}`");
            usage(&what).hint(format!("the generators are: {}", names.join(", ")))
        }),
    }
}

/// Returns the default bounds of a run whose generator at `place` is varied.
fn default_bounds(plan: &RunPlan, place: usize) -> Vec<&'static str> {
    let generator = &plan.generators[place];
    let mut bounds = vec![THROUGHPUT];
    if generator.stamps.is_some() && !plan.sinks.is_empty() {
        // An event that the target drops is sent as well, and has no latency.
        bounds.push(LOSS);
    } else if generator.has_responses() {
        // A refusal is a response, and may be a fast one.
        bounds.push(ERRORS);
    }
    bounds
}

fn range(
    generator: &GeneratorPlan,
    from: Option<CapacityRate>,
    to: Option<CapacityRate>,
) -> Result<(RateUnit, (f64, f64)), CommandError> {
    let stated = generator.rate.shape.constant();
    let unit = match (from.or(to), stated) {
        (Some(given), _) => given.unit,
        (None, Some(_)) => generator.rate.unit,
        (None, None) => {
            let error = usage("the run's file has no rate to search around");
            return Err(error.hint("give --from and --to, such as 100/s or 1 MiB/s"));
        }
    };
    let stated = stated.filter(|_| generator.rate.unit == unit);
    let end = |given: Option<CapacityRate>, share: f64, flag: &str| match (given, stated) {
        (Some(given), _) if given.unit == unit => Ok(given.per_second),
        (Some(_), _) => Err(usage("--from and --to have different units")),
        (None, Some(stated)) => Ok(stated * share),
        (None, None) => {
            let error = usage("the run's file has no rate in that unit");
            Err(error.hint(format!("give {flag}, too")))
        }
    };
    Ok((
        unit,
        (end(from, AROUND.0, "--from")?, end(to, AROUND.1, "--to")?),
    ))
}

/// Returns true if captures contain the metric of this bound.
fn measurable(bound: &CapacityBound) -> Result<(), CommandError> {
    match bound.figure {
        CapacityFigure::Latency(share) if quantile_of(share).is_none() => {
            let what = format!("a run has no {}", bound.figure);
            Err(usage(&what).hint("it has p50, p90, p99 and p99.9"))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a bound of latency alone, a service that refused all requests looked fast.
    #[test]
    fn a_run_is_bounded_by_failures_that_its_latency_does_not_have() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("run.yaml");
        let (http, tcp) = ("http: 'http://127.0.0.1:9100/'", "tcp: '127.0.0.1:9100'");
        let (stamped, sinks) = (", stamps: all", "  sinks: [{tcp: '127.0.0.1:9200'}]\n");
        for (transport, stamps, sinks, expected) in [
            (http, "", "", vec![THROUGHPUT, ERRORS]),
            (http, "", sinks, vec![THROUGHPUT, ERRORS]),
            (http, stamped, sinks, vec![THROUGHPUT, LOSS]),
            (tcp, "", sinks, vec![THROUGHPUT]),
            (tcp, stamped, sinks, vec![THROUGHPUT, LOSS]),
        ] {
            let text = format!(
                "target: {{command: ./relay}}\nworkload:\n  generators: \
                 [{{{transport}, payload: ascii{stamps}}}]\n{sinks}"
            );
            std::fs::write(&file, &text).unwrap();
            let loaded = loader().run_plan(&file, &RunOverrides::default());
            assert_eq!(default_bounds(&loaded.unwrap().plan, 0), expected, "{text}");
        }
    }
}
