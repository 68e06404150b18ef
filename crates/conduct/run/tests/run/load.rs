//! Loads on real servers, well and badly behaved.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};

use stillwell_metric::{LoadTime, Outcome};
use stillwell_plan::generator::ExchangePlan;
use stillwell_plan::load::{
    BodyPlan, EndpointPlan, LoadPace, LoadPlanParts, LoadProtocol, Overflow, PredicatePlan,
    RequestPlan, Reuse, Spacing, UntilPlan,
};
use stillwell_plan::serve::{
    AnswerPlan, FaultsPlan, FilterSet, ResponseOptions, ServeHeaders, ServeListenerPlan,
    ServeProtocols,
};
use stillwell_plan::tls::{ClientTlsPlan, ServerIdentity, ServerTlsPlan, TlsSuites, Verification};
use stillwell_plan::{LoadPlan, RateShape, ServePlan};
use stillwell_run::{AddressFamily, Interrupt, LoadCapture, LoadEnd, conduct_load};
use stillwell_scope::{Place, Scope, Token};
use stillwell_serve::{ServeCounts, bind_server};
use stillwell_testkit::free_port;
use stillwell_units::{Nanos, Seed};

/// A test server on a port of its own.
pub(super) fn server(tls: bool, error: Option<&str>) -> ServePlan {
    ServePlan {
        seed: Seed::from_number(1),
        workers: std::num::NonZeroU16::MIN,
        listeners: vec![ServeListenerPlan {
            address: ([127, 0, 0, 1], 0).into(),
            tls: tls.then(|| ServerTlsPlan {
                identity: ServerIdentity::SelfSigned {
                    names: vec!["127.0.0.1".to_owned()],
                },
                alpn: vec![
                    stillwell_plan::tls::Alpn::Http2,
                    stillwell_plan::tls::Alpn::Http1,
                ],
                client_roots: Vec::new(),
                resumption: true,
                suites: TlsSuites::default(),
            }),
            protocols: ServeProtocols::Auto,
            answer: AnswerPlan {
                filters: FilterSet::ALL,
                options: ResponseOptions::default(),
                headers: ServeHeaders {
                    server: Some("envoy".to_owned()),
                    ..ServeHeaders::default()
                },
            },
            faults: FaultsPlan {
                error: error.map(|error| error.parse().unwrap()),
                ..FaultsPlan::default()
            },
            connections_max: 100,
            chains: Vec::new(),
        }],
        admin: None,
    }
}

/// Without a schedule, four connections, until `requests` are sent.
pub(super) fn closed(address: SocketAddr, requests: u64) -> LoadPlanParts {
    let endpoint = EndpointPlan {
        address: address.to_string(),
        tls_host: None,
        weight: 1,
        requests: vec![RequestPlan {
            method: "GET".to_owned(),
            path: "/".to_owned(),
            authority: address.to_string(),
            is_authority_stated: false,
            headers: vec![("x-test".to_owned(), "1".to_owned())],
            body: BodyPlan::None,
        }],
    };
    let exchange = ExchangePlan {
        tls: ClientTlsPlan {
            verification: Verification::None,
            ..ClientTlsPlan::default()
        },
        timeout: Nanos::from_secs(20),
        connect_timeout: Nanos::from_secs(5),
        reuse: Reuse::Mru,
        ..ExchangePlan::default()
    };
    let mut client = exchange.client();
    client.connecting.connections = 4;
    LoadPlanParts {
        until: UntilPlan {
            requests: Some(requests),
            duration: Some(Nanos::from_secs(120)),
            ..UntilPlan::default()
        },
        ..LoadPlanParts::closed(vec![endpoint], client, Seed::from_number(1))
    }
}

fn open(per_second: f64, overflow: Overflow) -> LoadPace {
    LoadPace::Open {
        curve: RateShape::Constant { per_second },
        spacing: Spacing::Even,
        overflow,
    }
}

pub(super) fn load(plan: LoadPlanParts) -> LoadCapture {
    let interrupt = Interrupt::new();
    conduct_load(
        LoadPlan::try_new(plan).unwrap(),
        AddressFamily::Any,
        &[Place::default()],
        &interrupt,
        &mut |_| {},
    )
    .unwrap()
}

/// Makes the load that `plan` makes of the server's address, and gives what both
/// ends counted.
fn against(
    serve: &ServePlan,
    plan: impl FnOnce(SocketAddr) -> LoadPlanParts,
) -> (LoadCapture, ServeCounts) {
    let server = bind_server(serve).unwrap();
    let (address, counter) = (server.addresses()[0], server.counter());
    let mut scope = Scope::new(&Token::new());
    server.start(&mut scope, &Place::default()).unwrap();
    let capture = load(plan(address));
    scope.close(Nanos::from_secs(60));
    (capture, counter.total())
}

pub(super) fn ended(capture: &LoadCapture, outcome: Outcome) -> u64 {
    capture.sum(|counts| counts.ended(outcome))
}

/// Every request that was begun has ended in exactly one way.
pub(super) fn assert_accounted(capture: &LoadCapture) {
    for counts in capture.counts() {
        assert_eq!(counts.begun, counts.ended_in_all(), "{capture:?}");
    }
    let in_seconds: u64 = capture
        .seconds
        .iter()
        .flat_map(|second| second.outcomes)
        .sum();
    let in_all: u64 = Outcome::ALL
        .into_iter()
        .map(|outcome| ended(capture, outcome))
        .sum();
    assert_eq!(in_seconds, in_all);
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Way {
    pub(super) protocol: LoadProtocol,
    pub(super) tls: bool,
    pub(super) streams: u32,
}

pub(super) const WAYS: [Way; 4] = [
    Way {
        protocol: LoadProtocol::Http1,
        tls: false,
        streams: 1,
    },
    Way {
        protocol: LoadProtocol::Http1,
        tls: true,
        streams: 1,
    },
    Way {
        protocol: LoadProtocol::Http2,
        tls: false,
        streams: 5,
    },
    Way {
        protocol: LoadProtocol::Http2,
        tls: true,
        streams: 5,
    },
];

fn over(way: Way, mut plan: LoadPlanParts) -> LoadPlanParts {
    plan.client.connecting.protocol = way.protocol;
    plan.client.connecting.streams = way.streams;
    plan.endpoints[0].tls_host = way.tls.then(|| "127.0.0.1".to_owned());
    plan
}

#[test]
fn both_ends_have_the_same_counts_over_every_protocol() {
    for way in WAYS {
        for pace in [LoadPace::Closed, open(5000.0, Overflow::Wait)] {
            let (capture, seen) = against(&server(way.tls, None), |address| LoadPlanParts {
                pace: pace.clone(),
                workers: 2,
                ..over(way, closed(address, 500))
            });
            assert_accounted(&capture);
            assert_eq!(capture.manifest.end, LoadEnd::Requests, "{way:?}");
            assert_eq!(ended(&capture, Outcome::Ok), 500, "{way:?} {capture:?}");
            assert_eq!((seen.requests, seen.connections), (500, 4), "{way:?}");
            let times = |time: LoadTime| {
                capture
                    .workers()
                    .map(|item| item.times(time).len())
                    .sum::<u64>()
            };
            assert_eq!(times(LoadTime::Service(Outcome::Ok)), 500);
            assert_eq!(times(LoadTime::FirstByte), 500);
            assert_eq!(times(LoadTime::Connect), 4);
            assert_eq!(times(LoadTime::Handshake), if way.tls { 4 } else { 0 });
            let scheduled = if pace == LoadPace::Closed { 0 } else { 500 };
            assert_eq!(times(LoadTime::Response(Outcome::Ok)), scheduled);
            assert_eq!(times(LoadTime::Lateness), scheduled);
        }
    }
}

#[test]
fn with_any_server_every_request_ends_in_one_way() {
    for (fault, outcomes) in [
        ("rand() < 0.3 ? 'close' : false", vec![Outcome::PeerClosed]),
        ("rand() < 0.3 ? 'reset' : false", vec![Outcome::PeerClosed]),
        (
            "rand() < 0.3 ? 'truncate' : false",
            vec![Outcome::PeerClosed, Outcome::TimedOut],
        ),
        (
            "rand() < 0.3 ? 'garbage' : false",
            vec![Outcome::Malformed, Outcome::PeerClosed],
        ),
        (
            "rand() < 0.3 ? 'huge_head' : false",
            vec![Outcome::Malformed, Outcome::PeerClosed, Outcome::Ok],
        ),
        (
            "rand() < 0.1 ? 'stall' : false",
            vec![Outcome::TimedOut, Outcome::PeerClosed],
        ),
        (
            "rand() < 0.1 ? 'silence' : false",
            vec![Outcome::TimedOut, Outcome::PeerClosed],
        ),
        ("rand() < 0.3 ? 503 : false", vec![Outcome::Status5xx]),
    ] {
        for way in [WAYS[0], WAYS[2]] {
            let (capture, seen) = against(&server(way.tls, Some(fault)), |address| {
                let mut plan = closed(address, 60);
                // A request that the server leaves without an answer ends only by this.
                if outcomes.contains(&Outcome::TimedOut) {
                    plan.client.timeout = Nanos::from_millis(300);
                }
                over(way, plan)
            });
            assert_accounted(&capture);
            let good = ended(&capture, Outcome::Ok);
            let bad: u64 = outcomes.iter().map(|item| ended(&capture, *item)).sum();
            let bad = if outcomes.contains(&Outcome::Ok) {
                bad - good
            } else {
                bad
            };
            let all = capture.sum(|counts| counts.begun);
            assert_eq!(
                good + bad,
                all,
                "{way:?} {fault}: {:?}",
                capture.manifest.workers[0].counts.outcomes
            );
            assert_eq!(all, 60, "{way:?} {fault}");
            // What never left us the server has not seen.
            assert!(seen.requests <= all, "{way:?} {fault}");
        }
    }
}

#[test]
fn a_closed_port_fails_each_request() {
    let address: SocketAddr = ([127, 0, 0, 1], free_port()).into();
    for prefetch in [true, false] {
        let mut plan = closed(address, 20);
        plan.pace = open(1000.0, Overflow::Wait);
        plan.client.connecting.prefetch = prefetch;
        let capture = load(plan);
        assert_accounted(&capture);
        assert_eq!(ended(&capture, Outcome::ConnectRefused), 20, "{prefetch}");
        let mut plan = closed(address, 4);
        plan.client.connecting.prefetch = prefetch;
        let capture = load(plan);
        assert_accounted(&capture);
        assert_eq!(ended(&capture, Outcome::ConnectRefused), 4, "{prefetch}");
    }
}

#[test]
fn connections_are_opened_when_needed_and_used_up_as_planned() {
    let (capture, seen) = against(&server(false, None), |address| {
        let mut plan = closed(address, 3);
        // Far enough apart that no busy machine makes them meet.
        plan.pace = open(0.5, Overflow::Wait);
        plan.client.connecting.prefetch = false;
        plan
    });
    assert_accounted(&capture);
    assert_eq!(seen.connections, 1, "the last one used is used again");
    let (capture, seen) = against(&server(false, None), |address| {
        let mut plan = closed(address, 40);
        plan.client.connecting.requests_max = Some(5);
        plan
    });
    assert_accounted(&capture);
    assert_eq!(ended(&capture, Outcome::Ok), 40);
    assert!((8..=12).contains(&seen.connections), "{}", seen.connections);
}

/// Reads the head of a request. Returns the bytes behind it.
fn read_head(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut input = Vec::<u8>::new();
    loop {
        if let Some(end) = input.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            return Ok(input.split_off(end + 4));
        }
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        input.extend_from_slice(&buffer[..count]);
    }
}

/// Makes the load that `plan` makes of the address of a listener, whose server is `serve`. Its
/// second argument is disconnected once the load is over.
fn against_script(
    serve: impl FnOnce(&TcpListener, &Receiver<()>) -> std::io::Result<()> + Send + 'static,
    plan: impl FnOnce(SocketAddr) -> LoadPlanParts,
) -> LoadCapture {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // By default they grow until they keep large bodies.
    let socket = socket2::SockRef::from(&listener);
    socket.set_recv_buffer_size(256 << 10).unwrap();
    socket.set_send_buffer_size(256 << 10).unwrap();
    let address = listener.local_addr().unwrap();
    let served = listener.try_clone().unwrap();
    let (running, over) = sync_channel(0);
    let mut scope = Scope::new(&Token::new());
    scope
        .thread(Place::default(), "script", move |_| {
            serve(&served, &over)?;
            Ok(())
        })
        .unwrap();
    let capture = load(plan(address));
    drop(running);
    scope.close(Nanos::from_secs(60));
    capture
}

#[test]
fn connections_count_as_ended_by_the_peer_that_closes_them_except_tunnels() {
    for (method, answer, ended_by_peer) in [
        (
            "GET",
            "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok",
            3,
        ),
        ("GET", "HTTP/1.1 200 OK\r\n\r\nuntil the end", 3),
        ("CONNECT", "HTTP/1.1 200 OK\r\n\r\n", 0),
    ] {
        let capture = against_script(
            move |listener, _| {
                for _ in 0..3 {
                    let (mut stream, _) = listener.accept()?;
                    read_head(&mut stream)?;
                    stream.write_all(answer.as_bytes())?;
                }
                Ok(())
            },
            |address| {
                let mut plan = closed(address, 3);
                plan.client.connecting.connections = 1;
                plan.endpoints[0].requests[0].method = method.to_owned();
                plan
            },
        );
        assert_accounted(&capture);
        assert_eq!(ended(&capture, Outcome::Ok), 3, "{answer}");
        let by_peer = capture.sum(|counts| counts.connections_ended.total);
        assert_eq!(by_peer, ended_by_peer, "{answer}");
    }
}

/// More than the buffers of both ends keep.
const LARGE_BYTES: usize = 24 << 20;

/// Posts `requests` large bodies over one connection.
fn large_posts(address: SocketAddr, requests: u64) -> LoadPlanParts {
    let mut plan = closed(address, requests);
    plan.client.connecting.connections = 1;
    plan.client.timeout = Nanos::from_secs(100);
    let request = &mut plan.endpoints[0].requests[0];
    request.method = "POST".to_owned();
    request.body = BodyPlan::Bytes(vec![b'x'; LARGE_BYTES]);
    plan
}

/// Both ends wrote, neither read, and the request timed out.
#[test]
fn an_answer_is_read_while_its_request_is_written() {
    let capture = against_script(
        |listener, _| {
            let (mut stream, _) = listener.accept()?;
            for _ in 0..2 {
                let begun = read_head(&mut stream)?;
                let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {LARGE_BYTES}\r\n\r\n");
                stream.write_all(head.as_bytes())?;
                stream.write_all(&begun)?;
                let rest = (LARGE_BYTES - begun.len()) as u64;
                std::io::copy(&mut (&stream).take(rest), &mut &stream)?;
            }
            Ok(())
        },
        |address| large_posts(address, 2),
    );
    let outcomes = capture.manifest.workers[0].counts.outcomes;
    assert_eq!(ended(&capture, Outcome::Ok), 2, "{outcomes:?}");
    assert_eq!(capture.sum(|counts| counts.connections.total), 1);
}

/// A server that refuses a body may leave it unread.
#[test]
fn a_refusal_before_the_end_of_the_body_is_the_answer() {
    let capture = against_script(
        |listener, over| {
            let (mut stream, _) = listener.accept()?;
            read_head(&mut stream)?;
            stream.write_all(b"HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")?;
            // The connection stays open until then.
            over.recv().unwrap_err();
            Ok(())
        },
        |address| large_posts(address, 1),
    );
    let outcomes = capture.manifest.workers[0].counts.outcomes;
    assert_eq!(ended(&capture, Outcome::Status4xx), 1, "{outcomes:?}");
}

/// Servers that answer first and read the body later keep their connection.
#[test]
fn a_success_before_the_end_of_the_body_waits_for_the_rest_of_the_request() {
    let capture = against_script(
        |listener, _| {
            let (mut stream, _) = listener.accept()?;
            for _ in 0..2 {
                let begun = read_head(&mut stream)?;
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")?;
                let rest = (LARGE_BYTES - begun.len()) as u64;
                std::io::copy(&mut (&stream).take(rest), &mut std::io::sink())?;
            }
            Ok(())
        },
        |address| large_posts(address, 2),
    );
    let outcomes = capture.manifest.workers[0].counts.outcomes;
    assert_eq!(ended(&capture, Outcome::Ok), 2, "{outcomes:?}");
    assert_eq!(capture.sum(|counts| counts.connections.total), 1);
}

#[test]
fn predicates_end_a_load() {
    let predicate = |name: &str, threshold| {
        vec![PredicatePlan {
            counter: name.parse().unwrap(),
            threshold,
        }]
    };
    let (capture, _) = against(&server(false, None), |address| {
        let mut plan = closed(address, 1_000_000);
        plan.client.connecting.connections = 1;
        plan.until.termination = predicate("benchmark.http_2xx", 24);
        plan
    });
    assert_eq!(capture.manifest.end, LoadEnd::Termination(0));
    assert_eq!(ended(&capture, Outcome::Ok), 25);
    let (capture, _) = against(&server(false, Some("500")), |address| {
        let mut plan = closed(address, 1_000_000);
        plan.until.termination = predicate("ok", 0);
        plan.until.failure = predicate("status_5xx", 0);
        plan
    });
    assert_eq!(capture.manifest.end, LoadEnd::Failure(0));
    assert_accounted(&capture);
}

#[test]
fn requests_that_may_not_wait_are_dropped() {
    let (capture, _) = against(&server(false, Some("'silence'")), |address| {
        let mut plan = closed(address, 50);
        plan.pace = open(1000.0, Overflow::Drop { waiting_max: 0 });
        plan.client.connecting.connections = 1;
        // The first request holds the connection until the others are due.
        plan.client.timeout = Nanos::from_secs(5);
        plan
    });
    assert_accounted(&capture);
    assert_eq!(ended(&capture, Outcome::Dropped), 49);
}

/// Answers one request a connection, and closes it between two without a word.
fn closing_server(listener: &TcpListener, token: &Token) -> std::io::Result<u64> {
    let mut answered = 0;
    listener.set_nonblocking(false)?;
    while !token.is_cancelled() {
        let (mut stream, _) = listener.accept()?;
        let mut buffer = [0; 1024];
        while !buffer.ends_with(b"\r\n\r\n") {
            let count = stream.read(&mut buffer)?;
            if count == 0 || buffer[..count].ends_with(b"\r\n\r\n") {
                break;
            }
        }
        if token.is_cancelled() {
            break;
        }
        // The answer leaves together with the close: no request can come in between.
        socket2::SockRef::from(&stream).set_tcp_cork(true)?;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok")?;
        answered += 1;
    }
    Ok(answered)
}

#[test]
fn a_connection_that_was_closed_between_requests_fails_none() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let token = Token::new();
    let mut scope = Scope::new(&token);
    scope
        .thread(Place::default(), "closing", move |token| {
            closing_server(&listener, token)?;
            Ok(())
        })
        .unwrap();
    let mut plan = closed(address, 20);
    plan.pace = open(100.0, Overflow::Wait);
    plan.client.connecting.connections = 1;
    let capture = load(plan);
    token.cancel();
    // Lets the server look up.
    drop(std::net::TcpStream::connect(address));
    scope.close(Nanos::from_secs(60));
    assert_accounted(&capture);
    assert_eq!(
        ended(&capture, Outcome::Ok),
        20,
        "{:?}",
        capture.manifest.workers[0].counts.outcomes
    );
}

#[test]
fn requests_are_counted_by_their_routes() {
    let (capture, _) = against(&server(false, None), |address| {
        let mut plan = closed(address, 9);
        let first = plan.endpoints[0].requests[0].clone();
        let at = |path: &str| {
            let path = path.to_owned();
            stillwell_plan::load::RequestPlan {
                path,
                ..first.clone()
            }
        };
        plan.endpoints[0].requests = vec![at("/a?1"), at("/b"), at("/a?2")];
        plan
    });
    let worker = capture.workers().next().unwrap();
    let routes: Vec<(&str, u64, [u64; 3])> = worker
        .routes()
        .map(|(counts, times)| {
            let ended = counts.outcomes.iter().sum();
            (
                counts.name.as_str(),
                ended,
                times.each_ref().map(|all| all.len()),
            )
        })
        .collect();
    assert_eq!(routes, [("GET /a", 6, [0, 6, 6]), ("GET /b", 3, [0, 3, 3])]);
    assert_eq!(worker.worker.routes[0].statuses, [(200, 6)].into());
}

/// Once the measured time ended when the last request was taken, and what was not
/// answered within the grace was cut.
#[test]
fn a_load_of_few_requests_lasts_until_they_are_answered() {
    let mut slow = server(false, None);
    slow.listeners[0].faults.delay = Some("300".parse().unwrap());
    let (capture, _) = against(&slow, |address| {
        let mut plan = closed(address, 4);
        plan.grace = Nanos::from_millis(10);
        plan
    });
    assert_eq!(ended(&capture, Outcome::Ok), 4, "{capture:?}");
    assert_accounted(&capture);
    assert!(
        capture.manifest.measured >= Nanos::from_millis(300),
        "{:?}",
        capture.manifest.measured
    );
}
