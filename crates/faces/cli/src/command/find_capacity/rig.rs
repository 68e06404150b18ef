//! Probes of a rig: each is a run in which one generator's rate is another.

use std::path::Path;

use stillwell_config::RigOverrides;
use stillwell_experiment::capacity::{CapacitySearched, RigProbeError, RigProbes};
use stillwell_plan::{
    CapacityBound, CapacityFigure, GeneratorPlan, RateShape, RateUnit, RigPlan, TransportPlan,
};
use stillwell_stats::capacity::Purpose;
use stillwell_verdict::capacity::{CapacityProbe, CapacityUnit, ProbeLoad, quantile_of};

use super::{Found, Search, usage};
use crate::arguments::CapacityRate;
use crate::command::{rig, select};
use crate::exit::{CommandError, Exit};
use crate::formats::loader;
use crate::paint::Paint;

/// Default bound of a rig.
const THROUGHPUT: &str = "throughput>99%";
/// Additional default bound with stamps and a sink.
const LOSS: &str = "loss<1%";
/// Range of the search around the rate in a file.
const AROUND: (f64, f64) = (0.1, 100.0);

/// A rig of which one generator is varied.
pub(super) struct Rig<'a> {
    search: &'a Search<'a>,
    file: &'a Path,
    probes: RigProbes,
}

pub(super) fn search(
    search: &Search<'_>,
    file: &Path,
    folder: &Path,
    paint: &Paint,
) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    let rig = Rig::load(search, file, paint)?;
    let (unit, range) = range(rig.probes.generator(), arguments.from, arguments.to)?;
    let counted = CapacityUnit::Generated(unit);
    let mut number = 0;
    let probe = |per_second: f64, purpose: Purpose| {
        number += 1;
        let folder = folder.join(format!("probe-{number:03}"));
        let load = ProbeLoad::Rate {
            unit,
            per_second,
            purpose,
        };
        rig.probe(load, &folder)
    };
    let searched = search.highest(range, (counted, rig.bounds()), probe)?;
    Ok(rig.found(counted, searched))
}

impl<'a> Rig<'a> {
    pub(super) fn load(
        search: &'a Search<'a>,
        file: &'a Path,
        paint: &Paint,
    ) -> Result<Self, CommandError> {
        let arguments = search.arguments;
        let overrides = RigOverrides {
            seed: Some(arguments.seed),
            ..RigOverrides::default()
        };
        let loaded = loader()
            .rig(file, &overrides)
            .map_err(|diagnostics| select::refused(&diagnostics, paint))?;
        select::warn(&loaded.warnings, paint);
        let plan = loaded.plan;
        let place = chosen(&plan, arguments.generator.as_deref())?;
        let mut bounds = arguments.bound.clone();
        if bounds.is_empty() {
            bounds.extend(THROUGHPUT.parse::<CapacityBound>());
            // What is thrown away is sent as well.
            if plan.generators[place].stamps.is_some() && !plan.sinks.is_empty() {
                bounds.extend(LOSS.parse::<CapacityBound>());
            }
        }
        for bound in &bounds {
            measurable(bound)?;
        }
        let lengths = search.lengths(arguments.probe);
        Ok(Self {
            search,
            file,
            probes: RigProbes::new(plan, place, bounds, lengths),
        })
    }

    pub(super) fn bounds(&self) -> &[CapacityBound] {
        self.probes.bounds()
    }

    /// Unit of the generator's rate.
    pub(super) fn unit(&self) -> CapacityUnit {
        CapacityUnit::Generated(self.probes.generator().rate.unit)
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
        Err(usage(&what).hint("search the highest rate: leave --objective out"))
    }

    /// One run.
    pub(super) fn probe(
        &self,
        load: ProbeLoad,
        folder: &Path,
    ) -> Result<CapacityProbe, CommandError> {
        let request = rig::request(self.probes.plan(load), folder.to_path_buf(), self.file)
            .map_err(|error| CommandError::new(Exit::CouldNotRun, error))?;
        let interrupt = &self.search.watch.interrupt;
        let probe = self.probes.probe(load, request, interrupt);
        probe.map_err(|error| {
            if let RigProbeError::NeverReady {
                summary, capture, ..
            } = &error
            {
                rig::print_last_lines(summary, capture);
            }
            let exit = match &error {
                RigProbeError::Conduct(_) | RigProbeError::NeverReady { .. } => Exit::CouldNotRun,
                RigProbeError::Open(_) | RigProbeError::Broken(_) => Exit::Invalid,
            };
            CommandError::new(exit, error)
        })
    }

    pub(super) fn found(
        self,
        unit: CapacityUnit,
        searched: CapacitySearched<CommandError>,
    ) -> Found {
        let generator = &self.probes.generator().id;
        Found {
            target: format!("{}, generator {generator}", self.file.display()),
            unit,
            bounds: self.probes.bounds().to_vec(),
            searched,
        }
    }
}

/// The place of the generator whose rate is varied.
fn chosen(plan: &RigPlan, name: Option<&str>) -> Result<usize, CommandError> {
    let names: Vec<&str> = plan.generators.iter().map(|own| own.id.as_str()).collect();
    match (name, names.as_slice()) {
        (_, []) => Err(usage("the rig has no generator with a rate")),
        (None, [_]) => Ok(0),
        (None, _) => Err(usage("the rig has several generators"))
            .map_err(|error| error.hint(format!("choose one: --generator {}", names.join(" or ")))),
        (Some(name), _) => names.iter().position(|own| *own == name).ok_or_else(|| {
            let what = format!("the rig has no generator `{name}`");
            usage(&what).hint(format!("there is {}", names.join(", ")))
        }),
    }
}

fn range(
    own: &GeneratorPlan,
    from: Option<CapacityRate>,
    to: Option<CapacityRate>,
) -> Result<(RateUnit, (f64, f64)), CommandError> {
    let stated = match own.rate.shape {
        RateShape::Constant { per_second } => Some(per_second),
        RateShape::Max | RateShape::Ramp { .. } => None,
    };
    let unit = match (from.or(to), stated) {
        (Some(given), _) => given.unit,
        (None, Some(_)) => own.rate.unit,
        (None, None) => {
            let error = usage("the rig's file has no rate to search around");
            return Err(error.hint("give --from and --to, such as 100/s or 1 MiB/s"));
        }
    };
    let stated = stated.filter(|_| own.rate.unit == unit);
    let end = |given: Option<CapacityRate>, share: f64, flag: &str| match (given, stated) {
        (Some(given), _) if given.unit == unit => Ok(given.per_second),
        (Some(_), _) => Err(usage("--from and --to have different units")),
        (None, Some(stated)) => Ok(stated * share),
        (None, None) => {
            let error = usage("the rig's file has no rate in that unit");
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
