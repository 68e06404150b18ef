//! `stillwell ui`: which requests it answers, what it starts, and how it ends.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;

use stillwell_testkit::{LONG, Process, wait_until};

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// A server of a folder, and the cookie that opens it.
struct Ui {
    process: Process,
    address: String,
    token: String,
    cookie: String,
}

impl Ui {
    fn start(folder: &Path) -> Self {
        let process = Process::start(Command::new(STILLWELL).arg("ui").current_dir(folder));
        let mut line = String::new();
        wait_until(LONG, || {
            line = process.stdout();
            line.ends_with('\n')
        });
        let rest = line.strip_prefix("stillwell ui: http://").unwrap();
        let (address, token) = rest.trim().split_once("/?token=").unwrap();
        let port = address.rsplit(':').next().unwrap();
        Self {
            cookie: format!("cookie: stillwell-ui-{port}={token}"),
            address: address.to_owned(),
            token: token.to_owned(),
            process,
        }
    }

    /// Sends a request with these headers and returns the status and the whole answer.
    fn exchange(&self, line: &str, headers: &[&str], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut request = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|header| header.starts_with("host:")) {
            request.push_str(&format!("host: {}\r\n", self.address));
        }
        for header in headers {
            request.push_str(&format!("{header}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, answer)
    }

    fn read(&self, path: &str) -> (u16, String) {
        self.exchange(&format!("GET {path}"), &[&self.cookie], "")
    }

    fn post(&self, path: &str, body: &str) -> (u16, String) {
        let origin = format!("origin: http://{}", self.address);
        self.exchange(&format!("POST {path}"), &[&self.cookie, &origin], body)
    }
}

fn children(process: u32) -> Vec<u32> {
    let list = format!("/proc/{process}/task");
    let tasks = fs::read_dir(list).unwrap().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let words = lists.iter().flat_map(|list| list.split_whitespace());
    words.map(|word| word.parse().unwrap()).collect()
}

#[test]
fn only_a_browser_with_the_token_of_this_start_sees_pages() {
    let folder = tempfile::tempdir().unwrap();
    let ui = Ui::start(folder.path());
    assert_eq!(ui.exchange("GET /", &[], "").0, 403);
    let (status, answer) = ui.exchange(&format!("GET /start?token={}&file=a", ui.token), &[], "");
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("content=\"0;url=/start\""), "{answer}");
    assert!(
        answer.contains("; HttpOnly; SameSite=Strict\r\n"),
        "{answer}"
    );

    let (status, answer) = ui.read("/");
    assert_eq!(status, 200, "{answer}");
    for header in [
        "content-security-policy: default-src 'none'",
        "cache-control: no-store\r\n",
        "x-content-type-options: nosniff\r\n",
    ] {
        assert!(answer.contains(header), "{header}: {answer}");
    }
    for (headers, status) in [
        ([ui.cookie.as_str(), "host: rebound.example"], 403),
        ([ui.cookie.as_str(), "origin: http://evil.example"], 403),
        ([ui.cookie.as_str(), "sec-fetch-site: cross-site"], 403),
        ([ui.cookie.as_str(), "accept: */*"], 200),
    ] {
        assert_eq!(ui.exchange("GET /", &headers, "").0, status, "{headers:?}");
    }
    // The printed address may be a link on a page of another site.
    let path = format!("GET /?token={}", ui.token);
    let (status, _) = ui.exchange(&path, &["sec-fetch-site: cross-site"], "");
    assert_eq!(status, 200);
    // A form of another site has no origin of ours.
    let body = "url=http://127.0.0.1:1/";
    assert_eq!(ui.exchange("POST /start/load", &[&ui.cookie], body).0, 403);

    ui.process.signal("INT");
    assert_eq!(ui.process.finish(LONG).code, 0);
}

#[test]
fn files_are_edited_below_the_folder_only() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("inside");
    fs::create_dir(&folder).unwrap();
    fs::write(above.path().join("outside.yaml"), "outside").unwrap();
    fs::write(folder.join("experiment.yaml"), "name: a\nbaselin: {}\n").unwrap();
    std::os::unix::fs::symlink("../outside.yaml", folder.join("link.yaml")).unwrap();
    let ui = Ui::start(&folder);

    let (status, page) = ui.read("/edit/0/experiment.yaml");
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("data-line=\"2\""), "{page}");
    let version = page.split("name=\"version\" value=\"").nth(1).unwrap();
    let version = &version[..32];
    for path in [
        "0/link.yaml",
        "0/../outside.yaml",
        "0/%2e%2e/outside.yaml",
        "1/experiment.yaml",
        "0/other.txt",
    ] {
        let (status, _) = ui.read(&format!("/edit/{path}"));
        assert!(matches!(status, 403 | 404), "{path}: {status}");
        let body = format!("version={version}&text=changed");
        let (status, _) = ui.post(&format!("/edit/{path}"), &body);
        assert!(matches!(status, 403 | 404), "{path}: {status}");
    }
    // A text that changed meanwhile is not replaced without notice.
    let (status, page) = ui.post("/edit/0/experiment.yaml", "version=0&text=new");
    assert_eq!(status, 409, "{page}");
    let body = format!("version={version}&text=name: b%0D%0A");
    let (status, page) = ui.post("/edit/0/experiment.yaml", &body);
    assert_eq!(status, 200, "{page}");
    let saved = fs::read_to_string(folder.join("experiment.yaml")).unwrap();
    assert_eq!(saved, "name: b\n");
    let kept = fs::read_to_string(above.path().join("outside.yaml")).unwrap();
    assert_eq!(kept, "outside");

    ui.process.signal("TERM");
    assert_eq!(ui.process.finish(LONG).code, 0);
}

#[test]
fn two_loads_that_are_json_files_can_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    for (name, rate) in [("old", 100), ("new", 200)] {
        let schema = "stillwell/load-summary/v1";
        let text = format!(r#"{{"schema": "{schema}", "requests_per_second": {rate}}}"#);
        fs::write(folder.path().join(name).with_extension("json"), text).unwrap();
    }
    let ui = Ui::start(folder.path());
    let (status, page) = ui.read("/");
    assert_eq!(status, 200, "{page}");
    for choice in ["a\" value=\"0/old.json", "b\" value=\"0/new.json"] {
        assert!(page.contains(choice), "{choice}: {page}");
    }
    let (status, page) = ui.read("/compare?a=0/old.json&b=0/new.json");
    assert_eq!(status, 200, "{page}");
    assert!(page.contains("requests_per_second"), "{page}");
    ui.process.signal("TERM");
    assert_eq!(ui.process.finish(LONG).code, 0);
}

#[test]
fn a_form_makes_an_experiment_file_and_a_running_command_has_charts() {
    let folder = tempfile::tempdir().unwrap();
    let server = Process::start(Command::new(STILLWELL).args(["serve", "--address=127.0.0.1:0"]));
    let mut url = String::new();
    wait_until(LONG, || {
        let output = server.stdout() + &server.stderr();
        url = output
            .split_whitespace()
            .find(|word| word.starts_with("http://127"))
            .unwrap_or_default()
            .to_owned();
        !url.is_empty()
    });
    let ui = Ui::start(folder.path());
    let two = format!("{url}%0D%0A{url}");
    for (body, reason) in [
        (format!("folder=../x&url={two}"), "alert"),
        (
            "folder=shop&command=&url=".to_owned(),
            "give a command, or two URLs",
        ),
    ] {
        let (status, answer) = ui.post("/start/init", &body);
        assert_eq!(status, 422, "{answer}");
        assert!(answer.contains(reason), "{answer}");
    }
    let (status, answer) = ui.post("/start/init", &format!("folder=shop&url={two}"));
    assert_eq!(status, 303, "{answer}");
    let mut page = String::new();
    wait_until(LONG, || {
        page = ui.read("/commands/1").1;
        page.contains("Open the experiment") || page.contains("exit code")
    });
    assert!(
        page.contains("href=\"/edit/0/shop/experiment.yaml\""),
        "{page}"
    );
    let (status, answer) = ui.read("/edit/0/shop/experiment.yaml");
    assert_eq!(status, 200, "{answer}");

    let body = format!("url={url}&rate=100/s&duration=5s");
    assert_eq!(ui.post("/start/load", &body).0, 303);
    wait_until(LONG, || {
        page = ui.read("/commands/2").1;
        page.contains("<svg") || page.contains("Done")
    });
    assert!(page.contains("rate per second over time"), "{page}");
    assert!(!page.contains("progress: {"), "{page}");
    ui.process.signal("INT");
    assert_eq!(ui.process.finish(LONG).code, 0);
}

#[test]
fn the_end_of_the_server_is_the_end_of_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let server = Process::start(Command::new(STILLWELL).args(["serve", "-a", "127.0.0.1:0"]));
    let mut url = String::new();
    wait_until(LONG, || {
        let output = server.stderr();
        let start = output.find("http://");
        url = start.map_or_else(String::new, |start| output[start..].trim().to_owned());
        !url.is_empty()
    });
    let ui = Ui::start(folder.path());
    // It does not end while the test waits.
    let body = format!("url={url}&rate=100/s&duration=600s");
    let (status, answer) = ui.post("/start/load", &body);
    assert_eq!(status, 303, "{answer}");
    assert_eq!(ui.post("/start/load", &body).0, 303);
    let folders = [1, 2].map(|id| {
        let (_, page) = ui.read(&format!("/commands/{id}"));
        let (_, rest) = page.split_once("--capture=").unwrap();
        rest.split_once(' ').unwrap().0.to_owned()
    });
    assert_ne!(folders[0], folders[1], "both began in the same second");
    let (_, answer) = ui.post("/start/load", "url=--help");
    assert!(answer.contains("role=\"alert\""), "{answer}");
    let (mut started, mut words) = (Vec::new(), String::new());
    let has_begun = wait_until(LONG, || {
        started = children(ui.process.id());
        // At first it has the words of its parent.
        let files = started.iter().map(|id| format!("/proc/{id}/cmdline"));
        words = files.flat_map(fs::read_to_string).collect();
        words.contains("\0--rate=100/s\0")
    });
    assert!(has_begun, "{started:?} {words:?}");
    let (_, page) = ui.read("/commands/1");
    assert!(page.contains("Running"), "{page}");

    ui.process.signal("TERM");
    let ended = ui.process.finish(LONG);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let is_there = |id: &u32| Path::new("/proc").join(id.to_string()).exists();
    let are_gone = wait_until(LONG, || !started.iter().any(is_there));
    assert!(are_gone, "{started:?}");
    server.signal("TERM");
    assert_eq!(server.finish(LONG).code, 0);
}

#[test]
fn results_are_not_written_through_a_link() {
    let outside = tempfile::tempdir().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join(".stillwell")).unwrap();
    let ui = Ui::start(folder.path());
    let (status, answer) = ui.post("/start/load", "url=http://127.0.0.1:1/");
    assert_eq!(status, 422, "{answer}");
    assert!(answer.contains("links are not followed"), "{answer}");
    ui.process.signal("TERM");
    assert_eq!(ui.process.finish(LONG).code, 0);
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

#[test]
fn an_address_for_other_hosts_needs_its_own_option() {
    let ended = Process::start(Command::new(STILLWELL).args(["ui", "--listen", "0.0.0.0:0"]));
    let ended = ended.finish(LONG);
    assert_eq!(ended.code, 2, "{}", ended.stderr);
    assert!(ended.stderr.contains("--allow-remote"), "{}", ended.stderr);
    let ended = Process::start(Command::new(STILLWELL).args(["ui", "/nonexistent"]));
    assert_eq!(ended.finish(LONG).code, 3);
}
