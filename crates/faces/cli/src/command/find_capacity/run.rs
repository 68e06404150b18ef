//! Probes that are runs: one generator has another rate in each.

use std::path::Path;

use stillwell_config::RunOverrides;
use stillwell_experiment::capacity::{
    CapacitySearched, RunProbeError, RunProbes, RunSearchError, check_connections,
    check_measurable, default_bounds, search_range,
};
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::{RunPlan, Validity, WorkUnit};
use stillwell_stats::capacity::Purpose;
use stillwell_verdict::capacity::{CapacityProbe, ProbeLoad};

use super::{Found, Search, usage, with_defaults};
use crate::arguments::CapacityRate;
use crate::command::{observe, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

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
    let generator = run_plan.probes.generator();
    let end = |rate: Option<CapacityRate>| rate.map(|rate| (rate.unit, rate.per_second));
    let range = search_range(generator, end(arguments.from), end(arguments.to));
    let (unit, range) = range.map_err(refused)?;
    let counted = WorkUnit::of_rate(unit, &generator.transport);
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
        let defaults = default_bounds(&run.run_plan, &run.run_plan.generators[place]);
        let bounds = with_defaults(&arguments.bound, &defaults);
        for bound in &bounds {
            check_measurable(bound).map_err(refused)?;
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

    /// Checks that the number of connections can be varied.
    pub(super) fn check_connections(&self) -> Result<(), CommandError> {
        check_connections(self.probes.generator()).map_err(refused)
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

fn refused(error: RunSearchError) -> CommandError {
    let remedy = error.remedy();
    let refused = CommandError::new(Exit::Usage, error);
    match remedy {
        Some(remedy) => refused.hint(remedy),
        None => refused,
    }
}
