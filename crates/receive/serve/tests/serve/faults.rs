use std::io::{ErrorKind, Read, Write};

use super::{ANSWER, GET, Server, listener};

fn failing(expression: &str) -> Server {
    let mut listener = listener();
    listener.faults.error = Some(expression.parse().unwrap());
    Server::of(listener)
}

/// Response to one request, and the error at its end.
fn exchange(server: &Server) -> (Vec<u8>, Option<ErrorKind>) {
    let mut stream = server.connect();
    stream.write_all(GET.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    let end = stream.read_to_end(&mut bytes).err();
    (bytes, end.map(|error| error.kind()))
}

fn assert_counted(server: Server, fault: &str) {
    let counts = server.end();
    assert_eq!(
        (counts.requests, counts.faults.get(fault)),
        (1, Some(&1)),
        "{counts:?}"
    );
}

#[test]
fn a_closed_connection_ends_without_an_answer() {
    let server = failing("'close'");
    assert_eq!(exchange(&server), (vec![], None));
    assert_counted(server, "close");
}

#[test]
fn a_reset_is_one() {
    let server = failing("'reset'");
    assert_eq!(
        exchange(&server),
        (vec![], Some(ErrorKind::ConnectionReset))
    );
    assert_counted(server, "reset");
}

#[test]
fn garbage_is_no_http() {
    let server = failing("'garbage'");
    let (bytes, end) = exchange(&server);
    assert!(!bytes.is_empty() && !bytes.starts_with(b"HTTP") && end.is_none());
    assert_counted(server, "garbage");
}

#[test]
fn a_truncated_body_is_shorter_than_announced() {
    let server = failing("'truncate'");
    let text = String::from_utf8(exchange(&server).0).unwrap();
    assert!(text.contains("content-length: 100\r\n"), "{text}");
    assert!(
        text.ends_with(&format!("\r\n\r\n{}", "a".repeat(50))),
        "{text}"
    );
    assert_counted(server, "truncate");
}

#[test]
fn a_huge_head_is_longer_than_64_kib_and_the_connection_goes_on() {
    let server = failing("t >= 0 ? 'huge_head' : false");
    let mut stream = server.connect();
    stream.write_all(GET.repeat(2).as_bytes()).unwrap();
    let mut bytes = vec![0; 2 * (64 << 10)];
    stream.read_exact(&mut bytes).unwrap();
    assert!(bytes.starts_with(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nx-huge: aaa"));
    drop(stream);
    assert_eq!(server.end().faults.get("huge_head"), Some(&2));
}

/// Nothing, or nothing more, comes until the client goes.
#[test]
fn silence_and_stalls_last() {
    for (fault, begin) in [("silence", 0), ("stall", 1)] {
        let server = failing(&format!("'{fault}'"));
        let mut stream = server.connect();
        stream.write_all(GET.as_bytes()).unwrap();
        let mut bytes = vec![0; begin];
        stream.read_exact(&mut bytes).unwrap();
        // The server has seen the request once it is counted.
        while server.counter.total().faults.is_empty() {
            std::thread::yield_now();
        }
        drop(stream);
        assert_counted(server, fault);
    }
}

#[test]
fn statuses_come_by_expression() {
    let server = failing("active_requests > 1 ? 503 : false");
    let mut stream = server.connect();
    for _ in 0..2 {
        stream.write_all(GET.as_bytes()).unwrap();
        let mut bytes = vec![0; ANSWER.len()];
        stream.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes, ANSWER.as_bytes());
    }
    // Decided together, so both are active at once.
    stream.write_all(GET.repeat(2).as_bytes()).unwrap();
    let expected = format!("{ANSWER}HTTP/1.1 503 ");
    let mut bytes = vec![0; expected.len()];
    stream.read_exact(&mut bytes).unwrap();
    assert_eq!(bytes, expected.as_bytes());
    drop(stream);
    assert_eq!(
        server.end().statuses.into_iter().collect::<Vec<_>>(),
        [(200, 3), (503, 1)]
    );
}

#[test]
fn a_share_of_requests_fails_the_same_way_each_time() {
    let counts: Vec<_> = (0..2)
        .map(|_| {
            let server = failing("rand() < 0.3");
            let mut stream = server.connect();
            for _ in 0..200 {
                stream.write_all(GET.as_bytes()).unwrap();
                let mut bytes = vec![0; 15];
                stream.read_exact(&mut bytes).unwrap();
                let rest = if bytes.ends_with(b"200 OK") {
                    ANSWER.len()
                } else {
                    57
                };
                stream.read_exact(&mut vec![0; rest - 15]).unwrap();
            }
            drop(stream);
            server.end().statuses
        })
        .collect();
    assert_eq!(counts[0], counts[1]);
    let failed = counts[0][&500];
    assert!((30..90).contains(&failed), "{failed}");
}
