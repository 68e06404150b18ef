use std::error::Error;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixListener;

use stillwell_metric::{Shard, catalogue};
use stillwell_plan::SinkProtocol;
use stillwell_plan::sink::SinkBody;
use stillwell_sink::bind;
use stillwell_units::Nanos;

use crate::support::{anywhere, exists, http, plan, read_all, run};

fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[test]
fn a_taken_port_is_reported_at_once_and_with_what_to_do() {
    let listener = TcpListener::bind(anywhere()).unwrap();
    let address = listener.local_addr().unwrap();
    let error = bind(&plan(SinkProtocol::Tcp { address })).unwrap_err();
    let text = chain(&error);
    let start = format!("bind sink `under-test`: listen on {address}: it is already in use; ");
    assert!(text.starts_with(&start), "{text}");
}

#[test]
fn an_answer_that_cannot_be_sent_is_reported_at_once() {
    let protocol = SinkProtocol::Http {
        address: anywhere(),
        status: 204,
        headers: Vec::new(),
        body: SinkBody::Static(b"x".to_vec()),
        delay: Nanos::ZERO,
        connections_max: 1,
    };
    assert_eq!(
        chain(&bind(&plan(protocol)).unwrap_err()),
        "build the response of sink `under-test`: status 204 has no body"
    );
}

#[test]
fn a_sink_that_is_never_started_leaves_no_socket_behind() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sink.sock");
    let bound = bind(&plan(SinkProtocol::UnixStream { path: path.clone() })).unwrap();
    assert!(exists(&path));
    drop(bound);
    assert!(!exists(&path));
}

#[test]
fn a_file_that_another_put_in_its_place_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sink.sock");
    let bound = bind(&plan(SinkProtocol::UnixStream { path: path.clone() })).unwrap();
    std::fs::rename(&path, folder.path().join("elsewhere")).unwrap();
    let listener = UnixListener::bind(&path).unwrap();
    drop(bound);
    assert!(exists(&path));
    drop(listener);
}

#[test]
fn idle_connections_do_not_keep_a_sink_from_ending() {
    for protocol in [
        SinkProtocol::Tcp {
            address: anywhere(),
        },
        http(Nanos::ZERO, 100),
        // Its connections hold all the room that there is.
        http(Nanos::ZERO, 2),
    ] {
        let sink = run(&plan(protocol));
        let mut streams: Vec<TcpStream> = (0..3)
            .map(|_| TcpStream::connect(sink.address()).unwrap())
            .collect();
        let counts = sink.end();
        assert_eq!(counts.errors, 0);
        assert!(counts.connections >= 2);
        assert!(read_all(&mut streams[0]).is_empty());
    }
}

#[test]
fn shards_are_labelled_and_account_for_time() {
    let sink = run(&plan(SinkProtocol::Tcp {
        address: anywhere(),
    }));
    let shard = sink.shards()[0].clone();
    sink.end();
    let mut samples = Vec::new();
    shard.sample(&mut samples);
    let labels: Vec<(&str, &str)> = samples[0].labels.iter().collect();
    assert_eq!(
        labels,
        [
            ("component", "sink"),
            ("component_name", "tcp"),
            ("id", "under-test"),
            ("worker", "0")
        ]
    );
    let running = samples
        .iter()
        .find(|sample| sample.name == catalogue::WORKER_RUNNING.into())
        .unwrap();
    assert!(running.value.number().unwrap() > 0.0);
}
