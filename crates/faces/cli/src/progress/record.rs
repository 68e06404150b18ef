//! Progress for programs: a line of JSON each second, where the environment requests it.

use std::collections::BTreeMap;

use serde_json::json;
use stillwell_plan::WorkUnit;
use stillwell_report::{change_with_interval, goal_title, progress_bracket};
use stillwell_run::LoadSnapshot;
use stillwell_scope::clock;
use stillwell_stats::capacity::CapacityFound;
use stillwell_units::{Moment, Nanos, float_from_u64};
use stillwell_verdict::ExperimentVerdict;

use super::load::quantiles;
use super::run::RunCourse;
use crate::paint::Paint;

/// The variable that requests the lines, and its value.
const VARIABLE: (&str, &str) = ("STILLWELL_PROGRESS", "json");

/// Lines of progress for the program that started this one.
#[derive(Debug)]
pub(super) struct ProgressRecords {
    began: Moment,
    /// Variant of the current run.
    series: String,
    /// Present runs by variant.
    courses: BTreeMap<String, RunCourse>,
}

impl ProgressRecords {
    /// Returns `None` unless the environment requests the lines.
    pub(super) fn requested(series: &str) -> Option<Self> {
        let (name, value) = VARIABLE;
        (std::env::var_os(name)? == value).then(|| Self {
            began: clock::now(),
            series: series.to_owned(),
            courses: BTreeMap::new(),
        })
    }

    /// Begins the run of a variant.
    pub(super) fn begin(&mut self, variant: &str) {
        variant.clone_into(&mut self.series);
        self.courses
            .insert(variant.to_owned(), RunCourse::default());
    }

    /// Prints what the run that began last reports, if there is a rate.
    pub(super) fn run(&mut self, progress: &stillwell_run::Progress) {
        self.run_of(&self.series.clone(), progress);
    }

    /// Prints what the run of a variant reports, if there is a rate.
    pub(super) fn run_of(&mut self, variant: &str, progress: &stillwell_run::Progress) {
        variant.clone_into(&mut self.series);
        let course = self.courses.entry(variant.to_owned()).or_default();
        course.update(progress, clock::now());
        let figures = course.figures;
        if let (stillwell_run::Progress::Beat { .. }, Some(rate)) = (progress, figures.rate) {
            self.print(rate, figures.latency.map(|[_, p99]| p99));
        }
    }

    /// Prints a second of a load.
    pub(super) fn load(&self, snapshot: &LoadSnapshot<'_>) {
        let second = &snapshot.second;
        let ended: u64 = second.outcomes.iter().sum();
        let seconds = second.length.as_secs_f64().max(1e-9);
        let p99 = quantiles(snapshot.latencies()).map(|[_, p99, _]| p99);
        self.print(float_from_u64(ended) / seconds, p99);
    }

    /// Prints the change that the pairs so far show.
    pub(super) fn estimate(&self, verdict: &ExperimentVerdict) {
        let mut goals = verdict.goals.iter();
        let Some(goal) = goals.find(|goal| goal.primary) else {
            return;
        };
        let Some((_, change)) = goal.so_far() else {
            return;
        };
        let title = goal_title(&goal.metric, verdict.work);
        self.interval(
            &format!("{}: change in {title}", verdict.name),
            "share",
            &change_with_interval(goal.scale, change),
            [
                Some(change.estimate),
                Some(change.lower),
                Some(change.upper),
            ],
        );
    }

    /// Prints the rates between which the capacity is.
    pub(super) fn bracket(&self, so_far: &CapacityFound, unit: WorkUnit) {
        let lower = so_far.held.map(|votes| votes.rate);
        let upper = so_far.failed.map(|votes| votes.rate);
        let value = so_far.capacity.map(|capacity| capacity.value);
        let unit_name = format!("{} per second", unit.plural());
        let text = progress_bracket(so_far, unit);
        self.interval("capacity", &unit_name, &text, [value, lower, upper]);
    }

    /// Prints a result so far. Ends that are not finite are `null`.
    fn interval(&self, name: &str, unit: &str, text: &str, ends: [Option<f64>; 3]) {
        let [value, lower, upper] = ends;
        let line = json!({
            "seconds": clock::now().since(self.began).as_secs_f64(),
            "interval": name,
            "unit": unit,
            "text": text,
            "value": value,
            "lower": lower,
            "upper": upper,
        });
        Paint::print_message(&format!("progress: {line}"));
    }

    /// Prints one second.
    fn print(&self, rate: f64, p99: Option<Nanos>) {
        let line = json!({
            "seconds": clock::now().since(self.began).as_secs_f64(),
            "series": self.series,
            "rate": rate,
            "p99_ns": p99.map(Nanos::as_u64),
        });
        Paint::print_message(&format!("progress: {line}"));
    }
}
