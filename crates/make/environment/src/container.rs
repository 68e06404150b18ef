//! Containers that an engine starts, keeps for a while and removes, repeatedly.
//!
//! Requests use Docker's API over the engine's Unix socket: create, start, and remove. Images are pulled once,
//! before the first container. Each container has a label, by which leftovers can be found. At its end the worker
//! reports the containers that it could not remove, and that some may exist whose creation no response confirmed.
//! An engine that is missing before the run is an error; one that ends during the run is counted.

use std::cell::Cell;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use serde_json::{Map, Value, json};
use stillwell_metric::Outcome;
use stillwell_plan::generator::ContainerPlan;
use stillwell_scope::{Tasks, clock, explain};
use stillwell_units::{ByteSize, Nanos};
use stillwell_wire::client::docker::{Docker, id_of};
use stillwell_wire::client::{RequestError, Response};
use stillwell_worker::{Backoff, Opener, TransportError, Wait, Worker};
use tokio::net::UnixStream;
use tokio::sync::OnceCell;
use tokio::time::sleep;

use crate::wait::wait_for;

/// Time to create, start and remove a container at the end.
const GRACE: Nanos = Nanos::from_secs(8);

/// The longest response of an engine is its progress while it pulls an image.
const ANSWER_MAX: ByteSize = ByteSize::mib(16);

/// The label of every container.
const LABEL: &str = "stillwell.generator";

/// An engine that accepts no connection.
#[derive(Debug, thiserror::Error)]
#[error("connect to the container engine at {}: {reason}; {advice}", socket.display())]
pub struct EngineMissing {
    /// Its socket.
    socket: PathBuf,
    /// The operating system's error.
    reason: String,
    /// The remedy.
    advice: &'static str,
}

impl EngineMissing {
    fn new(socket: &Path, error: &io::Error) -> Self {
        let advice = match error.kind() {
            io::ErrorKind::PermissionDenied => "run as a user who may write to the socket",
            _ => "start the engine, or name its socket under `socket` of the generator",
        };
        Self {
            socket: socket.to_owned(),
            reason: error.to_string(),
            advice,
        }
    }
}

impl From<EngineMissing> for TransportError {
    fn from(source: EngineMissing) -> Self {
        Self::new("find the container engine", source)
    }
}

/// State that all containers of a generator share.
#[derive(Clone, Debug)]
struct Containers {
    plan: Rc<ContainerPlan>,
    engine: Docker,
    /// Body of the request that creates a container.
    body: Rc<[u8]>,
    /// Name and value of the label of its containers.
    label: Rc<str>,
    /// Requested containers that may exist, without an id by which they could be removed.
    unconfirmed: Rc<Cell<u64>>,
    /// Filled once the image is there.
    pulled: Rc<OnceCell<()>>,
}

/// Settings of a container generator, for its worker.
#[derive(Clone, Debug)]
pub(crate) struct ContainersSetup {
    plan: ContainerPlan,
    id: String,
}

impl ContainersSetup {
    /// Connects to the engine once, and sends nothing.
    pub(crate) fn new(plan: &ContainerPlan, id: &str) -> Result<Self, EngineMissing> {
        match wait_for(UnixStream::connect(&plan.socket)).flatten() {
            Ok(_) => {}
            // The engine has as many connections waiting as the system allows.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(EngineMissing::new(&plan.socket, &error)),
        }
        Ok(Self {
            plan: plan.clone(),
            id: id.to_owned(),
        })
    }

    fn on_worker(&self) -> Containers {
        Containers {
            engine: Docker::new(&self.plan.socket, ANSWER_MAX),
            body: description(&self.plan, &self.id).into(),
            label: format!("{LABEL}={}", self.id).into(),
            unconfirmed: Rc::default(),
            plan: Rc::new(self.plan.clone()),
            pulled: Rc::default(),
        }
    }
}

impl Opener for ContainersSetup {
    fn grace(&self) -> Nanos {
        GRACE
    }

    /// Containers that are not removed by then remain.
    fn grace_at_the_end(&self) -> Nanos {
        GRACE
    }

    /// Containers at a time.
    fn tasks_of(&self, _connections: u16) -> usize {
        usize::try_from(self.plan.count).unwrap_or(1)
    }

    fn open(&self, worker: &Rc<Worker>, _connections: u16, tasks: &mut Tasks) {
        let containers = self.on_worker();
        for _ in 0..self.plan.count {
            tasks.spawn(churn(Rc::clone(worker), containers.clone()));
        }
    }
}

/// Returns the body of the request that creates a container.
fn description(plan: &ContainerPlan, id: &str) -> Vec<u8> {
    let mut labels: Map<String, Value> = Map::new();
    labels.insert(LABEL.to_owned(), id.into());
    for (name, value) in &plan.labels {
        labels.insert(name.clone(), value.clone().into());
    }
    let ports = plan.ports.iter().map(|port| (port.clone(), json!({})));
    let ports: Map<String, Value> = ports.collect();
    let mut body = json!({
        "Image": format!("{}:{}", plan.repository, plan.tag),
        "Env": plan.environment,
        "Labels": labels,
        "NetworkDisabled": plan.is_offline,
        "ExposedPorts": ports,
    });
    if let Some(arguments) = &plan.arguments {
        body["Cmd"] = json!(arguments);
    }
    body.to_string().into_bytes()
}

/// Returns the name of a container in messages.
fn shown(id: &str) -> String {
    format!("container `{id}`")
}

/// Notes a container that exists, with the command that removes it.
fn note_left(worker: &Worker, id: &str, why: &str) {
    worker.left(&shown(id), &format!("docker rm -f {id}"), why);
}

/// Returns true if a container may exist whose id is not in the result of the request to create it.
fn may_be_unknown(created: &Result<Response, RequestError>) -> bool {
    match created {
        Ok(Response { status: 201, body }) => id_of(body).is_none(),
        Ok(response) => !(300..500).contains(&response.status),
        Err(error) => error.was_sent(),
    }
}

/// Starts and removes containers until the worker ends; removes the last one.
async fn churn(worker: Rc<Worker>, containers: Containers) {
    let mut backoff = Backoff::new();
    while !worker.is_ending() {
        let begun = clock::now();
        worker.begin_paced();
        let pulled = worker.unless_ending(containers.pulled());
        let Some(pulled) = worker.wait(Wait::Other, pulled).await else {
            worker.shard.count(Outcome::Unfinished);
            return;
        };
        // A requested container is waited for, also at the end of the worker: it cannot be removed without its
        // id.
        let (id, outcome) = match pulled {
            Ok(()) => worker.wait(Wait::Other, containers.start(&worker)).await,
            Err(outcome) => (None, outcome),
        };
        worker.shard.count(outcome);
        if outcome == Outcome::Ok {
            worker.end_paced();
            let now = clock::now();
            worker.state.borrow_mut().record_answer(begun, begun, now);
            backoff.reset();
            containers.live(&worker).await;
        }
        if let Some(id) = id {
            // Also at the end of the worker, which waits a moment for it.
            let removal = containers.remove(&worker, &id);
            worker.wait(Wait::Other, removal).await;
        }
        if outcome != Outcome::Ok && worker.pause(&mut backoff).await.is_none() {
            return;
        }
    }
}

impl Containers {
    /// Once the image is there.
    async fn pulled(&self) -> Result<(), Outcome> {
        let pull = || async { self.pull().await };
        self.pulled.get_or_try_init(pull).await.copied()
    }

    /// Creates and starts a container. Returns its id, if it was created, and the outcome. Must run to its end;
    /// otherwise a created container would remain.
    async fn start(&self, worker: &Worker) -> (Option<String>, Outcome) {
        // Before the request: the worker may end without a response.
        self.note_unconfirmed(worker);
        let created = self.engine.send("POST", "/containers/create", &self.body);
        let created = created.await;
        if !may_be_unknown(&created) {
            self.resolve(worker);
        }
        let id = match created {
            Ok(Response { status: 201, body }) => id_of(&body),
            Ok(response) => return (None, Outcome::of_status(response.status)),
            Err(error) => return (None, error.outcome()),
        };
        let Some(id) = id else {
            return (None, Outcome::Malformed);
        };
        note_left(worker, &id, "there was no time to remove it");
        let path = format!("/containers/{id}/start");
        let outcome = match self.engine.send("POST", &path, b"").await {
            Ok(response) => Outcome::of_status(response.status),
            Err(error) => error.outcome(),
        };
        (Some(id), outcome)
    }

    /// Notes one more container that may exist. All of them are one note, as one command removes them.
    fn note_unconfirmed(&self, worker: &Worker) {
        self.unconfirmed.set(self.unconfirmed.get() + 1);
        let label = &self.label;
        let remedy = format!("docker rm -f $(docker ps -aq --filter 'label={label}')");
        let why = "no response confirmed its creation";
        worker.left(&self.unconfirmed_shown(), &remedy, why);
    }

    /// One of them does not exist, or its id is available.
    fn resolve(&self, worker: &Worker) {
        self.unconfirmed
            .set(self.unconfirmed.get().saturating_sub(1));
        if self.unconfirmed.get() == 0 {
            worker.not_left(&self.unconfirmed_shown());
        }
    }

    fn unconfirmed_shown(&self) -> String {
        format!("perhaps a container with the label `{}`", self.label)
    }

    /// Removes a container; the worker reports one that remains.
    async fn remove(&self, worker: &Worker, id: &str) {
        match self.engine.remove(id).await {
            Ok(()) => worker.not_left(&shown(id)),
            Err(error) => note_left(worker, id, &explain(&error)),
        }
    }

    /// Has the engine get the image, if it is not there.
    async fn pull(&self) -> Result<(), Outcome> {
        let image = format!("{}:{}", self.plan.repository, self.plan.tag);
        let path = format!("/images/{image}/json");
        let is_there = self.engine.send("GET", &path, b"").await;
        if is_there.map_err(|error| error.outcome())?.status == 200 {
            return Ok(());
        }
        let (name, tag) = (&self.plan.repository, &self.plan.tag);
        let path = format!("/images/create?fromImage={name}&tag={tag}");
        let response = self.engine.send("POST", &path, b"").await;
        let response = response.map_err(|error| error.outcome())?;
        // An error after the response has begun is in its last line.
        let has_failed = response.body.windows(8).any(|text| text == b"\"error\":");
        match Outcome::of_status(response.status) {
            Outcome::Ok if has_failed => Err(Outcome::Status5xx),
            Outcome::Ok => Ok(()),
            outcome => Err(outcome),
        }
    }

    async fn live(&self, worker: &Worker) {
        let lives = async {
            match self.plan.lifetime {
                Some(lifetime) => sleep(lifetime.as_duration()).await,
                None => std::future::pending().await,
            }
        };
        worker.wait(Wait::Other, worker.unless_ending(lives)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_container_is_described_as_docker_requires() {
        let plan = ContainerPlan {
            socket: "/run/x".into(),
            repository: "busybox".to_owned(),
            tag: "1.36".to_owned(),
            arguments: Some(vec!["sleep".to_owned(), "60".to_owned()]),
            environment: vec!["A=b".to_owned()],
            labels: vec![("team".to_owned(), "x".to_owned())],
            is_offline: true,
            ports: vec!["8080/tcp".to_owned()],
            lifetime: None,
            count: 1,
        };
        let body: Value = serde_json::from_slice(&description(&plan, "one")).unwrap();
        let expected = json!({
            "Image": "busybox:1.36",
            "Cmd": ["sleep", "60"],
            "Env": ["A=b"],
            "Labels": {"stillwell.generator": "one", "team": "x"},
            "NetworkDisabled": true,
            "ExposedPorts": {"8080/tcp": {}},
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_creation_without_an_id_or_a_refusal_may_have_left_a_container() {
        let response = |status, body: &[u8]| {
            let body = body.to_vec();
            Ok(Response { status, body })
        };
        let late = |is_connected| {
            Err(RequestError::TimedOut {
                after: Nanos::SECOND,
                is_connected,
            })
        };
        for (created, may_exist) in [
            (response(201, b"{\"Id\":\"ab12\"}"), false),
            (response(201, b"{}"), true),
            (response(200, b""), true),
            (response(404, b""), false),
            (response(409, b""), false),
            (response(500, b""), true),
            (late(false), false),
            (late(true), true),
        ] {
            assert_eq!(may_be_unknown(&created), may_exist, "{created:?}");
        }
    }
}
