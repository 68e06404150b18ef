//! Probes of a rig: each is a run in which one generator's rate is another.

use std::path::Path;

use stillwell_capture::{Capture, RunOutcome};
use stillwell_config::RigOverrides;
use stillwell_plan::{
    CapacityBound, CapacityFigure, GeneratorPlan, GoalMetric, LatencyQuantile, Phase, RatePlan,
    RateShape, RateUnit, RigPlan, TransportPlan,
};
use stillwell_report::{CapacityAnswer, CapacityProbe, CapacityUnit};
use stillwell_run::conduct;
use stillwell_stats::capacity::{Observed, Purpose};
use stillwell_units::{Nanos, float_from_u64};
use stillwell_verdict::{Component, Doubt, OutcomeCount, RunSummary, WorkerShares, summarise};

use super::judge::{Evidence, judge};
use super::{Found, Search, Watch, usage};
use crate::arguments::{CapacityRate, FindCapacityArguments};
use crate::command::{rig, select};
use crate::exit::{CommandError, Exit};
use crate::paint::Paint;

/// What is asked of a rig where no bound is given.
const THROUGHPUT: &str = "throughput>99%";
/// And this, where events are stamped and somebody receives them.
const LOSS: &str = "loss<1%";
/// A generator that its peer keeps waiting for more than this share of the time is
/// not the limit.
const BLOCKED_MIN: f64 = 0.05;
/// What may be under way decides nothing above this share of what a bound leaves.
const UNDER_WAY_MAX: f64 = 0.1;
/// From this share of what was asked for on, all counts as sent.
const SENT_MIN: f64 = 0.99;
/// How far the search goes around what a file says.
const AROUND: (f64, f64) = (0.1, 100.0);

/// A rig of which one generator is varied.
pub(super) struct Rig<'a> {
    arguments: &'a FindCapacityArguments,
    file: &'a Path,
    plan: RigPlan,
    /// Of the generator.
    place: usize,
    bounds: Vec<CapacityBound>,
}

/// What a probe is to send.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    /// Units each second.
    Rate {
        unit: RateUnit,
        per_second: f64,
        purpose: Purpose,
    },
    /// As much as is taken, over so many connections.
    AtFullSpeed { connections: u32 },
}

pub(super) fn search(
    search: &mut Search<'_>,
    file: &Path,
    folder: &Path,
    paint: &Paint,
) -> Result<Found, CommandError> {
    let arguments = search.arguments;
    let rig = Rig::load(arguments, file, paint)?;
    let (unit, range) = range(rig.own(), arguments.from, arguments.to)?;
    let counted = CapacityUnit::Generated(unit);
    let mut number = 0;
    let probe = |per_second: f64, purpose: Purpose, watch: &Watch| {
        number += 1;
        let folder = folder.join(format!("probe-{number:03}"));
        let asked = Asked::Rate {
            unit,
            per_second,
            purpose,
        };
        rig.probe(asked, &folder, watch)
    };
    let answer = search.highest(range, (counted, &rig.bounds), probe)?;
    Ok(rig.found(counted, answer))
}

impl<'a> Rig<'a> {
    pub(super) fn load(
        arguments: &'a FindCapacityArguments,
        file: &'a Path,
        paint: &Paint,
    ) -> Result<Self, CommandError> {
        let overrides = RigOverrides {
            seed: Some(arguments.seed),
            ..RigOverrides::default()
        };
        let loaded = stillwell_config::load_rig(file, &overrides)
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
        Ok(Self {
            arguments,
            file,
            plan,
            place,
            bounds,
        })
    }

    fn own(&self) -> &GeneratorPlan {
        &self.plan.generators[self.place]
    }

    pub(super) fn bounds(&self) -> &[CapacityBound] {
        &self.bounds
    }

    /// What its file counts of the generator.
    pub(super) fn unit(&self) -> CapacityUnit {
        CapacityUnit::Generated(self.own().rate.unit)
    }

    /// Whether it means something to vary them.
    pub(super) fn has_connections(&self) -> Result<(), CommandError> {
        let own = self.own();
        if matches!(
            own.transport,
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
        let what = format!(
            "generator `{}` has no connections that could be varied",
            own.id
        );
        Err(usage(&what).hint("search the highest rate: leave --objective out"))
    }

    /// One run.
    pub(super) fn probe(
        &self,
        asked: Asked,
        folder: &Path,
        watch: &Watch,
    ) -> Result<CapacityProbe, CommandError> {
        let plan = probing(
            &self.plan,
            self.place,
            asked,
            search_lengths(self.arguments),
        );
        let (summary, course) = carry_out(plan, self.place, (folder, self.file), watch)?;
        self.told(&summary, asked, course)
    }

    pub(super) fn found(self, unit: CapacityUnit, answer: Option<CapacityAnswer>) -> Found {
        Found {
            target: format!("{}, generator {}", self.file.display(), self.own().id),
            unit,
            bounds: self.bounds,
            answer,
        }
    }
}

fn search_lengths(arguments: &FindCapacityArguments) -> (Nanos, Nanos) {
    let quarter = Nanos::new(arguments.probe.as_u64() / 4);
    (arguments.warmup.unwrap_or(quarter), arguments.probe)
}

/// The place of the generator whose rate is varied.
fn chosen(plan: &RigPlan, name: Option<&str>) -> Result<usize, CommandError> {
    let names: Vec<&str> = plan.generators.iter().map(|own| own.id.as_str()).collect();
    match (name, names.as_slice()) {
        (_, []) => Err(usage("the rig has no generator whose rate could be varied")),
        (None, [_]) => Ok(0),
        (None, _) => Err(usage("the rig has several generators"))
            .map_err(|error| error.hint(format!("say which: --generator {}", names.join(" or ")))),
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
            let error = usage("the rig's file says no rate to search around");
            return Err(error.hint("give --from and --to, such as 100/s or 1 MiB/s"));
        }
    };
    let stated = stated.filter(|_| own.rate.unit == unit);
    let end = |given: Option<CapacityRate>, share: f64, flag: &str| match (given, stated) {
        (Some(given), _) if given.unit == unit => Ok(given.per_second),
        (Some(_), _) => Err(usage("--from counts one thing and --to another")),
        (None, Some(stated)) => Ok(stated * share),
        (None, None) => {
            let error = usage("the rig's file says no rate in that unit to search around");
            Err(error.hint(format!("give {flag}, too")))
        }
    };
    Ok((
        unit,
        (end(from, AROUND.0, "--from")?, end(to, AROUND.1, "--to")?),
    ))
}

/// Whether captures hold what this bound is about.
fn measurable(bound: &CapacityBound) -> Result<(), CommandError> {
    match bound.figure {
        CapacityFigure::Latency(share) if quantile(share).is_none() => {
            let what = format!("a run has no {}", bound.figure);
            Err(usage(&what).hint("it has p50, p90, p99 and p99.9"))
        }
        _ => Ok(()),
    }
}

fn quantile(share: f64) -> Option<LatencyQuantile> {
    let known = [
        (0.5, LatencyQuantile::P50),
        (0.9, LatencyQuantile::P90),
        (0.99, LatencyQuantile::P99),
        (0.999, LatencyQuantile::P999),
    ];
    let own = known.iter().find(|own| (own.0 - share).abs() < 1e-9);
    own.map(|own| own.1)
}

/// The rig with one generator that sends what is asked.
fn probing(
    plan: &RigPlan,
    place: usize,
    asked: Asked,
    (warmup, measure): (Nanos, Nanos),
) -> RigPlan {
    let mut plan = plan.clone();
    let own = &mut plan.generators[place];
    match asked {
        Asked::Rate {
            unit, per_second, ..
        } => {
            let shape = RateShape::Constant { per_second };
            own.rate = RatePlan { unit, shape };
        }
        Asked::AtFullSpeed { connections } => {
            own.rate.shape = RateShape::Max;
            own.connections = u16::try_from(connections).unwrap_or(u16::MAX);
            own.workers = own.workers.min(own.connections);
        }
    }
    (plan.phases.warmup, plan.phases.measure) = (warmup, measure);
    // Steps and bounds are meant for runs as the file has them.
    plan.timeline.clear();
    plan.checks.clear();
    plan
}

fn carry_out(
    plan: RigPlan,
    place: usize,
    (folder, file): (&Path, &Path),
    watch: &Watch,
) -> Result<(RunSummary, Course), CommandError> {
    let could_not = |error: anyhow::Error| CommandError::new(Exit::CouldNotRun, error);
    let request = rig::request(plan, folder.to_path_buf(), file).map_err(could_not)?;
    let (state, folder) = (request.places.state.clone(), request.folder.clone());
    let conducted = conduct(request, &watch.interrupt, &mut |_| {});
    // What is left of it is nothing that anybody needs.
    std::fs::remove_dir_all(state.parent().unwrap_or(&state)).ok();
    let manifest = conducted.map_err(|error| could_not(error.into()))?;
    let mut capture =
        Capture::open(&folder).map_err(|error| CommandError::new(Exit::Invalid, error))?;
    capture.manifest.outcome = manifest.outcome;
    let summary = summarise(&capture);
    if matches!(
        summary.outcome,
        RunOutcome::CouldNotStart { .. } | RunOutcome::NeverReady { .. }
    ) {
        rig::tell_last_lines(&summary, &capture);
        let why = summary
            .doubts
            .first()
            .map_or_else(String::new, ToString::to_string);
        return Err(could_not(anyhow::anyhow!(
            "probe {}: {why}",
            folder.display()
        )));
    }
    let course = Course::of(&summary, &capture, place);
    Ok((summary, course))
}

impl Rig<'_> {
    fn told(
        &self,
        summary: &RunSummary,
        asked: Asked,
        course: Course,
    ) -> Result<CapacityProbe, CommandError> {
        let bounds = &self.bounds;
        let has_rate = matches!(asked, Asked::Rate { .. });
        let mut figures: Vec<CapacityFigure> = CapacityProbe::COLUMNS.to_vec();
        figures.extend(bounds.iter().map(|bound| bound.figure));
        let figures: Vec<_> = figures
            .into_iter()
            .map(|figure| (figure, figure_of(summary, course, figure)))
            .collect();
        let died = summary
            .doubts
            .iter()
            .find(|doubt| matches!(doubt, Doubt::SubjectDied { .. }));
        let broken = summary
            .doubts
            .iter()
            .find(|doubt| matches!(doubt, Doubt::PartFailed { .. } | Doubt::NotCompleted { .. }));
        let (observed, why) = if let Some(died) = died {
            (Observed::Failed, Some(died.to_string()))
        } else if let Some(broken) = broken {
            if matches!(summary.outcome, RunOutcome::Interrupted { .. }) {
                (Observed::Unclear, Some(broken.to_string()))
            } else {
                let error = anyhow::anyhow!("{broken}");
                return Err(CommandError::new(Exit::Invalid, error));
            }
        } else {
            // Lateness that all was sent in spite of moves no totals, only times.
            let is_sent = has_rate
                && course.sent >= SENT_MIN
                && !bounds.iter().any(|own| own.figure.is_time());
            let evidence = Evidence {
                figures: &figures,
                reached: course.sent,
                has_rate,
                generator_limit: own_limit(summary, &self.own().id, is_sent),
                // What a generator's own lateness did is in its doubts.
                own_lateness: Nanos::ZERO,
                own_late_share: 0.0,
            };
            match judge(bounds, &evidence) {
                (Observed::Held, _) if course.is_open_to_doubt(bounds) => {
                    let share = CapacityFigure::Throughput.told(course.sent - course.counted);
                    let why = format!(
                        "sends that may be under way are {share} of all, and whether bounds hold \
                     rests on them: let probes last longer (--probe)"
                    );
                    (Observed::Unclear, Some(why))
                }
                judged => judged,
            }
        };
        let (purpose, rate, reached) = match asked {
            Asked::Rate {
                per_second,
                purpose,
                ..
            } => (Some(purpose), Some(per_second), per_second * course.sent),
            Asked::AtFullSpeed { .. } => {
                let own = summary.figures.generators.get(self.place);
                let achieved = own.and_then(|own| own.achieved_per_second);
                (None, None, achieved.unwrap_or(0.0))
            }
        };
        Ok(CapacityProbe {
            purpose,
            rate,
            connections: None,
            reached,
            observed,
            why,
            figures,
        })
    }
}

/// Why the rig and not its subject was the limit, if its doubts say so. The varied
/// generator was not where its peer kept its workers waiting, each that was late for
/// longer than that.
fn own_limit(summary: &RunSummary, varied: &str, is_sent: bool) -> Option<String> {
    let workers = &summary.figures.workers;
    let is_excused =
        |id: &str, late_max| is_sent || (id == varied && is_held_up(workers, varied, late_max));
    let doubt = summary.doubts.iter().find(|doubt| match doubt {
        Doubt::GeneratorLate { id, limit, .. } => !is_excused(id, *limit),
        Doubt::GeneratorLimit { id, .. } | Doubt::RateNotReached { id, .. } => {
            !is_excused(id, BLOCKED_MIN)
        }
        Doubt::SinkSaturated { .. } | Doubt::SamplesMissing { .. } | Doubt::Steal { .. } => true,
        _ => false,
    });
    doubt.map(ToString::to_string)
}

/// Whether its peer kept a worker of this generator waiting, and every other one
/// that was late for more than `late_max` of the time.
fn is_held_up(workers: &[WorkerShares], id: &str, late_max: f64) -> bool {
    let is_its = |own: &&WorkerShares| own.component == Component::Generator && own.id == id;
    let its = || workers.iter().filter(is_its);
    let waits = |own: &WorkerShares| own.blocked > BLOCKED_MIN && own.blocked > own.late;
    its().any(waits) && its().filter(|own| own.late > late_max).all(waits)
}

fn figure_of(summary: &RunSummary, course: Course, figure: CapacityFigure) -> Option<f64> {
    let either = |of_events: GoalMetric, of_answers: GoalMetric| {
        summary
            .value(&of_events)
            .or_else(|| summary.value(&of_answers))
    };
    let figures = &summary.figures;
    let times = figures.event_latency.or(figures.response_time);
    let told = |time: Nanos| float_from_u64(time.as_u64());
    match figure {
        CapacityFigure::Latency(share) => {
            let quantile = quantile(share)?;
            either(
                GoalMetric::EventLatency(quantile),
                GoalMetric::Latency(quantile),
            )
        }
        CapacityFigure::LatencyMean => times.map(|times| told(times.mean)),
        CapacityFigure::LatencyMax => times.map(|times| told(times.max)),
        CapacityFigure::Errors => {
            let count = |own: &OutcomeCount| float_from_u64(own.count);
            let outcomes = &summary.figures.outcomes;
            let all: f64 = outcomes.iter().map(count).sum();
            let good = outcomes.iter().filter(|own| own.outcome == "ok").map(count);
            (all > 0.0).then(|| 1.0 - good.sum::<f64>() / all)
        }
        CapacityFigure::Loss => summary.value(&GoalMetric::Loss),
        CapacityFigure::Throughput => Some(course.sent * course.in_time),
    }
}

/// What the generator sent, of what its rate asks for while there is load; and
/// how long its subject took to pass that on. Where it falls behind by a tenth it
/// needs a tenth longer until the last of it has arrived, however much buffers
/// take meanwhile.
#[derive(Clone, Copy, Debug)]
struct Course {
    /// Sent, of what was asked for, with what may be under way.
    sent: f64,
    /// The same without that.
    counted: f64,
    /// The length of the load, of the time from its start to the last arrival.
    in_time: f64,
}

impl Course {
    fn of(summary: &RunSummary, capture: &Capture, place: usize) -> Self {
        let plan = &capture.manifest.plan;
        let length = plan.phases.warmup + plan.phases.measure;
        let marks = &capture.manifest.phases;
        let start = marks.iter().find(|mark| mark.phase == Phase::Warmup);
        let last = start.zip(capture.manifest.last_received);
        let taken = last.map_or(length, |(start, last)| last.since(start.moment));
        let seconds = length.as_secs_f64().max(1e-9);
        let in_time = seconds / taken.as_secs_f64().max(seconds);
        let [sent, counted] = sent_of_asked(summary, plan, place, seconds).unwrap_or([1.0; 2]);
        Self {
            sent,
            counted,
            in_time,
        }
    }

    /// Whether a bound holds only by what may be under way, and that is much of what
    /// the bound leaves.
    fn is_open_to_doubt(self, bounds: &[CapacityBound]) -> bool {
        bounds.iter().any(|bound| {
            let most = UNDER_WAY_MAX * (1.0 - bound.limit);
            bound.figure == CapacityFigure::Throughput
                && self.sent - self.counted > most
                && !bound.is_kept(Some(self.counted * self.in_time))
        })
    }
}

/// Over the whole run where this generator is the only one, else while it was
/// measured; one send of each connection may be under way. With those and without.
fn sent_of_asked(
    summary: &RunSummary,
    plan: &RigPlan,
    place: usize,
    seconds: f64,
) -> Option<[f64; 2]> {
    let own = plan.generators.get(place)?;
    let RateShape::Constant { per_second } = own.rate.shape else {
        return None;
    };
    let whole = &summary.figures.whole;
    let sent = match (own.rate.unit, plan.generators.len()) {
        (RateUnit::Bytes, 1) => whole.bytes_sent.map(|sent| sent / seconds),
        (RateUnit::Events, 1) => whole.events_sent.map(|sent| sent / seconds),
        _ => summary.figures.generators.get(place)?.achieved_per_second,
    };
    let sends: u64 = summary.figures.outcomes.iter().map(|own| own.count).sum();
    let under_way = f64::from(own.connections) / float_from_u64(sends.max(1));
    let counted = sent? / per_second;
    Some([counted + under_way, counted].map(|share| share.min(1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(id: &str, blocked: f64, late: f64) -> WorkerShares {
        WorkerShares {
            component: Component::Generator,
            id: id.to_owned(),
            worker: String::new(),
            ahead: 0.0,
            blocked,
            running: 0.0,
            late,
            wanted: None,
        }
    }

    /// One that waited excused another one, of another generator even.
    #[test]
    fn each_worker_is_judged_by_itself() {
        let workers = [worker("a", 0.5, 0.0), worker("a", 0.0, 0.2)];
        assert!(is_held_up(&workers[..1], "a", 0.01));
        assert!(!is_held_up(&workers, "a", 0.01));
        assert!(!is_held_up(&workers[..1], "b", 0.01));
        let both = [worker("a", 0.5, 0.1), worker("a", 0.0, 0.005)];
        assert!(is_held_up(&both, "a", 0.01));
    }

    /// With few sends all of them counted as sent, whatever had become of them.
    #[test]
    fn what_may_be_under_way_decides_nothing() {
        let bounds = ["throughput>99%".parse().unwrap()];
        for (counted, sent, expected) in [
            (0.90, 1.0, true),
            (0.9895, 0.9904, false),
            (1.0, 1.0, false),
            (0.995, 1.0, false),
        ] {
            let course = Course {
                sent,
                counted,
                in_time: 1.0,
            };
            assert_eq!(course.is_open_to_doubt(&bounds), expected, "{counted}");
        }
    }
}
