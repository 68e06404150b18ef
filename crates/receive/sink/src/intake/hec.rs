//! Splunk's HTTP event collector.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::Deserialize;

use super::json::count_objects;
use super::service::{Answer, Request, Service};
use crate::lines::Lines;

/// Takes events, and acknowledges all that it has taken.
#[derive(Debug, Default)]
pub(super) struct Hec {
    /// The number of the next request's acknowledgement.
    next_ack: AtomicU64,
}

impl Service for Hec {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let rest = request.path.strip_prefix("/services/collector");
        match (request.method, rest) {
            ("POST", Some("" | "/" | "/event" | "/event/1.0")) => {
                match count_objects(request.body) {
                    Some(0) => Answer::json(400, &br#"{"text":"No data","code":5}"#[..]),
                    Some(events) => self.take(events),
                    None => {
                        let body = br#"{"text":"Invalid data format","code":6}"#;
                        Answer::json(400, &body[..]).malformed()
                    }
                }
            }
            ("POST", Some("/raw" | "/raw/1.0")) => {
                let mut lines = Lines::default();
                let ended = lines.take(request.body);
                self.take(ended + lines.finish())
            }
            ("POST", Some("/ack" | "/ack/1.0")) => self.acknowledge(request.body),
            ("GET", Some("/health" | "/health/1.0")) => {
                Answer::json(200, &br#"{"text":"HEC is healthy","code":17}"#[..])
            }
            (_, Some(_)) => Answer::status(405),
            (_, None) => Answer::status(404),
        }
    }
}

impl Hec {
    fn take(&self, events: u64) -> Answer {
        let ack = self.next_ack.fetch_add(1, Ordering::Relaxed);
        let body = format!(r#"{{"text":"Success","code":0,"ackId":{ack}}}"#);
        Answer::json(200, body.into_bytes()).taking(events)
    }

    fn acknowledge(&self, body: &[u8]) -> Answer {
        #[derive(Deserialize)]
        struct AckQuery {
            acks: Vec<u64>,
        }
        let Ok(question) = serde_json::from_slice::<AckQuery>(body) else {
            return Answer::json(400, &br#"{"text":"Invalid data format","code":6}"#[..])
                .malformed();
        };
        let next = self.next_ack.load(Ordering::Relaxed);
        let acks: BTreeMap<u64, bool> = question
            .acks
            .iter()
            .map(|ack| (*ack, *ack < next))
            .collect();
        let acks: Vec<String> = acks
            .iter()
            .map(|(ack, is_kept)| format!("\"{ack}\":{is_kept}"))
            .collect();
        Answer::json(
            200,
            format!("{{\"acks\":{{{}}}}}", acks.join(",")).into_bytes(),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn respond(hec: &Hec, method: &str, path: &str, body: &str) -> (u16, String, u64) {
        let answer = hec.answer(&Request {
            method,
            path,
            content_type: "",
            operation: "",
            body: body.as_bytes(),
        });
        let text = String::from_utf8(answer.body.into_owned()).unwrap();
        (answer.status, text, answer.events)
    }

    #[test]
    fn events_are_counted_and_acknowledged() {
        let hec = Hec::default();
        let body = "{\"event\":\"a\"}{\"event\":\"b\"}\n";
        let taken = |ack| format!(r#"{{"text":"Success","code":0,"ackId":{ack}}}"#);
        let event = respond(&hec, "POST", "/services/collector/event", body);
        assert_eq!(event, (200, taken(0), 2));
        let raw = respond(&hec, "POST", "/services/collector/raw", "a\nb\nc");
        assert_eq!(raw, (200, taken(1), 3));
        let acks = respond(
            &hec,
            "POST",
            "/services/collector/ack",
            r#"{"acks":[1,0,2]}"#,
        );
        let expected = r#"{"acks":{"0":true,"1":true,"2":false}}"#.to_owned();
        assert_eq!(acks, (200, expected, 0));
        assert_eq!(
            respond(&hec, "GET", "/services/collector/health", "").0,
            200
        );
    }

    #[test]
    fn what_is_no_event_is_refused() {
        let hec = Hec::default();
        for (method, path, body, status) in [
            ("POST", "/services/collector", "", 400),
            ("POST", "/services/collector/event", "a line", 400),
            ("POST", "/services/collector/ack", "{}", 400),
            ("GET", "/services/collector/event", "", 405),
            ("POST", "/else", "{}", 404),
        ] {
            assert_eq!(respond(&hec, method, path, body).0, status, "{path} {body}");
        }
        assert_eq!(hec.next_ack.load(Ordering::Relaxed), 0);
    }
}
