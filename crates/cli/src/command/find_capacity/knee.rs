//! The load that gets the most throughput for its latency.

use stillwell_plan::{LoadPace, LoadPlan};
use stillwell_report::{CapacityAnswer, CapacityProbe, CapacityUnit, KneeFound};
use stillwell_stats::Level;
use stillwell_stats::capacity::Observed;
use stillwell_stats::capacity::usl::Usl;

use super::{Found, Search, http, shown, usage};
use crate::exit::CommandError;

/// Fewest different loads that a law follows from.
const LOADS_MIN: usize = 4;

pub(super) fn search(search: &mut Search<'_>) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    let mut plan = http::plan(arguments)?;
    plan.pace = LoadPace::Closed;
    let least = u32::try_from(plan.endpoints.len()).unwrap_or(u32::MAX);
    let loads = loads(least.max(1), arguments.over.connections);
    if loads.len() < LOADS_MIN {
        let what = format!(
            "--connections {} gives {} loads, and a knee needs {LOADS_MIN} of them",
            arguments.over.connections,
            loads.len()
        );
        return Err(usage(&what));
    }
    let bounds = http::bounds(arguments);
    let shown = shown(&bounds);
    let mut is_first = true;
    // Round after round, so that what drifts hits all loads alike.
    for _ in 0..arguments.repeats {
        for connections in &loads {
            let plan = at_load(&plan, *connections, search);
            let found = match http::conduct(&plan, arguments, &search.watch) {
                Ok(found) => found,
                Err(error) => {
                    search.fail(error)?;
                    return Ok(told(search, &plan, bounds, None));
                }
            };
            if search.watch.interrupt.signal().is_some() {
                return Ok(told(search, &plan, bounds, None));
            }
            let (mut probe, nobody) = http::told(&plan, &found, &bounds);
            if let Some(why) = nobody.filter(|_| std::mem::take(&mut is_first)) {
                let error = anyhow::anyhow!("{why}");
                return Err(CommandError::new(crate::exit::Exit::CouldNotRun, error));
            }
            is_first = false;
            probe.connections = Some(*connections);
            search.tell(probe, CapacityUnit::Requests, &shown);
            search.watch.wait(arguments.cooldown);
        }
    }
    let knee = knee(&search.probes, arguments.over.connections);
    Ok(told(
        search,
        &plan,
        bounds,
        Some(CapacityAnswer::Knee(knee)),
    ))
}

fn told(
    search: &Search<'_>,
    plan: &LoadPlan,
    bounds: Vec<stillwell_plan::CapacityBound>,
    answer: Option<CapacityAnswer>,
) -> Found {
    Found {
        target: http::target(search.arguments, plan),
        unit: CapacityUnit::Requests,
        bounds,
        answer,
    }
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

fn at_load(plan: &LoadPlan, connections: u32, search: &Search<'_>) -> LoadPlan {
    let mut plan = plan.clone();
    let endpoints = u32::try_from(plan.endpoints.len())
        .unwrap_or(u32::MAX)
        .max(1);
    plan.connecting.connections = connections;
    let fed = u16::try_from(connections / endpoints).unwrap_or(u16::MAX);
    plan.workers = plan.workers.min(fed.max(1));
    http::last(&mut plan, search.arguments.probe, search.arguments);
    plan
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
