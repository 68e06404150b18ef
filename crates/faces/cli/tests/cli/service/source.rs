//! Requests that a service hands out while a load goes on: ours, and those that end,
//! break off, fall silent or say something else.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use stillwell_http::grpc::{GrpcMessageReader, write_message};
use stillwell_http::h2::{
    BodyLength, H2ResponseBlock, Limits, Server, ServerEvent, Stream, TrailerBlock,
};
use stillwell_nighthawk::Output;
use stillwell_testkit::free_port;

use super::*;

/// Does something beside the test, until that ends.
#[expect(
    clippy::disallowed_methods,
    reason = "a peer of the test, and no part of the product"
)]
fn apart(work: impl FnOnce() + Send + 'static) {
    thread::spawn(work);
}

/// Behaviour of a source once it has handed out all its requests.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// Ends the call well.
    End,
    /// Ends it with a status.
    Fail,
    /// Closes the connection.
    Break,
    /// Keeps silent.
    Hold,
}

/// A source that has some requests, and the number requested each time.
struct Scripted {
    address: String,
    amounts: Arc<Mutex<Vec<u64>>>,
}

impl Scripted {
    fn start(has: u64, then: Then) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let amounts = Arc::new(Mutex::new(Vec::new()));
        let requested = Arc::clone(&amounts);
        // It ends with the process.
        apart(move || {
            for socket in listener.incoming() {
                let requested = Arc::clone(&requested);
                apart(move || Conversation::new(has, then, requested).hold(socket.unwrap()));
            }
        });
        Self { address, amounts }
    }
}

/// One connection of a source.
struct Conversation {
    server: Server,
    reader: GrpcMessageReader,
    call: Option<Stream>,
    has: u64,
    then: Then,
    requested: Arc<Mutex<Vec<u64>>>,
    /// Requested ones, and those that were laid out.
    due: u64,
    handed: u64,
    /// The part of them that has not been sent.
    rest: Vec<u8>,
    is_over: bool,
}

impl Conversation {
    fn new(has: u64, then: Then, requested: Arc<Mutex<Vec<u64>>>) -> Self {
        Self {
            server: Server::new(Limits::default()),
            reader: GrpcMessageReader::new(1 << 20),
            call: None,
            has,
            then,
            requested,
            due: 0,
            handed: 0,
            rest: Vec::new(),
            is_over: false,
        }
    }

    fn hold(mut self, mut socket: TcpStream) {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = socket.read(&mut buffer) {
            self.take(&buffer[..count]);
            let goes_on = self.hand_out();
            let output = self.server.output().to_vec();
            self.server.sent(output.len());
            if socket.write_all(&output).is_err() {
                return;
            }
            if !goes_on {
                // What was sent arrives: nothing is left unread.
                socket.shutdown(Shutdown::Write).unwrap();
                socket.read_to_end(&mut Vec::new()).unwrap_or_default();
                return;
            }
        }
    }

    fn take(&mut self, input: &[u8]) {
        let mut read = 0;
        while let Ok((taken, Some(event))) = self.server.advance(&input[read..]) {
            read += taken;
            match event {
                ServerEvent::Head { stream, .. } => self.call = Some(stream),
                ServerEvent::Body { bytes, .. } => {
                    let (_, message) = self.reader.advance(bytes).unwrap();
                    let Some(message) = message else { continue };
                    let name = "nighthawk.request_source.RequestStreamRequest";
                    let refuse = UnknownFields::Refuse;
                    let requested = Schema::shared().decode(name, message.bytes, refuse);
                    let requested: u64 = requested.unwrap()["quantity"]
                        .as_str()
                        .unwrap()
                        .parse()
                        .unwrap();
                    self.requested.lock().unwrap().push(requested);
                    self.due += requested;
                }
                _ => {}
            }
        }
    }

    /// Returns true while the connection goes on.
    fn hand_out(&mut self) -> bool {
        let Some(call) = self.call else {
            return true;
        };
        let head = H2ResponseBlock::new(200, &[("content-type", "application/grpc")]).unwrap();
        if self.handed == 0 {
            // A second time it is refused, and that is well.
            let responded = self.server.respond(call, &head, BodyLength::Unknown);
            responded.unwrap_or_default();
        }
        while self.handed < self.due.min(self.has) {
            self.handed += 1;
            let request = json!({ "request_specifier": { "path": format!("/{}", self.handed) } });
            let name = "nighthawk.request_source.RequestStreamResponse";
            let message = Schema::shared().encode(name, &request).unwrap();
            write_message(&message, false, &mut self.rest).unwrap();
        }
        let sent = self.server.send_body(call, &self.rest, false).unwrap_or(0);
        self.rest.drain(..sent);
        if self.is_over || self.handed < self.has || !self.rest.is_empty() {
            return true;
        }
        self.is_over = true;
        let trailers: &[(&str, &str)] = match self.then {
            Then::Hold => return true,
            Then::Break => return false,
            Then::End => &[("grpc-status", "0")],
            Then::Fail => &[("grpc-status", "14"), ("grpc-message", "nothing left")],
        };
        let trailers = TrailerBlock::new(trailers).unwrap();
        self.server.send_trailers(call, &trailers).unwrap();
        true
    }
}

/// Starts a load of 100 requests a second from `source`; its program is in the folder.
fn start_from(source: &str, target: &Listening, words: &str) -> (TempDir, Process) {
    let (folder, name) = named("nighthawk_client");
    let words = format!(
        "--request-source grpc://{source} --rps 100 --output-format json \
         --sequencer-idle-strategy sleep {words} http://{}/",
        target.1
    );
    let process = Process::start(Command::new(&name).args(words.split_whitespace()));
    (folder, process)
}

/// The end of such a load.
fn end_of_load((_folder, process): (TempDir, Process)) -> (Finished, Output) {
    let ended = process.finish(LONG);
    let output = read_json(&ended.stdout);
    assert!(output.is_ok(), "{}: {}", ended.stdout, ended.stderr);
    (ended, output.unwrap())
}

/// Runs such a load to its end.
fn load_from(source: &str, target: &Listening, words: &str) -> (Finished, Output) {
    end_of_load(start_from(source, target, words))
}

fn counter(output: &Output, name: &str) -> u64 {
    output.global().unwrap().counter(name)
}

// compat: nighthawk_service | NighthawkRequestSourceService | works
#[test]
fn requests_come_from_a_source_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("list");
    fs::write(&list, "PUT http://h/ abc\nhttp://h/\n").unwrap();
    let target = Listening::target(&["--echo"]);
    let words = [
        "--service",
        "request-source",
        "--requests",
        list.to_str().unwrap(),
    ];
    let source = Listening::service(&words);
    let load = |source: &str| {
        client(&format!(
            "--request-source grpc://{source} --rps 50 --connections 1 --duration 100 \
             --termination-predicate benchmark.http_2xx:49 --output-format json \
             --sequencer-idle-strategy sleep http://{}/",
            target.1
        ))
    };
    let ended = load(&source.1);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output = read_json(&ended.stdout).unwrap();
    assert_eq!(
        output.options.request_source,
        Some(format!("grpc://{}", source.1))
    );
    let global = output.global().unwrap();
    let sent = global.counter("benchmark.http_2xx");
    assert_eq!(sent, 50);
    assert_eq!(global.counter("requestsource.internal.upstream_rq_200"), 1);
    assert!(global.counter("source_requests") >= sent);
    target.0.signal("TERM");
    let counted = target.0.finish(LONG).stdout;
    // Every other one has a body of three bytes.
    let bytes = counted
        .lines()
        .find(|line| line.starts_with("body bytes"))
        .unwrap();
    let bytes: u64 = bytes.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((sent * 3 / 2).abs_diff(bytes) <= 3, "{counted}");
}

// compat: nighthawk_client | --request-source | works
#[test]
fn requests_are_fetched_while_the_load_goes_on() {
    let target = Listening::target(&[]);
    for (words, workers) in [
        ("", 1),
        ("--concurrency 2", 2),
        ("--open-loop --h2 --simple-warmup", 1),
        (
            "--burst-size 7 --trace zipkin://127.0.0.1:1/api/v2/spans",
            1,
        ),
    ] {
        let source = Scripted::start(u64::MAX, Then::Hold);
        let until = "--duration 100 --termination-predicate benchmark.http_2xx:199";
        let (ended, output) = load_from(&source.address, &target, &format!("{until} {words}"));
        assert_eq!(ended.code, 0, "{words}: {}", ended.stderr);
        let sent = counter(&output, "benchmark.http_2xx");
        assert!(sent >= 200 * workers, "{words}: {sent}");
        // An open loop that is late drops some.
        let sent = sent + counter(&output, "benchmark.pool_overflow");
        // As many at a time as a worker sends in a second: one second's more than are
        // sent wait, and half of as many are on their way.
        let requested = source.amounts.lock().unwrap().clone();
        assert!(
            requested.iter().all(|quantity| *quantity == 100),
            "{requested:?}"
        );
        let sum: u64 = requested.iter().sum();
        assert!(
            (sent..=sent + 300 * workers).contains(&sum),
            "{sent}: {requested:?}"
        );
        let calls = counter(&output, "requestsource.internal.upstream_rq_200");
        assert_eq!(calls, workers, "{words}");
        assert_eq!(counter(&output, "requestsource.upstream_rq_5xx"), 0);
    }
}

#[test]
fn a_load_ends_with_its_source() {
    let target = Listening::target(&[]);
    let source = Scripted::start(30, Then::End);
    let words = "--no-duration --multi-target-path / --multi-target-endpoint";
    let ended = client(&format!(
        "--request-source {} --rps 100 --output-format json {words} {} --multi-target-endpoint {}",
        source.address, target.1, target.1
    ));
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let output = read_json(&ended.stdout).unwrap();
    for (name, value) in [
        ("benchmark.http_2xx", 30),
        ("source_requests", 30),
        ("source_ended", 1),
        ("requestsource.upstream_rq_total", 1),
        ("requestsource.upstream_rq_5xx", 0),
        ("sequencer.failed_terminations", 0),
    ] {
        assert_eq!(counter(&output, name), value, "{name}");
    }
    let expected = "The request source has ended: it supplied 30 requests.";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    target.0.signal("TERM");
    let counted = target.0.finish(LONG).stdout;
    assert!(counted.contains("requests"), "{counted}");
}

#[test]
fn a_source_that_breaks_off_fails_the_load() {
    let target = Listening::target(&[]);
    for (then, expected) in [(Then::Fail, "nothing left"), (Then::Break, "broke")] {
        let source = Scripted::start(30, then);
        let (ended, output) = load_from(&source.address, &target, "--no-duration");
        assert_eq!(ended.code, 1, "{then:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{then:?}: {}",
            ended.stderr
        );
        assert!(
            ended.stderr.contains("after 30 requests"),
            "{}",
            ended.stderr
        );
        for (name, value) in [
            ("requestsource.internal.upstream_rq_200", 1),
            ("requestsource.upstream_rq_5xx", 1),
            ("requestsource.upstream_rq_pending_failure_eject", 0),
            ("sequencer.failed_terminations", 1),
        ] {
            assert_eq!(counter(&output, name), value, "{then:?}: {name}");
        }
        // Where that is no failure, all that came is sent.
        let words = "--no-duration --no-default-failure-predicates";
        let source = Scripted::start(30, then);
        let (ended, output) = load_from(&source.address, &target, words);
        assert_eq!(ended.code, 0, "{then:?}: {}", ended.stderr);
        assert_eq!(counter(&output, "benchmark.http_2xx"), 30, "{then:?}");
        assert!(
            ended.stderr.contains(expected),
            "{then:?}: {}",
            ended.stderr
        );
        // No second request comes.
        assert_eq!(counter(&output, "requestsource.upstream_rq_total"), 1);
    }
}

#[test]
fn a_slow_source_is_reported_and_not_taken_for_the_target() {
    let target = Listening::target(&[]);
    // All at once: each of them has a client that may be late.
    let loads = [(10, ""), (10, "--open-loop"), (0, "")].map(|(has, words)| {
        let source = Scripted::start(has, Then::Hold);
        let words = format!("--duration 6 {words}");
        (has, start_from(&source.address, &target, &words))
    });
    for (has, load) in loads {
        let (ended, output) = end_of_load(load);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(counter(&output, "benchmark.http_2xx"), has);
        // One wait has no end. Where the source is late, there is one before a request, too.
        let waits = counter(&output, "source_waits");
        assert!((1..=has + 1).contains(&waits), "{waits}");
        let expected = format!("waited for it {waits} time");
        assert!(ended.stderr.contains(&expected), "{}", ended.stderr);
        let is_silent = ended.stderr.contains("the request source supplied none");
        assert_eq!(is_silent, has == 0, "{}", ended.stderr);
    }
}

#[test]
fn a_source_that_is_none_fails_the_load() {
    let target = Listening::target(&[]);
    let port = free_port();
    for workers in [1, 2] {
        let words = format!("--concurrency {workers}");
        let (ended, output) = load_from(&format!("127.0.0.1:{port}"), &target, &words);
        assert_eq!(ended.code, 1, "{}", ended.stderr);
        let ejected = "requestsource.upstream_rq_pending_failure_eject";
        assert_eq!(counter(&output, ejected), workers);
        assert_eq!(counter(&output, "upstream_rq_total"), 0);
        let names = ended.stderr.contains(&format!("127.0.0.1:{port}"));
        assert!(
            names && ended.stderr.contains("--request-source"),
            "{}",
            ended.stderr
        );
    }
    // The server there uses another protocol.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let second = listener.local_addr().unwrap().to_string();
    apart(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut requested = [0; 16];
        socket.read_exact(&mut requested).unwrap();
        socket
            .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            .unwrap();
        socket.read_to_end(&mut Vec::new()).unwrap_or_default();
    });
    let (ended, output) = load_from(&second, &target, "");
    assert_eq!(ended.code, 1, "{}", ended.stderr);
    assert_eq!(counter(&output, "requestsource.upstream_rq_5xx"), 1);
    assert!(
        ended.stderr.contains("does not speak gRPC"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_service_makes_loads_from_a_source_too() {
    let (target, service) = (Listening::target(&[]), Listening::service(&[]));
    let source = Scripted::start(20, Then::End);
    wait_for(async {
        let mut call = call(&service.1).await;
        let mut options = endless(&target);
        options.request_source = Some(format!("grpc://{}", source.address));
        start(&mut call, options.clone());
        let response = answer(&mut call).await;
        assert_eq!(response.error_detail, None);
        assert_eq!(result(&response).counter("benchmark.http_2xx"), 20);
        // A signal or a cancellation ends one that goes on for ever.
        let source = Scripted::start(u64::MAX, Then::Hold);
        options.request_source = Some(format!("grpc://{}", source.address));
        start(&mut call, options);
        until_answers_come(&mut call).await;
        send(&mut call, &ExecutionRequest::Cancel);
        let response = answer(&mut call).await;
        assert_eq!(response.error_detail, None);
    });
    drop(service);
}
