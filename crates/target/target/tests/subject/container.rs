//! Containers, against exchanges as Docker's API has them: no engine runs here.

use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use stillwell_plan::{ContainerOrigin, ContainerSubject, ImagePlan, StopPlan, SubjectSignal};
use stillwell_scope::{Token, clock};
use stillwell_target::{Container, ContainerError, Limits, Subject};
use stillwell_units::{ByteSize, Nanos, RunId};

const ID: &str = "4fa6e0f0c678";

/// An engine that says `script`, one answer for each question; what it is asked.
struct Engine {
    folder: tempfile::TempDir,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Engine {
    #[expect(
        clippy::disallowed_methods,
        reason = "a peer of the test, which ends with its process"
    )]
    fn start(script: &[(&'static str, String)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("engine")).unwrap();
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let (told, script) = (Arc::clone(&asked), script.to_vec());
        std::thread::spawn(move || {
            // The last answer is given again and again.
            let last = script.last().cloned().unwrap();
            for answer in script.into_iter().chain(std::iter::repeat(last)) {
                let Ok((peer, _)) = listener.accept() else {
                    return;
                };
                let question = serve(peer, &answer).unwrap_or_default();
                told.lock().unwrap().push(question);
            }
        });
        Self { folder, asked }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("engine")
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

/// Reads one question whole and answers it; its first line and its body.
fn serve(mut peer: UnixStream, (status, body): &(&str, String)) -> std::io::Result<String> {
    let mut read = Vec::new();
    let mut room = [0; 4096];
    let asked = loop {
        let length = peer.read(&mut room)?;
        read.extend_from_slice(&room[..length]);
        let text = String::from_utf8_lossy(&read).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let long = head.lines().find_map(|line| {
            let line = line.to_ascii_lowercase();
            line.strip_prefix("content-length: ")?.parse::<usize>().ok()
        });
        if body.len() >= long.unwrap_or(0) {
            let line = head.lines().next().unwrap_or_default();
            break format!("{} {body}", line.trim_end_matches(" HTTP/1.1"));
        }
    };
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\nApi-Version: 1.45\r\nServer: Docker/26.1.4 (linux)\r\n");
    let said = if status.starts_with("204") {
        format!("{head}\r\n")
    } else {
        format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
    };
    peer.write_all(said.as_bytes())?;
    Ok(asked.trim_end().to_owned())
}

/// What `docker inspect` tells, as far as it matters.
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

fn named(socket: &Path) -> ContainerSubject {
    ContainerSubject {
        socket: socket.to_owned(),
        origin: ContainerOrigin::Named("web".to_owned()),
    }
}

fn image(socket: &Path) -> ContainerSubject {
    ContainerSubject {
        socket: socket.to_owned(),
        origin: ContainerOrigin::Image(ImagePlan {
            image: "busybox:1.36".to_owned(),
            ..ImagePlan::default()
        }),
    }
}

fn find(plan: &ContainerSubject, limits: &Limits) -> Result<Container, ContainerError> {
    let deadline = clock::now() + Nanos::from_millis(600);
    let run = RunId::from_bytes([7; 16]);
    Container::find(plan, limits, run, deadline, &Token::new())
}

const STOP: StopPlan = StopPlan {
    signal: SubjectSignal::Term,
    grace: Nanos::from_millis(1500),
};

#[test]
fn a_container_that_is_named_is_waited_for_and_left_alone() {
    let engine = Engine::start(&[
        missing(),
        inspected("created", 0, 0),
        inspected("running", 4242, 0),
    ]);
    let found = find(&named(&engine.socket()), &Limits::default()).unwrap();
    assert_eq!((found.pid(), found.id()), (4242, ID));
    let stopped = found.stop(&Subject::none(), STOP);
    assert!(!stopped.killed);
    assert_eq!(engine.asked(), ["GET /containers/web/json"; 3]);
}

#[test]
fn limits_that_are_asked_for_are_set_on_a_container_that_runs() {
    let engine = Engine::start(&[
        inspected("running", 4242, 0),
        ("200 OK", "{\"Warnings\":[]}\n".to_owned()),
    ]);
    let limits = Limits {
        memory: Some(ByteSize::mib(64)),
        cpus: Some(vec![0]),
    };
    find(&named(&engine.socket()), &limits).unwrap();
    let told = "POST /containers/4fa6e0f0c678/update \
                {\"CpusetCpus\":\"0\",\"Memory\":67108864,\"MemorySwap\":67108864}";
    assert_eq!(engine.asked().last().map(String::as_str), Some(told));
}

#[test]
fn a_container_that_never_runs_is_told_as_it_was_seen() {
    let engine = Engine::start(&[inspected("exited", 0, 1)]);
    let error = find(&named(&engine.socket()), &Limits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "find the container `web`: it does not run, it is exited"
    );
    let engine = Engine::start(&[missing()]);
    let error = find(&named(&engine.socket()), &Limits::default()).unwrap_err();
    assert!(
        error.to_string().contains("No such container: web"),
        "{error}"
    );
}

#[test]
fn an_engine_that_is_not_there_or_talks_nonsense_is_named() {
    let nowhere = Path::new("/no/engine/here.sock");
    let error = find(&named(nowhere), &Limits::default()).unwrap_err();
    assert!(
        error.to_string().contains("/no/engine/here.sock"),
        "{error}"
    );
    let engine = Engine::start(&[("200 OK", "[]".to_owned())]);
    let error = find(&named(&engine.socket()), &Limits::default()).unwrap_err();
    assert!(matches!(error, ContainerError::Refused { .. }), "{error}");
}

#[test]
fn a_container_of_an_image_is_made_stopped_and_removed() {
    let engine = Engine::start(&[
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
    let found = find(&image(&engine.socket()), &Limits::default()).unwrap();
    let stopped = found.stop(&Subject::none(), STOP);
    assert_eq!(stopped.exit.and_then(|exit| exit.code), Some(3));
    let asked = engine.asked();
    let lines: Vec<&str> = asked
        .iter()
        .map(|one| one.split(" {").next().unwrap_or_default())
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
    assert!(asked[0].contains("\"NetworkMode\":\"host\""), "{asked:?}");
}

/// A run may have ended before its engine has made the container.
#[test]
fn a_container_that_nobody_stops_does_not_outlive_us() {
    let engine = Engine::start(&[
        (
            "201 Created",
            format!("{{\"Id\":\"{ID}\",\"Warnings\":[]}}\n"),
        ),
        ("204 No Content", String::new()),
        inspected("running", 4242, 0),
        ("204 No Content", String::new()),
    ]);
    drop(find(&image(&engine.socket()), &Limits::default()).unwrap());
    let asked = engine.asked();
    assert!(asked.last().unwrap().starts_with("DELETE "), "{asked:?}");
}

#[test]
fn an_image_that_is_missing_is_told_and_not_pulled() {
    let engine = Engine::start(&[(
        "404 Not Found",
        "{\"message\":\"No such image: busybox:1.36\"}\n".to_owned(),
    )]);
    let error = find(&image(&engine.socket()), &Limits::default()).unwrap_err();
    let told = error.to_string();
    assert!(told.contains("No such image: busybox:1.36"), "{told}");
    assert!(told.contains("not pulled"), "{told}");
    assert_eq!(engine.asked().len(), 1);
}

#[test]
fn a_container_that_ends_at_once_is_removed_and_told() {
    let engine = Engine::start(&[
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
    let asked = engine.asked();
    assert!(asked.last().unwrap().starts_with("DELETE "), "{asked:?}");
}
