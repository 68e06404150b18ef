//! A history for a page or a comment.

use super::{HistoryReport, words};
use crate::comparison::markdown::escaped;

pub(super) fn markdown(report: &HistoryReport) -> String {
    let mut text = format!("## {}\n", escaped(&words::headline(report)));
    let mut before = String::new();
    for trend in &report.trends {
        let name = words::test_name(trend, &report.trends);
        if name != before {
            text.push_str(&format!("\n### {}\n", escaped(&name)));
            text.push_str(&format!("\n| {} |\n", words::HEADS.join(" | ")));
            text.push_str(&format!("|{}\n", " --- |".repeat(words::HEADS.len())));
            before.clone_from(&name);
        }
        let cells = words::cells(trend).map(|cell| escaped(&cell));
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    let mut sentences = String::new();
    for trend in &report.trends {
        let name = escaped(&words::test_name(trend, &report.trends));
        for remark in words::remarks(trend) {
            let title = crate::words::goal_title(&trend.metric);
            sentences.push_str(&format!("* {name}, {title}: {}\n", escaped(&remark)));
        }
        for lead in &trend.leads {
            let told = words::lead(trend, lead).join("; ");
            sentences.push_str(&format!("* {name}: {}\n", escaped(&told)));
            if let Some(command) = words::bisect_command(trend, lead).filter(|_| lead.worse) {
                let command = crate::words::plain(&command).replace('`', "'");
                sentences.push_str(&format!("  A lead; to confirm it: `{command}`\n"));
            }
        }
    }
    for (folder, reason) in &report.skipped {
        let (folder, reason) = (escaped(folder), escaped(reason));
        sentences.push_str(&format!("* {folder}: {reason}\n"));
    }
    if !sentences.is_empty() {
        text.push_str(&format!("\n{sentences}"));
    }
    let command = report.command.replace('`', "'");
    text.push_str(&format!(
        "\n<sub>{}; `{command}`, Stillwell {}</sub>\n",
        words::promise(report),
        report.version
    ));
    text
}
