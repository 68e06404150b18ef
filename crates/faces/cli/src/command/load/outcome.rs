//! Exit code of a load, thresholds, and the early end of a load that nothing answers.

use stillwell_experiment::capacity::measure_bounds;
use stillwell_metric::Outcome;
use stillwell_nighthawk::format::LoadFormat;
use stillwell_plan::capacity::CapacityBound;
use stillwell_report::load::{GeneratorHealth, LoadReport};
use stillwell_run::{LoadCapture, LoadEnd};
use stillwell_verdict::capacity::figure_text;
use stillwell_verdict::{LoadRules, LoadWarning, load_warnings};

use crate::exit::{CommandError, Exit};

/// Ends a load from inside, as SIGTERM does.
pub(super) const STOP_SIGNAL: i32 = 15;
/// Reason of that end in reports.
pub(super) const ENDED_EARLY: &str = "no valid response arrived, so the load ended early";

/// Status of an answer without a body, because the client has the resource.
const NOT_MODIFIED: u16 = 304;
/// Codes of warnings that leave nothing measured.
const NOTHING_MEASURED: [&str; 2] = ["all_warmup", "no_request"];

/// Parts of reasons, and what to do about each.
const ADVICE: [(&str, &str); 5] = [
    (
        "refused",
        "start the server, or correct the host and the port",
    ),
    (
        "answered in TLS",
        "write https:// instead of http:// in the URL",
    ),
    ("answered in HTTP/2", "use --protocol http2"),
    ("answered in HTTP/1.1", "use --protocol http1"),
    ("certificate", "--insecure skips verification"),
];

/// Returns the error of a load that ended early.
pub(super) fn unreachable(report: &LoadReport) -> CommandError {
    let text = |code: &str| {
        let mut warnings = report.health.warnings.iter();
        let warning = warnings.find(|warning| warning.code == code);
        warning.map(|warning| warning.text.clone())
    };
    // Only with a reason does this warning say more than the others.
    let no_answer = text("no_answer").filter(|text| text.contains(": "));
    let reason = no_answer
        .or_else(|| text("malformed"))
        .or_else(|| text("no_request"))
        .unwrap_or_else(|| "no request was answered".to_owned());
    let advice = ADVICE.iter().find(|(part, _)| reason.contains(part));
    let error = CommandError::new(Exit::CouldNotRun, anyhow::anyhow!("{reason}"));
    match advice {
        Some((_, advice)) if !reason.contains("--") => error.hint(*advice),
        _ => error,
    }
}

/// Facts that decide the exit code of a load that ran to its end.
#[derive(Clone, Debug)]
struct Facts<'a> {
    /// Codes of its warnings.
    warnings: Vec<&'a str>,
    /// The generator was too slow for the requested rate.
    is_generator_slow: bool,
    /// Connections were attempted, and none was opened.
    is_unreachable: bool,
    /// A request was answered with a status of 2xx or 3xx.
    has_success: bool,
    /// All thresholds hold.
    keeps_thresholds: bool,
    /// No warning calls the result unreliable.
    is_reliable: bool,
}

impl Facts<'_> {
    fn exit(&self, is_strict: bool) -> Exit {
        let has = |codes: &[&str]| self.warnings.iter().any(|code| codes.contains(code));
        if has(&["no_answer", "no_request"]) && self.is_unreachable {
            Exit::CouldNotRun
        } else if has(&NOTHING_MEASURED) {
            Exit::Invalid
        } else if !self.has_success || !self.keeps_thresholds {
            Exit::Failed
        } else if self.is_generator_slow || is_strict && !self.is_reliable {
            Exit::Invalid
        } else {
            Exit::Held
        }
    }
}

/// Returns the exit code of a load that was sent.
pub(super) fn exit_of(
    (capture, health): &(LoadCapture, GeneratorHealth),
    thresholds: &[CapacityBound],
    is_strict: bool,
) -> Exit {
    match &capture.manifest.end {
        LoadEnd::Interrupted(signal) => return Exit::Interrupted(*signal),
        LoadEnd::PartFailed(_) => return Exit::Invalid,
        LoadEnd::Failure(_) => return Exit::Failed,
        LoadEnd::Duration | LoadEnd::Requests | LoadEnd::Termination(_) => {}
    }
    let ended = |outcome: Outcome| capture.sum(|counts| counts.ended(outcome));
    let opened = capture.sum(|counts| counts.connections.total);
    let attempts_failed = capture.sum(|counts| counts.connect_failures.total);
    let facts = Facts {
        warnings: health
            .warnings
            .iter()
            .map(|warning| &*warning.code)
            .collect(),
        is_generator_slow: is_generator_slow(capture),
        is_unreachable: opened == 0 && attempts_failed > 0,
        has_success: ended(Outcome::Ok) + ended(Outcome::Status3xx) > 0,
        keeps_thresholds: measured(capture, thresholds).all(|(_, _, is_kept)| is_kept),
        is_reliable: health.is_valid(),
    };
    facts.exit(is_strict)
}

fn is_generator_slow(capture: &LoadCapture) -> bool {
    let warnings = load_warnings(LoadRules::of(&capture.manifest.plan), &capture.evidence());
    let mut warnings = warnings.iter().map(LoadWarning::of_any_generator);
    warnings.any(|warning| {
        matches!(
            warning,
            LoadWarning::RateNotReached {
                is_generator_slow: true,
                ..
            }
        )
    })
}

/// Returns a hint about responses that are not those of the wanted resource.
pub(super) fn hint(capture: &LoadCapture) -> Option<&'static str> {
    let mut statuses = capture.counts().flat_map(|counts| counts.statuses.keys());
    let mut endpoints = capture.manifest.plan.endpoints.iter();
    let redirects = redirect_hint(capture);
    if redirects.is_some() {
        return redirects;
    }
    let may_be_tls = is_each(capture, Outcome::PeerClosed)
        || is_each(capture, Outcome::Status4xx) && statuses.all(|status| *status == 400);
    (may_be_tls && endpoints.all(|endpoint| endpoint.tls_host.is_none()))
        .then_some("if the server expects TLS on this port, write https:// in the URL")
}

/// Returns a hint if every response is a redirect. Status 304 is not one.
pub(crate) fn redirect_hint(capture: &LoadCapture) -> Option<&'static str> {
    let redirects = capture.sum(|counts| counts.ended(Outcome::Status3xx));
    let mut statuses = capture.counts().flat_map(|counts| counts.statuses.keys());
    let is_redirecting = redirects > 0
        && is_each(capture, Outcome::Status3xx)
        && statuses.all(|status| *status != NOT_MODIFIED);
    is_redirecting.then_some(
        "every response is a redirect, and redirects are not followed: give the URL in the header \
         `location`",
    )
}

/// Returns true if requests ended, each of them so or unfinished.
fn is_each(capture: &LoadCapture, outcome: Outcome) -> bool {
    let ended = |outcome: Outcome| capture.sum(|counts| counts.ended(outcome));
    let all: u64 = Outcome::ALL.map(ended).iter().sum();
    all > 0 && ended(outcome) + ended(Outcome::Unfinished) == all
}

/// Returns a line for each threshold; only the format for readers has them.
pub(super) fn threshold_lines(
    capture: &LoadCapture,
    thresholds: &[CapacityBound],
    format: LoadFormat,
) -> String {
    if format != LoadFormat::HUMAN {
        return String::new();
    }
    let lines = measured(capture, thresholds).map(|(bound, value, is_kept)| {
        let value = value.map_or_else(
            || "not measured".to_owned(),
            |value| figure_text(bound.figure, value),
        );
        let word = if is_kept { "held" } else { "broken" };
        format!("  threshold {bound} {word}: {value}\n")
    });
    lines.collect()
}

fn measured<'a>(
    capture: &LoadCapture,
    thresholds: &'a [CapacityBound],
) -> impl Iterator<Item = (&'a CapacityBound, Option<f64>, bool)> {
    let figures = measure_bounds(&capture.manifest.plan, capture, thresholds);
    thresholds.iter().map(move |bound| {
        let figure = figures.iter().find(|(figure, _)| *figure == bound.figure);
        let value = figure.and_then(|(_, value)| *value);
        (bound, value, bound.is_kept(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_decide_the_exit_code_only_with_strict() {
        let facts = |warnings: &[&'static str]| Facts {
            warnings: warnings.to_vec(),
            is_generator_slow: false,
            is_unreachable: false,
            has_success: true,
            keeps_thresholds: true,
            is_reliable: warnings.is_empty(),
        };
        let none = facts(&[]);
        assert_eq!(none.exit(true), Exit::Held);
        let starved = facts(&["cpu_starvation"]);
        assert_eq!(starved.exit(false), Exit::Held);
        assert_eq!(starved.exit(true), Exit::Invalid);
        // The target was too slow, or the generator was.
        let of_target = facts(&["cpu_starvation", "rate_not_reached"]);
        assert_eq!(of_target.exit(false), Exit::Held);
        let slow = Facts {
            is_generator_slow: true,
            ..facts(&["cpu_starvation", "rate_not_reached"])
        };
        assert_eq!(slow.exit(false), Exit::Invalid);
        assert_eq!(facts(&["all_warmup"]).exit(false), Exit::Invalid);
        let failed = Facts {
            has_success: false,
            ..facts(&["no_answer"])
        };
        assert_eq!(failed.exit(false), Exit::Failed);
        // A target whose handshake never ends has no request either.
        for code in ["no_answer", "no_request"] {
            let unreachable = Facts {
                is_unreachable: true,
                has_success: false,
                ..facts(&[code])
            };
            assert_eq!(unreachable.exit(false), Exit::CouldNotRun);
        }
        assert_eq!(facts(&["no_request"]).exit(false), Exit::Invalid);
        let broken = Facts {
            keeps_thresholds: false,
            ..none
        };
        assert_eq!(broken.exit(false), Exit::Failed);
    }
}
