//! `nighthawk_client` and `nighthawk_test_server`: what users of Nighthawk rely
//! on, between real processes. docs/internals/compatibility.md names these tests beside the
//! flags that they are about.

#[path = "nighthawk/calls.rs"]
mod calls;
#[path = "nighthawk/connections.rs"]
mod connections;
#[path = "nighthawk/counts.rs"]
mod counts;
#[path = "nighthawk/exporting.rs"]
mod exporting;
#[path = "nighthawk/flags.rs"]
mod flags;
#[path = "nighthawk/http3.rs"]
mod http3;
#[path = "nighthawk/plugins.rs"]
mod plugins;
#[path = "nighthawk/requests.rs"]
mod requests;
#[path = "nighthawk/server.rs"]
mod server;
#[path = "nighthawk/shape.rs"]
mod shape;
#[path = "nighthawk/tls.rs"]
mod tls;

use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::process::Command;

use serde_json::Value;
use stillwell_testkit::{Finished, LONG, Process, wait_until};
use tempfile::TempDir;

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// Our binary under another name.
struct Named(TempDir, &'static str);

impl Named {
    fn new(name: &'static str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        symlink(STILLWELL, folder.path().join(name)).unwrap();
        Self(folder, name)
    }

    fn command(&self) -> Command {
        Command::new(self.0.path().join(self.1))
    }
}

/// The words of a command line; text between single quotes is one.
fn words(line: &str) -> Vec<String> {
    let mut all = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        if number % 2 == 1 {
            all.push(part.to_owned());
        } else {
            all.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    all
}

/// Starts `nighthawk_client` with these words.
fn start_client(line: &str) -> (Named, Process) {
    let named = Named::new("nighthawk_client");
    let process = Process::start(named.command().args(words(line)));
    (named, process)
}

/// Runs `nighthawk_client` with these words to its end.
fn client(line: &str) -> Finished {
    let (_named, process) = start_client(line);
    process.finish(LONG)
}

/// The same, which must succeed, and what it found.
fn measure(line: &str) -> Found {
    let ended = client(&format!("--output-format json {line}"));
    assert_eq!(ended.code, 0, "{line}\n{}", ended.stderr);
    Found::read(&ended)
}

/// The result of a load, in Nighthawk's JSON.
struct Found {
    output: Value,
    log: String,
}

impl Found {
    fn read(ended: &Finished) -> Self {
        let output = serde_json::from_str(&ended.stdout);
        assert!(output.is_ok(), "{output:?}: {}", ended.stdout);
        Self {
            output: output.unwrap(),
            log: ended.stderr.clone(),
        }
    }

    fn results(&self) -> &[Value] {
        self.output["results"].as_array().unwrap()
    }

    fn result(&self, name: &str) -> &Value {
        let mut results = self.results().iter();
        results.find(|result| result["name"] == name).unwrap()
    }

    /// A counter of all workers; zero where it is not there.
    fn counter(&self, name: &str) -> u64 {
        counter_of(self.result("global"), name)
    }

    /// Names of all counters of all workers that begin so.
    fn counters(&self, prefix: &str) -> Vec<String> {
        let counters = self.result("global")["counters"].as_array().unwrap();
        let names = counters
            .iter()
            .map(|counter| counter["name"].as_str().unwrap());
        names
            .filter(|name| name.starts_with(prefix))
            .map(str::to_owned)
            .collect()
    }

    /// A statistic of all workers, which must be there.
    fn statistic(&self, id: &str) -> &Value {
        let all = self.result("global")["statistics"].as_array().unwrap();
        let actual = all.iter().find(|value| value["id"] == id);
        assert!(actual.is_some(), "there is no statistic {id}");
        actual.unwrap()
    }

    /// Returns true if the log says that less was sent than was due.
    fn is_short(&self) -> bool {
        self.log.contains("rate not reached")
    }

    /// Number of samples of a statistic.
    fn samples(&self, id: &str) -> u64 {
        whole(&self.statistic(id)["count"])
    }
}

fn counter_of(result: &Value, name: &str) -> u64 {
    let counters = result["counters"].as_array().unwrap();
    let actual = counters.iter().find(|counter| counter["name"] == name);
    actual.map_or(0, |counter| whole(&counter["value"]))
}

/// A number of 64 bits, which protocol buffers write as text.
fn whole(value: &Value) -> u64 {
    value.as_str().unwrap().parse().unwrap()
}

/// Nighthawk's test server with its usual answer: ten bytes and `x-nh: 1`.
struct Origin {
    process: Process,
    urls: Vec<String>,
    admin: Option<String>,
    _folder: TempDir,
    _named: Named,
}

/// Differences from the usual server.
#[derive(Clone, Copy, Debug, Default)]
struct Setup<'a> {
    /// Filters in front of the one that answers, as YAML in one line each.
    filters: &'a [&'a str],
    /// Listeners; one where this is 0.
    listeners: usize,
    /// The transport socket of listeners, as YAML in one line.
    socket: Option<&'a str>,
    with_admin: bool,
}

impl Setup<'_> {
    fn yaml(&self) -> String {
        let mut yaml = String::new();
        if self.with_admin {
            yaml.push_str(
                "admin: { access_log_path: /dev/null, address: { socket_address: \
                 { address: 127.0.0.1, port_value: 0 } } }\n",
            );
        }
        yaml.push_str("static_resources:\n  listeners:\n");
        for _ in 0..self.listeners.max(1) {
            yaml.push_str(
                "  - address: { socket_address: { address: 127.0.0.1, port_value: 0 } }\n\
                 \x20   filter_chains:\n    - ",
            );
            if let Some(socket) = self.socket {
                yaml.push_str(&format!("transport_socket: {socket}\n      "));
            }
            yaml.push_str(
                "filters:\n      - name: envoy.filters.network.http_connection_manager\n        \
                 typed_config:\n          stat_prefix: ingress_http\n          http_filters:\n",
            );
            let usual = [
                "{ name: dynamic-delay }",
                "{ name: test-server, typed_config: { response_body_size: 10, \
                 v3_response_headers: [ { header: { key: x-nh, value: \"1\" } } ] } }",
                "{ name: envoy.filters.http.router }",
            ];
            for filter in self.filters.iter().chain(&usual) {
                yaml.push_str(&format!("          - {filter}\n"));
            }
        }
        yaml
    }

    fn start(&self) -> Origin {
        start_file(&self.yaml(), self.with_admin)
    }
}

/// Starts the test server with a configuration.
fn start_file(yaml: &str, with_admin: bool) -> Origin {
    let named = Named::new("nighthawk_test_server");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("server.yaml");
    std::fs::write(&file, yaml).unwrap();
    let process = Process::start(named.command().arg("-c").arg(&file));
    let mut output = String::new();
    let prefix = if with_admin {
        "admin on "
    } else {
        "listening on "
    };
    let is_up = wait_until(LONG, || {
        output = process.stderr();
        output
            .split_once(prefix)
            .is_some_and(|(_, rest)| rest.contains('\n'))
    });
    assert!(is_up, "{output}");
    let line = |about: &str| {
        let (_, rest) = output.split_once(about)?;
        rest.lines().next().map(str::to_owned)
    };
    let urls = line("listening on ").unwrap();
    Origin {
        process,
        urls: urls.split(", ").map(str::to_owned).collect(),
        admin: line("admin on "),
        _folder: folder,
        _named: named,
    }
}

impl Origin {
    /// The usual one.
    fn start() -> Self {
        Setup::default().start()
    }

    fn url(&self) -> &str {
        &self.urls[0]
    }

    /// Ends it, and gives how many requests it has seen.
    fn stop(self) -> u64 {
        self.process.signal("TERM");
        let ended = self.process.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        count(&ended.stdout, "requests")
    }
}

/// A count that a server prints at its end.
fn count(text: &str, name: &str) -> u64 {
    let mut lines = text.lines();
    let line = lines
        .find(|line| line.trim_start().starts_with(name))
        .unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

/// `host:port` of a URL.
fn address(url: &str) -> &str {
    url.split("://").nth(1).unwrap().trim_end_matches('/')
}

/// Sends one request over plain HTTP and returns the whole answer.
fn exchange(address: &str, method: &str, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(address).unwrap();
    let request = format!("{method} {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text
}

/// The header by which a request says how it is answered.
fn config_header(options: &str) -> String {
    format!("--request-header 'x-nighthawk-test-server-config: {options}'")
}
