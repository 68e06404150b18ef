//! HTTP/3 with `serve` at the other end, over a good path and over bad ones.

use std::collections::HashMap;
use std::future::poll_fn;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use stillwell_http::h3::{BodyLength, H3Connection, H3ResponseBlock, write_go_away};
use stillwell_plan::tls::Alpn;
use stillwell_scope::{Place, Scope, Token};
use stillwell_units::Nanos;
use stillwell_wire::quic::{Came, QuicEvent, QuicServer, QuicStream, bind_quic};

use super::ends::{Report, Serving, load};
use crate::faulty_peer::tls;

/// `serve` over HTTP/3, and the file of its certificate.
fn serving(folder: &Path, arguments: &[&str]) -> (Serving, String) {
    let file = folder.join("ca.pem").display().to_string();
    let out = format!("--tls-certificate-out={file}");
    let mut all = vec!["--protocol=http3", "--tls=self-signed", &out];
    all.extend(arguments);
    (Serving::start(&all), format!("--ca={file}"))
}

#[test]
fn counts_over_http3_are_equal_at_both_ends() {
    let folder = tempfile::tempdir().unwrap();
    for (server_words, words, requests) in [
        ("", "-n500 -c1 --streams=1", 500),
        ("", "-n1000 -c3 --streams=10 --threads=2", 1000),
        (
            "--workers=2",
            "-n300 -c4 --rate=1000/s --max-requests-per-connection=20",
            300,
        ),
        ("--delay=5ms", "-n100 -c2 --streams=20 --connect-late", 100),
        ("--response-size=2MiB", "-n10 -c2 --streams=2", 10),
        ("", "-n10 -c2 --streams=2 --body=payload:json:2MiB", 10),
        (
            "--response-size=2MiB",
            "-n4 -c1 --body=payload:json:2MiB",
            4,
        ),
        ("", "-n20 -c1 -X HEAD", 20),
        ("", "-n20 -c1 --trace-headers=w3c --body=abc", 20),
    ] {
        let server_words: Vec<_> = server_words.split_whitespace().collect();
        let (server, ca) = serving(folder.path(), &server_words);
        let mut arguments = vec![
            server.url.as_str(),
            "--protocol=http3",
            &ca,
            "--timeout=20s",
            "--connect-timeout=60s",
        ];
        arguments.extend(words.split_whitespace());
        let report = load(&arguments);
        report.assert_all_well(requests);
        let opened = report.value["global"]["counters"]["upstream_cx_http3_total"].as_u64();
        let counts = server.stop();
        assert_eq!(counts["requests"], requests, "{words}");
        assert_eq!(counts["statuses"]["200"], requests, "{words}");
        assert_eq!(counts["malformed"], 0, "{words}");
        assert_eq!(counts["abandoned"], 0, "{words}");
        assert_eq!(counts["handshakes"].as_u64(), opened, "{words}");
    }
}

#[test]
fn what_goes_wrong_over_http3_has_its_outcome() {
    let folder = tempfile::tempdir().unwrap();
    for (fault, outcome) in [
        ("reset", "peer_closed"),
        ("close", "peer_closed"),
        ("truncate", "malformed"),
        ("garbage", "malformed"),
        ("huge_head", "malformed"),
        ("silence", "timed_out"),
        ("stall", "timed_out"),
        ("503", "status_5xx"),
    ] {
        let error = match fault {
            "503" => "--error=503".to_owned(),
            name => format!("--error='{name}'"),
        };
        let (server, ca) = serving(folder.path(), &[&error]);
        // All at once: the server counts none that its client gives up before it was read.
        let times = match outcome {
            "timed_out" => ["--timeout=4s", "--streams=6"],
            _ => ["--timeout=20s", "--streams=1"],
        };
        let arguments = ["--protocol=http3", &ca, "-n6", "-c1"];
        let report = load(&[arguments.as_slice(), times.as_slice(), &[&server.url]].concat());
        assert_eq!(
            report.outcome(outcome),
            6,
            "{fault}: {:?}",
            report.outcomes()
        );
        assert_eq!(report.ended(), 6, "{fault}");
        let counts = server.stop();
        assert_eq!(counts["requests"], 6, "{fault}");
    }
}

#[test]
fn missing_and_unknown_servers_are_reported_over_http3() {
    let folder = tempfile::tempdir().unwrap();
    let (server, ca) = serving(folder.path(), &[]);
    let url = server.url.clone();
    let strange = load(&["--protocol=http3", "-n3", "-c1", &url]);
    assert_eq!(
        strange.outcome("handshake_failed"),
        3,
        "{}",
        strange.findings()
    );
    assert!(
        strange.findings().contains("--ca"),
        "{}",
        strange.findings()
    );
    let second = load(&[
        "--protocol=http3",
        "-n3",
        "-c1",
        "--sni=other.example",
        &ca,
        &url,
    ]);
    assert_eq!(
        second.outcome("handshake_failed"),
        3,
        "{}",
        second.findings()
    );
    assert!(second.findings().contains("--sni"), "{}", second.findings());
    server.stop();
    let without_server = load(&["--protocol=http3", "-n3", "-c1", &ca, &url]);
    assert_eq!(
        without_server.outcome("connect_refused"),
        3,
        "{}",
        without_server.findings()
    );
    assert!(
        without_server.findings().contains("no program listens"),
        "{}",
        without_server.findings()
    );
}

/// A server that answers the first request of each connection once others have come
/// behind it, says that it takes none of those, and nothing more about them.
struct Leaving {
    scope: Scope,
    address: SocketAddr,
}

impl Leaving {
    fn start() -> Self {
        let mut bound = bind_quic(
            "127.0.0.1:0".parse().unwrap(),
            1,
            &tls::server(&[Alpn::Http3]),
            16,
        )
        .unwrap();
        let bound = bound.pop().unwrap();
        let address = bound.address().unwrap();
        let mut scope = Scope::new(&Token::new());
        let serve = async move |token: Token| {
            let mut server = QuicServer::new(bound, 16)?;
            let mut controls = HashMap::new();
            loop {
                // Both arms are cancel-safe.
                let came = tokio::select! {
                    () = token.cancelled() => return Ok(()),
                    came = poll_fn(|context| server.poll(context)) => came?,
                };
                let Came::Line(key) = came else { continue };
                let requests = handle_events(&mut server, key, &mut controls);
                flush(&mut server, key).await;
                // It has left already where there is none.
                let (Some(first), Some(control)) = (requests.first(), controls.get(&key)) else {
                    continue;
                };
                answer(&mut server, key, *first);
                flush(&mut server, key).await;
                if let (Some(second), Some(line)) = (requests.get(1), server.line(key)) {
                    let mut away = Vec::new();
                    write_go_away(second.number(), &mut away);
                    line.write(*control, &mut away.into());
                    controls.remove(&key);
                    flush(&mut server, key).await;
                }
            }
        };
        scope.worker(Place::default(), "leaving", serve).unwrap();
        Self { scope, address }
    }

    fn stop(self) {
        self.scope.close(Nanos::from_secs(10));
    }
}

async fn flush(server: &mut QuicServer, key: usize) {
    poll_fn(|context| Poll::Ready(server.flush(context, key))).await;
}

/// Handles an event of a connection; returns the requests that have begun at once.
fn handle_events(
    server: &mut QuicServer,
    key: usize,
    controls: &mut HashMap<usize, QuicStream>,
) -> Vec<QuicStream> {
    let mut requests = Vec::new();
    let Some(line) = server.line(key) else {
        return requests;
    };
    while let Some(event) = line.next_event() {
        match event {
            QuicEvent::Connected => {
                let control = line.open_uni().unwrap();
                let settings = H3Connection::server(1 << 16).opening();
                line.write(control, &mut settings.into());
                controls.insert(key, control);
            }
            QuicEvent::Opened => {
                requests.extend(std::iter::from_fn(|| line.accept_bidi()));
                while line.accept_uni().is_some() {}
            }
            _ => {}
        }
    }
    requests
}

fn answer(server: &mut QuicServer, key: usize, stream: QuicStream) {
    let mut bytes = Vec::new();
    let block = H3ResponseBlock::new(200, &[]).unwrap();
    block.write(&[], BodyLength::None, &mut bytes);
    if let Some(line) = server.line(key) {
        line.write(stream, &mut bytes.into());
        line.finish(stream);
    }
}

/// They were given up only when they had taken too long.
#[test]
fn requests_that_a_server_had_refused_as_it_left_waited_for_their_answers() {
    let server = Leaving::start();
    let url = format!("https://{}/", server.address);
    let words = [
        "--protocol=http3",
        "--insecure",
        "-n7",
        "-c1",
        "--streams=3",
    ];
    let report = load(&[words.as_slice(), &["--timeout=20s", &url]].concat());
    report.assert_all_well(7);
    server.stop();
}

/// Treatment of datagrams by a path.
#[derive(Clone, Copy, Debug)]
enum Course {
    /// Loses one in so many.
    Loses(u32),
    /// Holds one in so many back until the next has passed.
    Swaps(u32),
    /// Sends one in so many twice.
    Doubles(u32),
    /// Carries so many, and nothing more.
    Dies(u32),
}

/// Carries datagrams between one client's sockets and a server, with faults.
struct Proxy {
    address: SocketAddr,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Proxy {
    fn start(server: &str, path: Course) -> Self {
        let server: SocketAddr = server.parse().unwrap();
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        for socket in [&near, &far] {
            let wait = Duration::from_millis(1);
            socket.set_read_timeout(Some(wait)).unwrap();
        }
        let address = near.local_addr().unwrap();
        let ends = Arc::new(AtomicBool::new(false));
        let requested = Arc::clone(&ends);
        #[expect(clippy::disallowed_methods, reason = "a test's own path")]
        let thread = std::thread::spawn(move || {
            let mut client = None;
            let mut buffer = vec![0; 65_536];
            let (mut toward, mut back) = (Way::new(path), Way::new(path));
            while !requested.load(Ordering::Relaxed) {
                if let Ok((length, from)) = near.recv_from(&mut buffer) {
                    client = Some(from);
                    for datagram in toward.pass(&buffer[..length]) {
                        far.send_to(&datagram, server).unwrap_or_default();
                    }
                }
                if let (Ok(length), Some(client)) = (far.recv(&mut buffer), client) {
                    for datagram in back.pass(&buffer[..length]) {
                        near.send_to(&datagram, client).unwrap_or_default();
                    }
                }
            }
        });
        Self {
            address,
            ends,
            thread: Some(thread),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// One direction of a path.
struct Way {
    path: Course,
    count: u32,
    held: Option<Vec<u8>>,
}

impl Way {
    const fn new(path: Course) -> Self {
        Self {
            path,
            count: 0,
            held: None,
        }
    }

    /// Returns the datagrams that are passed on.
    fn pass(&mut self, datagram: &[u8]) -> Vec<Vec<u8>> {
        self.count += 1;
        let entry = datagram.to_vec();
        let (count, held) = (self.count, self.held.take());
        let mut passed = match self.path {
            Course::Loses(every) if count.is_multiple_of(every) => vec![],
            Course::Doubles(every) if count.is_multiple_of(every) => vec![entry.clone(), entry],
            Course::Swaps(every) if count.is_multiple_of(every) && held.is_none() => {
                self.held = Some(entry);
                vec![]
            }
            Course::Dies(after) if count > after => vec![],
            _ => vec![entry],
        };
        passed.extend(held);
        passed
    }
}

#[test]
fn every_request_over_a_bad_path_has_one_outcome_and_most_arrive() {
    let folder = tempfile::tempdir().unwrap();
    for path in [Course::Loses(5), Course::Swaps(3), Course::Doubles(2)] {
        let (server, ca) = serving(folder.path(), &["--response-size=4KiB"]);
        let proxy = Proxy::start(&server.address, path);
        let url = format!("https://{}/", proxy.address);
        let words = [
            "--protocol=http3",
            &ca,
            "-n200",
            "-c1",
            "--streams=4",
            "--timeout=30s",
            "--connect-timeout=60s",
        ];
        let report = load(&[words.as_slice(), &[&url]].concat());
        // QUIC sends again what was lost.
        report.assert_all_well(200);
        drop(proxy);
        let counts = server.stop();
        assert_eq!(counts["requests"], 200, "{path:?}");
        assert_eq!(counts["malformed"], 0, "{path:?}");
    }
}

#[test]
fn a_path_that_dies_ends_every_request_and_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let (server, ca) = serving(folder.path(), &[]);
    let dead = |after, timeouts: [&str; 2]| {
        let proxy = Proxy::start(&server.address, Course::Dies(after));
        let url = format!("https://{}/", proxy.address);
        let words = [
            "--protocol=http3",
            &ca,
            "-c1",
            "--streams=2",
            "--rate=200/s",
            "--duration=5s",
        ];
        let words = [words.as_slice(), timeouts.as_slice(), &[&url]];
        (load(&words.concat()), proxy)
    };
    // The handshake and some answers come through on a busy machine too.
    let timeouts = ["--timeout=1s", "--connect-timeout=20s"];
    let (report, _proxy): (Report, Proxy) = dead(40, timeouts);
    assert!(report.outcome("ok") > 0, "{:?}", report.outcomes());
    assert!(report.outcome("timed_out") > 0, "{:?}", report.outcomes());
    assert_eq!(report.ended(), report.begun(), "{:?}", report.outcomes());
    // One that never carried anything.
    let (report, _proxy) = dead(0, ["--timeout=400ms", "--connect-timeout=500ms"]);
    assert!(
        report.outcome("connect_timed_out") > 0,
        "{:?}",
        report.outcomes()
    );
    assert_eq!(report.ended(), report.outcome("connect_timed_out"));
    server.stop();
}

#[test]
fn flags_that_http3_cannot_keep_are_refused() {
    for (words, expected) in [
        ("load --protocol=http3 http://127.0.0.1:1/", "https://"),
        ("serve --protocol=http3", "--tls self-signed"),
    ] {
        let mut command = std::process::Command::new(super::ends::STILLWELL);
        let process = stillwell_testkit::Process::start(command.args(words.split(' ')));
        let ended = process.finish(super::ends::LONG);
        assert_eq!(ended.code, 2, "{words}: {}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{words}: {}", ended.stderr);
    }
}
