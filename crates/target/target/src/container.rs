//! Containers as subjects, by Docker's API over its Unix socket.
//!
//! One that runs already is found by its name, and looked at by the number of its first
//! process. One that is made from an image shares this host's network, is held to its
//! CPUs and memory by the engine, and is stopped and removed in the end. It carries a
//! label by which one that was left behind can be found.
//!
//! Written after the API's documentation and tested on exchanges that are recorded from
//! it: no engine runs where this is developed.

mod body;
mod engine;

use std::io;
use std::path::PathBuf;

use stillwell_plan::{ContainerOrigin, ContainerSubject, StopPlan};
use stillwell_scope::{Token, clock};
use stillwell_units::{Moment, Nanos, RunId};
use stillwell_wire::Timer;

use crate::cgroup::Limits;
use crate::stop::Stopped;
use crate::subject::signal_name;
use crate::{Exit, Subject};
use body::State;
use engine::Engine;

/// Time between two looks at a container that does not run yet.
const LOOK_AGAIN: Nanos = Nanos::from_millis(250);
/// How long the engine may take to answer, beside what it is asked to wait for.
const ANSWER_MAX: Nanos = Nanos::from_secs(10);

/// A container that runs.
#[derive(Debug)]
pub struct Container {
    engine: Engine,
    id: String,
    pid: u32,
    is_ours: bool,
}

/// Why there is no container to measure.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ContainerError {
    /// There is no engine, or it does not talk to us.
    #[error("ask the container engine at {}: {reason}", socket.display())]
    Engine {
        /// Its socket.
        socket: PathBuf,
        /// What went wrong.
        reason: String,
    },
    /// The engine did not do what it was asked.
    #[error("have the container engine {what}: it answers {status}, {message}")]
    Refused {
        /// What it was asked to do.
        what: String,
        /// Its answer.
        status: u16,
        /// Its words.
        message: String,
    },
    /// The container never ran.
    #[error("find the container `{name}`: {seen}")]
    NotRunning {
        /// Its name.
        name: String,
        /// What was seen at last.
        seen: String,
    },
    /// It ended at once.
    #[error("start a container from `{image}`: it ended with code {code}")]
    Ended {
        /// Its image.
        image: String,
        /// Its exit code.
        code: i32,
    },
    /// The run was given up.
    #[error("find a container: given up")]
    Cancelled,
}

impl Container {
    /// Finds or makes the container of `plan` (its places filled in), held to `limits`,
    /// and waits until it runs, for one that is not ours until `deadline`. For a thread
    /// without a runtime.
    ///
    /// # Errors
    /// [`ContainerError`]; nothing of ours is left then, as far as the engine answers.
    pub fn find(
        plan: &ContainerSubject,
        limits: &Limits,
        run: RunId,
        deadline: Moment,
        token: &Token,
    ) -> Result<Self, ContainerError> {
        let engine = Engine::new(&plan.socket);
        let no_runtime = |error: io::Error| ContainerError::Engine {
            socket: plan.socket.clone(),
            reason: error.to_string(),
        };
        let runtime = runtime().map_err(no_runtime)?;
        runtime.block_on(async {
            let mut timer = Timer::new().map_err(no_runtime)?;
            match &plan.origin {
                ContainerOrigin::Named(name) => {
                    let found = find(&engine, name, deadline, &mut timer, token).await?;
                    let (id, pid) = found;
                    if *limits != Limits::default() {
                        let body = body::update(limits);
                        let path = format!("/containers/{id}/update");
                        engine.order("limit it", "POST", &path, &body).await?;
                    }
                    Ok(Self {
                        engine: engine.clone(),
                        id,
                        pid,
                        is_ours: false,
                    })
                }
                ContainerOrigin::Image(image) => {
                    let body = body::create(image, limits, &run.to_string());
                    let id = engine.create(&image.image, &body).await?;
                    let started = start(&engine, &id, &image.image).await;
                    match started {
                        Ok(pid) => Ok(Self {
                            engine: engine.clone(),
                            id,
                            pid,
                            is_ours: true,
                        }),
                        Err(error) => {
                            engine.remove(&id).await;
                            Err(error)
                        }
                    }
                }
            }
        })
    }

    /// The number of its first process, as this host counts.
    #[must_use]
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// What it is known by.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Stops and removes one that we made; one that ran before us goes on. For a thread
    /// without a runtime.
    #[must_use]
    pub fn stop(mut self, subject: &Subject, plan: StopPlan) -> Stopped {
        let mut stopped = Stopped {
            exit: subject.exited(),
            killed: false,
            left_behind: 0,
        };
        let Some(runtime) = runtime().ok().filter(|_| self.is_ours) else {
            return stopped;
        };
        runtime.block_on(async {
            // The engine counts in whole seconds, and kills then.
            let seconds = plan.grace.as_u64().div_ceil(1_000_000_000);
            let signal = signal_name(plan.signal);
            let path = format!("/containers/{}/stop?signal={signal}&t={seconds}", self.id);
            let begun = clock::now();
            let engine = self.engine.within(plan.grace + ANSWER_MAX);
            engine.order("stop it", "POST", &path, b"").await.ok();
            if let Ok(Ok(state)) = self.engine.inspect(&self.id).await {
                stopped.killed = clock::now().since(begun) >= plan.grace && state.code == 137;
                stopped.exit = Some(Exit {
                    code: Some(state.code),
                    ..Exit::default()
                });
            }
            self.engine.remove(&self.id).await;
        });
        // There is nothing left to be removed.
        self.is_ours = false;
        stopped
    }
}

/// One that we made and nobody stops any more, since its run ended before it was there,
/// does not outlive us. For a thread without a runtime, too.
impl Drop for Container {
    fn drop(&mut self) {
        if self.is_ours
            && let Ok(runtime) = runtime()
        {
            runtime.block_on(self.engine.remove(&self.id));
        }
    }
}

/// The id and first process of the container called `name`, once it runs.
async fn find(
    engine: &Engine,
    name: &str,
    deadline: Moment,
    timer: &mut Timer,
    token: &Token,
) -> Result<(String, u32), ContainerError> {
    loop {
        let seen = match engine.inspect(name).await? {
            Ok(State {
                id, pid: Some(pid), ..
            }) => return Ok((id, pid)),
            Ok(state) => format!("it does not run, it is {}", state.status),
            Err(message) => message,
        };
        if clock::now() >= deadline {
            let name = name.to_owned();
            return Err(ContainerError::NotRunning { name, seen });
        }
        tokio::select! {
            biased;
            // Cancel-safe, both.
            () = token.cancelled() => return Err(ContainerError::Cancelled),
            () = timer.until(clock::now() + LOOK_AGAIN) => {}
        }
    }
}

/// Starts what was created; the number of its first process.
async fn start(engine: &Engine, id: &str, image: &str) -> Result<u32, ContainerError> {
    let path = format!("/containers/{id}/start");
    engine.order("start it", "POST", &path, b"").await?;
    match engine.inspect(id).await? {
        Ok(State { pid: Some(pid), .. }) => Ok(pid),
        Ok(state) => Err(ContainerError::Ended {
            image: image.to_owned(),
            code: state.code,
        }),
        Err(seen) => Err(ContainerError::NotRunning {
            name: id.to_owned(),
            seen,
        }),
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
