//! The summary of a load, short enough for a small terminal.

use stillwell_metric::Outcome;
use stillwell_units::float_from_u64;

use super::{has_answers, value_text};
use crate::document::{Block, Sign, Text};
use crate::load::brief::ended;
use crate::load::{LoadReport, LoadStatistic, OutcomeCount, id};
use crate::words;

/// Quantiles of the summary; the maximum follows them.
const QUANTILES: [(&str, f64); 3] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)];

/// Returns the rate, the share of failures, and a sign if the result is unreliable.
pub(super) fn headline(report: &LoadReport) -> Text {
    let answer = in_short(report);
    if !has_answers(report) {
        return Text::answer(Sign::Invalid, "failed").and(format!(": {answer}"));
    }
    if report.health.is_valid() {
        return answer.into();
    }
    Text::answer(Sign::Invalid, "unreliable").and(format!(": {answer}; see the warnings above"))
}

/// Returns the same with the title in front, for pages.
pub(super) fn page_headline(report: &LoadReport, title: &str) -> Text {
    let answer = format!("{title}: {}", in_short(report));
    if report.health.is_valid() {
        return answer.into();
    }
    // Without responses there are no numbers.
    let word = if has_answers(report) {
        "unreliable"
    } else {
        "failed"
    };
    Text::answer(Sign::Invalid, word).and(format!(": {answer}"))
}

/// Returns latencies and outcomes.
pub(super) fn blocks(report: &LoadReport) -> Vec<Block> {
    let latencies = [
        ("latency from intended time", id::RESPONSE_TIME),
        ("latency from sent time", id::SERVICE_TIME),
    ];
    let mut rows: Vec<(Text, Text)> = Vec::new();
    for (head, id) in latencies {
        // In a closed loop both are the same.
        if id == id::RESPONSE_TIME && !report.options.open_loop {
            continue;
        }
        let statistic = report.global.statistic(id);
        rows.extend(
            statistic
                .and_then(quantiles)
                .map(|text| (head.into(), text.into())),
        );
    }
    let outcomes = &report.global.outcomes;
    if sum(outcomes, |outcome| outcome != Outcome::Ok) > 0 {
        rows.push(("outcomes".into(), super::outcomes(outcomes).into()));
    }
    rows.extend(super::statuses(report));
    rows.extend(super::not_sent(report));
    vec![Block::KeyValue(rows)]
}

fn quantiles(statistic: &LoadStatistic) -> Option<String> {
    let histogram = statistic.histogram.as_ref()?.unpack();
    if histogram.is_empty() {
        return None;
    }
    let max = statistic.moments.max;
    let number = |value: u64| value_text(statistic, float_from_u64(value));
    let quantiles = QUANTILES.map(|(name, share)| {
        let value = histogram.value_at_quantile(share).min(max);
        format!("{name} {}", number(value))
    });
    Some(format!("{}, max {}", quantiles.join(", "), number(max)))
}

fn sum(outcomes: &[OutcomeCount], is_counted: impl Fn(Outcome) -> bool) -> u64 {
    let counted = outcomes.iter().filter(|count| is_counted(count.outcome));
    counted.fold(0, |sum: u64, count| sum.saturating_add(count.count))
}

fn in_short(report: &LoadReport) -> String {
    let outcomes = &report.global.outcomes;
    let all = sum(outcomes, |_| true);
    let length = words::clock(report.global.execution_duration);
    if all > 0 && !has_answers(report) {
        let all = words::grouped(float_from_u64(all));
        return format!("none of {all} requests in {length} was answered");
    }
    if all == 0 {
        return format!("no request was sent in {length}");
    }
    let rate = words::grouped(report.health.sent_per_second);
    let mut text = format!("{rate} requests/s for {length}");
    // Requests in flight at the end are no errors.
    let failed = sum(outcomes, |outcome| {
        !matches!(outcome, Outcome::Ok | Outcome::Unfinished)
    });
    if failed > 0 {
        let share = float_from_u64(failed) / float_from_u64(ended(outcomes));
        text.push_str(&format!(", {} of them not ok", words::percent(share)));
    }
    text
}
