//! For people.

use stillwell_metric::{Volume, hdr_table};
use stillwell_units::float_from_u64;
use stillwell_units::human::counted;

use super::Report;

pub(super) fn text(report: &Report) -> String {
    let mut text = "#[Latency from the intended time, in nanoseconds]\n".to_owned();
    text.push_str(&hdr_table(&report.latency));
    text.push_str(&report.window().throughput_lines());
    for (head, value) in rows(report) {
        text.push_str(&format!("\n  {head:<14}  {value}"));
    }
    for failure in report.failures() {
        text.push_str(&format!("\n! failed: {failure}"));
    }
    text.push('\n');
    text
}

fn events(count: u64) -> String {
    counted(count, "event", "events")
}

fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let volume = |volume: Volume| format!("{}, {} bytes", events(volume.events), volume.bytes);
    let ended = if report.stopped {
        "stopped"
    } else {
        "completed"
    };
    let mut rows = vec![
        ("bench", format!("{} in this process", report.name)),
        ("ended", ended.to_owned()),
        (
            "measured",
            format!("{} in {}", volume(report.measured), report.length),
        ),
        ("sent", volume(report.sent)),
        ("received", volume(report.received)),
    ];
    if let Some(answers) = report.answers {
        rows.push(("acknowledged", events(answers.acknowledged)));
        rows.push(("failed", events(answers.failed)));
        rows.push(("unacknowledged", events(answers.unacknowledged)));
    }
    rows.push(("lost", lost(report)));
    rows.push(("duplicated", report.duplicated.to_string()));
    let far = match report.reordered {
        0 => "0".to_owned(),
        count => format!("{count}, by up to {}", events(report.displacement_max)),
    };
    rows.push(("reordered", far));
    rows.push(("from sent time", quantiles(report)));
    rows
}

fn lost(report: &Report) -> String {
    const SHOWN: usize = 4;
    if report.lost() == 0 {
        return "0".to_owned();
    }
    let range = |range: &std::ops::RangeInclusive<u64>| match (range.start(), range.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first} to {last}"),
    };
    let shown: Vec<String> = report.losses.iter().take(SHOWN).map(range).collect();
    let more = if report.loss_ranges > SHOWN as u64 {
        ", …"
    } else {
        ""
    };
    let share = float_from_u64(report.lost()) / float_from_u64(report.sent.events) * 100.0;
    format!(
        "{} ({share:.4} %): {}{more}",
        report.lost(),
        shown.join(", ")
    )
}

fn quantiles(report: &Report) -> String {
    if report.transit.is_empty() {
        return "nothing arrived".to_owned();
    }
    let shown = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
    let shown = shown.map(|(name, share)| {
        let value = report.transit.value_at_quantile(share);
        format!("{name} {}", stillwell_units::Nanos::new(value))
    });
    let max = stillwell_units::Nanos::new(report.transit.max());
    format!("{}, max {max}", shown.join(", "))
}
