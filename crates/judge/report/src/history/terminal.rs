//! A history for readers at a terminal.

use stillwell_verdict::history::{Latest, Trend};

use super::{HistoryReport, words};
use crate::Style;
use crate::words::{columns, plain};

pub(super) fn terminal(report: &HistoryReport, style: Style) -> String {
    let mut text = format!("{}\n", words::headline(report));
    let mut rest = report.trends.as_slice();
    while let Some(first) = rest.first() {
        let same =
            |own: &&Trend| own.experiment == first.experiment && own.comparison == first.comparison;
        let count = rest.iter().take_while(same).count();
        let (section, left) = rest.split_at(count);
        rest = left;
        let name = words::test_name(first, &report.trends);
        text.push_str(&format!("\n{}\n", style.strong(&plain(&name))));
        text.push_str(&table(section, style));
        for trend in section {
            text.push_str(&below(trend, style));
        }
    }
    text.push('\n');
    for (folder, reason) in &report.skipped {
        text.push_str(&format!("note: {}: {}\n", plain(folder), plain(reason)));
    }
    if !report.trends.is_empty() {
        text.push_str(&format!("{}\n", style.faint(&words::promise(report))));
    }
    text
}

fn table(section: &[Trend], style: Style) -> String {
    let mut rows = vec![words::HEADS.map(str::to_owned).to_vec()];
    for trend in section {
        let [goal, labs, latest, sparks, state] = words::cells(trend);
        // It stands last, so that its colour moves nothing.
        let state = match trend.latest {
            Latest::Worse => style.bad(&state),
            Latest::Better | Latest::Steady | Latest::TooFew => state,
        };
        rows.push(vec![goal, labs, latest, sparks, state]);
    }
    columns(&rows, 2)
}

fn below(trend: &Trend, style: Style) -> String {
    let mut text = String::new();
    let title = crate::words::goal_title(&trend.metric);
    for remark in words::remarks(trend) {
        text.push_str(&style.faint(&format!("  {title}: {remark}")));
        text.push('\n');
    }
    for lead in &trend.leads {
        for told in words::lead(trend, lead) {
            text.push_str(&format!("  {}\n", plain(&told)));
        }
        if let Some(command) = words::bisect_command(trend, lead).filter(|_| lead.worse) {
            text.push_str("    this is a lead; to confirm it and find its commit:\n");
            text.push_str(&format!("    {}\n", plain(&command)));
        }
    }
    text
}
