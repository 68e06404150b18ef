//! Datadog's intake of metrics and logs.

use std::sync::Arc;

use super::protobuf::{Value, count, fields};
use super::recorded::{Point, PointKind, Recorded};
use super::service::{Answer, Request, Service};
use crate::events::BodyEvents;

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
                Some(events) => Answer::json(202, &b"{}"[..]).taking(events),
                // What comes is not to be sent again.
                None => Answer::json(202, &b"{}"[..]).malformed(),
            },
            _ => Answer::status(405),
        }
    }
}

impl Datadog {
    /// Events: points of metrics, sketches, elements of JSON arrays, else lines.
    fn count(&self, path: &str, request: &Request<'_>) -> Option<u64> {
        let is_protobuf = request.content_type == "application/x-protobuf";
        match path {
            "/api/v2/series" if is_protobuf => self.take_series(request.body),
            "/api/beta/sketches" if is_protobuf => count(request.body, &[1]),
            "/api/v1/series" | "/api/v2/series" => {
                let body: serde_json::Value = serde_json::from_slice(request.body).ok()?;
                let series = body["series"].as_array()?.iter();
                let points = series.map(|one| one["points"].as_array().map_or(0, Vec::len));
                Some(points.sum::<usize>() as u64)
            }
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
            let kind = match kind {
                1 => Some(PointKind::Count),
                2 => Some(PointKind::Rate {
                    interval_seconds: interval,
                }),
                3 => Some(PointKind::Gauge),
                // Nothing says how its values behave.
                _ => None,
            };
            if let Some(kind) = kind {
                recorded.take(name, &tags, kind, &points);
            }
        }
        Some(points.len() as u64)
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
    use stillwell_plan::SeriesRecord;

    use super::super::protobuf::tests::message;
    use super::super::protobuf::write_varint;
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
        for one in points {
            bytes.extend(message(&[(4, one)]));
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
        }
        let mut samples = Vec::new();
        recorded.sample(&mut samples);
        let found: Vec<_> = samples
            .iter()
            .map(|one| (one.name.as_str(), one.kind, one.value.clone()))
            .collect();
        let expected = [
            ("target/load", Kind::Gauge, Number::Float(2.5)),
            ("target/rate", Kind::Counter, Number::Int(10)),
            ("target/requests", Kind::Counter, Number::Int(14)),
        ];
        assert_eq!(found, expected);
        let labels = &samples[0].labels;
        assert_eq!(labels.value("env"), Some("prod"));
        assert_eq!(labels.value("bare"), Some(""));
        assert_eq!(labels.value("source"), Some("intake"));
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
        let series = br#"{"series":[{"metric":"a","points":[[1,2],[2,3]]},{"points":[[1,1]]}]}"#;
        assert_eq!(post(&datadog, "/api/v1/series", json, series).events, 3);
        let broken = post(
            &datadog,
            "/api/v2/series",
            "application/x-protobuf",
            b"\xff",
        );
        assert!(broken.is_malformed && broken.status == 202);
    }
}
