//! Findings as annotations of a CI job. Pure.

use stillwell_report::GateFinding;
use stillwell_verdict::Gate;

/// Annotations of one step that GitHub shows.
const ANNOTATIONS_MAX: usize = 10;

/// Returns a workflow command for each of the first findings.
pub(super) fn github(findings: &[GateFinding]) -> String {
    let lines = findings.iter().take(ANNOTATIONS_MAX).map(|entry| {
        let level = match entry.gate {
            None | Some(Gate::Regressed | Gate::CheckFailed) => "error",
            Some(Gate::Invalid) => "warning",
            Some(Gate::Held | Gate::Inconclusive) => "notice",
        };
        let title = match entry.experiment.as_str() {
            "" => "stillwell".to_owned(),
            experiment => property(&format!("stillwell: {experiment}")),
        };
        format!("::{level} title={title}::{}\n", data(&entry.text))
    });
    lines.collect()
}

/// Returns `text` without what would begin another line.
fn data(text: &str) -> String {
    text.replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// The same for a property, which a comma or a colon ends.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(experiment: &str, gate: impl Into<Option<Gate>>, text: &str) -> GateFinding {
        GateFinding {
            experiment: experiment.to_owned(),
            gate: gate.into(),
            text: text.to_owned(),
        }
    }

    #[test]
    fn findings_are_errors_warnings_and_notices() {
        let findings = [
            finding("a", Gate::Regressed, "regressed: +5 %"),
            finding("b", Gate::Invalid, "invalid"),
            finding("c", Gate::Inconclusive, "inconclusive"),
            finding("", None, "could not run"),
        ];
        assert_eq!(
            github(&findings),
            "::error title=stillwell%3A a::regressed: +5 %25\n\
             ::warning title=stillwell%3A b::invalid\n\
             ::notice title=stillwell%3A c::inconclusive\n\
             ::error title=stillwell::could not run\n"
        );
        let many = vec![findings[0].clone(); 30];
        assert_eq!(github(&many).lines().count(), ANNOTATIONS_MAX);
    }

    #[test]
    fn a_name_cannot_begin_another_command() {
        let findings = [finding("x\n::error::,", Gate::Regressed, "y\r\n::error::z")];
        assert_eq!(github(&findings).lines().count(), 1);
    }
}
