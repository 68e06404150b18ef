//! A calibration for readers at a terminal.

use super::{CalibratedExperiment, CalibrationReport, words};
use crate::Style;
use crate::words::{clock, columns, plain};

pub(super) fn terminal(report: &CalibrationReport, style: Style) -> String {
    let mut text = String::new();
    for experiment in &report.experiments {
        text.push_str(&section(experiment, style));
        text.push('\n');
    }
    if report.experiments.is_empty() {
        text.push_str("nothing was finished\n\n");
    }
    let took = format!(
        "took {}; captures in {}",
        clock(report.elapsed),
        plain(&report.results_folder)
    );
    text.push_str(&format!("{}\n", style.faint(&took)));
    text
}

fn section(experiment: &CalibratedExperiment, style: Style) -> String {
    let mut text = format!("{}\n", style.strong(&plain(&experiment.name)));
    let mut list = |head: &str, lines: &[String]| {
        text.push_str(&format!("\n  {head}\n"));
        for line in lines {
            text.push_str(&format!("    {line}\n"));
        }
    };
    list("the baseline with itself", &words::alike(experiment));
    list("the baseline made worse", &words::worse(experiment));
    let mut heads = words::HEADS.map(str::to_owned).to_vec();
    heads.extend(words::time_heads(experiment));
    let mut rows = vec![heads];
    rows.extend(experiment.goals.iter().map(words::goal_cells));
    text.push_str("\n  the smallest change that is seen in four of five experiments\n");
    text.push_str(&columns(&rows, 4));
    text.push_str(&format!("    {}\n", words::pace(experiment)));
    text.push_str("\n  what limits it\n");
    for line in words::limits(experiment) {
        text.push_str(&format!("    {line}\n"));
    }
    text
}
