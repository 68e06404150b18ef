//! The test server, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use proptest::prelude::*;
use stillwell_plan::ServePlan;
use stillwell_plan::serve::{
    AnswerPlan, FaultsPlan, FilterSet, LimitAnswer, RateLimitPlan, ResponseDelay, ResponseOptions,
    ServeHeaders, ServeListenerPlan, ServeProtocols,
};
use stillwell_scope::{Place, Scope, Token};
use stillwell_serve::{ServeCounter, ServeCounts, bind_server};
use stillwell_units::{EventRate, Nanos, Seed};

#[path = "serve/faults.rs"]
mod faults;
#[path = "serve/http2.rs"]
mod http2;
#[path = "serve/tls.rs"]
mod tls;

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

const GET: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 3\r\n\r\naaa";

fn listener() -> ServeListenerPlan {
    ServeListenerPlan {
        address: anywhere(),
        tls: None,
        protocols: ServeProtocols::Auto,
        answer: AnswerPlan {
            filters: FilterSet::ALL,
            options: ResponseOptions {
                body_bytes: Some(3),
                ..ResponseOptions::default()
            },
            headers: ServeHeaders {
                options: Some("x-nighthawk-test-server-config".to_owned()),
                delay: Some("x-envoy-fault-delay-request".to_owned()),
                server: None,
            },
        },
        faults: FaultsPlan::default(),
        connections_max: 100,
        chains: Vec::new(),
    }
}

fn plan(listener: ServeListenerPlan) -> ServePlan {
    ServePlan {
        seed: Seed::from_number(1),
        workers: std::num::NonZeroU16::MIN,
        listeners: vec![listener],
        admin: None,
    }
}

struct Server {
    scope: Scope,
    counter: ServeCounter,
    addresses: Vec<SocketAddr>,
    certificate: Option<String>,
}

impl Server {
    fn of(listener: ServeListenerPlan) -> Self {
        Self::start(&plan(listener))
    }

    fn start(plan: &ServePlan) -> Self {
        let bound = bind_server(plan).unwrap();
        let (counter, addresses) = (bound.counter(), bound.addresses().to_vec());
        let certificate = bound.certificate_pem();
        let mut scope = Scope::new(&Token::new());
        bound.start(&mut scope, &Place::default()).unwrap();
        Self {
            scope,
            counter,
            addresses,
            certificate,
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.addresses[0]).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
    }

    /// Returns the answer to `text` until the server closes.
    fn exchange_all(&self, text: &str) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(text.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// The answer to a request with these header lines, connection closed.
    fn exchange(&self, headers: &str) -> String {
        let text = format!("GET /p HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{headers}\r\n");
        String::from_utf8(self.exchange_all(&text)).unwrap()
    }

    /// Ends it; fails the test where a worker failed or did not end.
    fn end(self) -> ServeCounts {
        for end in self.scope.close(Nanos::from_secs(180)) {
            end.result.unwrap();
        }
        let counts = self.counter.total();
        let answered: u64 = counts.statuses.values().sum();
        let failed: u64 = counts.faults.values().sum();
        assert_eq!(
            counts.requests,
            answered + failed + counts.abandoned,
            "{counts:?}"
        );
        counts
    }
}

fn read_exactly(stream: &mut TcpStream, length: usize) -> String {
    let mut bytes = vec![0; length];
    stream.read_exact(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For all numbers of requests and all ways to cut them: each gets its
    /// answer, in order, and is counted once.
    #[test]
    fn every_pipelined_request_is_answered(
        sizes in prop::collection::vec(0_usize..40, 1..40),
        pieces in prop::collection::vec(1_usize..200, 0..30),
    ) {
        let server = Server::of(listener());
        let mut text = String::new();
        let mut expected = String::new();
        for size in &sizes {
            text += &format!("POST / HTTP/1.1\r\ncontent-length: {size}\r\n\
                x-nighthawk-test-server-config: {{\"response_body_size\":{size}}}\r\n\r\n{}",
                "b".repeat(*size));
            let kind = if *size > 0 { "content-type: text/plain\r\n" } else { "" };
            expected += &format!("HTTP/1.1 200 OK\r\n{kind}content-length: {size}\r\n\r\n{}",
                "a".repeat(*size));
        }
        let mut stream = server.connect();
        let mut rest = text.as_bytes();
        for piece in pieces {
            let (now, later) = rest.split_at(piece.min(rest.len()));
            stream.write_all(now).unwrap();
            rest = later;
        }
        stream.write_all(rest).unwrap();
        prop_assert_eq!(read_exactly(&mut stream, expected.len()), expected);
        drop(stream);
        let counts = server.end();
        prop_assert_eq!(counts.requests, sizes.len() as u64);
        prop_assert_eq!(counts.body_bytes, sizes.iter().sum::<usize>() as u64);
        prop_assert_eq!(counts.connections, 1);
        prop_assert_eq!(counts.malformed, 0);
    }
}

#[test]
fn connections_are_kept_until_the_client_is_done() {
    let server = Server::of(listener());
    let mut stream = server.connect();
    for _ in 0..3 {
        stream.write_all(GET.as_bytes()).unwrap();
        assert_eq!(read_exactly(&mut stream, ANSWER.len()), ANSWER);
    }
    stream
        .write_all(b"HEAD / HTTP/1.1\r\nconnection: close\r\n\r\n")
        .unwrap();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("content-length: 3\r\nconnection: close")
            || rest.contains("connection: close\r\ncontent-length: 3"),
        "{rest}"
    );
    assert!(rest.ends_with("\r\n\r\n"), "{rest}");
    let counts = server.end();
    assert_eq!(counts.statuses.into_iter().collect::<Vec<_>>(), [(200, 4)]);
    assert_eq!((counts.connections, counts.abandoned), (1, 0));
}

#[test]
fn a_request_defines_how_it_is_answered() {
    let server = Server::of(listener());
    let config = |json: &str| format!("X-Nighthawk-Test-Server-Config: {json}\r\n");
    let answer = server.exchange(&config(
        r#"{"response_body_size":5,"v3_response_headers":[{"header":{"key":"x-a","value":"1"}},
        {"header":{"key":":status","value":"418"}}]}"#
            .replace('\n', " ")
            .as_str(),
    ));
    assert!(answer.starts_with("HTTP/1.1 418 "), "{answer}");
    assert!(
        answer.contains("\r\nx-a: 1\r\n") && answer.ends_with("\r\n\r\naaaaa"),
        "{answer}"
    );

    let echo = server.exchange(&format!(
        "{}X-Me: yes\r\n",
        config(r#"{"echo_request_headers":true}"#)
    ));
    assert!(
        echo.contains("aaa\nRequest Headers:\n':path', '/p'\n':method', 'GET'\n"),
        "{echo}"
    );
    assert!(echo.contains("'x-me', 'yes'\n"), "{echo}");

    let bad = server.exchange(&config("bad_json"));
    assert!(bad.starts_with("HTTP/1.1 500 "), "{bad}");
    let message = "time-tracking didn't understand the request: expected value";
    assert!(bad.contains(message), "{bad}");
    let twice = server.exchange(&config("{}").repeat(2));
    assert!(
        twice.starts_with("HTTP/1.1 500 ") && twice.contains("given 2 times"),
        "{twice}"
    );
    let counts = server.end();
    assert_eq!(
        counts.statuses.into_iter().collect::<Vec<_>>(),
        [(200, 1), (418, 1), (500, 2)]
    );
}

/// Ten bytes and one header: as many bytes as Nighthawk's own tests count.
#[test]
fn an_answer_with_the_headers_of_envoy_has_136_bytes() {
    let mut listener = listener();
    listener.answer.headers.server = Some("envoy".to_owned());
    listener.answer.options = ResponseOptions::from_json(
        br#"{"response_body_size":10,"response_headers":[{"header":{"key":"x-nh","value":"1"}}]}"#,
    )
    .unwrap();
    let server = Server::of(listener);
    let mut stream = server.connect();
    stream.write_all(GET.repeat(2).as_bytes()).unwrap();
    let answer = read_exactly(&mut stream, 136);
    assert!(answer.ends_with("\r\n\r\naaaaaaaaaa"), "{answer}");
    assert!(answer.contains("\r\nserver: envoy\r\n"), "{answer}");
    assert!(
        answer.contains(" GMT\r\n") && !answer.contains("DATE"),
        "{answer}"
    );
    assert_eq!(read_exactly(&mut stream, 17), "HTTP/1.1 200 OK\r\n");
    server.end();
}

#[test]
fn filters_that_are_not_there_have_no_effect() {
    let mut listener = listener();
    listener.answer.filters = FilterSet {
        test_server: false,
        dynamic_delay: false,
        header_delay: false,
        time_tracking: false,
    };
    let server = Server::of(listener);
    let config = r#"x-nighthawk-test-server-config: {"static_delay":"100s"}"#;
    let answer = server.exchange(&format!("{config}\r\n"));
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    server.end();
}

#[test]
fn the_time_since_the_request_before_is_sent_from_the_second_on() {
    let mut listener = listener();
    listener.answer.options.delta_header = Some("x-delta".to_owned());
    let server = Server::of(listener);
    assert!(!server.exchange("").contains("x-delta"));
    let second = server.exchange("");
    let (_, rest) = second.split_once("x-delta: ").unwrap();
    let (delta, _) = rest.split_once("\r\n").unwrap();
    assert!(delta.parse::<u64>().unwrap() > 0);
    server.end();
}

#[test]
fn a_delayed_answer_is_abandoned_with_its_client() {
    let mut listener = listener();
    let delay = Nanos::from_secs(100);
    listener.answer.options.delay = Some(ResponseDelay::Static(delay));
    let server = Server::of(listener);
    let mut waiting = server.connect();
    waiting.write_all(GET.as_bytes()).unwrap();
    // A request without a delay overtakes it on another connection.
    let config = r#"x-nighthawk-test-server-config: {"static_delay":"0s"}"#;
    assert!(
        server
            .exchange(&format!("{config}\r\n"))
            .starts_with("HTTP/1.1 200 ")
    );
    waiting.set_nonblocking(true).unwrap();
    let nothing = waiting.read(&mut [0]).unwrap_err();
    assert_eq!(nothing.kind(), ErrorKind::WouldBlock);
    drop(waiting);
    let counts = server.end();
    assert_eq!((counts.requests, counts.abandoned), (2, 1));
}

#[test]
fn what_cannot_be_framed_is_refused_and_counted() {
    let server = Server::of(listener());
    let answer =
        server.exchange_all("GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n");
    assert!(answer.starts_with(b"HTTP/1.1 400 "));
    let post = "POST / HTTP/1.1\r\nexpect: 100-continue\r\ncontent-length: 1\r\nconnection: close\r\n\r\nb";
    let answer = server.exchange_all(&format!("{GET}{post}"));
    let expected = format!("{ANSWER}HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 ");
    assert!(answer.starts_with(expected.as_bytes()));
    let counts = server.end();
    assert_eq!((counts.requests, counts.malformed), (2, 1));
}

#[test]
fn several_listeners_and_workers_count_together() {
    let mut both = plan(listener());
    both.listeners.push(listener());
    both.listeners[1].answer.options.body_bytes = Some(0);
    both.workers = 2.try_into().unwrap();
    let server = Server::start(&both);
    for address in server.addresses.clone() {
        for _ in 0..4 {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(GET.as_bytes()).unwrap();
            assert_eq!(read_exactly(&mut stream, 15), "HTTP/1.1 200 OK");
        }
    }
    let counts = server.end();
    assert_eq!((counts.requests, counts.connections), (8, 8));
}

#[test]
fn a_taken_port_is_reported_with_what_to_do() {
    let holder = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut listener = listener();
    listener.address = holder.local_addr().unwrap();
    let error = bind_server(&plan(listener)).unwrap_err();
    let source = std::error::Error::source(&error).unwrap().to_string();
    assert!(source.contains("it is already in use"), "{source}");
}

#[test]
fn a_rate_limit_answers_as_configured() {
    for (answer, expected) in [
        (LimitAnswer::Status(503), "200 200 503 503"),
        (LimitAnswer::Status(429), "200 200 429 429"),
        (LimitAnswer::Close, "200 200"),
    ] {
        let mut listener = listener();
        listener.faults.rate_limit = Some(RateLimitPlan {
            rate: EventRate::try_new(0.001).unwrap(),
            burst: 2,
            answer,
        });
        let server = Server::of(listener);
        let last = GET.replace("host", "connection: close\r\nhost");
        let text = String::from_utf8(server.exchange_all(&(GET.repeat(3) + &last))).unwrap();
        let statuses = text.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]);
        assert_eq!(statuses.collect::<Vec<_>>().join(" "), expected);
        server.end();
    }
}

#[test]
fn all_queued_requests_are_answered() {
    let mut listener = listener();
    listener.faults.rate_limit = Some(RateLimitPlan {
        rate: EventRate::try_new(2000.0).unwrap(),
        burst: 1,
        answer: LimitAnswer::Queue,
    });
    let server = Server::of(listener);
    let mut stream = server.connect();
    stream.write_all(GET.repeat(20).as_bytes()).unwrap();
    assert_eq!(
        read_exactly(&mut stream, 20 * ANSWER.len()),
        ANSWER.repeat(20)
    );
    assert_eq!(server.end().statuses.get(&200), Some(&20));
}
