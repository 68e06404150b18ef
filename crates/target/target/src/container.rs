//! Containers as targets, by Docker's API over its Unix socket.
//!
//! A running container is found by its name and observed by the process id of its first process. A container
//! that is created from an image shares the host's network. The engine limits its CPUs and memory; it is
//! stopped and removed in the end. A label identifies leftovers.
//!
//! Tested with recorded exchanges, and with Docker itself by `.ci/containers`.

mod body;
mod engine;

use std::io;
use std::path::PathBuf;

use stillwell_plan::target::{ContainerOrigin, ContainerTarget, StopPlan};
use stillwell_scope::{Token, clock};
use stillwell_units::{Moment, Nanos, RunId};
use stillwell_wire::Timer;

use crate::cgroup::Limits;
use crate::stop::Stopped;
use crate::target_process::signal_name;
use crate::{Exit, TargetProcess};
use body::State;
use engine::Engine;

/// Interval between checks of a container that does not run yet.
const POLL_INTERVAL: Nanos = Nanos::from_millis(250);
/// Time limit of a response, in addition to any wait that the request contains.
const RESPONSE_MAX: Nanos = Nanos::from_secs(10);

/// A container that runs.
#[derive(Debug)]
pub struct Container {
    engine: Engine,
    id: String,
    pid: u32,
    is_created: bool,
}

/// An error while finding or creating a container.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ContainerError {
    /// The engine is missing or does not respond.
    #[error("send a request to the container engine at {}: {reason}", socket.display())]
    Engine {
        /// Its socket.
        socket: PathBuf,
        /// The cause.
        reason: String,
    },
    /// The engine refused a request.
    #[error("the container engine failed to {action}: it responded with {status}, {message}")]
    Refused {
        /// The requested action.
        action: String,
        /// The status of the response.
        status: u16,
        /// The message of the response.
        message: String,
    },
    /// The container never ran.
    #[error("find the container `{name}`: {state}")]
    NotRunning {
        /// Its name.
        name: String,
        /// The last observed state.
        state: String,
    },
    /// It ended at once.
    #[error("start a container from `{image}`: it ended with code {code}")]
    Ended {
        /// Its image.
        image: String,
        /// Its exit code.
        code: i32,
    },
    /// A created container was not removed, or perhaps not.
    #[error("the container {id} was not removed and may still run: {reason}")]
    Remains {
        /// Its id.
        id: String,
        /// The cause.
        reason: String,
    },
    /// A created container did not start, and was not removed either.
    #[error("{cause}; {remains}")]
    NotStarted {
        /// The reason why it did not start.
        cause: Box<Self>,
        /// The reason why it was not removed.
        remains: Box<Self>,
    },
    /// The run was cancelled.
    #[error("find a container: cancelled")]
    Cancelled,
}

impl Container {
    /// Finds or creates the container of `plan`, whose placeholders are filled in, with `limits`. Waits until
    /// it runs; for an existing container until `deadline`. For a thread without a runtime.
    ///
    /// # Errors
    /// [`ContainerError`]; a created container is removed, or the error names it.
    pub fn find(
        plan: &ContainerTarget,
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
                    let existing = find(&engine, name, deadline, &mut timer, token).await?;
                    let (id, pid) = existing;
                    if *limits != Limits::default() {
                        let body = body::update(limits);
                        let path = format!("/containers/{id}/update");
                        engine.order("limit it", "POST", &path, &body).await?;
                    }
                    Ok(Self {
                        engine: engine.clone(),
                        id,
                        pid,
                        is_created: false,
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
                            is_created: true,
                        }),
                        Err(error) => Err(match engine.remove(&id).await {
                            Ok(()) => error,
                            Err(remains) => ContainerError::NotStarted {
                                cause: Box::new(error),
                                remains: Box::new(remains),
                            },
                        }),
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

    /// Name of the container.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Stops and removes a created container; an existing one continues. Also returns each failure: of the request that stops
    /// the container, and of its removal, which names the container. For a thread without a runtime.
    #[must_use]
    pub fn stop(
        mut self,
        target_process: &TargetProcess,
        plan: StopPlan,
    ) -> (Stopped, Vec<ContainerError>) {
        let mut stopped = Stopped {
            exit: target_process.exited(),
            killed: false,
            left_behind: 0,
        };
        let mut failures = Vec::new();
        // Without a runtime the removal fails too, and is reported.
        if self.is_created
            && let Ok(runtime) = runtime()
        {
            let ended = runtime.block_on(self.end(plan, &mut stopped));
            failures.extend(ended.err());
        }
        failures.extend(self.remove_created().err());
        (stopped, failures)
    }

    /// Stops it, and reads how it ended.
    async fn end(&self, plan: StopPlan, stopped: &mut Stopped) -> Result<(), ContainerError> {
        // The engine counts in whole seconds, and kills then.
        let seconds = plan.grace.as_u64().div_ceil(1_000_000_000);
        let signal = signal_name(plan.signal);
        let path = format!("/containers/{}/stop?signal={signal}&t={seconds}", self.id);
        let action = format!("stop the container {}", self.id);
        let begun = clock::now();
        let engine = self.engine.within(plan.grace + RESPONSE_MAX);
        let sent = engine.order(&action, "POST", &path, b"").await;
        match self.engine.inspect(&self.id).await {
            Ok(Ok(State {
                pid: None, code, ..
            })) => {
                stopped.killed = clock::now().since(begun) >= plan.grace && code == 137;
                stopped.exit = Some(Exit {
                    code: Some(code),
                    ..Exit::default()
                });
            }
            // It still runs, without an exit code, until its removal kills it.
            Ok(Ok(_)) => stopped.killed = true,
            Ok(Err(_)) | Err(_) => {}
        }
        sent.map(drop)
    }

    /// Removes a created container; an existing one continues. For a thread without a runtime.
    ///
    /// # Errors
    /// [`ContainerError`] that names a container which may still be there.
    pub fn remove(mut self) -> Result<(), ContainerError> {
        self.remove_created()
    }

    fn remove_created(&mut self) -> Result<(), ContainerError> {
        if !std::mem::take(&mut self.is_created) {
            return Ok(());
        }
        let runtime = runtime().map_err(|error| ContainerError::Remains {
            id: self.id.clone(),
            reason: error.to_string(),
        })?;
        runtime.block_on(self.engine.remove(&self.id))
    }
}

/// Removes a created container whose run ended before it was ready. Also works on a thread without a runtime.
impl Drop for Container {
    fn drop(&mut self) {
        // `remove` and `stop`, which report a failure, come before, except in a panic.
        self.remove_created().ok();
    }
}

/// Returns id and first process of the container called `name`, once it runs.
async fn find(
    engine: &Engine,
    name: &str,
    deadline: Moment,
    timer: &mut Timer,
    token: &Token,
) -> Result<(String, u32), ContainerError> {
    loop {
        let state = match engine.inspect(name).await? {
            Ok(State {
                id, pid: Some(pid), ..
            }) => return Ok((id, pid)),
            Ok(state) => format!("it does not run, it is {}", state.status),
            Err(message) => message,
        };
        if clock::now() >= deadline {
            let name = name.to_owned();
            return Err(ContainerError::NotRunning { name, state });
        }
        tokio::select! {
            biased;
            // Cancel-safe, both.
            () = token.cancelled() => return Err(ContainerError::Cancelled),
            () = timer.until(clock::now() + POLL_INTERVAL) => {}
        }
    }
}

/// Starts the created container. Returns the process id of its first process.
async fn start(engine: &Engine, id: &str, image: &str) -> Result<u32, ContainerError> {
    let path = format!("/containers/{id}/start");
    engine.order("start it", "POST", &path, b"").await?;
    match engine.inspect(id).await? {
        Ok(State { pid: Some(pid), .. }) => Ok(pid),
        Ok(state) => Err(ContainerError::Ended {
            image: image.to_owned(),
            code: state.code,
        }),
        Err(state) => Err(ContainerError::NotRunning {
            name: id.to_owned(),
            state,
        }),
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}
