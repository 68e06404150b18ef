//! Progress for programs: a line of JSON each second, where the environment requests it.

use std::collections::BTreeMap;

use serde_json::json;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos};

use super::run::RunCourse;
use crate::paint::Paint;

/// The variable that requests the lines, and its value.
const VARIABLE: (&str, &str) = ("STILLWELL_PROGRESS", "json");

/// Lines of progress for the program that started this one.
#[derive(Debug)]
pub(super) struct ProgressRecords {
    began: Moment,
    /// Variant of the run that goes on.
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

    /// Prints one second.
    pub(super) fn print(&self, rate: f64, p99: Option<Nanos>) {
        let line = json!({
            "seconds": clock::now().since(self.began).as_secs_f64(),
            "series": self.series,
            "rate": rate,
            "p99_ns": p99.map(Nanos::as_u64),
        });
        Paint::say(&format!("progress: {line}"));
    }
}
