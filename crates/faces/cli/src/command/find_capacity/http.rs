//! Probes of a URL: each is a load of `stillwell load`.

use stillwell_metric::{Histogram, LoadShard, LoadTime, Outcome, empty_histogram};
use stillwell_plan::{
    CapacityBound, CapacityFigure, LoadCurve, LoadPace, LoadPacing, LoadPlan, LoadPlanParts,
    Overflow, RateUnit,
};
use stillwell_report::{CapacityProbe, CapacityUnit};
use stillwell_run::{LoadEnd, LoadFound, conduct_load};
use stillwell_scope::Place;
use stillwell_stats::capacity::Observed;
use stillwell_units::{Nanos, float_from_u64, floor_to_u64};
use stillwell_verdict::{LoadDoubt, load_doubts};

use super::judge::{BUNCHED, Evidence, judge};
use super::{Found, Search, Watch, usage};
use crate::arguments::{CapacityRate, FindCapacityArguments, load_arguments};
use crate::command::load;
use crate::command::load::remedy::Words;
use crate::exit::{CommandError, Exit};

/// Requests a second.
const FROM: f64 = 100.0;
const TO: f64 = 1e6;
/// What is asked of errors where no bound says so.
const ERRORS: &str = "errors<1%";
/// Requests beyond a quantile that make it one.
const BEYOND: f64 = 3.0;
/// Fewest requests of a probe that say something.
const REQUESTS_MIN: f64 = 20.0;
/// A probe is made longer by this factor at most.
const LONGER_MAX: u64 = 10;

/// Why a probe without one request says nothing.
const NOTHING_DUE: &str = "no request was due in that time: let probes last longer (--probe)";

/// The load of all probes, but for when requests are sent.
pub(super) fn plan(arguments: &FindCapacityArguments) -> Result<LoadPlanParts, CommandError> {
    let of_load = load_arguments(arguments);
    let plan = load::planned(&of_load, arguments.seed);
    plan.map_err(|error| CommandError::new(Exit::Usage, error))
}

pub(super) fn target(arguments: &FindCapacityArguments, plan: &LoadPlanParts) -> String {
    let address = plan.endpoints.first().map(|it| it.address.clone());
    let first = arguments.urls.first().cloned().or(address);
    first.unwrap_or_default()
}

pub(super) fn places(arguments: &FindCapacityArguments) -> Vec<Place> {
    let place = |cpu: &u16| Place {
        cpus: Some(vec![*cpu]),
        network: None,
    };
    arguments.over.cpus.iter().map(place).collect()
}

pub(super) fn bounds(arguments: &FindCapacityArguments) -> Vec<CapacityBound> {
    let mut bounds = arguments.bound.clone();
    let says_errors = |bound: &CapacityBound| bound.figure == CapacityFigure::Errors;
    if !bounds.iter().any(says_errors) {
        bounds.extend(ERRORS.parse::<CapacityBound>());
    }
    bounds
}

pub(super) fn search(search: &mut Search<'_>) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    if let Some(name) = &arguments.generator {
        let what = format!("--generator {name} is of a rig, and a URL has none");
        return Err(usage(&what));
    }
    let plan = plan(arguments)?;
    let rate = |given: Option<CapacityRate>, default: f64| match given {
        None => Ok(default),
        Some(rate) if rate.unit == RateUnit::Events => Ok(rate.per_second),
        Some(_) => Err(usage(
            "a URL takes requests, not bytes: write a rate such as 100/s",
        )),
    };
    let range = (rate(arguments.from, FROM)?, rate(arguments.to, TO)?);
    let bounds = bounds(arguments);
    let mut first = First::default();
    let probe = |rate: f64, purpose, watch: &Watch| {
        let plan = at_rate(
            &plan,
            rate,
            length(rate, &bounds, arguments.probe),
            arguments,
        )?;
        let found = conduct(&plan, arguments, watch)?;
        let (mut probe, nobody) = told(&plan, &found, &bounds);
        first.look(nobody, watch)?;
        (probe.purpose, probe.rate) = (Some(purpose), Some(rate));
        probe.reached = rate * probe.figure(CapacityFigure::Throughput).unwrap_or(0.0);
        Ok(probe)
    };
    let answer = search.highest(range, (CapacityUnit::Requests, &bounds), probe)?;
    Ok(Found {
        target: target(arguments, &plan),
        unit: CapacityUnit::Requests,
        bounds,
        answer,
    })
}

/// Whether the first probe is still to come: if nobody answers that, nobody is there. At a
/// later one a target broke down that answered before.
#[derive(Debug, Default)]
pub(super) struct First {
    is_past: bool,
}

impl First {
    /// A probe ended, with `nobody` to say why it had no answers.
    pub(super) fn look(
        &mut self,
        nobody: Option<String>,
        watch: &Watch,
    ) -> Result<(), CommandError> {
        let is_past = std::mem::replace(&mut self.is_past, true);
        // One that was cut short says nothing of its target.
        let is_cut = watch.interrupt.signal().is_some();
        match nobody {
            Some(why) if !is_past && !is_cut => Err(CommandError::new(
                Exit::CouldNotRun,
                anyhow::anyhow!("{why}"),
            )),
            _ => Ok(()),
        }
    }
}

/// How long a probe at this rate measures, so that its quantiles rest on
/// something.
fn length(rate: f64, bounds: &[CapacityBound], probe: Nanos) -> Nanos {
    let beyond = |bound: &CapacityBound| match bound.figure {
        CapacityFigure::Latency(share) => BEYOND / (1.0 - share) / rate,
        _ => 0.0,
    };
    let needed = bounds
        .iter()
        .map(beyond)
        .fold(REQUESTS_MIN / rate, f64::max);
    let most = Nanos::new(probe.as_u64().saturating_mul(LONGER_MAX));
    Nanos::from_secs_f64(needed).clamp(probe, most)
}

fn at_rate(
    plan: &LoadPlanParts,
    rate: f64,
    length: Nanos,
    arguments: &FindCapacityArguments,
) -> Result<LoadPlan, CommandError> {
    let mut plan = plan.clone();
    if let LoadPace::Open {
        curve, overflow, ..
    } = &mut plan.pace
    {
        *curve = LoadCurve::Constant { per_second: rate };
        *overflow = Overflow::Wait;
    }
    lasting(plan, length, arguments)
}

/// A load that measures for `length`, after the warm-up.
pub(super) fn lasting(
    mut plan: LoadPlanParts,
    length: Nanos,
    arguments: &FindCapacityArguments,
) -> Result<LoadPlan, CommandError> {
    let quarter = Nanos::new(arguments.probe.as_u64() / 4);
    plan.warmup = arguments.warmup.unwrap_or(quarter);
    plan.until.duration = Some(plan.warmup + length);
    plan.until.requests = None;
    LoadPlan::try_new(plan).map_err(|error| CommandError::new(Exit::Usage, error))
}

pub(super) fn conduct(
    plan: &LoadPlan,
    arguments: &FindCapacityArguments,
    watch: &Watch,
) -> Result<LoadFound, CommandError> {
    let family = arguments.connecting.address_family.into();
    let places = places(arguments);
    let found = conduct_load(plan.clone(), family, &places, &watch.interrupt, &mut |_| {});
    let found = found.map_err(load::refused)?;
    if let LoadEnd::PartFailed(what) = &found.end {
        let error = anyhow::anyhow!("{what}");
        return Err(CommandError::new(Exit::Invalid, error));
    }
    Ok(found)
}

/// What a probe measured; and why nothing was answered, if nothing was.
pub(super) fn told(
    plan: &LoadPlan,
    found: &LoadFound,
    bounds: &[CapacityBound],
) -> (CapacityProbe, Option<String>) {
    let counts = Counts::of(plan, found);
    let mut figures: Vec<CapacityFigure> = CapacityProbe::COLUMNS.to_vec();
    figures.extend(bounds.iter().map(|bound| bound.figure));
    let figures: Vec<_> = figures
        .into_iter()
        .map(|figure| (figure, counts.figure(figure)))
        .collect();
    let doubts = load_doubts(LoadPacing::of(plan), &found.evidence(plan));
    let limit = doubts
        .iter()
        .find(|doubt| matches!(doubt, LoadDoubt::Saturated { .. } | LoadDoubt::Limit { .. }));
    let nobody = doubts
        .iter()
        .find(|doubt| matches!(doubt, LoadDoubt::NoAnswer { .. }));
    let own = merged(found, &[LoadTime::OwnLateness]);
    let late = own.count_between(BUNCHED.as_u64(), u64::MAX);
    let evidence = Evidence {
        figures: &figures,
        reached: counts.reached,
        has_rate: matches!(plan.pace, LoadPace::Open { .. }),
        generator_limit: limit.map(ToString::to_string),
        own_lateness: Nanos::new(own.value_at_quantile(0.99)),
        own_late_share: float_from_u64(late) / float_from_u64(counts.asked.max(1)),
    };
    let (observed, why) = if counts.asked == 0 {
        (Observed::Unclear, Some(NOTHING_DUE.to_owned()))
    } else {
        judge(bounds, &evidence)
    };
    let probe = CapacityProbe {
        purpose: None,
        rate: None,
        connections: None,
        reached: counts.per_second,
        observed,
        why,
        figures,
    };
    let nobody = nobody.map(|doubt| Words::Own.told(&doubt.to_string(), doubt.remedy()));
    (probe, nobody)
}

/// What became of the requests of a probe.
struct Counts {
    /// Of those that were answered well.
    times: Histogram<u64>,
    /// Due, begun or not.
    asked: u64,
    /// Answered with an error.
    errors: u64,
    /// Answered at all.
    answered: u64,
    /// Begun, as a share of those asked for.
    reached: f64,
    /// Answered well each second.
    per_second: f64,
}

const GOOD: [Outcome; 2] = [Outcome::Ok, Outcome::Status3xx];

impl Counts {
    fn of(plan: &LoadPlan, found: &LoadFound) -> Self {
        // Without those of the warm-up, whose times are not recorded either.
        let ended = |outcome: Outcome| -> u64 {
            let shards = found.workers.iter().map(|worker| &worker.shard);
            shards
                .map(|shard| shard.outcomes[outcome.index()].total())
                .sum()
        };
        let sum = |outcomes: &[Outcome]| outcomes.iter().map(|own| ended(*own)).sum::<u64>();
        let total = |of: fn(&LoadShard) -> u64| -> u64 {
            found.workers.iter().map(|worker| of(&worker.shard)).sum()
        };
        let good = sum(&GOOD);
        let answered = sum(&Outcome::ANSWERS);
        let begun = total(|own| own.begun.total());
        let has_schedule = matches!(plan.pace, LoadPace::Open { .. });
        // Not what the curve asks for less what was begun: where moments are drawn
        // there are more or fewer of them.
        let due = total(LoadShard::due);
        let never_begun = due.saturating_sub(begun);
        let kind = if has_schedule {
            LoadTime::Response
        } else {
            LoadTime::Service
        };
        let seconds = found.measured.as_secs_f64().max(1e-9);
        Self {
            times: merged(found, &GOOD.map(kind)),
            asked: sum(&Outcome::ALL) + never_begun,
            errors: answered - good,
            answered,
            reached: if has_schedule && due > 0 {
                float_from_u64(begun) / float_from_u64(due)
            } else {
                1.0
            },
            per_second: float_from_u64(good) / seconds,
        }
    }

    fn figure(&self, figure: CapacityFigure) -> Option<f64> {
        let asked = float_from_u64(self.asked);
        let share = |count: u64| (self.asked > 0).then(|| float_from_u64(count) / asked);
        let any = !self.times.is_empty();
        match figure {
            CapacityFigure::Latency(share) => self.quantile(share),
            CapacityFigure::LatencyMean => any.then(|| self.times.mean()),
            CapacityFigure::LatencyMax => any.then(|| float_from_u64(self.times.max())),
            CapacityFigure::Errors => share(self.unanswered() + self.errors),
            CapacityFigure::Loss => share(self.unanswered()),
            CapacityFigure::Throughput => Some(self.reached),
        }
    }

    const fn unanswered(&self) -> u64 {
        self.asked.saturating_sub(self.answered)
    }

    /// Over all but those that were answered with an error: what was never
    /// answered is later than all that was.
    fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.asked.saturating_sub(self.errors);
        let place = floor_to_u64((share * float_from_u64(all)).ceil()).max(1);
        let recorded = self.times.len();
        if all == 0 {
            return None;
        }
        if place > recorded {
            return Some(f64::INFINITY);
        }
        let quantile = float_from_u64(place) / float_from_u64(recorded);
        Some(float_from_u64(self.times.value_at_quantile(quantile)))
    }
}

fn merged(found: &LoadFound, times: &[LoadTime]) -> Histogram<u64> {
    let mut all = empty_histogram();
    for worker in &found.workers {
        for time in times {
            all.add(worker.times(*time))
                .unwrap_or_else(|_| unreachable!("both histograms have the same bounds"));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(times: std::ops::RangeInclusive<u64>, asked: u64, errors: u64) -> Counts {
        let mut recorded = empty_histogram();
        times.for_each(|time| recorded.record(time).unwrap());
        let answered = recorded.len() + errors;
        Counts {
            times: recorded,
            asked,
            errors,
            answered,
            reached: 1.0,
            per_second: 0.0,
        }
    }

    #[test]
    fn what_is_never_answered_is_late_for_ever() {
        let all = counts(1..=100, 100, 0);
        assert_eq!(all.figure(CapacityFigure::Latency(0.99)), Some(99.0));
        assert_eq!(all.figure(CapacityFigure::Latency(0.5)), Some(50.0));
        // Two of a hundred never came: the 99th percentile is one of them.
        let lost = counts(1..=98, 100, 0);
        assert_eq!(
            lost.figure(CapacityFigure::Latency(0.99)),
            Some(f64::INFINITY)
        );
        assert_eq!(lost.figure(CapacityFigure::Latency(0.98)), Some(98.0));
        assert_eq!(lost.figure(CapacityFigure::Loss), Some(0.02));
        // Refusals are errors, and do not make the rest look faster or slower.
        let refused = counts(1..=50, 100, 50);
        assert_eq!(refused.figure(CapacityFigure::Latency(0.5)), Some(25.0));
        assert_eq!(refused.figure(CapacityFigure::Errors), Some(0.5));
        assert_eq!(refused.figure(CapacityFigure::Loss), Some(0.0));
        assert_eq!(counts(1..=1, 0, 0).figure(CapacityFigure::Errors), None);
    }

    #[test]
    fn a_probe_is_as_long_as_its_quantile_needs() {
        let bounds = ["p99<20ms".parse().unwrap(), "errors<1%".parse().unwrap()];
        let probe = Nanos::from_secs(1);
        assert_eq!(length(10_000.0, &bounds, probe), probe);
        assert_eq!(length(100.0, &bounds, probe), Nanos::from_secs(3));
        assert_eq!(length(0.1, &bounds, probe), Nanos::from_secs(10));
        // Without quantiles, too: errors are shares of something.
        assert_eq!(length(5.0, &bounds[1..], probe), Nanos::from_secs(4));
    }
}
