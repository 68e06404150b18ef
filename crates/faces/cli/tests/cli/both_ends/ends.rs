//! Common parts of tests of two ends: a load and its output, `stillwell serve` and its
//! output, and a certificate.

use std::collections::BTreeMap;
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;

use rcgen::CertifiedKey;
use serde_json::Value;
pub(crate) use stillwell_testkit::LONG;
use stillwell_testkit::{Finished, Process, free_port, wait_until};
use tempfile::TempDir;

pub(crate) const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");

/// The result of a load, as it wrote it.
pub(crate) struct Report {
    pub(crate) value: Value,
    pub(crate) ended: Finished,
}

/// Starts a load that reports in full.
pub(crate) fn start_load(arguments: &[&str]) -> Process {
    let mut command = Command::new(STILLWELL);
    // Every failure counts here; without the flag a load that reaches nothing ends early.
    command.args([
        "load",
        "--quiet",
        "--output-format=stillwell",
        "--keep-going",
    ]);
    Process::start(command.args(arguments))
}

/// Makes a load.
pub(crate) fn load(arguments: &[&str]) -> Report {
    Report::of(start_load(arguments).finish(LONG))
}

impl Report {
    pub(crate) fn of(ended: Finished) -> Self {
        let value: Result<Value, _> = serde_json::from_str(&ended.stdout);
        assert!(value.is_ok(), "{}\n{}", ended.stdout, ended.stderr);
        let value = value.unwrap();
        Self { value, ended }
    }

    fn global(&self) -> &Value {
        &self.value["global"]
    }

    /// Number of requests by outcome.
    pub(crate) fn outcomes(&self) -> BTreeMap<String, u64> {
        let outcomes = self.global()["outcomes"].as_array().unwrap().iter();
        let pair = |entry: &Value| {
            let name = entry["outcome"].as_str().unwrap().to_owned();
            (name, entry["count"].as_u64().unwrap())
        };
        outcomes.map(pair).collect()
    }

    pub(crate) fn outcome(&self, name: &str) -> u64 {
        self.outcomes().get(name).copied().unwrap_or(0)
    }

    /// Number of ended requests.
    pub(crate) fn ended(&self) -> u64 {
        self.outcomes().values().sum()
    }

    /// Number of begun requests, as far as it is reported: those that were sent, and those
    /// without a connection.
    pub(crate) fn begun(&self) -> u64 {
        let sent = self.global()["counters"]["upstream_rq_total"].as_u64();
        let unsent = [
            "connect_refused",
            "connect_timed_out",
            "connect_failed",
            "handshake_failed",
            "dropped",
        ];
        sent.unwrap_or(0) + unsent.map(|name| self.outcome(name)).iter().sum::<u64>()
    }

    /// Its findings about itself.
    pub(crate) fn findings(&self) -> String {
        let findings = self.value["health"]["warnings"].as_array().unwrap();
        let texts = findings
            .iter()
            .map(|finding| finding["text"].as_str().unwrap());
        texts.collect::<Vec<_>>().join("\n")
    }

    /// All requests ended well, and there were so many.
    #[track_caller]
    pub(crate) fn assert_all_well(&self, requests: u64) {
        let all: BTreeMap<String, u64> = [("ok".to_owned(), requests)].into();
        assert_eq!(self.outcomes(), all, "{}", self.findings());
        assert_eq!(self.begun(), requests);
        assert!(matches!(self.ended.code, 0 | 4), "{}", self.ended.stderr);
    }
}

/// `stillwell serve`, and its address.
pub(crate) struct Serving {
    process: Process,
    pub(crate) address: String,
    pub(crate) url: String,
}

impl Serving {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(STILLWELL);
        command.args(["serve", "--address=127.0.0.1:0", "--format=json"]);
        let process = Process::start(command.args(arguments));
        let mut url = None;
        wait_until(LONG, || {
            let output = process.stdout();
            let mut words = output.split('"');
            url = words
                .find(|word| word.starts_with("http"))
                .map(str::to_owned);
            url.is_some()
        });
        assert!(url.is_some(), "it does not listen: {}", process.stderr());
        let url = url.unwrap();
        let address = url.split('/').nth(2).unwrap().to_owned();
        Self {
            process,
            address,
            url,
        }
    }

    /// Ends it; gives what it has counted.
    pub(crate) fn stop(self) -> Value {
        self.process.signal("INT");
        let ended = self.process.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap()
    }
}

/// Starts a server that listens on ports that were free a moment ago; once more where
/// another program was faster.
pub(crate) fn start_on_free_ports<const N: usize>(
    start: impl Fn([u16; N]) -> Process,
) -> (Process, [u16; N]) {
    let mut attempts = 0;
    loop {
        let ports = [(); N].map(|()| free_port());
        let process = start(ports);
        let refused = || {
            let output = process.stderr();
            output.contains("Address already in use") || output.contains("cannot bind")
        };
        let listens = |port| TcpStream::connect(("127.0.0.1", port)).is_ok();
        let is_there = wait_until(LONG, || refused() || ports.into_iter().all(listens));
        assert!(is_there, "{}", process.stderr());
        if !refused() {
            return (process, ports);
        }
        attempts += 1;
        assert!(attempts < 5, "others take every port");
    }
}

/// A certificate for this host, and its key, in one folder.
pub(crate) struct Certificate {
    pub(crate) folder: TempDir,
}

impl Certificate {
    pub(crate) fn new() -> Self {
        let names = ["127.0.0.1".to_owned(), "localhost".to_owned()];
        let CertifiedKey { cert, signing_key } = rcgen::generate_simple_self_signed(names).unwrap();
        let (certificate, key) = (cert.pem(), signing_key.serialize_pem());
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        write("certificate.pem", &certificate).unwrap();
        write("key.pem", &key).unwrap();
        write("both.pem", &(certificate + &key)).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The flag by which a load accepts its certificate.
    pub(crate) fn trusted(&self) -> String {
        format!("--ca={}", self.path("certificate.pem").display())
    }
}
