//! Threads, and how they ended.

use std::any::Any;
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use stillwell_units::Nanos;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use crate::{Place, Token, clock};

/// The error of a part that ended early.
pub type PartError = Box<dyn Error + Send + Sync>;

/// Maximum number of unread ends. More ends block their threads, which is harmless.
const ENDS_WAITING_MAX: usize = 1024;

/// The threads of one run.
pub struct Scope {
    token: Token,
    /// In the order of their start: a name may be used again before the end of its last user is
    /// known here.
    running: BTreeMap<u64, (String, thread::JoinHandle<()>)>,
    started: u64,
    infos: Arc<Mutex<Vec<ThreadInfo>>>,
    sender: SyncSender<(u64, PartEnd)>,
    ends: Receiver<(u64, PartEnd)>,
}

/// A thread that runs.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ThreadInfo {
    /// Its name, which no other has in its scope while it runs.
    pub name: String,
    /// The kernel's number of it.
    pub id: u32,
}

/// The end of a part.
#[derive(Debug)]
pub struct PartEnd {
    /// The name of its thread.
    pub name: String,
    /// `Ok` where the part did its work.
    pub result: Result<(), PartFailure>,
    /// The CPU time that it used.
    pub cpu: Nanos,
}

/// The failure of a part.
#[derive(Debug, thiserror::Error)]
pub enum PartFailure {
    /// It said so.
    #[error(transparent)]
    Failed(PartError),
    /// It panicked: a defect of ours.
    #[error("panicked: {message}")]
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// It had not ended when the deadline came.
    #[error("did not end within {deadline}")]
    Overdue {
        /// The deadline.
        deadline: Nanos,
    },
}

impl Scope {
    /// A scope whose token is a child of `parent`.
    #[must_use]
    pub fn new(parent: &Token) -> Self {
        let (sender, ends) = sync_channel(ENDS_WAITING_MAX);
        Self {
            token: parent.child_token(),
            running: BTreeMap::new(),
            started: 0,
            infos: Arc::default(),
            sender,
            ends,
        }
    }

    /// Returns the token that requests the end of this scope's parts.
    #[must_use]
    pub const fn token(&self) -> &Token {
        &self.token
    }

    /// Returns a function that lists the threads that run now, for another thread.
    pub fn watch(&self) -> impl Fn() -> Vec<ThreadInfo> + Send + Sync + 'static {
        let infos = Arc::clone(&self.infos);
        move || lock(&infos).clone()
    }

    /// Starts a thread that runs `body` at `place`. No other thread of the scope runs
    /// under this `name`; the kernel shows its first 15 bytes.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    #[expect(
        clippy::disallowed_methods,
        reason = "threads of all crates start through this function"
    )]
    pub fn thread(
        &mut self,
        place: Place,
        name: &str,
        body: impl FnOnce(&Token) -> Result<(), PartError> + Send + 'static,
    ) -> std::io::Result<()> {
        let (token, sender) = (self.token.clone(), self.sender.clone());
        let infos = Arc::clone(&self.infos);
        let thread_name = name.to_owned();
        let number = self.started;
        let handle = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let id = rustix::thread::gettid()
                    .as_raw_nonzero()
                    .get()
                    .unsigned_abs();
                let info = ThreadInfo {
                    name: thread_name.clone(),
                    id,
                };
                lock(&infos).push(info.clone());
                let result = run_body(&place, &token, body);
                lock(&infos).retain(|known| *known != info);
                let end = PartEnd {
                    name: thread_name,
                    result,
                    cpu: clock::thread_cpu(),
                };
                // The receiver is gone only where the scope itself is gone.
                drop(sender.send((number, end)));
            })?;
        self.started += 1;
        self.running.insert(number, (name.to_owned(), handle));
        Ok(())
    }

    /// Starts a worker: a thread at `place` with a current-thread runtime on
    /// which the future made by `body` runs; the future need not be `Send`.
    ///
    /// # Errors
    /// The kernel's answer where it starts no more threads.
    pub fn worker<F>(
        &mut self,
        place: Place,
        name: &str,
        body: impl FnOnce(Token) -> F + Send + 'static,
    ) -> std::io::Result<()>
    where
        F: Future<Output = Result<(), PartError>>,
    {
        self.thread(place, name, move |token| {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let tasks = LocalSet::new();
            let result = tasks.block_on(&runtime, body(token.clone()));
            // Tasks that are left are dropped here, on their own thread.
            drop(tasks);
            // A name that is still being resolved is not waited for.
            runtime.shutdown_background();
            result
        })
    }

    /// Parts that have ended since the last call, without waiting.
    pub fn ends(&mut self) -> Vec<PartEnd> {
        let ended: Vec<(u64, PartEnd)> = self.ends.try_iter().collect();
        let joined = ended.into_iter().map(|(number, end)| {
            self.join(number);
            end
        });
        joined.collect()
    }

    /// Requests the end of all parts and waits until they have ended, at most until `deadline`. The
    /// rest is reported as overdue and left running.
    pub fn close(mut self, deadline: Nanos) -> Vec<PartEnd> {
        self.token.cancel();
        let until = clock::now() + deadline;
        let mut ended = self.ends();
        while !self.running.is_empty() {
            let left = until.since(clock::now());
            match self.ends.recv_timeout(left.as_duration()) {
                Ok((number, end)) => {
                    self.join(number);
                    ended.push(end);
                }
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
            }
        }
        ended.extend(self.running.values().map(|(name, _)| PartEnd {
            name: name.clone(),
            result: Err(PartFailure::Overdue { deadline }),
            cpu: Nanos::ZERO,
        }));
        ended
    }

    fn join(&mut self, number: u64) {
        if let Some((_, handle)) = self.running.remove(&number) {
            // Panics were caught inside and are in the part's end.
            drop(handle.join());
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        self.token.cancel();
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("running", &self.running.values())
            .finish_non_exhaustive()
    }
}

fn run_body(
    place: &Place,
    token: &Token,
    body: impl FnOnce(&Token) -> Result<(), PartError>,
) -> Result<(), PartFailure> {
    place
        .occupy()
        .map_err(|error| PartFailure::Failed(error.into()))?;
    match catch_unwind(AssertUnwindSafe(|| body(token))) {
        Ok(result) => result.map_err(PartFailure::Failed),
        Err(panic) => Err(PartFailure::Panicked {
            message: panic_message(&*panic),
        }),
    }
}

fn panic_message(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
