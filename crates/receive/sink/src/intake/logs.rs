//! Services that take logs: Elasticsearch's bulk API, Loki and S3.

use serde::Deserialize;
use serde::de::IgnoredAny;
use stillwell_http::protobuf::{fields, within};

use super::service::{Answer, Request, Service};
use super::sqs::md5_hex;
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

/// Loki: takes pushes in JSON, and of every other type in protobuf, which is always
/// a block of Snappy.
#[derive(Debug)]
pub(super) struct Loki;

impl Service for Loki {
    fn answer(&self, request: &Request<'_>) -> Answer {
        match (request.method, request.path) {
            ("POST", path) if is_push(path) => {
                let events = match request.content_type {
                    JSON => entries(request.body),
                    _ => packed_entries(request.body),
                };
                match events {
                    Some(events) => Answer::status(204).taking(events),
                    None => Answer::status(400).malformed(),
                }
            }
            ("GET", "/ready") => Answer::with_body(200, "text/plain", &b"ready\n"[..]),
            ("POST", _) => Answer::status(404),
            _ => Answer::status(405),
        }
    }

    fn is_snappy(&self, request: &Request<'_>) -> bool {
        request.method == "POST" && is_push(request.path) && request.content_type != JSON
    }
}

const JSON: &str = "application/json";

fn is_push(path: &str) -> bool {
    matches!(path, "/loki/api/v1/push" | "/api/prom/push")
}

/// Returns the number of entries in a push in protobuf: streams in field 1, of each the
/// entries in field 2, of which field 1 is the time and field 2 the line.
fn packed_entries(push: &[u8]) -> Option<u64> {
    let mut entries = 0;
    within(push, &[1, 2], &mut |entry| {
        entries += 1;
        fields(entry, |number, value| match number {
            1 => fields(value.bytes()?, |_, _| Some(())),
            2 => str::from_utf8(value.bytes()?).ok().map(|_line| ()),
            _ => Some(()),
        })
    })?;
    Some(entries)
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
        self.answer_stored(request, request.body)
    }

    fn answer_stored(&self, request: &Request<'_>, stored: &[u8]) -> Answer {
        let answer = match request.method {
            "PUT" => {
                let mut lines = Lines::default();
                let ended = lines.take(request.body);
                // Clients compare it with the digest of the bytes that they sent.
                let etag = format!("\"{}\"", md5_hex(stored));
                Answer::status(200)
                    .taking(ended + lines.finish())
                    .header("etag", etag)
            }
            // Whether the bucket is there.
            "HEAD" => Answer::status(200),
            "DELETE" => Answer::status(204),
            "GET" => Answer::status(404),
            _ => Answer::status(501),
        };
        answer.header("x-amz-request-id", "STILLWELL")
    }

    fn takes_chunks(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stillwell_http::protobuf::MessageWriter;

    use super::super::fixture::message;
    use super::*;

    fn respond(service: &dyn Service, method: &str, path: &str, body: &str) -> (u16, u64, String) {
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
        let (status, events, text) = respond(&Elasticsearch, "POST", "/logs/_bulk", body);
        assert_eq!((status, events), (200, 2));
        let items =
            r#"[{"index":{"status":201}},{"create":{"status":201}},{"delete":{"status":201}}]"#;
        assert_eq!(
            text,
            format!(r#"{{"took":0,"errors":false,"items":{items}}}"#)
        );
        assert_eq!(
            respond(&Elasticsearch, "POST", "/_bulk", "{\"index\":{}}\n").0,
            400
        );
        assert_eq!(
            respond(&Elasticsearch, "POST", "/_bulk", "words\n{}\n").0,
            400
        );
        assert!(respond(&Elasticsearch, "GET", "/", "").2.contains("8.11.0"));
    }

    #[test]
    fn entries_of_all_streams_are_counted() {
        let body = r#"{"streams":[{"stream":{"a":"b"},"values":[["1","x"],["2","y"]]},{"stream":{},"values":[["3","z",{}]]}]}"#;
        assert_eq!(
            respond(&Loki, "POST", "/loki/api/v1/push", body),
            (204, 3, String::new())
        );
        assert_eq!(respond(&Loki, "POST", "/loki/api/v1/push", "{}").0, 400);
        assert_eq!(respond(&Loki, "GET", "/ready", "").0, 200);
    }

    #[test]
    fn entries_of_a_push_in_protobuf_are_counted() {
        let mut push = MessageWriter::default();
        for lines in [&["a", "ü"][..], &[], &["c"]] {
            push.message(1, |stream| {
                stream.text(1, r#"{app="x"}"#);
                for line in lines {
                    stream.message(2, |entry| {
                        entry.message(1, |time| time.number(1, 5));
                        entry.text(2, line);
                    });
                }
                stream.number(3, 9);
            });
        }
        assert_eq!(packed_entries(&push.into_bytes()), Some(3));
        assert_eq!(packed_entries(b""), Some(0));
        for broken in [
            // A stream that is none, an entry that is none, a line that is no text.
            message(&[(1, b"\xff")]),
            message(&[(1, &message(&[(2, b"\xff")]))]),
            message(&[(1, &message(&[(2, &message(&[(2, b"\xff")]))]))]),
        ] {
            assert_eq!(packed_entries(&broken), None, "{broken:?}");
        }
    }

    #[test]
    fn objects_are_counted_by_their_lines() {
        assert_eq!(
            respond(&S3, "PUT", "/bucket/key", "a\nb\nc"),
            (200, 3, String::new())
        );
        assert_eq!(respond(&S3, "HEAD", "/bucket", "").0, 200);
        assert_eq!(respond(&S3, "GET", "/bucket/key", "").0, 404);
    }

    #[test]
    fn the_tag_of_an_object_is_the_digest_of_its_bytes_as_they_were_stored() {
        let request = Request {
            method: "PUT",
            path: "/bucket/key",
            content_type: "",
            operation: "",
            body: b"unpacked",
        };
        for (stored, digest) in [
            (&b""[..], "d41d8cd98f00b204e9800998ecf8427e"),
            (b"abc", "900150983cd24fb0d6963f7d28e17f72"),
        ] {
            let answer = S3.answer_stored(&request, stored);
            let etag = answer.headers.iter().find(|(name, _)| name == "etag");
            assert_eq!(etag.unwrap().1, format!("\"{digest}\""));
            assert_eq!(answer.events, 1);
        }
    }
}
