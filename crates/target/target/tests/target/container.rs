//! Containers, against exchanges as Docker's API has them: no engine runs here.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::{ContainerOrigin, ContainerTarget, ImagePlan, StopPlan};
use stillwell_scope::{Token, clock};
use stillwell_target::{Container, ContainerError, Limits, TargetProcess};
use stillwell_testkit::ApiRequest;
use stillwell_units::{ByteSize, Nanos, RunId};

const ID: &str = "4fa6e0f0c678";

/// An engine that returns `script`, one response for each request, and records the requests.
struct ScriptedEngine {
    folder: tempfile::TempDir,
    requests: Arc<Mutex<Vec<String>>>,
}

impl ScriptedEngine {
    #[expect(
        clippy::disallowed_methods,
        reason = "a peer of the test, which ends with its process"
    )]
    fn start(script: &[(&'static str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine")).unwrap();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let (recorded, script) = (Arc::clone(&requests), script.to_vec());
        std::thread::spawn(move || {
            // The last response is repeated.
            let last = script.last().cloned().unwrap();
            for answer in script.into_iter().chain(std::iter::repeat(last)) {
                let Ok((mut peer, _)) = listener.accept() else {
                    return;
                };
                // A client may end as soon as it has its response, so the request is recorded first.
                if let Some(request) = receive(&mut peer) {
                    recorded.lock().unwrap().push(request);
                    peer.write_all(&response(&answer)).unwrap_or_default();
                }
            }
        });
        Self { folder, requests }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine")
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Receives a request. Returns its method and path with its body.
fn receive(peer: &mut UnixStream) -> Option<String> {
    let request = ApiRequest::receive(peer).ok().flatten()?;
    let text = format!("{} {}", request.method_and_path, request.body);
    Some(text.trim_end().to_owned())
}

fn response((status, body): &(&str, String)) -> Vec<u8> {
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nApi-Version: 1.45\r\nServer: Docker/26.1.4 (linux)\r\n");
    let text = if status.starts_with("204") {
        format!("{head}\r\n")
    } else {
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    text.into_bytes()
}

/// The relevant part of the output of `docker inspect`.
fn inspected(status: &str, pid: u32, code: i32) -> (&'static str, String) {
    let running = status == "running";
    let body = format!(
        "{{\"Id\":\"{ID}\",\"Created\":\"2024-05-01T10:00:00Z\",\"Path\":\"/bin/x\",\"State\":{{\"Status\":\
         \"{status}\",\"Running\":{running},\"Paused\":false,\"Pid\":{pid},\"ExitCode\":{code},\"Error\":\
         \"\"}},\"Image\":\"sha256:00\",\"Name\":\"/web\"}}\n"
    );
    ("200 OK", body)
}

fn missing() -> (&'static str, String) {
    (
        "404 Not Found",
        "{\"message\":\"No such container: web\"}\n".to_owned(),
    )
}

fn named(socket: &Path) -> ContainerTarget {
    ContainerTarget {
        socket: socket.to_owned(),
        origin: ContainerOrigin::Named("web".to_owned()),
    }
}

fn image(socket: &Path) -> ContainerTarget {
    ContainerTarget {
        socket: socket.to_owned(),
        origin: ContainerOrigin::Image(ImagePlan {
            image: "busybox:1.36".to_owned(),
            ..ImagePlan::default()
        }),
    }
}

/// In which a container is looked for once or twice.
const SOON: Nanos = Nanos::from_millis(600);

fn find(plan: &ContainerTarget, limits: &Limits) -> Result<Container, ContainerError> {
    find_within(plan, limits, Nanos::from_secs(20))
}

fn find_within(
    plan: &ContainerTarget,
    limits: &Limits,
    longest: Nanos,
) -> Result<Container, ContainerError> {
    let deadline = clock::now() + longest;
    let run = RunId::from_bytes([7; 16]);
    Container::find(plan, limits, run, deadline, &Token::new())
}

const STOP: StopPlan = StopPlan {
    signal: TargetSignal::Term,
    grace: Nanos::from_millis(1500),
};

#[test]
fn an_existing_container_is_waited_for_and_not_changed() {
    let engine = ScriptedEngine::start(&[
        missing(),
        inspected("created", 0, 0),
        inspected("running", 4242, 0),
    ]);
    let existing = find(&named(&engine.socket()), &Limits::default()).unwrap();
    assert_eq!((existing.pid(), existing.id()), (4242, ID));
    let (stopped, failures) = existing.stop(&TargetProcess::none(), STOP);
    assert!(!stopped.killed && failures.is_empty(), "{failures:?}");
    assert_eq!(engine.requests(), ["GET /containers/web/json"; 3]);
}

#[test]
fn requested_limits_are_set_on_an_existing_container() {
    let engine = ScriptedEngine::start(&[
        inspected("running", 4242, 0),
        ("200 OK", "{\"Warnings\":[]}\n".to_owned()),
    ]);
    let limits = Limits {
        memory: Some(ByteSize::mib(64)),
        cpus: Some(vec![0]),
    };
    find(&named(&engine.socket()), &limits).unwrap();
    let update = "POST /containers/4fa6e0f0c678/update \
                {\"CpusetCpus\":\"0\",\"Memory\":67108864,\"MemorySwap\":67108864}";
    assert_eq!(engine.requests().last().map(String::as_str), Some(update));
}

#[test]
fn a_container_that_never_runs_is_reported_with_its_last_state() {
    let engine = ScriptedEngine::start(&[inspected("exited", 0, 1)]);
    let error = find_within(&named(&engine.socket()), &Limits::default(), SOON).unwrap_err();
    assert_eq!(
        error.to_string(),
        "find the container `web`: it does not run, it is exited"
    );
    let engine = ScriptedEngine::start(&[missing()]);
    let error = find_within(&named(&engine.socket()), &Limits::default(), SOON).unwrap_err();
    assert!(
        error.to_string().contains("No such container: web"),
        "{error}"
    );
}

#[test]
fn a_missing_or_malformed_engine_is_named() {
    let nowhere = Path::new("/no/engine/here.sock");
    let error = find(&named(nowhere), &Limits::default()).unwrap_err();
    assert!(
        error.to_string().contains("/no/engine/here.sock"),
        "{error}"
    );
    let engine = ScriptedEngine::start(&[("200 OK", "[]".to_owned())]);
    let error = find(&named(&engine.socket()), &Limits::default()).unwrap_err();
    assert!(matches!(error, ContainerError::Refused { .. }), "{error}");
}

#[test]
fn a_container_of_an_image_is_created_stopped_and_removed() {
    let engine = ScriptedEngine::start(&[
        (
            "201 Created",
            format!("{{\"Id\":\"{ID}\",\"Warnings\":[]}}\n"),
        ),
        ("204 No Content", String::new()),
        inspected("running", 4242, 0),
        ("204 No Content", String::new()),
        inspected("exited", 0, 3),
        ("204 No Content", String::new()),
    ]);
    let existing = find(&image(&engine.socket()), &Limits::default()).unwrap();
    let (stopped, failures) = existing.stop(&TargetProcess::none(), STOP);
    assert_eq!(stopped.exit.and_then(|exit| exit.code), Some(3));
    assert!(failures.is_empty(), "{failures:?}");
    let requests = engine.requests();
    let lines: Vec<&str> = requests
        .iter()
        .map(|request| request.split(" {").next().unwrap_or_default())
        .collect();
    assert_eq!(
        lines,
        [
            "POST /containers/create",
            "POST /containers/4fa6e0f0c678/start",
            "GET /containers/4fa6e0f0c678/json",
            "POST /containers/4fa6e0f0c678/stop?signal=SIGTERM&t=2",
            "GET /containers/4fa6e0f0c678/json",
            "DELETE /containers/4fa6e0f0c678?force=true&v=true",
        ]
    );
    assert!(
        requests[0].contains("\"NetworkMode\":\"host\""),
        "{requests:?}"
    );
}

/// An engine that creates and starts a container, and then returns `script`.
fn started(script: &[(&'static str, String)]) -> ScriptedEngine {
    let created = format!("{{\"Id\":\"{ID}\",\"Warnings\":[]}}\n");
    let start = [
        ("201 Created", created),
        ("204 No Content", String::new()),
        inspected("running", 4242, 0),
    ];
    ScriptedEngine::start(&[&start[..], script].concat())
}

fn refused() -> (&'static str, String) {
    (
        "500 Internal Server Error",
        "{\"message\":\"the device is busy\"}\n".to_owned(),
    )
}

#[test]
fn a_container_that_is_not_removed_is_named_with_the_reason() {
    let engine = started(&[
        ("204 No Content", String::new()),
        inspected("exited", 0, 3),
        refused(),
    ]);
    let created = find(&image(&engine.socket()), &Limits::default()).unwrap();
    let (stopped, failures) = created.stop(&TargetProcess::none(), STOP);
    assert_eq!(stopped.exit.and_then(|exit| exit.code), Some(3));
    let messages: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let reason = "the container engine answers 500, the device is busy";
    let expected = format!("the container {ID} was not removed and may still run: {reason}");
    assert_eq!(messages, [expected.as_str()]);
    let early = started(&[refused()]);
    let created = find(&image(&early.socket()), &Limits::default()).unwrap();
    assert_eq!(created.remove().unwrap_err().to_string(), expected);
    assert_eq!(early.requests().len(), 4, "one attempt to remove it");
}

#[test]
fn a_container_that_the_engine_does_not_stop_has_no_exit_code_and_was_killed() {
    let engine = started(&[
        refused(),
        inspected("running", 4242, 0),
        ("204 No Content", String::new()),
    ]);
    let created = find(&image(&engine.socket()), &Limits::default()).unwrap();
    let (stopped, failures) = created.stop(&TargetProcess::none(), STOP);
    assert_eq!((stopped.exit, stopped.killed), (None, true));
    let messages: Vec<String> = failures.iter().map(ToString::to_string).collect();
    let expected = format!(
        "the container engine failed to stop the container {ID}: it responded with 500, the device \
         is busy"
    );
    assert_eq!(messages, [expected]);
}

/// A run may have ended before its engine has made the container.
#[test]
fn a_created_container_is_removed_when_its_run_ends_early() {
    let engine = ScriptedEngine::start(&[
        (
            "201 Created",
            format!("{{\"Id\":\"{ID}\",\"Warnings\":[]}}\n"),
        ),
        ("204 No Content", String::new()),
        inspected("running", 4242, 0),
        ("204 No Content", String::new()),
    ]);
    drop(find(&image(&engine.socket()), &Limits::default()).unwrap());
    let requests = engine.requests();
    assert!(
        requests.last().unwrap().starts_with("DELETE "),
        "{requests:?}"
    );
}

#[test]
fn a_missing_image_is_an_error_and_is_not_pulled() {
    let engine = ScriptedEngine::start(&[(
        "404 Not Found",
        "{\"message\":\"No such image: busybox:1.36\"}\n".to_owned(),
    )]);
    let error = find(&image(&engine.socket()), &Limits::default()).unwrap_err();
    let message = error.to_string();
    assert!(message.contains("No such image: busybox:1.36"), "{message}");
    assert!(message.contains("not pulled"), "{message}");
    assert_eq!(engine.requests().len(), 1);
}

#[test]
fn a_container_that_ends_at_once_is_removed_and_reported() {
    let engine = ScriptedEngine::start(&[
        (
            "201 Created",
            format!("{{\"Id\":\"{ID}\",\"Warnings\":[]}}\n"),
        ),
        ("204 No Content", String::new()),
        inspected("exited", 0, 127),
        ("204 No Content", String::new()),
    ]);
    let error = find(&image(&engine.socket()), &Limits::default()).unwrap_err();
    assert!(error.to_string().contains("ended with code 127"), "{error}");
    let requests = engine.requests();
    assert!(
        requests.last().unwrap().starts_with("DELETE "),
        "{requests:?}"
    );
}

#[test]
fn a_container_that_does_not_start_and_is_not_removed_is_named() {
    let created = format!("{{\"Id\":\"{ID}\",\"Warnings\":[]}}\n");
    let engine = ScriptedEngine::start(&[
        ("201 Created", created),
        ("204 No Content", String::new()),
        inspected("exited", 0, 127),
        refused(),
    ]);
    let error = find(&image(&engine.socket()), &Limits::default()).unwrap_err();
    let message = error.to_string();
    for part in ["ended with code 127", ID, "the device is busy"] {
        assert!(message.contains(part), "{message}");
    }
}
