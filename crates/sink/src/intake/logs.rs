//! Services that take logs: Elasticsearch's bulk API, Loki and S3.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::service::{Answer, Request, Service};
use crate::lines::Lines;

/// Elasticsearch: takes every action of a bulk request.
#[derive(Debug)]
pub(super) struct Elasticsearch;

impl Service for Elasticsearch {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let is_bulk = request.path == "/_bulk" || request.path.ends_with("/_bulk");
        let answer = match (request.method, request.path) {
            ("POST" | "PUT", _) if is_bulk => match bulk(request.body) {
                Some((body, events)) => Answer::json(200, body).taking(events),
                None => Answer::json(400, &br#"{"errors":true,"items":[]}"#[..]).malformed(),
            },
            ("GET" | "HEAD", "/") => Answer::json(200, ABOUT.as_bytes()),
            ("GET", "/_cluster/health") => Answer::json(200, &br#"{"status":"green"}"#[..]),
            ("GET" | "HEAD", _) => Answer::status(404),
            _ => Answer::json(200, &b"{}"[..]),
        };
        // Clients refuse to talk to anything else.
        answer.header("x-elastic-product", "Elasticsearch")
    }
}

const ABOUT: &str =
    r#"{"version":{"number":"8.11.0","build_flavor":"default"},"tagline":"You Know, for Search"}"#;

/// The answer to a bulk request, and how many records were in it.
fn bulk(body: &[u8]) -> Option<(Vec<u8>, u64)> {
    let mut items = Vec::new();
    let mut records = 0;
    let mut lines = body
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    while let Some(line) = lines.next() {
        let action = action(line)?;
        if action != "delete" {
            lines.next()?;
            records += 1;
        }
        items.push(format!(r#"{{"{action}":{{"status":201}}}}"#));
    }
    let body = format!(
        r#"{{"took":0,"errors":false,"items":[{}]}}"#,
        items.join(",")
    );
    Some((body.into_bytes(), records))
}

/// The action that a line names.
fn action(line: &[u8]) -> Option<&'static str> {
    let text = str::from_utf8(line).ok()?.trim_start();
    let name = text.strip_prefix('{')?.trim_start().strip_prefix('"')?;
    let actions = ["index", "create", "update", "delete"];
    actions.into_iter().find(|action| {
        let rest = name.strip_prefix(action);
        rest.is_some_and(|rest| rest.starts_with('"'))
    })
}

/// Loki: takes pushes in JSON. Those in protobuf are packed by Snappy, which is
/// not undone: they count as requests without events.
#[derive(Debug)]
pub(super) struct Loki;

impl Service for Loki {
    fn answer(&self, request: &Request<'_>) -> Answer {
        match (request.method, request.path) {
            ("POST", "/loki/api/v1/push" | "/api/prom/push") => {
                if request.content_type != "application/json" {
                    return Answer::status(204);
                }
                match entries(request.body) {
                    Some(events) => Answer::status(204).taking(events),
                    None => Answer::status(400).malformed(),
                }
            }
            ("GET", "/ready") => Answer::with_body(200, "text/plain", &b"ready\n"[..]),
            ("POST", _) => Answer::status(404),
            _ => Answer::status(405),
        }
    }
}

fn entries(body: &[u8]) -> Option<u64> {
    #[derive(Deserialize)]
    struct Push {
        streams: Vec<Stream>,
    }
    #[derive(Deserialize)]
    struct Stream {
        values: Vec<IgnoredAny>,
    }
    let push: Push = serde_json::from_slice(body).ok()?;
    let entries = push.streams.iter().map(|stream| stream.values.len() as u64);
    Some(entries.sum())
}

/// S3: takes every object that is put, and has no others.
#[derive(Debug)]
pub(super) struct S3;

impl Service for S3 {
    fn answer(&self, request: &Request<'_>) -> Answer {
        let answer = match request.method {
            "PUT" => {
                let mut lines = Lines::default();
                let ended = lines.take(request.body);
                Answer::status(200)
                    .taking(ended + lines.finish())
                    .header("etag", "\"d41d8cd98f00b204e9800998ecf8427e\"")
            }
            // Whether the bucket is there.
            "HEAD" => Answer::status(200),
            "DELETE" => Answer::status(204),
            "GET" => Answer::status(404),
            _ => Answer::status(501),
        };
        answer.header("x-amz-request-id", "STILLWELL")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(service: &dyn Service, method: &str, path: &str, body: &str) -> (u16, u64, String) {
        let answer = service.answer(&Request {
            method,
            path,
            content_type: "application/json",
            operation: "",
            body: body.as_bytes(),
        });
        let text = String::from_utf8(answer.body.into_owned()).unwrap();
        (answer.status, answer.events, text)
    }

    #[test]
    fn every_action_of_a_bulk_request_has_its_item() {
        let body = "{\"index\":{\"_index\":\"a\"}}\n{\"m\":1}\n{ \"create\": {}}\n{\"index\":2}\n{\"delete\":{}}\n";
        let (status, events, text) = ask(&Elasticsearch, "POST", "/logs/_bulk", body);
        assert_eq!((status, events), (200, 2));
        let items =
            r#"[{"index":{"status":201}},{"create":{"status":201}},{"delete":{"status":201}}]"#;
        assert_eq!(
            text,
            format!(r#"{{"took":0,"errors":false,"items":{items}}}"#)
        );
        assert_eq!(
            ask(&Elasticsearch, "POST", "/_bulk", "{\"index\":{}}\n").0,
            400
        );
        assert_eq!(ask(&Elasticsearch, "POST", "/_bulk", "words\n{}\n").0, 400);
        assert!(ask(&Elasticsearch, "GET", "/", "").2.contains("8.11.0"));
    }

    #[test]
    fn entries_of_all_streams_are_counted() {
        let body = r#"{"streams":[{"stream":{"a":"b"},"values":[["1","x"],["2","y"]]},{"stream":{},"values":[["3","z",{}]]}]}"#;
        assert_eq!(
            ask(&Loki, "POST", "/loki/api/v1/push", body),
            (204, 3, String::new())
        );
        assert_eq!(ask(&Loki, "POST", "/loki/api/v1/push", "{}").0, 400);
        assert_eq!(ask(&Loki, "GET", "/ready", "").0, 200);
    }

    #[test]
    fn objects_are_counted_by_their_lines() {
        assert_eq!(
            ask(&S3, "PUT", "/bucket/key", "a\nb\nc"),
            (200, 3, String::new())
        );
        assert_eq!(ask(&S3, "HEAD", "/bucket", "").0, 200);
        assert_eq!(ask(&S3, "GET", "/bucket/key", "").0, 404);
    }
}
