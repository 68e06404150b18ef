use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use stillwell_units::Nanos;

use crate::intake::{exchange, gzip};
use crate::support::{Counts, RunningSink, Script, http, plan, read_all, run};

const ANSWER: &str = "HTTP/1.1 200 OK\r\nx-sink: yes\r\ncontent-length: 5\r\n\r\ntaken";

fn sink() -> RunningSink {
    run(&plan(http(Nanos::ZERO, 64)))
}

/// A client written by hand: sends bytes, reads answers.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn of(sink: &RunningSink) -> Self {
        let stream = TcpStream::connect(sink.address()).unwrap();
        stream.set_nodelay(true).unwrap();
        Self {
            stream: BufReader::new(stream),
        }
    }

    fn send(&mut self, text: &str) {
        self.stream.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// The next head, and the body if it announces one.
    fn answer(&mut self) -> String {
        let head = self.head();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).unwrap();
        format!("{head}{}", String::from_utf8(body).unwrap())
    }

    fn head(&mut self) -> String {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(self.stream.read_line(&mut head).unwrap() > 0, "{head}");
        }
        head
    }

    fn is_closed(&mut self) -> bool {
        read_all(&mut self.stream).is_empty()
    }
}

/// A request, and the events in it.
fn request() -> impl Strategy<Value = (String, u64, u64)> {
    let body = "[ab\n]{0,300}";
    (body, any::<bool>(), 1..50_usize).prop_map(|(body, chunked, chunk_bytes)| {
        let mut text = "POST /in HTTP/1.1\r\nhost: sink\r\n".to_owned();
        if chunked {
            text += "transfer-encoding: chunked\r\n\r\n";
            for chunk in body.as_bytes().chunks(chunk_bytes) {
                let chunk = std::str::from_utf8(chunk).unwrap();
                write!(text, "{:x}\r\n{chunk}\r\n", chunk.len()).unwrap();
            }
            text += "0\r\n\r\n";
        } else {
            write!(text, "content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        }
        let events = body.split_inclusive('\n').count() as u64;
        (text, body.len() as u64, events)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn for_all_pipelined_requests_each_counts_and_is_answered(
        requests in prop::collection::vec(request(), 1..30),
        writes in prop::collection::vec(1..400_usize, 0..30),
    ) {
        let sink = sink();
        let mut client = Client::of(&sink);
        let text: String = requests.iter().map(|(text, _, _)| text.as_str()).collect();
        let script = Script { bytes: text.into_bytes(), writes };
        script.send(client.stream.get_mut());
        for _ in &requests {
            prop_assert_eq!(client.answer(), ANSWER);
        }
        prop_assert_eq!(sink.end(), Counts {
            bytes: requests.iter().map(|(_, bytes, _)| bytes).sum(),
            events: requests.iter().map(|(_, _, events)| events).sum(),
            messages: requests.len() as u64,
            connections: 1,
            errors: 0,
        });
    }
}

#[test]
fn a_client_that_expects_continue_may_send_its_body() {
    let sink = sink();
    let mut client = Client::of(&sink);
    client.send("POST / HTTP/1.1\r\nhost: a\r\nexpect: 100-continue\r\ncontent-length: 3\r\n\r\n");
    assert_eq!(client.answer(), "HTTP/1.1 100 Continue\r\n\r\n");
    client.send("a\nb");
    assert_eq!(client.answer(), ANSWER);
    assert_eq!(sink.end().events, 2);
}

#[test]
fn a_head_is_answered_without_a_body() {
    let sink = sink();
    let mut client = Client::of(&sink);
    client.send("HEAD / HTTP/1.1\r\nhost: a\r\n\r\nGET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert!(client.head().ends_with("content-length: 5\r\n\r\n"));
    assert_eq!(client.answer(), ANSWER);
    assert_eq!(sink.end().messages, 2);
}

#[test]
fn a_connection_is_closed_when_its_client_requests_it() {
    let sink = sink();
    for request in [
        "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
    ] {
        let mut client = Client::of(&sink);
        client.send(request);
        assert!(client.answer().contains("connection: close\r\n"));
        assert!(client.is_closed());
    }
    let counts = sink.end();
    assert_eq!((counts.messages, counts.errors), (2, 0));
}

#[test]
fn what_is_no_request_is_refused_and_counts_as_an_error() {
    let sink = sink();
    let good = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\n\r\nx";
    for bad in [
        "what\r\n\r\n",
        "GET / HTTP/1.1\nhost: a\n\n",
        "POST / HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
    ] {
        let mut client = Client::of(&sink);
        client.send(&format!("{good}{bad}{}", "more ".repeat(10_000)));
        assert_eq!(client.answer(), ANSWER);
        let refusal = client.answer();
        assert!(refusal.starts_with("HTTP/1.1 400 "), "{bad}: {refusal}");
        client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
        assert!(client.is_closed());
    }
    let counts = sink.end();
    assert_eq!((counts.messages, counts.events, counts.errors), (4, 4, 4));
}

#[test]
fn a_request_that_breaks_off_counts_as_an_error_only() {
    let sink = sink();
    let mut client = Client::of(&sink);
    client.send("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nabc\n");
    client.stream.get_ref().shutdown(Shutdown::Write).unwrap();
    assert!(client.is_closed());
    let expected = Counts {
        bytes: 4,
        connections: 1,
        errors: 1,
        ..Counts::default()
    };
    assert_eq!(sink.end(), expected);
}

// compat: lading, blackholes | http | works
#[test]
fn json_arrays_count_by_element_and_bodies_in_unknown_codings_not_at_all() {
    let sink = sink();
    let mut client = Client::of(&sink);
    for (headers, body, events) in [
        (
            "content-type: application/json\r\n",
            r#"[{"a":"],["},{"a":[1,2]},3]"#,
            3,
        ),
        ("content-encoding: br\r\n", "a\nb\n", 0),
        // It is no gzip.
        ("content-encoding: gzip\r\n", "a\nb\n", 0),
        ("content-type: text/plain\r\n", "a\nb\n", 2),
    ] {
        let before = sink.shards()[0].events.total();
        let length = body.len();
        client.send(&format!(
            "POST / HTTP/1.1\r\nhost: a\r\n{headers}content-length: {length}\r\n\r\n{body}"
        ));
        assert_eq!(client.answer(), ANSWER);
        assert_eq!(sink.shards()[0].events.total() - before, events, "{body}");
    }
}

#[test]
fn answers_come_after_their_delay_and_in_order() {
    let delay = Nanos::from_millis(20);
    let sink = run(&plan(http(delay, 64)));
    let mut client = Client::of(&sink);
    let before = stillwell_scope::clock::now();
    client.send("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
    assert_eq!(client.answer(), ANSWER);
    // Never early; how late is the machine's business.
    assert!(stillwell_scope::clock::now().since(before) >= delay);
    client.send("GET / HTTP/1.1\r\n\r\nHEAD / HTTP/1.1\r\nconnection: close\r\n\r\n");
    assert_eq!(client.answer(), ANSWER);
    assert!(client.head().contains("connection: close"));
    assert!(client.is_closed());
}

#[test]
fn connections_beyond_the_bound_wait_their_turn() {
    let sink = run(&plan(http(Nanos::ZERO, 1)));
    let request = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";
    let mut first = Client::of(&sink);
    first.send(request);
    assert_eq!(first.answer(), ANSWER);
    let mut second = Client::of(&sink);
    second.send(request);
    first.send(request);
    assert_eq!(first.answer(), ANSWER);
    assert_eq!(sink.shards()[0].connections.total(), 1);
    drop(first);
    assert_eq!(second.answer(), ANSWER);
    assert_eq!(sink.end().connections, 2);
}

#[test]
fn curl_is_content() {
    let url = |sink: &RunningSink| format!("http://{}/in", sink.address());
    let curl = Command::new("curl")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if curl.is_err() {
        println!("SKIPPED: curl_is_content: curl is not installed");
        return;
    }
    let sink = sink();
    let large = "line\n".repeat(100_000);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("body");
    std::fs::write(&file, &large).unwrap();
    let body = format!("@{}", file.display());
    for extra in [
        ["-H", "Transfer-Encoding: chunked"],
        ["-H", "Expect: 100-continue"],
    ] {
        let output = Command::new("curl")
            .args(["-sS", "--fail", "--noproxy", "*", "--data-binary", &body])
            .args(extra)
            .args([url(&sink), url(&sink)])
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "takentaken");
    }
    let counts = sink.end();
    assert_eq!(
        (counts.messages, counts.events, counts.errors),
        (4, 400_000, 0)
    );
}

#[test]
fn the_events_of_packed_bodies_are_seen() {
    let sink = sink();
    let lines = "some line of text\n".repeat(100_000);
    let array = format!("[{}1]", "1,".repeat(49_999));
    for (coding, packed) in [
        ("gzip", gzip(lines.as_bytes())),
        ("zstd", zstd::encode_all(lines.as_bytes(), 1).unwrap()),
    ] {
        assert_eq!(
            exchange(
                &sink,
                &format!("POST / HTTP/1.1\r\ncontent-encoding: {coding}"),
                &packed
            )
            .0,
            200
        );
    }
    let head = "POST / HTTP/1.1\r\ncontent-type: application/json\r\ncontent-encoding: gzip";
    exchange(&sink, head, &gzip(array.as_bytes()));
    let shards = sink.shards().to_vec();
    assert_eq!(sink.end().events, 250_000);
    assert_eq!(
        shards[0].decoded_bytes.total(),
        (2 * lines.len() + array.len()) as u64
    );
    assert_eq!(shards[0].malformed.total(), 0);
}

#[test]
fn a_head_that_does_not_end_is_cut_off() {
    let sink = sink();
    let mut client = Client::of(&sink);
    client.send("POST /in HTTP/1.1\r\nhost: sink\r\ncontent-length: 0\r\n\r\nPOST");
    assert_eq!(client.answer(), ANSWER);
    assert!(client.is_closed());
    let counts = sink.end();
    assert_eq!((counts.messages, counts.errors), (1, 1));
}

#[test]
fn clients_that_send_nothing_do_not_lock_out_others() {
    let sink = run(&plan(http(Nanos::ZERO, 2)));
    let mut idle = Client::of(&sink);
    idle.send("POST /in HT");
    let mut slow = Client::of(&sink);
    slow.send("POST /in HTTP/1.1\r\nhost:");
    let mut third = Client::of(&sink);
    third.send("POST /in HTTP/1.1\r\nhost: sink\r\ncontent-length: 0\r\n\r\n");
    assert_eq!(third.answer(), ANSWER);
    assert!(idle.is_closed());
    let counts = sink.end();
    assert_eq!((counts.messages, counts.connections), (1, 3));
}
