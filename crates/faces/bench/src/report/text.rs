//! For people.

use stillwell_units::float_from_u64;
use stillwell_units::human::counted;

use super::Report;

/// Ticks in each half of the distance that is left.
pub(super) const TICKS_PER_HALF: u32 = 2;

pub(super) fn text(report: &Report) -> String {
    let mut text = "#[Latency from the intended time, in nanoseconds]\n".to_owned();
    text.push_str(&percentiles(report));
    text.push_str(&throughput(report));
    for (head, value) in rows(report) {
        text.push_str(&format!("\n  {head:<14}  {value}"));
    }
    for failure in report.failures() {
        text.push_str(&format!("\n! failed: {failure}"));
    }
    text.push('\n');
    text
}

fn percentiles(report: &Report) -> String {
    let table = &report.latency;
    let mut text = format!(
        "{:>10} {:>7} {:>10} {:>14}\n\n",
        "Value", "Percentile", "TotalCount", "1/(1-Percentile)"
    );
    let mut count = 0;
    for tick in table.iter_quantiles(TICKS_PER_HALF) {
        count += tick.count_since_last_iteration();
        let (value, quantile) = (tick.value_iterated_to(), tick.quantile_iterated_to());
        let inverse = if quantile < 1.0 {
            format!("{:14.2}", 1.0 / (1.0 - quantile))
        } else {
            format!("{:>14}", "inf")
        };
        text.push_str(&format!("{value:12} {quantile:1.5} {count:10} {inverse}\n"));
    }
    let mut footer = |left: &str, left_value: String, right: &str, right_value: String| {
        text.push_str(&format!(
            "#[{left:10} = {left_value:>12}, {right:14} = {right_value:>12}]\n"
        ));
    };
    let two = |value: f64| format!("{value:.2}");
    footer(
        "Mean",
        two(table.mean()),
        "StdDeviation",
        two(table.stdev()),
    );
    footer(
        "Max",
        table.max().to_string(),
        "Total count",
        table.len().to_string(),
    );
    footer(
        "Buckets",
        table.buckets().to_string(),
        "SubBuckets",
        table.distinct_values().to_string(),
    );
    text
}

fn throughput(report: &Report) -> String {
    let bytes = report.bytes_per_second();
    let data = if bytes < 1024.0 * 1024.0 {
        format!("{:.1} KiB/s", bytes / 1024.0)
    } else {
        format!("{:.1} MiB/s", bytes / 1024.0 / 1024.0)
    };
    let events = report.events_per_second();
    let events = if events < 1000.0 {
        format!("{events:.1} events/s")
    } else {
        format!("{:.1}k events/s", events / 1000.0)
    };
    format!("\n\nThroughput   (data): {data}\nThroughput (events): {events}\n")
}

fn events(count: u64) -> String {
    counted(count, "event", "events")
}

fn rows(report: &Report) -> Vec<(&'static str, String)> {
    let volume =
        |volume: super::Volume| format!("{}, {} bytes", events(volume.events), volume.bytes);
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
