//! The response curve as a table.

use crate::document::escape;

use super::{CapacityReport, observed_code, purpose_code};

/// One line for each probe in the order in which they were made, with a header;
/// times in nanoseconds, shares from 0 to 1, `inf` for what never came, nothing
/// for what was not measured.
#[must_use]
pub fn capacity_csv(report: &CapacityReport) -> String {
    let columns = report.columns();
    let mut text = String::from("probe,purpose,connections,rate,reached,observed");
    for figure in &columns {
        let unit = if figure.is_time() { "_ns" } else { "" };
        text.push_str(&format!(",{figure}{unit}"));
    }
    text.push_str(",why\n");
    for (index, probe) in report.probes.iter().enumerate() {
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        text.push_str(&format!(
            "{},{},{},{},{},{}",
            index + 1,
            probe.purpose.map_or("", purpose_code),
            number(probe.connections.map(f64::from)),
            number(probe.rate),
            probe.reached,
            observed_code(probe.observed)
        ));
        for figure in &columns {
            text.push_str(&format!(",{}", number(probe.figure(*figure))));
        }
        let why = escape::terminal(probe.why.as_deref().unwrap_or_default());
        text.push_str(&format!(",\"{}\"\n", why.replace('"', "\"\"")));
    }
    text
}
