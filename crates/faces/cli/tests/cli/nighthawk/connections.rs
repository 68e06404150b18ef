//! Opening and use of connections.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpListener;

use super::*;

// compat: nighthawk_client | --prefetch-connections | works
#[test]
fn connections_are_opened_before_they_are_needed_if_requested() {
    let origin = Origin::start();
    let line = "--duration 100 --rps 1 --connections 50 --termination-predicate \
                benchmark.http_2xx";
    let result = measure(&format!("{line}:2 --prefetch-connections {}", origin.url()));
    assert_eq!(result.counter("upstream_cx_http1_total"), 50);
    let result = measure(&format!("{line}:0 {}", origin.url()));
    let [opened, sent] =
        ["upstream_cx_http1_total", "upstream_rq_total"].map(|name| result.counter(name));
    // A client that is late opens one for each request that is due.
    assert!((1..=sent).contains(&opened), "{opened} for {sent}");
}

// compat: nighthawk_client | --connections | works
#[test]
fn as_many_connections_are_opened_as_there_may_be() {
    let origin = Origin::start();
    for connections in [1, 5] {
        let line = format!(
            "--rps 200 --connections {connections} --max-pending-requests 10 --duration 1 \
             --request-header x-envoy-fault-delay-request:100"
        );
        let result = measure(&format!("{line} {}", origin.url()));
        // A client that is late for the whole second sends fewer requests than that.
        let sent = result.counter("upstream_rq_total");
        assert_eq!(result.counter("upstream_cx_total"), sent.min(connections));
        let answered = result.counter("benchmark.http_2xx");
        assert!(answered <= connections * 21, "{answered} took no delay");
    }
}

// compat: nighthawk_client | --max-requests-per-connection | works
#[test]
fn a_connection_carries_no_more_than_it_may() {
    let origin = Origin::start();
    for protocol in ["http1 --connections 1", "http2 --max-active-requests 1"] {
        let line = format!(
            "--protocol {protocol} --max-requests-per-connection 5 --rps 500 --duration 100 \
             --termination-predicate benchmark.http_2xx:24"
        );
        let result = measure(&format!("{line} {}", origin.url()));
        let requests = result.counter("upstream_rq_total");
        let connections = result.counter("upstream_cx_total");
        let fewest = requests / 5;
        assert!(
            (fewest..=fewest + 1).contains(&connections),
            "{protocol}: {connections}"
        );
        assert!(result.counter("upstream_cx_max_requests") >= fewest - 1);
    }
}

// compat: nighthawk_client | --max-concurrent-streams | works
// compat: nighthawk_client | --experimental-h2-use-multiple-connections | differs | a warning; an error in today's Nighthawk
#[test]
fn several_connections_of_http2_carry_one_stream_each() {
    let origin = Origin::start();
    let many = "--burst-size 10 --max-active-requests 10 --max-pending-requests 10 --rps 500 \
                --duration 100 --termination-predicate benchmark.http_2xx:99";
    for (flag, connections) in [
        ("--max-concurrent-streams 1", 10),
        ("--max-concurrent-streams 1 --connections 2", 2),
        ("--experimental-h2-use-multiple-connections", 10),
    ] {
        let result = measure(&format!("--h2 {flag} {many} {}", origin.url()));
        assert!(result.counter("benchmark.http_2xx") >= 100);
        let opened = result.counter("upstream_cx_http2_total");
        assert_eq!(opened, connections, "{flag}");
        let is_warned = result
            .log
            .contains("[W] --experimental-h2-use-multiple-connections");
        assert_eq!(is_warned, flag.starts_with("--exp"), "{}", result.log);
    }
    let result = measure(&format!("--h2 {many} {}", origin.url()));
    assert_eq!(result.counter("upstream_cx_http2_total"), 1);
}

/// A server that says which connection has carried each request.
struct Counting {
    listener: TcpListener,
    connections: Vec<std::net::TcpStream>,
    /// The number of the connection of each request.
    order: Vec<usize>,
}

impl Counting {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        Self {
            listener,
            connections: Vec::new(),
            order: Vec::new(),
        }
    }

    /// Answers what has come, and says how many requests there were so far.
    fn turn(&mut self) -> usize {
        while let Ok((stream, _)) = self.listener.accept() {
            stream.set_nonblocking(true).unwrap();
            self.connections.push(stream);
        }
        for (number, stream) in self.connections.iter_mut().enumerate() {
            let mut buffer = [0; 4096];
            match stream.read(&mut buffer) {
                Ok(0) => {}
                Ok(_) => {
                    self.order.push(number);
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n")
                        .unwrap();
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock, "{error}"),
            }
        }
        self.order.len()
    }
}

// compat: nighthawk_client | --experimental-h1-connection-reuse-strategy | works
#[test]
fn the_connection_used_last_is_used_first_or_all_take_turns() {
    let mut runs = ["mru", "lru"].map(|strategy| {
        let server = Counting::new();
        let address = server.listener.local_addr().unwrap();
        let line = format!(
            "--experimental-h1-connection-reuse-strategy {strategy} --connections 2 \
             --prefetch-connections --rps 3 --duration 100 --output-format json \
             --termination-predicate benchmark.http_2xx:19 http://{address}/"
        );
        (strategy, server, start_client(&line))
    });
    assert!(wait_until(LONG, || {
        let answered = runs.iter_mut().map(|(_, server, _)| server.turn());
        answered.min() >= Some(20)
    }));
    for (strategy, server, (_named, process)) in runs {
        let ended = process.finish(LONG);
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(server.connections.len(), 2);
        // A client that is late hands out several at once, to both connections. One that is 3 s late
        // still changes less often than one whose connections take turns.
        let pairs = server.order.windows(2);
        let changes = pairs.filter(|pair| pair[0] != pair[1]).count();
        assert_eq!(
            changes > 9,
            strategy == "lru",
            "{strategy}: {:?}",
            server.order
        );
    }
}

/// Nighthawk's test of the same counts lines of Envoy, two for each answer.
#[test]
fn the_log_names_the_connection_of_each_answer() {
    let origin = Origin::start();
    let line = format!(
        "--connections 1 --max-requests-per-connection 5 --rps 50 -v trace --duration 100 \
         --termination-predicate benchmark.http_2xx:9 {}",
        origin.url()
    );
    let ended = client(&line);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    for number in 0..2 {
        let text = format!("[C{number}] message complete");
        let lines = ended.stderr.lines().filter(|line| line.contains(&text));
        assert_eq!(lines.count(), 10, "{text}: {}", ended.stderr);
    }
}

// compat: nighthawk_client | --upstream-bind-config | works
#[test]
fn connections_come_from_the_address_that_is_named() {
    let mut server = Counting::new();
    let address = server.listener.local_addr().unwrap();
    let bind = "{source_address:{address:\"127.0.0.2\",port_value:0}}";
    let line = format!(
        "--upstream-bind-config '{bind}' --rps 100 --connections 1 --duration 100 \
         --termination-predicate benchmark.http_2xx:2 http://{address}/"
    );
    let (_named, process) = start_client(&line);
    assert!(wait_until(LONG, || server.turn() >= 3));
    assert_eq!(process.finish(LONG).code, 0);
    let peer = server.connections[0].peer_addr().unwrap();
    assert_eq!(peer.ip().to_string(), "127.0.0.2");
}

// compat: nighthawk_client | --timeout | works
/// The kernel takes the connection, and the handshake is never answered.
#[test]
fn connecting_takes_no_longer_than_it_may() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    let line = format!(
        "--rps 10 --connections 1 --duration 100 --timeout 0.1s --no-default-failure-predicates \
         --termination-predicate benchmark.pool_connection_failure:0 https://{address}/"
    );
    let result = measure(&line);
    assert!(result.counter("upstream_cx_connect_timeout") >= 1);
    assert!(result.counter("benchmark.pool_connection_failure") >= 1);
    assert_eq!(result.counter("upstream_cx_total"), 0);
}

// compat: nighthawk_client | --address-family | works
/// Loopback has an address of either family nearly everywhere.
#[test]
fn addresses_are_of_the_requested_family() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        println!("SKIPPED: addresses_are_of_the_family: there is no IPv6");
        return;
    };
    drop(listener);
    let mut command = Command::new(STILLWELL);
    command.args(["serve", "--address=[::1]:0", "--format=json"]);
    let server = Process::start(&mut command);
    assert!(wait_until(LONG, || server.stdout().contains("http://")));
    let output = server.stdout();
    let url = output
        .split('"')
        .find(|word| word.starts_with("http"))
        .unwrap()
        .to_owned();
    let line = "--rps 100 --connections 1 --duration 100 \
                --termination-predicate benchmark.http_2xx:4";
    // Brackets may be left out.
    let bare = address(&url).replace(['[', ']'], "");
    for url in [&url, &bare] {
        let result = measure(&format!("{line} --address-family v6 {url}"));
        assert_eq!(result.counter("benchmark.http_2xx"), 5);
    }
    let ended = client(&format!("{line} --address-family v4 {url}"));
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("[::1]"), "{}", ended.stderr);
}
