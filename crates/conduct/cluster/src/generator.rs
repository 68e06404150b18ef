//! A generator: one task of a load.

use std::path::PathBuf;

use stillwell_capture::{CaptureError, GeneratorResult, LoadCapture, make_private};
use stillwell_plan::load::LoadPlanError;
use stillwell_run::{Interrupt, LoadBeside, LoadError, conduct_load_beside};
use stillwell_scope::{Place, Scope, Token, clock, explain};
use stillwell_units::{Moment, Nanos, Secrets};

use crate::attempt::Attempt;
use crate::controller::START_LEAD;
use crate::job::{
    ABORT, Abort, ClusterJob, Failed, JOB, JOB_SCHEMA, Ready, ResultHead, START, Start,
    failed_name, ready_name, result_name,
};
use crate::pause::pause;
use crate::store::{Created, JobStore, StoreError};

/// Time between two looks at the store before the start.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// Time between two looks for an abort during the load.
const ABORT_EVERY: Nanos = Nanos::from_millis(500);
/// The longest wait for the start.
const START_MAX: Nanos = Nanos::from_secs(15 * 60);
/// Most attempts of one task.
const ATTEMPTS_MAX: u32 = 64;
/// Ends a load from inside, as SIGTERM does.
const STOP_SIGNAL: i32 = 15;
/// The deadline of the thread that looks for an abort.
const CLOSE_MAX: Nanos = Nanos::from_secs(2);

/// The end of a generator.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum GeneratorEnd {
    /// Its result is in the store.
    Committed,
    /// Another attempt of the same task counts.
    NotNeeded,
    /// The load was given up before its start.
    GivenUp,
}

/// A generator that cannot do its task.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No job, or one that is not known.
    #[error("job {job}: {why}")]
    Job {
        /// Its name.
        job: String,
        /// The reason.
        why: String,
    },
    /// The plan cannot be split.
    #[error(transparent)]
    Plan(#[from] LoadPlanError),
    /// The load could not be made.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// A thread or file.
    #[error("{action}")]
    System {
        /// The attempt.
        action: &'static str,
        /// The cause.
        source: std::io::Error,
    },
}

/// Makes the part of a load that is the task of `attempt`, for the job of `store`, as
/// `version` of this program; ends early with `interrupt`.
///
/// # Errors
/// [`GenerateError`]; the reason is in the store, too, if that can be reached.
pub fn generate(
    store: &JobStore,
    attempt: &Attempt,
    version: &str,
    secrets: Secrets,
    interrupt: &Interrupt,
) -> Result<GeneratorEnd, GenerateError> {
    let generator = Generator {
        store,
        attempt,
        interrupt,
        began: clock::wall(),
    };
    let result = generator.run(version, secrets);
    if let Err(error) = &result {
        let failed = Failed {
            attempt: attempt.name.clone(),
            why: explain(error),
        };
        // The error is returned, whether or not the store takes it.
        drop(store.create_json(interrupt, &failed_name(attempt.task.into()), &failed));
    }
    result
}

struct Generator<'a> {
    store: &'a JobStore,
    attempt: &'a Attempt,
    interrupt: &'a Interrupt,
    began: Nanos,
}

impl Generator<'_> {
    fn run(&self, version: &str, secrets: Secrets) -> Result<GeneratorEnd, GenerateError> {
        let task = usize::from(self.attempt.task);
        let job = self.job(version)?;
        if self
            .store
            .get(self.interrupt, &result_name(task))?
            .is_some()
        {
            return Ok(GeneratorEnd::NotNeeded);
        }
        self.register(task)?;
        let Some(start) = self.start()? else {
            return Ok(GeneratorEnd::GivenUp);
        };
        if start.attempts.get(task) != Some(&self.attempt.name) {
            return Ok(GeneratorEnd::NotNeeded);
        }
        let capture = self.load(&job, task, start.at)?;
        self.commit(task, start.at, &capture, secrets)
    }

    fn job(&self, version: &str) -> Result<ClusterJob, GenerateError> {
        let failure = |why: String| GenerateError::Job {
            job: self.store.job().to_owned(),
            why,
        };
        let job: Option<ClusterJob> = self.store.get_json(self.interrupt, JOB)?;
        let job = job.ok_or_else(|| failure("the store has none of this name".to_owned()))?;
        if job.schema != JOB_SCHEMA {
            return Err(failure(format!("its schema is {}", job.schema)));
        }
        if job.version != version {
            let known = &job.version;
            return Err(failure(format!(
                "its controller is Stillwell {known} and this is {version}: use the same version"
            )));
        }
        if self.attempt.task >= job.generators {
            let (task, of) = (self.attempt.task, job.generators);
            return Err(failure(format!("it has no generator {task}, only {of}")));
        }
        Ok(job)
    }

    /// Makes this attempt known; several of one task have numbers in turn.
    fn register(&self, task: usize) -> Result<(), GenerateError> {
        let ready = Ready {
            attempt: self.attempt.name.clone(),
            node: self.attempt.node.clone(),
            began: self.began,
        };
        for number in 0..ATTEMPTS_MAX {
            let name = ready_name(task, number);
            if self.store.create_json(self.interrupt, &name, &ready)? == Created::Now {
                return Ok(());
            }
        }
        Err(GenerateError::Job {
            job: self.store.job().to_owned(),
            why: format!("generator {task} was started more than {ATTEMPTS_MAX} times"),
        })
    }

    /// Waits for the start; `None` if the load was given up.
    fn start(&self) -> Result<Option<Start>, GenerateError> {
        let until = clock::now() + START_MAX;
        loop {
            if self.interrupt.signal().is_some() || self.is_aborted()? {
                return Ok(None);
            }
            if let Some(start) = self.store.get_json(self.interrupt, START)? {
                return Ok(Some(start));
            }
            if clock::now() >= until {
                return Err(GenerateError::Job {
                    job: self.store.job().to_owned(),
                    why: format!("there was no start within {START_MAX}"),
                });
            }
            pause(self.interrupt, LOOK_EVERY);
        }
    }

    fn is_aborted(&self) -> Result<bool, StoreError> {
        Ok(self
            .store
            .get_json::<Abort>(self.interrupt, ABORT)?
            .is_some())
    }

    /// Makes the load, which starts at the time `at`.
    fn load(&self, job: &ClusterJob, task: usize, at: Nanos) -> Result<LoadCapture, GenerateError> {
        let plan = job.plan.split(job.generators)?.swap_remove(task);
        let watch = self.watch()?;
        let mut agree = |_: &Interrupt| -> Option<Moment> {
            let now = clock::wall();
            let rest = at.saturating_sub(now);
            (rest > Nanos::ZERO && rest <= START_LEAD + START_LEAD).then(|| clock::now() + rest)
        };
        let beside = LoadBeside {
            progress: &mut |_| {},
            on_header: &mut |_| {},
            source: None,
            agree: Some(&mut agree),
        };
        let capture = conduct_load_beside(plan, job.address_family(), &[], self.interrupt, beside);
        watch.close(CLOSE_MAX);
        match capture {
            Err(LoadError::NoStart) => Err(GenerateError::Job {
                job: self.store.job().to_owned(),
                why: "this generator was not ready at the agreed time of the start, or its clock \
                      is wrong by seconds"
                    .to_owned(),
            }),
            capture => Ok(capture?),
        }
    }

    /// Starts a thread that ends the load after an abort.
    fn watch(&self) -> Result<Scope, GenerateError> {
        let mut scope = Scope::new(&Token::new());
        let (store, interrupt) = (self.store.clone(), self.interrupt.clone());
        let started = scope.thread(Place::default(), "abort", move |token| {
            while !token.is_cancelled() && interrupt.signal().is_none() {
                // A store that does not answer is no reason to end.
                if let Ok(Some(_)) = store.store().get(&format!("{}/{ABORT}", store.job())) {
                    interrupt.raise(STOP_SIGNAL);
                }
                let mut rest = ABORT_EVERY;
                while rest > Nanos::ZERO && !token.is_cancelled() {
                    pause(&interrupt, LOOK_EVERY);
                    rest = rest.saturating_sub(LOOK_EVERY);
                    if interrupt.signal().is_some() {
                        break;
                    }
                }
            }
            Ok(())
        });
        started.map_err(|source| GenerateError::System {
            action: "start a thread",
            source,
        })?;
        Ok(scope)
    }

    /// Writes the result; the interrupt that ended the load does not end this.
    fn commit(
        &self,
        task: usize,
        at: Nanos,
        capture: &LoadCapture,
        secrets: Secrets,
    ) -> Result<GeneratorEnd, GenerateError> {
        let manifest = &capture.manifest;
        let planned = at + manifest.plan.warmup;
        let early = planned.saturating_sub(manifest.started);
        let result = GeneratorResult {
            attempt: self.attempt.name.clone(),
            node: self.attempt.node.clone(),
            boot: self.attempt.boot.clone(),
            began: self.began,
            ended: clock::wall(),
            start_delay: manifest.started.saturating_sub(planned).max(early),
            workers: manifest.plan.workers,
            evidence: capture.evidence(),
        };
        let bytes = pack(capture, result, secrets, &self.attempt.name)?;
        let quiet = Interrupt::new();
        match self.store.create(&quiet, &result_name(task), &bytes)? {
            Created::Now => Ok(GeneratorEnd::Committed),
            Created::Before => Ok(GeneratorEnd::NotNeeded),
        }
    }
}

/// A private folder for one capture, which is removed.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Result<Self, GenerateError> {
        let folder = std::env::temp_dir().join(format!(
            "stillwell-{name}-{}-{}",
            std::process::id(),
            clock::now().as_u64()
        ));
        make_private(&folder).map_err(|source| GenerateError::System {
            action: "make a temporary folder",
            source,
        })?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // At worst it stays.
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// Packs a capture into one object.
pub(crate) fn pack(
    capture: &LoadCapture,
    result: GeneratorResult,
    secrets: Secrets,
    name: &str,
) -> Result<Vec<u8>, GenerateError> {
    let failure = |source| GenerateError::System {
        action: "read the capture",
        source,
    };
    let folder = Folder::new(name)?;
    capture.write(&folder.0, secrets)?;
    let mut head = ResultHead {
        result,
        files: Vec::new(),
    };
    let mut content = Vec::new();
    for entry in std::fs::read_dir(&folder.0).map_err(failure)? {
        let entry = entry.map_err(failure)?;
        let bytes = std::fs::read(entry.path()).map_err(failure)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        head.files.push((name, bytes.len() as u64));
        content.extend(bytes);
    }
    let mut bytes = serde_json::to_vec(&head).map_err(|error| failure(error.into()))?;
    bytes.push(b'\n');
    bytes.extend(content);
    Ok(bytes)
}

/// Unpacks what [`pack`] made.
pub(crate) fn unpack(bytes: &[u8]) -> Result<(GeneratorResult, LoadCapture), String> {
    let end = bytes.iter().position(|byte| *byte == b'\n');
    let end = end.ok_or("the result has no first line")?;
    let head: ResultHead =
        serde_json::from_slice(&bytes[..end]).map_err(|error| explain(&error))?;
    let folder = Folder::new("merge").map_err(|error| explain(&error))?;
    let mut rest = &bytes[end + 1..];
    for (name, length) in &head.files {
        let is_plain = !name.contains('/') && !name.starts_with('.');
        let length = usize::try_from(*length).unwrap_or(usize::MAX);
        let Some((content, left)) = rest.split_at_checked(length).filter(|_| is_plain) else {
            return Err(format!("the result ends within {name}"));
        };
        let written = stillwell_capture::write_private(&folder.0.join(name), content);
        written.map_err(|error| explain(&error))?;
        rest = left;
    }
    let capture = LoadCapture::open(&folder.0).map_err(|error| explain(&error))?;
    Ok((head.result, capture))
}
