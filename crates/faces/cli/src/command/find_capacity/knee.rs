//! The load that gets the most throughput for its latency.

use std::path::Path;

use stillwell_experiment::capacity::{
    CapacitySearched, KNEE_LOADS_MIN, knee, knee_loads, load_at_connections,
};
use stillwell_plan::WorkUnit;
use stillwell_plan::capacity::CapacityBound;
use stillwell_plan::load::LoadPace;
use stillwell_units::count;
use stillwell_verdict::capacity::{CapacityProbe, ProbeLoad};

use super::run::VariedRun;
use super::{Found, Search, http, usage};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// The knee over connections to a URL.
pub(super) fn of_url(search: &Search<'_>) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    let mut plan = http::plan(arguments)?;
    plan.pace = LoadPace::Closed;
    let least = count(plan.endpoints.len());
    let bounds = http::bounds(arguments);
    let mut first = http::First::default();
    let searched = along(
        search,
        (least.max(1), WorkUnit::Requests),
        &bounds,
        |connections| {
            let lengths = search.lengths(arguments.probe);
            let plan = load_at_connections(&plan, connections, lengths);
            let plan = plan.map_err(|error| CommandError::new(Exit::Usage, error))?;
            http::probe(&plan, &bounds, (search, &mut first))
        },
    )?;
    Ok(Found {
        validity: plan.validity,
        target: http::target(arguments, &plan),
        unit: WorkUnit::Requests,
        bounds,
        searched,
    })
}

/// The knee over the connections of one generator of a run, which sends as much as it
/// is taken.
pub(super) fn of_run(
    search: &Search<'_>,
    file: &Path,
    folder: &Path,
    paint: &Paint,
) -> Result<Found, CommandError> {
    let run_plan = VariedRun::load(search, file, paint)?;
    run_plan.check_connections()?;
    let most = search.arguments.over.connections;
    if most > u32::from(u16::MAX) {
        let what = format!(
            "--connections {most}: a generator has at most {} connections",
            u16::MAX
        );
        return Err(usage(&what));
    }
    let unit = run_plan.unit();
    let mut number = 0;
    let searched = along(search, (1, unit), run_plan.bounds(), |connections| {
        number += 1;
        let folder = folder.join(format!("probe-{number:03}"));
        run_plan.probe(ProbeLoad::AtFullSpeed { connections }, &folder)
    })?;
    Ok(run_plan.capacity_search(unit, searched))
}

/// The knee of what `probe` gives at each load, from `least` connections on.
fn along(
    search: &Search<'_>,
    (least, unit): (u32, WorkUnit),
    bounds: &[CapacityBound],
    probe: impl FnMut(u32) -> Result<CapacityProbe, CommandError>,
) -> Result<CapacitySearched<CommandError>, CommandError> {
    let arguments = search.arguments;
    let most = arguments.over.connections;
    let loads = knee_loads(least, most);
    if loads.len() < KNEE_LOADS_MIN {
        let what = format!(
            "--connections {most} gives {} numbers of connections to probe, and a knee needs \
             {KNEE_LOADS_MIN}",
            loads.len()
        );
        return Err(usage(&what).hint("give a larger number of --connections"));
    }
    let mut watcher = search.watcher(unit, bounds);
    knee(&loads, arguments.repeats, &mut watcher, probe)
}
