//! Lines of the request log.

use serde_json::json;
use stillwell_report::document::escape::{self, is_steering};
use stillwell_serve::{LoggedResult, RequestLog, RequestLogEntry};
use stillwell_units::human::counted;

use crate::arguments::ServeFormat;
use crate::paint::Paint;

/// Prints the entries that wait, a line each.
pub(super) fn print(log: &RequestLog, format: ServeFormat) {
    let lines = log.take().map(|entry| match format {
        ServeFormat::Text => text(&entry),
        ServeFormat::Json => escape::json(&as_json(&entry).to_string()),
    });
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        Paint::print_message(&lines.join("\n"));
    }
}

/// Prints the number of requests that are not in the log.
pub(super) fn print_dropped(log: &RequestLog) {
    let dropped = log.dropped();
    if dropped > 0 {
        Paint::print_message(&format!(
            "warning: {} not in the log, because requests arrived faster than lines were printed",
            counted(dropped, "request is", "requests are")
        ));
    }
}

/// For example `21:28:12.690 GET /a HTTP/1 200, delayed by 5.000 ms`.
fn text(entry: &RequestLogEntry) -> String {
    let millis = entry.time.as_u64() / 1_000_000;
    let seconds = millis / 1000;
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    let result = match entry.result {
        LoggedResult::Status(status) => status.to_string(),
        LoggedResult::Fault(name) => name.to_owned(),
    };
    let micros = entry.delay.as_u64() / 1000;
    let delay = match micros {
        0 => String::new(),
        _ => format!(", delayed by {}.{:03} ms", micros / 1000, micros % 1000),
    };
    format!(
        "{hour:02}:{minute:02}:{second:02}.{:03} {} {} {} {result}{delay}",
        millis % 1000,
        escaped(&entry.method),
        escaped(&entry.path),
        entry.version,
    )
}

fn as_json(entry: &RequestLogEntry) -> serde_json::Value {
    let mut line = json!({
        "time_unix_ms": entry.time.as_u64() / 1_000_000,
        "method": entry.method,
        "path": entry.path,
        "version": entry.version,
        "delay_us": entry.delay.as_u64() / 1000,
    });
    match entry.result {
        LoggedResult::Status(status) => line["status"] = json!(status),
        LoggedResult::Fault(name) => line["fault"] = json!(name),
    }
    line
}

/// `text` without characters that control a terminal.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for char in text.chars() {
        if is_steering(char) {
            safe.extend(char.escape_default());
        } else {
            safe.push(char);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use stillwell_units::Nanos;

    use super::*;

    #[test]
    fn an_entry_is_one_line() {
        let entry = RequestLogEntry {
            time: Nanos::new(1_603_315_692_690_578_123),
            method: "GET".into(),
            path: "/a\u{1b}[2J\nb".into(),
            version: "HTTP/2",
            result: LoggedResult::Status(200),
            delay: Nanos::new(5_250_999),
        };
        assert_eq!(
            text(&entry),
            r"21:28:12.690 GET /a\u{1b}[2J\nb HTTP/2 200, delayed by 5.250 ms"
        );
        let line = as_json(&entry).to_string();
        assert!(!line.contains('\n'), "{line}");
        assert_eq!(as_json(&entry)["delay_us"], 5250);
        let fault = RequestLogEntry {
            result: LoggedResult::Fault("close"),
            path: "/".into(),
            delay: Nanos::ZERO,
            ..entry
        };
        assert_eq!(text(&fault), "21:28:12.690 GET / HTTP/2 close");
        assert_eq!(as_json(&fault)["fault"], "close");
    }
}
