//! Progress of a capacity search: its probes as lines, and a view of the running one.

#[cfg(test)]
mod tests;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use stillwell_plan::{LoadPlan, WorkUnit};
use stillwell_report::{progress_bracket, progress_line};
use stillwell_run::{LoadSnapshot, Progress};
use stillwell_scope::clock;
use stillwell_stats::capacity::CapacityFound;
use stillwell_units::{Moment, Nanos};

use super::figure;
use super::live::{Live, LiveView, Look, Row, Tone};
use super::load::View;
use super::record::ProgressRecords;
use super::suite::SuiteView;
use crate::paint::Paint;
use crate::secrets;

/// Head, and an empty row.
const HEAD_ROWS: u16 = 2;

/// Shows the progress of a search on standard error.
#[derive(Debug)]
pub(crate) struct SearchDisplay {
    live: Option<Live<SearchView>>,
    records: Option<ProgressRecords>,
    is_quiet: bool,
}

impl SearchDisplay {
    pub(crate) fn new(paint: &Paint, is_quiet: bool) -> Self {
        let live = match is_quiet {
            true => None,
            false => Live::start(SearchView::default(), paint).ok(),
        };
        let records = match (&live, is_quiet) {
            (None, false) => ProgressRecords::requested("probe"),
            _ => None,
        };
        Self {
            live,
            records,
            is_quiet,
        }
    }

    /// Prints a line.
    pub(crate) fn print_message(&self, text: &str) {
        match &self.live {
            _ if self.is_quiet => {}
            Some(live) => live.print_masked(&secrets::handling().text(text)),
            None => Paint::print_message(text),
        }
    }

    /// Shows the result so far, and the longest time left.
    pub(crate) fn show_result(&self, so_far: &CapacityFound, unit: WorkUnit, left: Nanos) {
        match &self.live {
            Some(live) => live.update(|view| {
                // The time goes on in the view.
                view.result = progress_bracket(so_far, unit);
                view.left = Some((left, clock::now()));
            }),
            None => self.print_message(&progress_line(so_far, unit, left)),
        }
        if let Some(records) = &self.records {
            records.bracket(so_far, unit);
        }
    }

    /// Begins a probe that is a load.
    pub(crate) fn begin_load(&self, target: &str, plan: &LoadPlan) {
        self.begin(ProbeView::Load(Box::new(View::new(
            target.to_owned(),
            plan,
        ))));
    }

    /// Begins a probe that is a run.
    pub(crate) fn begin_run(&self, name: &str) {
        self.begin(ProbeView::Run(Box::new(SuiteView::single(name))));
    }

    fn begin(&self, probe: ProbeView) {
        if let Some(live) = &self.live {
            live.update(|view| {
                view.number += 1;
                view.probe = Some(probe);
            });
        }
    }

    /// Shows the latest second of a load.
    pub(crate) fn show_load(&self, snapshot: &LoadSnapshot<'_>) {
        if let Some(records) = &self.records {
            records.load(snapshot);
        }
        if let Some(live) = &self.live {
            live.update(|view| {
                if let Some(ProbeView::Load(load)) = &mut view.probe {
                    load.update(snapshot);
                }
            });
        }
    }

    /// Shows progress of a run.
    pub(crate) fn show_run(&self, progress: &Progress) {
        if let Some(live) = &self.live {
            live.update(|view| {
                if let Some(ProbeView::Run(run)) = &mut view.probe {
                    run.run_progress(progress, clock::now());
                }
            });
        }
    }
}

/// The displayed data of a search; plain data.
#[derive(Clone, Debug, Default)]
struct SearchView {
    /// Number of the running probe.
    number: usize,
    /// The rates between which the answer is.
    result: String,
    left: Option<(Nanos, Moment)>,
    probe: Option<ProbeView>,
}

/// The running probe.
#[derive(Clone, Debug)]
enum ProbeView {
    Load(Box<View>),
    Run(Box<SuiteView>),
}

impl LiveView for SearchView {
    fn height(&self, look: Look) -> u16 {
        let rows = match &self.probe {
            None => 1,
            Some(ProbeView::Load(load)) => HEAD_ROWS + load.height(look),
            Some(ProbeView::Run(run)) => HEAD_ROWS + run.height(look),
        };
        rows.min(look.rows)
    }

    fn draw(&self, frame: &mut Frame<'_>, area: Rect, now: Moment, look: Look) {
        let [head, probe] =
            Layout::vertical([Constraint::Length(HEAD_ROWS), Constraint::Fill(1)]).areas(area);
        frame.render_widget(self.head(now, look).into_line(), head);
        match &self.probe {
            None => {}
            Some(ProbeView::Load(load)) => load.draw(frame, probe, now, look),
            Some(ProbeView::Run(run)) => run.draw(frame, probe, now, look),
        }
    }

    fn end(&mut self) {
        match &mut self.probe {
            None => {}
            Some(ProbeView::Load(load)) => load.end(),
            Some(ProbeView::Run(run)) => run.end(),
        }
    }
}

impl SearchView {
    fn head(&self, now: Moment, look: Look) -> Row {
        let mut row = Row::of(look, Tone::Strong, &format!("probe {}", self.number));
        if !self.result.is_empty() {
            row.push(Tone::Plain, &format!("  {}", self.result));
        }
        if let Some((left, at)) = self.left {
            let left = figure::clock(left.saturating_sub(now.since(at)));
            row.push(Tone::Plain, &format!("; at most {left} left"));
        }
        row
    }
}
