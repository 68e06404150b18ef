//! Servers that get bytes which no well-meaning client sends: each serves the next client at once, keeps its memory,
//! and ends on a signal.
//!
//! The table is the product of the servers and [`attacks`].

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use stillwell_testkit::{Process, free_port, wait_until};

use super::attacks::{HTTP2, attacks};
use super::{KILL_AFTER, MARK, STILLWELL, orphans, tally};
use crate::suite::share_machine;

/// Longest wait for a write or an answer to hostile bytes: nothing is expected.
const ATTACK_TIMEOUT: Duration = Duration::from_millis(100);
/// Longest wait for the answer to a well-meaning client, on a busy machine.
const SERVED_WITHIN: Duration = Duration::from_secs(20);
/// Most memory of a server at any time, in MiB: itself, and 256 MiB of bodies.
const MEMORY_MAX: u64 = 512;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
/// Name of the server over HTTP/3.
const HTTP3: &str = "serve over HTTP/3";
/// Sinks that speak HTTP.
const INTAKES: [&str; 9] = [
    "http",
    "splunk_hec",
    "datadog",
    "datadog_stateful_logs",
    "otlp",
    "sqs",
    "elasticsearch",
    "loki",
    "s3",
];

/// A place at which a server listens.
enum Entry {
    /// A stream that answers these bytes.
    Answering(u16, &'static [u8]),
    /// A stream that answers nothing.
    Silent(u16),
    Unix(PathBuf),
    Udp(u16),
    UnixDatagram(PathBuf),
}

/// A server, and the process that it is part of.
struct Server {
    name: &'static str,
    entry: Entry,
    process: usize,
}

/// Sends `bytes` over a stream, ends it, and reads the response for a while. An error counts as a response.
fn send(mut stream: impl Read + Write, bytes: &[u8], end: impl Fn(&mut dyn Write)) {
    let sent = stream.write_all(bytes);
    end(&mut stream);
    let mut part = [0; 4096];
    let mut left = 64;
    while sent.is_ok() && left > 0 && matches!(stream.read(&mut part), Ok(1..)) {
        left -= 1;
    }
}

impl Entry {
    fn tcp(port: u16, timeout: Duration) -> io::Result<TcpStream> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(timeout))?;
        stream.set_write_timeout(Some(timeout))?;
        Ok(stream)
    }

    fn attack(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Answering(port, _) | Self::Silent(port) => {
                let stream = Self::tcp(*port, ATTACK_TIMEOUT)?;
                let end = stream.try_clone()?;
                send(stream, bytes, |_| {
                    end.shutdown(Shutdown::Write).unwrap_or_default()
                });
            }
            Self::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_read_timeout(Some(ATTACK_TIMEOUT))?;
                stream.set_write_timeout(Some(ATTACK_TIMEOUT))?;
                let end = stream.try_clone()?;
                send(stream, bytes, |_| {
                    end.shutdown(Shutdown::Write).unwrap_or_default()
                });
            }
            Self::Udp(port) => {
                let socket = UdpSocket::bind("127.0.0.1:0")?;
                for part in bytes.chunks(1400).take(64) {
                    socket.send_to(part, ("127.0.0.1", *port)).ok();
                }
            }
            Self::UnixDatagram(path) => {
                let socket = UnixDatagram::unbound()?;
                socket.set_write_timeout(Some(ATTACK_TIMEOUT))?;
                for part in bytes.chunks(1400).take(64) {
                    socket.send_to(part, path).ok();
                }
            }
        }
        Ok(())
    }

    /// Returns true if a well-meaning client is served.
    fn serves(&self) -> bool {
        let answers = |port: u16, request: &[u8]| {
            let mut stream = Self::tcp(port, SERVED_WITHIN)?;
            stream.write_all(request)?;
            let mut answer = [0; 5];
            stream.read_exact(&mut answer).map(|()| true)
        };
        match self {
            Self::Answering(port, request) => answers(*port, request).unwrap_or(false),
            Self::Silent(port) => Self::tcp(*port, SERVED_WITHIN)
                .is_ok_and(|mut stream| stream.write_all(b"a\n").is_ok()),
            Self::Unix(path) => {
                UnixStream::connect(path).is_ok_and(|mut stream| stream.write_all(b"a\n").is_ok())
            }
            Self::Udp(port) => UdpSocket::bind("127.0.0.1:0")
                .is_ok_and(|socket| socket.send_to(b"a", ("127.0.0.1", *port)).is_ok()),
            Self::UnixDatagram(path) => {
                UnixDatagram::unbound().is_ok_and(|socket| socket.send_to(b"a", path).is_ok())
            }
        }
    }
}

/// Processes of ours, and the servers in them.
struct Fleet<'f> {
    folder: &'f Path,
    processes: Vec<Process>,
    servers: Vec<Server>,
}

impl Fleet<'_> {
    /// Starts a process.
    fn start(&mut self, words: &str) {
        let mut command = Command::new(STILLWELL);
        command.args(words.split(' ')).current_dir(self.folder);
        let process = Process::start(command.env(MARK, mark()));
        self.processes.push(process);
    }

    /// Notes a server of the process that was started last.
    fn add(&mut self, name: &'static str, entry: Entry) {
        let process = self.processes.len() - 1;
        self.servers.push(Server {
            name,
            entry,
            process,
        });
    }

    /// Starts all sinks in one process; returns the port of the one for TCP.
    fn start_sinks(&mut self) -> u16 {
        let mut sinks = String::new();
        let intakes = INTAKES.map(|name| (name, free_port()));
        for (name, port) in intakes {
            sinks.push_str(&format!(
                "    - {{{name}: \"127.0.0.1:{port}\", id: {name}}}\n"
            ));
        }
        let (tcp, udp) = (free_port(), free_port());
        let (stream, datagram) = (self.folder.join("stream"), self.folder.join("datagram"));
        let (stream_path, datagram_path) = (stream.display(), datagram.display());
        sinks.push_str(&format!(
            "    - {{tcp: \"127.0.0.1:{tcp}\", id: tcp}}\n    - {{udp: \"127.0.0.1:{udp}\", id: udp}}\n    \
             - {{unix_stream: {stream_path}, id: stream}}\n    - {{unix_datagram: {datagram_path}, id: datagram}}\n"
        ));
        let phases = "{warmup: 0s, measure: 2h, drain: 0s}";
        let text = format!("phases: {phases}\nworkload:\n  sinks:\n{sinks}");
        fs::write(self.folder.join("sinks.yaml"), text).unwrap();
        self.start("observe sinks.yaml --no-target --quiet --results results");
        for (name, port) in intakes {
            self.add(name, Entry::Answering(port, GET));
        }
        self.add("tcp", Entry::Silent(tcp));
        self.add("udp", Entry::Udp(udp));
        self.add("unix_stream", Entry::Unix(stream));
        self.add("unix_datagram", Entry::UnixDatagram(datagram));
        tcp
    }

    /// Starts a process that listens at a port, which is `PORT` in `words`.
    fn start_one(&mut self, name: &'static str, words: &str, entry: impl Fn(u16) -> Entry) {
        let port = free_port();
        self.start(&words.replace("PORT", &format!("127.0.0.1:{port}")));
        self.add(name, entry(port));
    }

    fn start_all(&mut self) {
        let tcp = self.start_sinks();
        let out = format!("--out tcp://127.0.0.1:{tcp}");
        let http1 = |port| Entry::Answering(port, GET);
        let http2 = |port| Entry::Answering(port, HTTP2);
        self.start_one("serve", "serve -a PORT", http1);
        let three = "serve -a PORT --protocol http3 --tls self-signed";
        self.start_one(HTTP3, three, Entry::Udp);
        let relay = format!("relay --in http://PORT {out}");
        self.start_one("relay from HTTP", &relay, http1);
        let relay = format!("relay --in tcp://PORT {out}");
        self.start_one("relay from TCP", &relay, Entry::Silent);
        let service = "service --listen PORT";
        self.start_one("service", service, http2);
        let distributor = format!("{service} --service distributor");
        self.start_one("distributor", &distributor, http2);
        let source = format!("{service} --service dummy-request-source");
        self.start_one("request source", &source, http2);
    }
}

fn mark() -> String {
    format!("{}-servers", std::process::id())
}

/// The most memory that a process has had, in MiB.
fn peak(process: &Process) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    kibibytes
        .and_then(|text| text.trim().parse::<u64>().ok())
        .map_or(u64::MAX, |size| size >> 10)
}

#[test]
fn every_server_serves_the_next_client_after_hostile_bytes() {
    let _machine = share_machine();
    let folder = tempfile::tempdir().unwrap();
    let mut fleet = Fleet {
        folder: folder.path(),
        processes: Vec::new(),
        servers: Vec::new(),
    };
    fleet.start_all();
    let (processes, servers) = (fleet.processes, fleet.servers);
    for server in &servers {
        let serves = wait_until(KILL_AFTER, || server.entry.serves());
        assert!(
            serves,
            "{}: {}",
            server.name,
            processes[server.process].stderr()
        );
    }
    let attacks = attacks();
    let mut faults = Vec::new();
    for server in &servers {
        for (name, bytes) in &attacks {
            let begun = server.entry.attack(bytes);
            if begun.is_err() || !server.entry.serves() {
                faults.push(format!("{} after {name}: {begun:?}", server.name));
            }
        }
    }
    // HTTP/3 has no answer that is read here: a load is served.
    let three = servers.iter().find(|server| server.name == HTTP3);
    if let Some(Entry::Udp(port)) = three.map(|server| &server.entry) {
        let url = format!("https://127.0.0.1:{port}/");
        let words = ["load", &url, "--protocol", "http3", "--insecure", "-n", "3"];
        let ended = Process::start(Command::new(STILLWELL).args(words)).finish(KILL_AFTER);
        if ended.code != 0 {
            faults.push(format!("a load over HTTP/3: {}", ended.stderr));
        }
    }
    for (index, process) in processes.into_iter().enumerate() {
        let peak = peak(&process);
        process.signal("INT");
        let ended = process.finish(KILL_AFTER);
        if peak > MEMORY_MAX || ![0, 130].contains(&ended.code) || ended.stderr.contains("panicked")
        {
            faults.push(format!(
                "process {index}: {peak} MiB, exit code {}, {}",
                ended.code, ended.stderr
            ));
        }
    }
    faults.extend(
        orphans(&mark())
            .into_iter()
            .map(|left| format!("left {left}")),
    );
    tally(
        "hostile bytes to servers",
        servers.len() * attacks.len(),
        &faults,
    );
}
