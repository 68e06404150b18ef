//! Requests from files.

use serde::Deserialize;
use stillwell_plan::load::BodyPlan;

use super::Header;
use super::error::{LoadSpecError, While as _};

/// A request that was read from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct RecordedRequest {
    /// Method, where it names one.
    pub method: Option<String>,
    /// URL.
    pub url: String,
    /// Headers.
    pub headers: Vec<Header>,
    /// Body.
    pub body: BodyPlan,
}

/// Reads one request a line: `[METHOD] URL [BODY]`. Empty lines and those that begin
/// with `#` are skipped.
///
/// # Errors
/// The first line that is no request, or that there is none.
pub fn request_lines(text: &str) -> Result<Vec<RecordedRequest>, LoadSpecError> {
    let mut requests = Vec::new();
    for (number, line) in (1..).zip(without_mark(text).lines()) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        requests.push(read_line(line).reading(|| format!("line {number}"))?);
    }
    if requests.is_empty() {
        return Err(LoadSpecError::text("the file contains no requests"));
    }
    Ok(requests)
}

/// Returns `text` without the byte order mark that some editors and recorders write first.
fn without_mark(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn read_line(line: &str) -> Result<RecordedRequest, LoadSpecError> {
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
        return Err(LoadSpecError::text(format!(
            "there is no URL after `{first}`"
        )));
    }
    Ok(RecordedRequest {
        method: method.map(str::to_owned),
        url: url.to_owned(),
        headers: Vec::new(),
        body: body_of(body.trim_start()),
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
const FRAMING: [&str; 7] = [
    "connection",
    "content-length",
    "http2-settings",
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
    headers: Vec<HarPair>,
    #[serde(default)]
    cookies: Vec<HarPair>,
    post_data: Option<HarBody>,
}

/// A header, a cookie, or a field of a form.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarPair {
    name: String,
    #[serde(default)]
    value: String,
    /// A file in a form: what was in it is not recorded.
    file_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HarBody {
    #[serde(default)]
    mime_type: String,
    text: Option<String>,
    #[serde(default)]
    params: Vec<HarPair>,
}

/// Reads the requests of an HTTP archive (HAR 1.2), in their order, one after the
/// other; and the number of entries that are not HTTP, which browsers record as well.
///
/// # Errors
/// It is no archive, an entry is no request, or there is none.
pub fn har(text: &str) -> Result<(Vec<RecordedRequest>, usize), LoadSpecError> {
    let har: Har = serde_json::from_str(without_mark(text)).reading(|| "read the recording")?;
    let mut requests = Vec::new();
    let mut skipped = 0;
    for (number, entry) in (1..).zip(har.log.entries) {
        if !is_http(&entry.request.url) {
            skipped += 1;
            continue;
        }
        let request = of_har(entry.request);
        requests.push(request.reading(|| format!("entry {number} of the recording"))?);
    }
    if requests.is_empty() {
        return Err(LoadSpecError::text(
            "the recording holds no request over HTTP",
        ));
    }
    Ok((requests, skipped))
}

fn is_http(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn of_har(request: HarRequest) -> Result<RecordedRequest, LoadSpecError> {
    let is_kept = |header: &HarPair| {
        let is_framing = |name: &&str| header.name.eq_ignore_ascii_case(name);
        // Recordings of HTTP/2 have the request line among the headers.
        !header.name.starts_with(':') && !FRAMING.iter().any(is_framing)
    };
    let headers = request.headers.into_iter().filter(is_kept);
    let mut headers: Vec<Header> = headers
        .map(|header| Header(header.name, header.value))
        .collect();
    // Some recorders list cookies apart and leave their header out.
    let is_cookie = |Header(name, _): &Header| name.eq_ignore_ascii_case("cookie");
    if !request.cookies.is_empty() && !headers.iter().any(is_cookie) {
        let cookies = request.cookies.iter();
        let cookies = cookies.map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let value = cookies.collect::<Vec<_>>().join("; ");
        headers.push(Header("Cookie".to_owned(), value));
    }
    let body = request.post_data.map_or(Ok(String::new()), text_of)?;
    Ok(RecordedRequest {
        method: Some(request.method),
        url: request.url,
        headers,
        body: body_of(&body),
    })
}

/// A body: as it was recorded, or put together from the fields of its form.
fn text_of(body: HarBody) -> Result<String, LoadSpecError> {
    match body.text {
        Some(text) if !text.is_empty() || body.params.is_empty() => Ok(text),
        None if body.params.is_empty() => Ok(String::new()),
        _ => {
            let is_form = body
                .mime_type
                .starts_with("application/x-www-form-urlencoded");
            if !is_form || body.params.iter().any(|field| field.file_name.is_some()) {
                return Err(LoadSpecError::text(format!(
                    "its body of type `{}` was not recorded as text: only bodies with text and \
                     forms without files are supported",
                    body.mime_type
                )));
            }
            let fields = body.params.iter();
            let fields = fields
                .map(|field| format!("{}={}", form_text(&field.name), form_text(&field.value)));
            Ok(fields.collect::<Vec<_>>().join("&"))
        }
    }
}

/// As `application/x-www-form-urlencoded` writes it.
fn form_text(text: &str) -> String {
    let mut written = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                written.push(char::from(byte));
            }
            b' ' => written.push('+'),
            _ => written.push_str(&format!("%{byte:02X}")),
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_methods_urls_and_bodies() {
        let read =
            request_lines("# requests\nhttp://a/\n\nPUT http://a/x {\"a\": 1}\nb:80/ hello\n");
        let read = read.unwrap();
        let shown: Vec<(Option<&str>, &str)> = read
            .iter()
            .map(|request| (request.method.as_deref(), request.url.as_str()))
            .collect();
        assert_eq!(
            shown,
            [
                (None, "http://a/"),
                (Some("PUT"), "http://a/x"),
                (None, "b:80/")
            ]
        );
        assert_eq!(read[1].body, BodyPlan::Bytes(b"{\"a\": 1}".to_vec()));
        assert!(request_lines("# nothing").is_err());
        assert!(format!("{:?}", request_lines("\nGET\n").unwrap_err()).contains("line 2"));
    }

    #[test]
    fn a_byte_order_mark_changes_no_request() {
        let lines = "GET http://a/ x\nhttp://b/\n";
        let marked = request_lines(&format!("\u{feff}{lines}")).unwrap();
        assert_eq!(marked, request_lines(lines).unwrap());
        let text = r#"{"log": {"entries": [{"request": {"method": "GET", "url": "http://a/"}}]}}"#;
        let marked = har(&format!("\u{feff}{text}")).unwrap();
        assert_eq!(marked, har(text).unwrap());
    }

    #[test]
    fn recordings_are_requests_without_their_framing() {
        let text = r#"{"log": {"version": "1.2", "entries": [
            {"startedDateTime": "x", "request": {"method": "POST", "url": "http://a/in",
             "httpVersion": "HTTP/2", "headers": [
                {"name": ":path", "value": "/in"}, {"name": "Content-Length", "value": "2"},
                {"name": "accept", "value": "*/*"}],
             "postData": {"mimeType": "text/plain", "text": "hi"}}, "response": {}}]}}"#;
        let (read, skipped) = har(text).unwrap();
        assert_eq!(skipped, 0);
        assert_eq!(
            read[0].headers,
            [Header("accept".to_owned(), "*/*".to_owned())]
        );
        assert_eq!(read[0].body, BodyPlan::Bytes(b"hi".to_vec()));
        assert!(har("{\"log\": {\"entries\": []}}").is_err());
        assert!(har("{").is_err());
    }

    #[test]
    fn cookies_and_forms_are_put_together_where_they_were_taken_apart() {
        let text = r#"{"log": {"entries": [
            {"request": {"method": "GET", "url": "data:text/plain,a"}},
            {"request": {"method": "GET", "url": "wss://a/socket", "headers": []}},
            {"request": {"method": "POST", "url": "https://a/", "headers": [],
             "cookies": [{"name": "a", "value": "1"}, {"name": "b", "value": "2", "path": "/"}],
             "postData": {"mimeType": "application/x-www-form-urlencoded; charset=UTF-8",
              "params": [{"name": "k k", "value": "ä&"}, {"name": "e"}]}}}]}}"#;
        let (read, skipped) = har(text).unwrap();
        assert_eq!((read.len(), skipped), (1, 2));
        assert_eq!(
            read[0].headers,
            [Header("Cookie".to_owned(), "a=1; b=2".to_owned())]
        );
        assert_eq!(read[0].body, BodyPlan::Bytes(b"k+k=%C3%A4%26&e=".to_vec()));
        let files = text.replace("application/x-www-form-urlencoded", "multipart/form-data");
        let refused = format!("{:?}", har(&files).unwrap_err());
        assert!(
            refused.contains("entry 3") && refused.contains("multipart/form-data"),
            "{refused}"
        );
    }
}
