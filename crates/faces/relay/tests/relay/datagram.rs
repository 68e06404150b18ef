use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use crate::support::{
    TIMEOUT, collect_datagrams, endpoint_of, finish, lines, options, run, send_in_pieces,
};

#[test]
fn udp_goes_to_udp_one_event_in_each_datagram() {
    let output = UdpSocket::bind("127.0.0.1:0").unwrap();
    output.set_read_timeout(Some(TIMEOUT)).unwrap();
    let endpoint = format!("udp://{}", output.local_addr().unwrap());
    let relay = run(options("udp://127.0.0.1:0", &endpoint));
    let input = UdpSocket::bind("127.0.0.1:0").unwrap();
    for datagram in ["one\ntwo\n", "three", "", "four\n\nfive"] {
        input.send_to(datagram.as_bytes(), relay.input()).unwrap();
    }
    let report = relay.end();
    assert_eq!((report.events_in, report.events_out), (7, 7));
    let expected = ["one", "two", "three", "", "four", "", "five"];
    for event in expected {
        let mut datagram = [0; 100];
        let length = output.recv(&mut datagram).unwrap();
        assert_eq!(&datagram[..length], event.as_bytes());
    }
}

#[test]
fn refused_datagrams_are_counted_as_sent_or_dropped() {
    let gone = UdpSocket::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let relay = run(options("tcp://127.0.0.1:0", &format!("udp://{gone}")));
    let mut stream = relay.connect();
    send_in_pieces(&lines(500), 500, &mut stream);
    finish(stream);
    assert_eq!(relay.end().events_in, 500);
}

#[test]
fn datagrams_beyond_the_buffer_are_dropped_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (into, out) = (folder.path().join("in"), folder.path().join("out"));
    let mut options = options(
        &endpoint_of("unixgram", &into),
        &endpoint_of("unixgram", &out),
    );
    options.buffer_events = 10;
    let relay = run(options);
    let input = UnixDatagram::unbound().unwrap();
    for _ in 0..10 {
        // No socket is bound to the output, so what is not in hand stays in the buffer.
        input
            .send_to("event\n".repeat(100).as_bytes(), &into)
            .unwrap();
    }
    relay.stop();
    // The events that the relay holds go to a socket that is bound in time.
    let collector = collect_datagrams(&out);
    let report = relay.end();
    assert_eq!(report.events_in, 1000);
    assert!((10..=100).contains(&report.events_out), "{report:?}");
    assert_eq!(report.buffer_events_max, 10);
    let received = collector.all();
    assert_eq!(received.len() as u64, report.events_out);
    assert!(received.iter().all(|event| event == b"event"));
}
