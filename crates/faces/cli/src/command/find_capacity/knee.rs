//! The load that gets the most throughput for its latency.

use std::path::Path;

use stillwell_plan::{CapacityBound, LoadPace, LoadPlan, LoadPlanParts};
use stillwell_report::{CapacityAnswer, CapacityProbe, CapacityUnit, KneeFound};
use stillwell_stats::Level;
use stillwell_stats::capacity::Observed;
use stillwell_stats::capacity::usl::Usl;

use super::rig::{Asked, Rig};
use super::{Found, Search, Watch, http, shown, usage};
use crate::arguments::FindCapacityArguments;
use crate::exit::CommandError;
use crate::paint::Paint;

/// Fewest different loads that a law follows from.
const LOADS_MIN: usize = 4;

/// The knee over connections to a URL.
pub(super) fn of_url(search: &mut Search<'_>) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    let mut plan = http::plan(arguments)?;
    plan.pace = LoadPace::Closed;
    let least = u32::try_from(plan.endpoints.len()).unwrap_or(u32::MAX);
    let bounds = http::bounds(arguments);
    let mut first = http::First::default();
    let answer = along(
        search,
        (least.max(1), CapacityUnit::Requests),
        &bounds,
        |connections, watch| {
            let plan = at_load(&plan, connections, arguments)?;
            let found = http::conduct(&plan, arguments, watch)?;
            let (probe, nobody) = http::told(&plan, &found, &bounds);
            first.look(nobody, watch)?;
            Ok(probe)
        },
    )?;
    Ok(Found {
        target: http::target(arguments, &plan),
        unit: CapacityUnit::Requests,
        bounds,
        answer,
    })
}

/// The knee over the connections of one generator of a rig, which sends as much as it
/// is taken.
pub(super) fn of_rig(
    search: &mut Search<'_>,
    file: &Path,
    folder: &Path,
    paint: &Paint,
) -> Result<Found, CommandError> {
    let rig = Rig::load(search.arguments, file, paint)?;
    rig.has_connections()?;
    let most = search.arguments.over.connections;
    if most > u32::from(u16::MAX) {
        let what = format!("--connections {most}: a generator has at most {}", u16::MAX);
        return Err(usage(&what));
    }
    let unit = rig.unit();
    let mut number = 0;
    let answer = along(search, (1, unit), rig.bounds(), |connections, watch| {
        number += 1;
        let folder = folder.join(format!("probe-{number:03}"));
        rig.probe(Asked::AtFullSpeed { connections }, &folder, watch)
    })?;
    Ok(rig.found(unit, answer))
}

/// The knee of what `probe` gives at each load, from `least` connections on; `None` where
/// the search was cut short.
fn along(
    search: &mut Search<'_>,
    (least, unit): (u32, CapacityUnit),
    bounds: &[CapacityBound],
    mut probe: impl FnMut(u32, &Watch) -> Result<CapacityProbe, CommandError>,
) -> Result<Option<CapacityAnswer>, CommandError> {
    let arguments = search.arguments;
    let most = arguments.over.connections;
    let loads = loads(least, most);
    if loads.len() < LOADS_MIN {
        let what = format!(
            "--connections {most} gives {} loads, and a knee needs {LOADS_MIN} of them",
            loads.len()
        );
        return Err(usage(&what));
    }
    let shown = shown(bounds);
    // Round after round, so that what drifts hits all loads alike.
    for _ in 0..arguments.repeats {
        for connections in &loads {
            let told = match probe(*connections, &search.watch) {
                Ok(told) => told,
                Err(error) => {
                    search.fail(error)?;
                    return Ok(None);
                }
            };
            if search.watch.interrupt.signal().is_some() {
                return Ok(None);
            }
            let connections = Some(*connections);
            search.tell(
                CapacityProbe {
                    connections,
                    ..told
                },
                unit,
                &shown,
            );
            search.watch.wait(arguments.cooldown);
        }
    }
    Ok(Some(CapacityAnswer::Knee(knee(&search.probes, most))))
}

/// Numbers of connections: each some half more than the one before.
fn loads(least: u32, most: u32) -> Vec<u32> {
    let mut loads = Vec::new();
    let mut next = least;
    while next < most {
        loads.push(next);
        next = (next + next / 2).max(next + 1);
    }
    if least <= most {
        loads.push(most);
    }
    loads
}

fn at_load(
    plan: &LoadPlanParts,
    connections: u32,
    arguments: &FindCapacityArguments,
) -> Result<LoadPlan, CommandError> {
    let mut plan = plan.clone();
    let endpoints = u32::try_from(plan.endpoints.len())
        .unwrap_or(u32::MAX)
        .max(1);
    plan.connecting.connections = connections;
    let fed = u16::try_from(connections / endpoints).unwrap_or(u16::MAX);
    plan.workers = plan.workers.min(fed.max(1));
    http::lasting(plan, arguments.probe, arguments)
}

/// The knee of what was measured, without what says nothing of the target.
fn knee(probes: &[CapacityProbe], connections_max: u32) -> Result<KneeFound, String> {
    let kept = probes
        .iter()
        .filter(|probe| probe.observed == Observed::Held);
    let points: Vec<(f64, f64)> = kept
        .filter_map(|probe| Some((f64::from(probe.connections?), probe.reached)))
        .collect();
    let left_out = probes.len() - points.len();
    let law = Usl::fit(&points).map_err(|error| match left_out {
        0 => error.to_string(),
        _ => format!(
            "{error} ({left_out} of {} probes were left out)",
            probes.len()
        ),
    })?;
    Ok(KneeFound {
        knee: law.knee(Level::NINETY_FIVE),
        peak: law.peak(Level::NINETY_FIVE),
        law,
        connections_max,
        left_out,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_grow_by_half_and_end_where_they_should() {
        assert_eq!(loads(1, 16), [1, 2, 3, 4, 6, 9, 13, 16]);
        assert_eq!(loads(1, 3), [1, 2, 3]);
        assert!(loads(3, 2).is_empty());
        assert_eq!(loads(2, 2), [2]);
    }
}
