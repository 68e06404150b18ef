//! Requests from files.

use anyhow::{Context, bail};
use serde::Deserialize;
use stillwell_plan::BodyPlan;

use crate::arguments::Header;

/// A request that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sourced {
    pub(super) method: String,
    pub(super) url: String,
    pub(super) headers: Vec<Header>,
    pub(super) body: BodyPlan,
}

/// One request a line: `[METHOD] URL [BODY]`. Empty lines and those that begin
/// with `#` are passed over.
pub(super) fn lines(text: &str) -> anyhow::Result<Vec<Sourced>> {
    let mut requests = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        requests.push(read_line(line).with_context(|| format!("line {number}"))?);
    }
    if requests.is_empty() {
        bail!("the file of requests has none");
    }
    Ok(requests)
}

fn read_line(line: &str) -> anyhow::Result<Sourced> {
    let (first, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let is_method = first.bytes().all(|byte| byte.is_ascii_uppercase());
    let (method, url, body) = if is_method {
        let rest = rest.trim_start();
        let (url, body) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        (Some(first), url, body)
    } else {
        (None, first, rest)
    };
    if url.is_empty() {
        bail!("there is no URL behind `{first}`");
    }
    let body = body.trim_start();
    let default = if body.is_empty() { "GET" } else { "POST" };
    Ok(Sourced {
        method: method.unwrap_or(default).to_owned(),
        url: url.to_owned(),
        headers: Vec::new(),
        body: body_of(body),
    })
}

fn body_of(text: &str) -> BodyPlan {
    if text.is_empty() {
        BodyPlan::None
    } else {
        BodyPlan::Bytes(text.as_bytes().to_vec())
    }
}

/// Headers that say how a recorded message was framed, which ours is not.
const FRAMING: [&str; 6] = [
    "connection",
    "content-length",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

#[derive(Deserialize)]
struct Har {
    log: HarLog,
}

#[derive(Deserialize)]
struct HarLog {
    entries: Vec<HarEntry>,
}

#[derive(Deserialize)]
struct HarEntry {
    request: HarRequest,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarRequest {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<HarHeader>,
    post_data: Option<HarBody>,
}

#[derive(Deserialize)]
struct HarHeader {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct HarBody {
    #[serde(default)]
    text: String,
}

/// The requests of an HTTP archive (HAR 1.2), in their order, one after the
/// other.
pub(super) fn har(text: &str) -> anyhow::Result<Vec<Sourced>> {
    let har: Har = serde_json::from_str(text).context("read the recording")?;
    let requests = har.log.entries.into_iter().map(|entry| entry.request);
    let requests: Vec<Sourced> = requests.map(of_har).collect();
    if requests.is_empty() {
        bail!("the recording holds no request");
    }
    Ok(requests)
}

fn of_har(request: HarRequest) -> Sourced {
    let is_kept = |header: &HarHeader| {
        let is_framing = |name: &&str| header.name.eq_ignore_ascii_case(name);
        // Recordings of HTTP/2 have the request line among the headers.
        !header.name.starts_with(':') && !FRAMING.iter().any(is_framing)
    };
    let headers = request.headers.into_iter().filter(is_kept);
    Sourced {
        method: request.method,
        url: request.url,
        headers: headers
            .map(|header| Header(header.name, header.value))
            .collect(),
        body: body_of(&request.post_data.map_or_else(String::new, |body| body.text)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_methods_urls_and_bodies() {
        let read = lines("# requests\nhttp://a/\n\nPUT http://a/x {\"a\": 1}\nb:80/ hello\n");
        let read = read.unwrap();
        let shown: Vec<(&str, &str)> = read
            .iter()
            .map(|request| (request.method.as_str(), request.url.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                ("GET", "http://a/"),
                ("PUT", "http://a/x"),
                ("POST", "b:80/")
            ]
        );
        assert_eq!(read[1].body, BodyPlan::Bytes(b"{\"a\": 1}".to_vec()));
        assert!(lines("# nothing").is_err());
        assert!(format!("{:#}", lines("\nGET\n").unwrap_err()).contains("line 2"));
    }

    #[test]
    fn recordings_are_requests_without_their_framing() {
        let text = r#"{"log": {"version": "1.2", "entries": [
            {"startedDateTime": "x", "request": {"method": "POST", "url": "http://a/in",
             "httpVersion": "HTTP/2", "headers": [
                {"name": ":path", "value": "/in"}, {"name": "Content-Length", "value": "2"},
                {"name": "accept", "value": "*/*"}],
             "postData": {"mimeType": "text/plain", "text": "hi"}}, "response": {}}]}}"#;
        let read = har(text).unwrap();
        assert_eq!(
            read[0].headers,
            [Header("accept".to_owned(), "*/*".to_owned())]
        );
        assert_eq!(read[0].body, BodyPlan::Bytes(b"hi".to_vec()));
        assert!(har("{\"log\": {\"entries\": []}}").is_err());
        assert!(har("{").is_err());
    }
}
