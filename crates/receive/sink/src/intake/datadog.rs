//! Datadog's intake of metrics and logs.

use std::sync::Arc;

use serde_json::Value as Json;
use stillwell_http::protobuf::{Value, count, fields};
use stillwell_units::floor_to_u64;

use super::recorded::{Point, PointKind, Recorded};
use super::service::{Answer, Request, Service};
use crate::events::BodyEvents;

/// Paths for series of metrics.
const SERIES: [&str; 2] = ["/api/v1/series", "/api/v2/series"];

/// Takes everything, and records the series of metrics that it is to.
#[derive(Debug)]
pub(super) struct Datadog {
    recorded: Option<Arc<Recorded>>,
}

impl Datadog {
    pub(super) const fn new(recorded: Option<Arc<Recorded>>) -> Self {
        Self { recorded }
    }
}

impl Service for Datadog {
    fn answer(&self, request: &Request<'_>) -> Answer {
        match (request.method, request.path) {
            ("GET", "/api/v1/validate") => Answer::json(200, &br#"{"valid":true}"#[..]),
            ("POST", path) => match self.count(path, request) {
                Some(events) => Answer {
                    has_series: SERIES.contains(&path),
                    ..Answer::json(202, &b"{}"[..]).taking(events)
                },
                // What comes is not to be sent again.
                None => Answer::json(202, &b"{}"[..]).malformed(),
            },
            _ => Answer::status(405),
        }
    }
}

impl Datadog {
    /// Events: points of metrics, sketches, elements of JSON arrays, else lines; none in a check of
    /// the connection.
    fn count(&self, path: &str, request: &Request<'_>) -> Option<u64> {
        let is_protobuf = request.content_type == "application/x-protobuf";
        match path {
            "/api/v2/series" if is_protobuf => self.take_series(request.body),
            "/api/beta/sketches" if is_protobuf => count(request.body, &[1]),
            "/api/v1/series" | "/api/v2/series" => {
                let body: Json = serde_json::from_slice(request.body).ok()?;
                let series = body["series"].as_array()?.iter();
                Some(series.map(|entry| self.take_json(entry)).sum())
            }
            _ if is_connectivity_check(path, request) => Some(0),
            _ => {
                let mut events = BodyEvents::new(Some(request.content_type), None);
                events.take(request.body);
                Some(events.finish())
            }
        }
    }

    fn take_series(&self, payload: &[u8]) -> Option<u64> {
        let mut points = 0;
        fields(payload, |number, value| {
            if number == 1 {
                points += self.take_one(value.bytes()?)?;
            }
            Some(())
        })?;
        Some(points)
    }

    /// Takes one series and gives how many points it has.
    fn take_one(&self, series: &[u8]) -> Option<u64> {
        let (mut name, mut kind, mut interval) = ("", 0, 0);
        let (mut tags, mut points) = (Vec::new(), Vec::new());
        fields(series, |number, value| {
            match (number, value) {
                (2, Value::Bytes(text)) => name = str::from_utf8(text).ok()?,
                (3, Value::Bytes(text)) => tags.push(str::from_utf8(text).ok()?),
                (4, Value::Bytes(point)) => points.push(read_point(point)?),
                (5, Value::Varint(number)) => kind = number,
                (8, Value::Varint(seconds)) => interval = seconds,
                _ => {}
            }
            Some(())
        })?;
        if let Some(recorded) = &self.recorded {
            recorded.take(name, &tags, kind_of(kind, interval), &points);
        }
        Some(points.len() as u64)
    }

    /// The same of a series in JSON, of either version.
    fn take_json(&self, series: &Json) -> u64 {
        let Some(points) = series["points"].as_array() else {
            return 0;
        };
        if let Some(recorded) = &self.recorded {
            let kind = match &series["type"] {
                // The first version has gauges where it says nothing.
                Json::Null => 3,
                Json::String(word) => match word.as_str() {
                    "count" => 1,
                    "rate" => 2,
                    "gauge" => 3,
                    _ => 0,
                },
                number => number.as_u64().unwrap_or(0),
            };
            let interval = series["interval"].as_u64().unwrap_or(0);
            let tags = series["tags"].as_array().into_iter().flatten();
            let tags: Vec<&str> = tags.filter_map(Json::as_str).collect();
            let points: Vec<Point> = points.iter().map(json_point).collect();
            let name = series["metric"].as_str().unwrap_or_default();
            recorded.take(name, &tags, kind_of(kind, interval), &points);
        }
        points.len() as u64
    }
}

/// Returns true for the empty object that an agent sends in place of logs, as a check of the
/// connection.
fn is_connectivity_check(path: &str, request: &Request<'_>) -> bool {
    let is_of_logs = path == "/api/v2/logs" || path.starts_with("/v1/input");
    let is_json = request.content_type == "application/json";
    is_of_logs && is_json && request.body.trim_ascii() == b"{}"
}

/// The kind of points in a series of type number `kind`; `None` where it is unknown.
const fn kind_of(kind: u64, interval_seconds: u64) -> Option<PointKind> {
    match kind {
        1 => Some(PointKind::Count),
        2 => Some(PointKind::Rate { interval_seconds }),
        3 => Some(PointKind::Gauge),
        _ => None,
    }
}

/// A point in JSON: a pair in the first version, an object in the second.
fn json_point(point: &Json) -> Point {
    let [seconds, value] = match point {
        Json::Array(_) => [&point[0], &point[1]],
        _ => [&point["timestamp"], &point["value"]],
    };
    let seconds = seconds.as_f64().unwrap_or(0.0);
    Point {
        value: value.as_f64().unwrap_or(f64::NAN),
        seconds: floor_to_u64(seconds),
    }
}

fn read_point(point: &[u8]) -> Option<Point> {
    let mut read = Point::default();
    fields(point, |number, value| {
        match (number, value) {
            (1, Value::Fixed64(bytes)) => read.value = f64::from_le_bytes(bytes),
            (2, Value::Varint(seconds)) => read.seconds = seconds,
            _ => {}
        }
        Some(())
    })?;
    Some(read)
}

#[cfg(test)]
mod tests {
    use stillwell_metric::{Kind, Shard, Value as Number};
    use stillwell_plan::sink::SeriesRecord;

    use stillwell_http::protobuf::write_varint;

    use super::super::fixture::message;
    use super::*;

    fn point(value: f64, seconds: u64) -> Vec<u8> {
        let mut bytes = vec![0x09];
        bytes.extend_from_slice(&value.to_le_bytes());
        bytes.push(0x10);
        write_varint(seconds, &mut bytes);
        bytes
    }

    fn series(name: &str, kind: u8, points: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = message(&[(2, name.as_bytes()), (3, b"env:prod"), (3, b"bare")]);
        for encoded in points {
            bytes.extend(message(&[(4, encoded)]));
        }
        bytes.extend_from_slice(&[0x28, kind, 0x40, 10]);
        bytes
    }

    fn post(datadog: &Datadog, path: &str, content_type: &str, body: &[u8]) -> Answer {
        datadog.answer(&Request {
            method: "POST",
            path,
            content_type,
            operation: "",
            body,
        })
    }

    #[test]
    fn series_are_counted_and_recorded() {
        let recorded = Arc::new(Recorded::new("intake", &SeriesRecord::All).unwrap());
        let datadog = Datadog::new(Some(Arc::clone(&recorded)));
        let payload = message(&[
            (1, &series("requests", 1, &[point(3.0, 1), point(4.0, 2)])),
            (1, &series("rate", 2, &[point(0.5, 1)])),
            (1, &series("load", 3, &[point(2.5, 9), point(1.5, 8)])),
            (1, &series("other", 0, &[point(1.0, 1)])),
        ]);
        for _ in 0..2 {
            let answer = post(
                &datadog,
                "/api/v2/series",
                "application/x-protobuf",
                &payload,
            );
            assert_eq!((answer.status, answer.events), (202, 6));
            assert!(answer.has_series);
        }
        let mut samples = Vec::new();
        recorded.sample(&mut samples);
        let recorded: Vec<_> = samples
            .iter()
            .map(|sample| (sample.name.as_str(), sample.kind, sample.value.clone()))
            .collect();
        let expected = [
            ("target/load", Kind::Gauge, Number::Float(2.5)),
            ("target/rate", Kind::Counter, Number::Int(10)),
            ("target/requests", Kind::Counter, Number::Int(14)),
            // Two points of a series without a type.
            ("points_skipped", Kind::Counter, Number::Int(2)),
        ];
        assert_eq!(recorded, expected);
        let labels = &samples[0].labels;
        assert_eq!(labels.value("env"), Some("prod"));
        assert_eq!(labels.value("bare"), Some(""));
        assert_eq!(labels.value("source"), Some("intake"));
    }

    #[test]
    fn series_in_json_are_recorded_as_well() {
        let recorded = Arc::new(Recorded::new("intake", &SeriesRecord::All).unwrap());
        let datadog = Datadog::new(Some(Arc::clone(&recorded)));
        let second = br#"{"series":[
            {"metric":"requests","type":1,"tags":["env:prod","bare"],
             "points":[{"timestamp":1,"value":3},{"timestamp":2,"value":4.0}]},
            {"metric":"rate","type":2,"interval":10,"points":[{"timestamp":1,"value":0.5}]},
            {"metric":"load","type":3,"points":[{"timestamp":9,"value":2.5},{"timestamp":8,"value":1}]},
            {"metric":"other","type":0,"points":[{"timestamp":1,"value":1}]}]}"#;
        let first = br#"{"series":[
            {"metric":"requests","type":"count","tags":["env:prod","bare"],"points":[[3,5]]},
            {"metric":"heat","points":[[1575317847.5,21.5],["x",null]],"tags":null}]}"#;
        for (path, body, events) in [
            ("/api/v2/series", &second[..], 6),
            ("/api/v1/series", first, 3),
        ] {
            let answer = post(&datadog, path, "application/json", body);
            assert_eq!((answer.status, answer.events), (202, events));
        }
        let mut samples = Vec::new();
        recorded.sample(&mut samples);
        let recorded: Vec<_> = samples
            .iter()
            .map(|sample| (sample.name.as_str(), sample.kind, sample.value.clone()))
            .collect();
        let passed_over = ("points_skipped", Kind::Counter, Number::Int(1));
        let expected = [
            ("target/heat", Kind::Gauge, Number::Float(21.5)),
            ("target/load", Kind::Gauge, Number::Float(2.5)),
            ("target/rate", Kind::Counter, Number::Int(5)),
            ("target/requests", Kind::Counter, Number::Int(12)),
            passed_over.clone(),
            passed_over,
        ];
        assert_eq!(recorded, expected);
        assert_eq!(samples[3].labels.value("env"), Some("prod"));
        assert_eq!(samples[4].labels.value("reason"), Some("untyped"));
    }

    #[test]
    fn logs_and_json_are_counted() {
        let datadog = Datadog::new(None);
        let json = "application/json";
        let logs = post(
            &datadog,
            "/api/v2/logs",
            json,
            br#"[{"message":"a"},{"message":"b"}]"#,
        );
        assert_eq!((logs.status, logs.events), (202, 2));
        assert!(!logs.has_series);
        for (path, body, events) in [
            ("/api/v2/logs", "{}", 0),
            ("/v1/input", "{}\n", 0),
            ("/v1/input", "{\"message\":\"a\"}", 1),
            ("/api/v1/check_run", "{}", 1),
        ] {
            let answer = post(&datadog, path, json, body.as_bytes());
            assert_eq!(
                (answer.status, answer.events),
                (202, events),
                "{path} {body}"
            );
            assert!(!answer.is_malformed);
        }
        let series = br#"{"series":[{"metric":"a","points":[[1,2],[2,3]]},{"points":[[1,1]]}]}"#;
        assert_eq!(post(&datadog, "/api/v1/series", json, series).events, 3);
        let broken = post(
            &datadog,
            "/api/v2/series",
            "application/x-protobuf",
            b"\xff",
        );
        assert!(broken.is_malformed && !broken.has_series && broken.status == 202);
    }
}
