//! Several programs under one load, for readers at a terminal.

use super::{SubjectsReport, table};
use crate::Style;
use crate::words::{columns, plain};

pub(super) fn terminal(report: &SubjectsReport, style: Style) -> String {
    let mut text = String::new();
    for verdict in &report.verdicts {
        text.push_str(&format!("{}\n", style.strong(&plain(&verdict.name))));
        if let Some(summary) = &verdict.summary {
            text.push_str(&format!("{}\n", style.faint(&plain(summary))));
        }
        let mut rows = table::table(verdict);
        for cell in rows.iter_mut().flatten() {
            *cell = plain(cell);
        }
        text.push_str(&columns(&rows, 2));
        for sentence in table::below(verdict) {
            text.push_str(&format!("  {}\n", plain(&sentence)));
        }
        text.push('\n');
    }
    if let Some(rows) = table::matrix(&report.verdicts) {
        text.push_str(&format!("{}\n", style.strong("delivery")));
        text.push_str(&columns(&rows, 2));
        text.push('\n');
    }
    for (name, version) in &report.versions {
        let version = version.as_deref().unwrap_or("does not say its version");
        text.push_str(&format!("{} = {}\n", plain(name), plain(version)));
    }
    for (name, reason) in &report.left_out {
        text.push_str(&format!("left out: {}: {}\n", plain(name), plain(reason)));
    }
    for problem in &report.problems {
        text.push_str(&format!("{}\n", style.bad(&plain(problem))));
    }
    if let Some(elapsed) = report.elapsed {
        text.push_str(&format!("took {elapsed}; "));
    }
    text.push_str(&format!("results in {}\n", report.results_folder));
    for next in &report.next {
        text.push_str(&format!("next: {}\n", plain(next)));
    }
    text
}
