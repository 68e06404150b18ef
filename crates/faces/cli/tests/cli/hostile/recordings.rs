//! Recordings of browsers that are damaged, or whose requests would break the framing of others.

use std::fs;
use std::process::Command;

use serde_json::json;
use stillwell_testkit::{Process, free_port};

use super::{KILL_AFTER, STILLWELL, tally};
use crate::suite::share_machine;

/// A recording with one request.
fn of(request: &serde_json::Value) -> String {
    json!({ "log": { "entries": [{ "request": request }] } }).to_string()
}

fn recordings(base: &str) -> Vec<(&'static str, String)> {
    let url = format!("{base}a");
    let request = |method: &str, url: &str, header: (&str, &str)| {
        let headers = [json!({ "name": header.0, "value": header.1 })];
        of(&json!({ "method": method, "url": url, "headers": headers, "cookies": [] }))
    };
    let plain = ("a", "b");
    vec![
        (
            "no entries",
            json!({ "log": { "entries": [] } }).to_string(),
        ),
        ("no log", "{}".to_owned()),
        ("a list", "[]".to_owned()),
        (
            "an entry without a request",
            json!({ "log": { "entries": [{}] } }).to_string(),
        ),
        ("no request over HTTP", request("GET", "data:,", plain)),
        (
            "a method with a line end",
            request("GET /x HTTP/1.1\r\nb: c\r\n\r\nGET", &url, plain),
        ),
        ("a method that is empty", request("", &url, plain)),
        ("a URL without a host", request("GET", "http:///a", plain)),
        (
            "a URL with a line end",
            request("GET", &format!("{url}\r\nb: c"), plain),
        ),
        (
            "a URL with a blank",
            request("GET", &format!("{url} HTTP/1.1"), plain),
        ),
        (
            "a port that is none",
            request("GET", "http://127.0.0.1:99999/", plain),
        ),
        (
            "a URL with a password",
            request("GET", "http://user:SECRET@127.0.0.1:1/", plain),
        ),
        (
            "a header with a line end",
            request("GET", &url, ("a", "b\r\nc: d")),
        ),
        (
            "a name with a line end",
            request("GET", &url, ("a\r\nb", "c")),
        ),
        ("a name that is empty", request("GET", &url, ("", "c"))),
        ("a name with a blank", request("GET", &url, ("a b", "c"))),
        ("a zero in a header", request("GET", &url, ("a", "b\0c"))),
        (
            "a URL of another type",
            of(&json!({ "method": "GET", "url": 5, "headers": [] })),
        ),
        (
            "headers of another type",
            of(&json!({ "method": "GET", "url": url, "headers": {} })),
        ),
    ]
}

#[test]
fn a_recording_that_breaks_the_framing_of_requests_is_refused() {
    let _machine = share_machine();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.har");
    let base = format!("http://127.0.0.1:{}/", free_port());
    let recordings = recordings(&base);
    let mut faults = Vec::new();
    for (name, text) in &recordings {
        fs::write(&path, text).unwrap();
        let mut command = Command::new(STILLWELL);
        command.args(["load", "-n", "1", "--har"]).arg(&path);
        let ended = Process::start(&mut command).finish(KILL_AFTER);
        let output = ended.stdout + &ended.stderr;
        if ended.code != 2
            || !output.contains("error")
            || output.contains("SECRET")
            || output.contains("panicked")
        {
            faults.push(format!("{name}: exit code {}: {output}", ended.code));
        }
    }
    tally("recordings", recordings.len(), &faults);
}
