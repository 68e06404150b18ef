//! Containers, against exchanges as Docker's API has them: no engine runs here.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};

use stillwell_metric::Outcome;
use stillwell_plan::generator::ContainerPlan;
use stillwell_plan::{PayloadPlan, TransportPlan};
use stillwell_testkit::ApiRequest;
use stillwell_units::Nanos;

use crate::{Fixture, LONG, plan, prepare, wait_until};

const ID: &str = "4fa6e0f0c678";

/// A request, as method and path, and its response: status and body.
const RECORDED: [(&str, &str, &str); 5] = [
    (
        "GET /images/busybox:1.36/json",
        "404 Not Found",
        "{\"message\":\"No such image: busybox:1.36\"}\n",
    ),
    (
        "POST /images/create?fromImage=busybox&tag=1.36",
        "200 OK",
        "{\"status\":\"Pulling from library/busybox\",\"id\":\"1.36\"}\r\n",
    ),
    (
        "POST /containers/create",
        "201 Created",
        "{\"Id\":\"4fa6e0f0c678\",\"Warnings\":[]}\n",
    ),
    ("POST /containers/4fa6e0f0c678/start", "204 No Content", ""),
    (
        "DELETE /containers/4fa6e0f0c678?force=true&v=true",
        "204 No Content",
        "",
    ),
];

/// The answer as an engine frames it: in chunks while it pulls.
fn framed(status: &str, body: &str) -> String {
    let head =
        format!("HTTP/1.1 {status}\r\nApi-Version: 1.45\r\nServer: Docker/26.1.4 (linux)\r\n");
    if status.starts_with("204") {
        format!("{head}\r\n")
    } else if status.starts_with("200") {
        let length = body.len();
        format!("{head}Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{body}\r\n0\r\n\r\n")
    } else {
        format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
    }
}

fn containers(socket: &std::path::Path, count: u32) -> TransportPlan {
    TransportPlan::Container(Box::new(ContainerPlan {
        socket: socket.to_owned(),
        repository: "busybox".to_owned(),
        tag: "1.36".to_owned(),
        arguments: Some(vec!["sleep".to_owned(), "60".to_owned()]),
        environment: Vec::new(),
        labels: Vec::new(),
        is_offline: false,
        ports: Vec::new(),
        lifetime: Some(Nanos::from_millis(1)),
        count,
    }))
}

/// Answers one question, once `hold` returns true for it; gives its first line's method and
/// path, and its body. `None` if the peer only connected, or gets no answer.
fn answer(
    mut peer: UnixStream,
    failing: &str,
    hold: &dyn Fn(&str) -> bool,
) -> std::io::Result<Option<(String, String)>> {
    let Some(request) = ApiRequest::receive(&mut peer)? else {
        return Ok(None);
    };
    let requested = request.method_and_path;
    if !hold(&requested) {
        return Ok(None);
    }
    let known = RECORDED
        .iter()
        .find(|(question, ..)| *question == requested);
    let response = match known {
        Some((question, ..)) if *question == failing => framed("409 Conflict", "{}"),
        Some((_, status, body)) => framed(status, body),
        None => framed("400 Bad Request", "{}"),
    };
    peer.write_all(response.as_bytes())?;
    Ok(Some((requested, request.body)))
}

type Requests = Arc<Mutex<Vec<(String, String)>>>;

/// An engine that fails requests `failing`, and its received requests.
fn engine(
    fixture: &mut Fixture,
    listener: UnixListener,
    failing: &'static str,
) -> (Requests, Receiver<()>) {
    held(fixture, listener, failing, |_, _| true)
}

/// The same, which calls `hold` with each question, and with a function that is true once the
/// end has come, before it answers; a question for which that is false gets no answer.
fn held(
    fixture: &mut Fixture,
    listener: UnixListener,
    failing: &'static str,
    hold: impl Fn(&str, &dyn Fn() -> bool) -> bool + Send + 'static,
) -> (Requests, Receiver<()>) {
    let requested: Requests = Arc::default();
    let kept = Arc::clone(&requested);
    let ended = fixture.beside("engine", move |stop| {
        listener.set_nonblocking(true)?;
        loop {
            match listener.accept() {
                Ok((peer, _)) => {
                    peer.set_nonblocking(false)?;
                    let hold = |requested: &str| hold(requested, &|| stop.is_cancelled());
                    let answered = answer(peer, failing, &hold)?;
                    kept.lock().unwrap().extend(answered);
                }
                // The last question comes after the stop.
                Err(_)
                    if stop.is_cancelled()
                        && kept.lock().unwrap().last().is_none_or(is_removal) =>
                {
                    return Ok(());
                }
                Err(_) => std::thread::yield_now(),
            }
        }
    });
    (requested, ended)
}

/// Stops it; gives the messages of threads that failed.
fn failures(fixture: Fixture) -> Vec<String> {
    fixture.stop.cancel();
    let ends = fixture.scope.close(Nanos::from(LONG)).into_iter();
    let failures = ends.filter_map(|end| end.result.err());
    failures
        .map(|failure| stillwell_scope::explain(&failure))
        .collect()
}

fn is_removal((requested, _): &(String, String)) -> bool {
    requested.starts_with("DELETE")
}

// compat: lading, generators | container | works
#[test]
fn containers_are_created_and_removed_through_the_engine() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut plan = plan(containers(&socket, 1));
    plan.payload = PayloadPlan::PACE;
    let mut fixture = Fixture::start(&plan);
    let (requested, _ended) = engine(&mut fixture, listener, "");
    wait_until(|| fixture.total(|shard| &shard.events) >= 3);
    let shards = fixture.finish();
    let requested = requested.lock().unwrap();
    let questions: Vec<&str> = requested
        .iter()
        .map(|(question, _)| question.as_str())
        .collect();
    // The image is requested once, and each container is removed, the last one too.
    assert_eq!(questions[..2], [RECORDED[0].0, RECORDED[1].0]);
    for churn in questions[2..].chunks(3) {
        assert_eq!(churn, [RECORDED[2].0, RECORDED[3].0, RECORDED[4].0]);
    }
    let created = questions
        .iter()
        .filter(|single| **single == RECORDED[2].0)
        .count() as u64;
    assert_eq!(shards[0].events.total(), created);
    assert_eq!(shards[0].outcomes[Outcome::Ok.index()].total(), created);
    assert!(
        requested[2].1.contains("\"Image\":\"busybox:1.36\""),
        "{}",
        requested[2].1
    );
    assert!(questions[3].contains(ID));
}

#[test]
fn a_container_that_does_not_start_is_counted_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut plan = plan(containers(&socket, 1));
    plan.payload = PayloadPlan::PACE;
    let mut fixture = Fixture::start(&plan);
    let (requested, _ended) = engine(&mut fixture, listener, RECORDED[3].0);
    wait_until(|| fixture.outcomes(Outcome::Status4xx) >= 2);
    let shards = fixture.finish();
    assert_eq!(shards[0].events.total(), 0);
    let requested = requested.lock().unwrap();
    let count = |question: &str| {
        requested
            .iter()
            .filter(|(question_sent, _)| question_sent == question)
            .count()
    };
    assert_eq!(count(RECORDED[2].0), count(RECORDED[4].0));
}

#[test]
fn a_container_that_is_not_removed_is_named_with_the_command_that_removes_it() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut plan = plan(containers(&socket, 1));
    plan.payload = PayloadPlan::PACE;
    let mut fixture = Fixture::start(&plan);
    let (_requested, _ended) = engine(&mut fixture, listener, RECORDED[4].0);
    wait_until(|| fixture.total(|shard| &shard.events) >= 1);
    let failures = failures(fixture);
    assert_eq!(failures.len(), 1, "{failures:?}");
    for part in [
        "left behind: container `4fa6e0f0c678`",
        "the container engine answers 409",
        "remove it with `docker rm -f 4fa6e0f0c678`",
    ] {
        assert!(failures[0].contains(part), "{failures:?}");
    }
}

/// Such a container stayed, and no message named it.
#[test]
fn a_container_whose_creation_got_no_answer_is_reported_although_later_ones_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut plan = plan(containers(&socket, 1));
    plan.payload = PayloadPlan::PACE;
    let mut fixture = Fixture::start(&plan);
    let is_first = AtomicBool::new(true);
    let (_requested, _ended) = held(&mut fixture, listener, "", move |question, _| {
        question != RECORDED[2].0 || !is_first.swap(false, Ordering::SeqCst)
    });
    wait_until(|| fixture.total(|shard| &shard.events) >= 1);
    let failures = failures(fixture);
    assert_eq!(failures.len(), 1, "{failures:?}");
    for part in [
        "left behind: perhaps a container with the label `stillwell.generator=one`",
        "no response confirmed its creation",
        "`docker rm -f $(docker ps -aq --filter 'label=stillwell.generator=one')`",
    ] {
        assert!(failures[0].contains(part), "{failures:?}");
    }
}

/// It was given up in the middle, and the container stayed.
#[test]
fn a_container_that_is_being_created_at_the_end_is_removed() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut plan = plan(containers(&socket, 1));
    plan.payload = PayloadPlan::PACE;
    let mut fixture = Fixture::start(&plan);
    let is_requested = Arc::new(AtomicBool::new(false));
    let describe = Arc::clone(&is_requested);
    let (requested, _ended) = held(&mut fixture, listener, "", move |question, is_over| {
        if question == RECORDED[2].0 {
            describe.store(true, Ordering::SeqCst);
            while !is_over() {
                std::thread::yield_now();
            }
        }
        true
    });
    wait_until(|| is_requested.load(Ordering::SeqCst));
    fixture.finish();
    let requested = requested.lock().unwrap();
    let questions: Vec<&str> = requested
        .iter()
        .map(|(question, _)| question.as_str())
        .collect();
    assert_eq!(questions, RECORDED.map(|(question, ..)| question));
}

#[test]
fn an_engine_that_ends_during_the_run_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let mut plan = plan(containers(&socket, 2));
    plan.payload = PayloadPlan::PACE;
    let prepared = prepare(&plan, None).unwrap();
    drop(listener);
    let fixture = Fixture::start_prepared(prepared, false);
    wait_until(|| fixture.outcomes(Outcome::ConnectRefused) >= 2);
    fixture.finish();
}
