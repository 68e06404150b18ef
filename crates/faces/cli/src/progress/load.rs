//! Progress of a load: a live view on a terminal, lines elsewhere.
//!
//! Printed on standard error, by the thread that collects what the workers count; workers
//! know nothing of it.

mod layout;
mod plain;
mod view;

use stillwell_plan::LoadPlan;
use stillwell_run::LoadSnapshot;

use self::plain::Lines;
pub(super) use self::view::{View, quantiles};
use super::live::Live;
use super::record::ProgressRecords;
use crate::paint::Paint;

/// Shows the progress of a load. The view is removed when it is dropped.
#[derive(Debug)]
pub(crate) struct LoadDisplay(Way);

#[derive(Debug)]
enum Way {
    /// Not at all.
    Quiet,
    /// Line by line.
    Plain(Box<Lines>, Option<ProgressRecords>),
    /// By a view that is drawn over.
    Live(Live<View>),
}

impl LoadDisplay {
    /// Shows the progress of `plan`, whose target is called `target`.
    pub(crate) fn new(paint: &Paint, quiet: bool, target: &str, plan: &LoadPlan) -> Self {
        if quiet {
            return Self(Way::Quiet);
        }
        match Live::start(View::new(target.to_owned(), plan), paint) {
            Ok(live) => Self(Way::Live(live)),
            Err(_) => Self(Way::Plain(
                Box::new(Lines::new()),
                ProgressRecords::requested("load"),
            )),
        }
    }

    /// Shows the latest second.
    pub(crate) fn show(&mut self, snapshot: &LoadSnapshot<'_>) {
        match &mut self.0 {
            Way::Quiet => {}
            Way::Plain(lines, records) => {
                if let Some(records) = records {
                    records.load(snapshot);
                }
                if let Some(line) = lines.add(snapshot) {
                    Paint::print_message(&line);
                }
            }
            Way::Live(live) => live.update(|view| view.update(snapshot)),
        }
    }
}
