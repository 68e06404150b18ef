//! Probes of a URL: each is a load of `stillwell load`.

use stillwell_experiment::capacity::{
    ERRORS_BOUND, LoadProbeError, load_at_rate, probe_length, probe_load,
};
use stillwell_plan::capacity::{CapacityBound, CapacityFigure};
use stillwell_plan::load::LoadPlanParts;
use stillwell_plan::{LoadPlan, RateUnit, WorkUnit};
use stillwell_run::LoadSnapshot;
use stillwell_scope::Place;
use stillwell_verdict::capacity::CapacityProbe;

use super::{Found, Search, Watch, usage, with_defaults};
use crate::arguments::{CapacityRate, FindCapacityArguments, load_arguments};
use crate::command::load;
use crate::command::load::remedy::OptionNames;
use crate::exit::{CommandError, Exit};
use crate::secrets;

/// Requests a second.
const FROM: f64 = 100.0;
const TO: f64 = 1e6;

/// The load of all probes, without the times at which requests are sent.
pub(super) fn plan(arguments: &FindCapacityArguments) -> Result<LoadPlanParts, CommandError> {
    let of_load = load_arguments(arguments);
    load::planned(&of_load, arguments.seed)
}

pub(super) fn target(arguments: &FindCapacityArguments, plan: &LoadPlanParts) -> String {
    let address = plan
        .endpoints
        .first()
        .map(|endpoint| endpoint.address.clone());
    let first = arguments.urls.first().cloned().or(address);
    secrets::handling().text(&first.unwrap_or_default())
}

fn places(arguments: &FindCapacityArguments) -> Vec<Place> {
    let place = |cpu: &u16| Place {
        cpus: Some(vec![*cpu]),
        network: None,
    };
    arguments.over.cpus.iter().map(place).collect()
}

pub(super) fn bounds(arguments: &FindCapacityArguments) -> Vec<CapacityBound> {
    with_defaults(&arguments.bound, &[ERRORS_BOUND])
}

pub(super) fn search(search: &Search<'_>) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    if let Some(name) = &arguments.generator {
        let what = format!("--generator {name} needs a file of a run, not a URL");
        return Err(usage(&what));
    }
    let plan = plan(arguments)?;
    let rate = |given: Option<CapacityRate>, default: f64| match given {
        None => Ok(default),
        Some(rate) if rate.unit == RateUnit::Events => Ok(rate.per_second),
        Some(_) => Err(usage(
            "the rate for a URL counts requests: write a rate such as 100/s",
        )),
    };
    let range = (rate(arguments.from, FROM)?, rate(arguments.to, TO)?);
    let bounds = bounds(arguments);
    let mut first = First::default();
    let at_rate = |rate: f64, purpose| {
        let length = probe_length(rate, &bounds, arguments.probe);
        let plan = load_at_rate(&plan, rate, search.lengths(length));
        let plan = plan.map_err(|error| CommandError::new(Exit::Usage, error))?;
        let mut probe = probe(&plan, &bounds, (search, &mut first))?;
        (probe.purpose, probe.rate) = (Some(purpose), Some(rate));
        probe.reached = rate * probe.figure(CapacityFigure::Throughput).unwrap_or(0.0);
        Ok(probe)
    };
    let searched = search.highest(range, (WorkUnit::Requests, &bounds), at_rate)?;
    Ok(Found {
        validity: plan.validity,
        target: target(arguments, &plan),
        unit: WorkUnit::Requests,
        bounds,
        searched,
    })
}

/// State of the first probe: if it has no answers, the search ends. Later, a target without
/// answers broke down under load.
#[derive(Debug, Default)]
pub(super) struct First {
    is_past: bool,
}

impl First {
    /// Adds the end of a probe; `failure` is the reason why it had no answers.
    pub(super) fn look(
        &mut self,
        failure: Option<String>,
        watch: &Watch,
    ) -> Result<(), CommandError> {
        let is_past = std::mem::replace(&mut self.is_past, true);
        // One that was cut short says nothing of its target.
        let is_cut = watch.interrupt.signal().is_some();
        match failure {
            Some(why) if !is_past && !is_cut => Err(CommandError::new(
                Exit::CouldNotRun,
                anyhow::anyhow!("{why}"),
            )),
            _ => Ok(()),
        }
    }
}

/// One load.
pub(super) fn probe(
    plan: &LoadPlan,
    bounds: &[CapacityBound],
    (search, first): (&Search<'_>, &mut First),
) -> Result<CapacityProbe, CommandError> {
    let arguments = search.arguments;
    let family = arguments.connecting.address_family.into();
    let interrupt = &search.watch.interrupt;
    let display = &search.display;
    let target = arguments.urls.first().map_or("", String::as_str);
    display.begin_load(target, plan);
    let mut progress = |snapshot: &LoadSnapshot<'_>| display.show_load(snapshot);
    let places = places(arguments);
    let probed = probe_load(plan, family, &places, bounds, interrupt, &mut progress);
    let probed = probed.map_err(|error| match error {
        LoadProbeError::Load(error) => load::refused(error),
        LoadProbeError::PartFailed { .. } => CommandError::new(Exit::Invalid, error),
    })?;
    let failure = probed.no_answer;
    let failure = failure
        .map(|warning| OptionNames::Load.with_advice(&warning.to_string(), warning.remedy()));
    first.look(failure, &search.watch)?;
    Ok(probed.probe)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use stillwell_experiment::capacity::load_at_connections;
    use stillwell_plan::load::LoadPace;
    use stillwell_units::Nanos;

    use super::*;

    #[derive(Debug, Parser)]
    struct SearchLine {
        #[command(flatten)]
        arguments: FindCapacityArguments,
    }

    /// Responses later than 5 s after the end of a probe counted as errors, for any bound.
    #[test]
    fn a_probe_waits_for_each_request_until_its_timeout() {
        let words = "find-capacity http://127.0.0.1:1/ --timeout 20s";
        let typed = SearchLine::parse_from(words.split_whitespace());
        let mut plan = plan(&typed.arguments).unwrap();
        let lengths = (Nanos::ZERO, Nanos::SECOND);
        let at_rate = load_at_rate(&plan, 100.0, lengths).unwrap();
        assert_eq!(at_rate.grace, Nanos::from_secs(20));
        plan.pace = LoadPace::Closed;
        let at_full_speed = load_at_connections(&plan, 2, lengths).unwrap();
        assert_eq!(at_full_speed.grace, Nanos::from_secs(20));
    }
}
