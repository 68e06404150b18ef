//! A calibration for pages and pull requests.

use super::{CalibratedExperiment, CalibrationReport, words};
use crate::comparison::markdown::escaped;
use crate::words::clock;

pub(super) fn markdown(report: &CalibrationReport) -> String {
    let mut text = format!("## Calibration of {}\n", escaped(&report.title));
    for experiment in &report.experiments {
        text.push_str(&section(experiment));
    }
    let host = report
        .host
        .iter()
        .map(|(name, fact)| format!("{name} {fact}"));
    let host: Vec<String> = host.collect();
    let command = report.command.replace('`', "'");
    text.push_str(&format!(
        "\n<sub>`{command}`, Stillwell {}, {}; {}</sub>\n",
        report.version,
        clock(report.elapsed),
        escaped(&host.join(", "))
    ));
    text
}

fn section(experiment: &CalibratedExperiment) -> String {
    let mut text = format!("\n### {}\n\n", escaped(&experiment.name));
    let mut list = |lines: &[String]| {
        for line in lines {
            text.push_str(&format!("* {}\n", escaped(line)));
        }
    };
    list(&words::alike(experiment));
    list(&words::worse(experiment));
    let mut heads = words::HEADS.map(str::to_owned).to_vec();
    heads.extend(words::time_heads(experiment));
    text.push_str("\nThe smallest change that is seen in four of five experiments:\n");
    text.push_str(&format!("\n| {} |\n", heads.join(" | ")));
    text.push_str(&format!("|{}\n", " --- |".repeat(heads.len())));
    for goal in &experiment.goals {
        let cells: Vec<String> = words::goal_cells(goal)
            .iter()
            .map(|it| escaped(it))
            .collect();
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text.push_str(&format!("\n{}\n\n", words::pace(experiment)));
    for line in words::limits(experiment) {
        text.push_str(&format!("* {}\n", escaped(&line)));
    }
    text
}
