//! A browser's recording is replayed as it was: the same requests, in the same order.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

use serde_json::{Value, json};
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;

use super::ends::{LONG, load};

/// Takes one connection, answers each request on it with 200 and hands all of
/// them over, byte for byte.
fn listen(scope: &mut Scope) -> (SocketAddr, Receiver<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (sender, receiver) = sync_channel(1);
    let serve = move |_: &Token| {
        let (mut stream, _) = listener.accept()?;
        let mut requests = Vec::new();
        while let Some(request) = take(&mut stream)? {
            requests.push(request);
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
        }
        Ok(sender.send(requests)?)
    };
    scope.thread(Place::default(), "listen", serve).unwrap();
    (address, receiver)
}

/// One request, head and body; none at the end.
fn take(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        if stream.read(&mut byte)? == 0 {
            return Ok(None);
        }
        bytes.extend_from_slice(&byte);
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body)?;
    Ok(Some(text + &String::from_utf8_lossy(&body)))
}

/// An entry as browsers write them, with much that is of no use here.
fn entry(method: &str, url: &str, headers: &[(&str, &str)], more: Value) -> Value {
    let headers: Vec<Value> = headers
        .iter()
        .map(|(name, value)| json!({"name": name, "value": value}))
        .collect();
    let mut request = json!({
        "method": method, "url": url, "httpVersion": "HTTP/1.1", "headers": headers,
        "queryString": [], "cookies": [], "headersSize": 100, "bodySize": -1,
    });
    if let (Some(request), Value::Object(more)) = (request.as_object_mut(), more) {
        request.extend(more);
    }
    json!({
        "_initiator": {"type": "other"}, "cache": {}, "connection": "443",
        "startedDateTime": "2026-11-01T10:00:00.000Z", "time": 12.5,
        "request": request,
        "response": {"status": 200, "statusText": "", "headers": [], "cookies": [], "content":
            {"size": 0, "mimeType": "text/html"}, "redirectURL": "", "bodySize": 0},
        "timings": {"send": 0.1, "wait": 10, "receive": 2.4},
    })
}

fn recording(url: &str) -> Value {
    let form = "application/x-www-form-urlencoded";
    let entries = vec![
        entry(
            "GET",
            &format!("{url}/page?q=a%20b&empty=#part"),
            &[
                ("Host", "shop.example:8080"),
                ("Connection", "keep-alive"),
                ("User-Agent", "Mozilla/5.0 (X11; Linux x86_64)"),
                ("Accept-Encoding", "gzip, deflate, br"),
                ("Cookie", "session=1; theme=dark"),
            ],
            json!({"cookies": [{"name": "session", "value": "1"}]}),
        ),
        entry("GET", "data:image/png;base64,AAAA", &[], json!({})),
        entry("HEAD", &format!("{url}/page"), &[], json!({})),
        entry(
            "POST",
            &format!("{url}/login"),
            &[("Content-Type", form), ("Content-Length", "13")],
            json!({"postData": {"mimeType": form, "text": "user=a&pass=b",
                "params": [{"name": "user", "value": "a"}, {"name": "pass", "value": "b"}]}}),
        ),
        entry(
            "PUT",
            &format!("{url}/item/1"),
            &[
                (":method", "PUT"),
                (":authority", "x"),
                ("content-type", "application/json"),
            ],
            json!({"postData": {"mimeType": "application/json", "text": "{\"name\":\"ä\"}"}}),
        ),
        entry(
            "PATCH",
            &format!("{url}/item/1"),
            &[("Content-Type", form)],
            json!({"cookies": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}],
                "postData": {"mimeType": form, "params": [{"name": "n", "value": "1 2"}]}}),
        ),
        entry("DELETE", &format!("{url}/item/1"), &[], json!({})),
        entry(
            "OPTIONS",
            &format!("{url}/item/1"),
            &[("Origin", "http://a")],
            json!({}),
        ),
    ];
    json!({"log": {"version": "1.2", "creator": {"name": "WebInspector", "version": "537.36"},
        "pages": [], "entries": entries}})
}

fn expected(host: &str) -> Vec<String> {
    let texts = [
        "GET /page?q=a%20b&empty= HTTP/1.1\nhost: shop.example:8080\n\
         User-Agent: Mozilla/5.0 (X11; Linux x86_64)\nAccept-Encoding: gzip, deflate, br\n\
         Cookie: session=1; theme=dark\n\n",
        "HEAD /page HTTP/1.1\nhost: {host}\n\n",
        "POST /login HTTP/1.1\nhost: {host}\nContent-Type: application/x-www-form-urlencoded\n\
         content-length: 13\n\nuser=a&pass=b",
        "PUT /item/1 HTTP/1.1\nhost: {host}\ncontent-type: application/json\n\
         content-length: 13\n\n{\"name\":\"ä\"}",
        "PATCH /item/1 HTTP/1.1\nhost: {host}\nContent-Type: application/x-www-form-urlencoded\n\
         Cookie: a=1; b=2\ncontent-length: 5\n\nn=1+2",
        "DELETE /item/1 HTTP/1.1\nhost: {host}\n\n",
        "OPTIONS /item/1 HTTP/1.1\nhost: {host}\nOrigin: http://a\n\n",
    ];
    let filled = texts.map(|text| text.replace("{host}", host).replace('\n', "\r\n"));
    filled.to_vec()
}

#[test]
fn a_recording_of_a_browser_arrives_as_it_was() {
    for words in ["-n 7", "-n 14", "-n 7 --rate 200/s"] {
        let mut scope = Scope::new(&Token::new());
        let (address, received) = listen(&mut scope);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recording.har");
        std::fs::write(&file, recording(&format!("http://{address}")).to_string()).unwrap();
        let har = format!("--har={}", file.display());
        let mut arguments = vec![har.as_str(), "-c", "1"];
        arguments.extend(words.split_whitespace());
        let report = load(&arguments);
        let all = expected(&address.to_string());
        let requests: u64 = words.split_whitespace().nth(1).unwrap().parse().unwrap();
        report.assert_all_well(requests);
        let seen = received.recv_timeout(LONG).unwrap();
        assert_eq!(seen.len() as u64, requests, "{words}");
        for (seen, expected) in seen.iter().zip(all.iter().cycle()) {
            assert_eq!(seen, expected, "{words}");
        }
        let ends = scope.close(Nanos::from(LONG));
        assert!(ends.iter().all(|end| end.result.is_ok()), "{ends:?}");
    }
}

#[test]
fn entries_of_a_recording_that_are_not_http_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.har");
    let entries = [
        entry("GET", "http://127.0.0.1:1/", &[], json!({})),
        entry("GET", "blob:http://a/1", &[], json!({})),
    ];
    std::fs::write(&file, json!({"log": {"entries": entries}}).to_string()).unwrap();
    let mut command = std::process::Command::new(super::ends::STILLWELL);
    command.args(["load", "-n1", "-c1", "--har"]).arg(&file);
    let ended = stillwell_testkit::Process::start(&mut command).finish(LONG);
    let expected = "1 entry is not an HTTP request and is skipped";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    // No process listens there.
    assert_eq!(ended.code, 3, "{}", ended.stdout);
}
