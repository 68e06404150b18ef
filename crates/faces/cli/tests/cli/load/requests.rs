//! Requests that come from files, beside what was typed.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::both_ends::ends::load;
use crate::faulty_peer::server::{PeerSession, Server};

/// A server that answers everything, and the requests that it has seen.
struct Keeper {
    server: Server,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Keeper {
    fn start() -> Self {
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let keeper = Arc::clone(&seen);
        let server = Server::start(move |mut session: PeerSession| {
            let seen = Arc::clone(&keeper);
            async move {
                let mut buffer = vec![0; 64 << 10];
                loop {
                    let length = session.stream.read(&mut buffer).await?;
                    if length == 0 {
                        return Ok(());
                    }
                    let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
                    seen.lock().unwrap().push(text);
                    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
                    session.stream.write_all(answer).await?;
                }
            }
        });
        Self { server, seen }
    }

    fn url(&self) -> String {
        format!("http://{}", self.server.address)
    }

    /// Sends as many requests as there are in `expected` over one connection and
    /// compares all of each but `host`.
    #[track_caller]
    fn expect(self, words: &[&str], expected: &[&str]) {
        let count = expected.len().to_string();
        let arguments = [words, &["-c1", "-n", &count]].concat();
        let report = load(&arguments);
        report.assert_all_well(expected.len() as u64);
        self.server.stop();
        let host = |line: &&str| !line.starts_with("host: ");
        let shown = |text: &String| {
            let lines = text.lines().filter(host);
            lines.collect::<Vec<_>>().join("\n")
        };
        let seen = self.seen.lock().unwrap();
        let seen: Vec<String> = seen.iter().map(shown).collect();
        assert_eq!(seen, expected, "{words:?}");
    }
}

#[test]
fn keys_that_a_line_omits_are_as_typed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("requests.txt");
    for (typed, expected) in [
        (
            vec![],
            [
                "GET /a HTTP/1.1\n",
                "POST /b HTTP/1.1\ncontent-length: 3\n\nown",
                "PATCH /c HTTP/1.1\ncontent-length: 0\n",
            ],
        ),
        (
            vec!["-X", "PUT", "-H", "x-a: 1"],
            [
                "PUT /a HTTP/1.1\nx-a: 1\ncontent-length: 0\n",
                "PUT /b HTTP/1.1\nx-a: 1\ncontent-length: 3\n\nown",
                "PATCH /c HTTP/1.1\nx-a: 1\ncontent-length: 0\n",
            ],
        ),
        (
            vec!["-b", "typed"],
            [
                "POST /a HTTP/1.1\ncontent-length: 5\n\ntyped",
                "POST /b HTTP/1.1\ncontent-length: 3\n\nown",
                "PATCH /c HTTP/1.1\ncontent-length: 5\n\ntyped",
            ],
        ),
    ] {
        let keeper = Keeper::start();
        let url = keeper.url();
        let lines = format!("{url}/a\n# none\n{url}/b own\nPATCH {url}/c\n");
        std::fs::write(&file, lines).unwrap();
        let flag = format!("--requests-file={}", file.display());
        keeper.expect(&[&[flag.as_str()], typed.as_slice()].concat(), &expected);
    }
}

#[test]
fn a_typed_header_is_in_for_a_recorded_one() {
    let keeper = Keeper::start();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.har");
    let headers = json!([
        {"name": "Authorization", "value": "old"}, {"name": "accept", "value": "*/*"}]);
    let request =
        json!({"method": "GET", "url": format!("{}/a", keeper.url()), "headers": headers});
    let recording = json!({"log": {"entries": [{"request": request}]}});
    std::fs::write(&file, recording.to_string()).unwrap();
    let flag = format!("--har={}", file.display());
    let expected = "GET /a HTTP/1.1\nauthorization: new\naccept: */*\n";
    keeper.expect(&[&flag, "-H", "authorization: new"], &[expected]);
}

/// A list of Nighthawk's: in line, in a file, and as the plugin that names either.
#[test]
fn lists_of_nighthawk_define_what_is_sent_to_a_url() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.yaml");
    let list = "options:\n\
                - request_method: PUT\n\
                \x20 request_headers:\n\
                \x20 - header: { key: ':path', value: /in }\n\
                \x20 - header: { key: x-a, value: own }\n\
                \x20 json_body: '{\"a\": 1}'\n\
                - request_body_size: 3\n\
                - {}\n";
    std::fs::write(&file, list).unwrap();
    let in_line = "{options: [{request_method: PUT, request_headers: [\
                   {header: {key: ':path', value: /in}}, {header: {key: x-a, value: own}}], \
                   json_body: '{\"a\": 1}'}, {request_body_size: 3}, {}]}";
    let of = "type.googleapis.com/nighthawk.request_source";
    let in_file_plugin = format!(
        "{{name: nighthawk.file-based-request-source-plugin, typed_config: {{\
         '@type': {of}.FileBasedOptionsListRequestSourceConfig, file_path: '{}'}}}}",
        file.display()
    );
    let in_line_plugin = format!(
        "{{name: nighthawk.in-line-options-list-request-source-plugin, typed_config: {{\
         '@type': {of}.InLineOptionsListRequestSourceConfig, options_list: {in_line}}}}}"
    );
    let expected = [
        "PUT /in HTTP/1.1\nx-a: own\ncontent-type: application/json\ncontent-length: 8\n\n{\"a\": 1}",
        "POST /u HTTP/1.1\nx-a: typed\ncontent-length: 3\n\naaa",
        "GET /u HTTP/1.1\nx-a: typed\n",
    ];
    let file = format!("@{}", file.display());
    for source in [in_line, &file, &in_file_plugin, &in_line_plugin] {
        let keeper = Keeper::start();
        let url = format!("{}/u", keeper.url());
        let flag = format!("--request-source={source}");
        keeper.expect(&[&url, &flag, "-H", "x-a: typed"], &expected);
    }
}

/// A plugin that names its end ends the load; its mistakes have their places.
#[test]
fn a_list_may_have_an_end_and_mistakes_with_their_places() {
    let keeper = Keeper::start();
    let source = "--request-source={name: nighthawk.in-line-options-list-request-source-plugin, \
                  typed_config: {options_list: {options: [{}]}, num_requests: 4}}";
    load(&[&keeper.url(), source, "-c1"]).assert_all_well(4);
    keeper.server.stop();
    assert_eq!(keeper.seen.lock().unwrap().len(), 4);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("list.yaml");
    std::fs::write(&file, "options:\n- request_method: GTE\n").unwrap();
    let flag = format!("--request-source=@{}", file.display());
    let ended = super::load(&["http://a/", &flag]);
    assert_eq!(ended.code, 2);
    for part in ["`GTE`", "list.yaml:2:19"] {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
}

/// Targets of a recording are shown with their protocol.
#[test]
fn targets_of_a_recording_are_reported_with_their_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.har");
    let entry = |url: &str| json!({"request": {"method": "GET", "url": url, "headers": []}});
    let entries = [entry("https://127.0.0.1:1/a"), entry("http://127.0.0.1:2/")];
    let recording = json!({"log": {"entries": entries}});
    std::fs::write(&file, recording.to_string()).unwrap();
    let flag = format!("--har={}", file.display());
    let report = load(&[&flag, "-n2", "-c2"]);
    let targets = &report.value["options"]["targets"];
    assert_eq!(
        *targets,
        json!(["https://127.0.0.1:1/", "http://127.0.0.1:2/"])
    );
}
