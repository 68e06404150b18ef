//! A container as target, against exchanges as Docker's API has them: its process is a
//! relay that runs here, since no engine does.

use std::io::Write;
use std::os::unix::net::UnixListener;
use std::path::Path;

use stillwell_capture::Capture;
use stillwell_metric::catalogue as metric;
use stillwell_testkit::{ApiRequest, Process};

use crate::suite::{LONG, Suite, assert_code, assert_holds};

const SEED: &str = "[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4, 6, 2, 6, 4, 3, 3, 8, 3, 2, 7, 9, 5]";

/// An engine in which one container runs, whose process is `pid`.
#[expect(
    clippy::disallowed_methods,
    reason = "a peer of the test, which ends with its process"
)]
fn engine(socket: &Path, pid: u32) {
    let listener = UnixListener::bind(socket).unwrap();
    std::thread::spawn(move || {
        while let Ok((mut peer, _)) = listener.accept() {
            let request = ApiRequest::receive(&mut peer).ok().flatten();
            let body = format!(
                "{{\"Id\":\"4fa6e0f0c678\",\"State\":{{\"Status\":\"running\",\"Running\":true,\"Pid\":{pid},\
                 \"ExitCode\":0}}}}"
            );
            let status = match request {
                Some(request) if request.method_and_path == "GET /containers/web/json" => "200 OK",
                _ => "400 Bad Request",
            };
            let length = body.len();
            let response = format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}");
            peer.write_all(response.as_bytes()).ok();
        }
    });
}

fn write(suite: &Suite) {
    let (input, output) = (&suite.listen, &suite.sink);
    let text = format!(
        "generator:\n  - tcp:\n      seed: {SEED}\n      addr: \"{input}\"\n      variant: syslog5424\n      \
         bytes_per_second: \"1 MiB\"\n      maximum_prebuild_cache_size_bytes: \"2 MiB\"\n\
         blackhole:\n  - tcp:\n      binding_addr: \"{output}\"\n"
    );
    suite.file("lading.yaml", &text);
}

// compat: lading, command line | --target-container | works
#[test]
fn a_container_is_watched_by_the_process_that_its_engine_names() {
    let suite = Suite::new();
    write(&suite);
    let (input, output) = (
        format!("tcp://{}", suite.listen),
        format!("tcp://{}", suite.sink),
    );
    let words = ["relay", "--in", &input, "--out", &output];
    let relay = Process::start(&mut suite.stillwell(&words));
    let socket = suite.path("engine.sock");
    engine(&socket, relay.id());
    let mut command = suite.stillwell(&["observe", "lading.yaml", "--results", "results"]);
    command.args([
        "--target-container",
        "web",
        "--warmup",
        "200ms",
        "--measure",
        "1s",
    ]);
    command.env("DOCKER_HOST", format!("unix://{}", socket.display()));
    let ended = Process::start(&mut command).finish(LONG);
    assert!(matches!(ended.code, 0 | 4), "{}", ended.stderr);
    let capture = Capture::open(&suite.results()).unwrap();
    let count = |metric: metric::Metric| capture.series.named(metric.name).count();
    assert!(count(metric::TARGET_RSS) > 0 && count(metric::BYTES_RECEIVED) > 0);
    let events = std::fs::read_to_string(suite.results().join("events.jsonl")).unwrap();
    let what = format!("the container 4fa6e0f0c678 runs as process {}", relay.id());
    assert_holds(&events, &[&what]);
    // It was there before us, and goes on.
    assert!(Path::new(&format!("/proc/{}/exe", relay.id())).exists());
    drop(relay);
}

#[test]
fn an_engine_that_is_not_there_is_named() {
    let suite = Suite::new();
    write(&suite);
    let call = |host: &str, name: &str| {
        let mut command = suite.stillwell(&["observe", "lading.yaml", "--results", "results"]);
        command
            .args(["--target-container", name])
            .env("DOCKER_HOST", host);
        Process::start(&mut command).finish(LONG)
    };
    let ended = call("unix:///no/engine.sock", "web");
    assert_code(&ended, 3);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert_holds(&output, &["/no/engine.sock"]);
    let ended = call("tcp://10.0.0.1:2375", "web");
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["DOCKER_HOST=tcp://10.0.0.1:2375", "unix://"],
    );
    let ended = call("unix:///no/engine.sock", "../web");
    assert_code(&ended, 2);
    assert_holds(&ended.stderr, &["is not a container name"]);
}

/// It counted refused connections until its end, and exited with 0.
#[test]
fn a_generator_of_containers_without_an_engine_names_the_socket_before_the_run() {
    let suite = Suite::new();
    let socket = suite.path("engine.sock");
    let text = format!(
        "phases: {{warmup: 100ms, measure: 700ms, drain: 1s, quiet: 50ms}}
workload:
  generators:
    - container: {{repository: busybox, socket: '{}'}}
      rate: max
",
        socket.display()
    );
    suite.file("run.yaml", &text);
    let named = format!("connect to the container engine at {}", socket.display());
    let observe = |results: &str| {
        let words = ["observe", "run.yaml", "--results", results];
        let ended = Process::start(&mut suite.stillwell(&words)).finish(LONG);
        assert_code(&ended, 3);
        assert_holds(&ended.stdout, &[&named, "start the engine", "`socket`"]);
    };
    observe("missing");
    // The file of an engine that has ended remains.
    drop(UnixListener::bind(&socket).unwrap());
    observe("ended");
}
