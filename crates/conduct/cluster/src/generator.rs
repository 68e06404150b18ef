//! A generator: one task of a load.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use stillwell_capture::{CaptureError, GeneratorResult, LoadCapture};
use stillwell_plan::LoadPlan;
use stillwell_plan::load::LoadPlanError;
use stillwell_run::{Interrupt, LoadBeside, LoadError, conduct_load_beside};
use stillwell_scope::{clock, explain};
use stillwell_units::{Moment, Nanos, Secrets};

use crate::attempt::{Attempt, is_foreign};
use crate::beats;
use crate::bundle::{self, TemporaryFolder};
use crate::clocks::{ClockAnswers, ClockReading, ClockStage};
use crate::controller::START_LEAD;
use crate::job::{
    ABORT, Abort, ClusterJob, Failed, JOB, JOB_SCHEMA, Ready, START, Start, failed_name,
    ready_name, result_name, shared_plan,
};
use crate::pause::pause;
use crate::store::{Created, JobStore, StoreError};

/// Time between two looks at the store before the start.
const LOOK_EVERY: Nanos = Nanos::from_millis(100);
/// The longest wait for the start.
const START_MAX: Nanos = Nanos::from_secs(15 * 60);
/// Time after its result in which a generator answers pings.
const CLOCKS_MAX: Nanos = Nanos::from_secs(5);
/// Most attempts of one task.
const ATTEMPTS_MAX: u32 = 64;
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
/// `version` of this program; ends early with `interrupt`. The file `typed` has the plan with
/// its secrets, where the store has it without.
///
/// # Errors
/// [`GenerateError`]; the reason is in the store, too, if that can be reached.
pub fn generate(
    store: &JobStore,
    attempt: &Attempt,
    version: &str,
    typed: Option<&Path>,
    secrets: Secrets,
    interrupt: &Interrupt,
) -> Result<GeneratorEnd, GenerateError> {
    let generator = Generator {
        store,
        attempt,
        typed,
        interrupt,
        began: clock::wall(),
    };
    let result = generator.run(version, secrets);
    // An attempt that another controller has cancelled does not fail for the job.
    if let Err(error) = &result
        && matches!(generator.is_of_others(), Ok(false))
    {
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
    typed: Option<&'a Path>,
    interrupt: &'a Interrupt,
    began: Nanos,
}

impl Generator<'_> {
    fn run(&self, version: &str, secrets: Secrets) -> Result<GeneratorEnd, GenerateError> {
        let task = usize::from(self.attempt.task);
        let job = self.job(version)?;
        // A start that is agreed on without this attempt will not change, and its secrets
        // are gone.
        let start: Option<Start> = self.store.get_json(self.interrupt, START)?;
        let counts = |start: &Start| start.attempts.get(task) == Some(&self.attempt.name);
        if start.is_some_and(|start| !counts(&start)) {
            self.register(task)?;
            return Ok(GeneratorEnd::NotNeeded);
        }
        // The controller that started this attempt was not the first one and cancels it.
        if self.is_of_others()? {
            return Ok(GeneratorEnd::NotNeeded);
        }
        let job = match self.with_secrets(job) {
            // A controller that ends its tasks deletes their secrets, also after the look above.
            Err(_) if self.interrupt.signal().is_some() => return Ok(GeneratorEnd::GivenUp),
            Err(_) if self.is_of_others()? => return Ok(GeneratorEnd::NotNeeded),
            job => job?,
        };
        self.register(task)?;
        let Some(start) = self.start()? else {
            return Ok(GeneratorEnd::GivenUp);
        };
        if start.attempts.get(task) != Some(&self.attempt.name) {
            return Ok(GeneratorEnd::NotNeeded);
        }
        let at = start.at_of(task);
        let capture = self.load(&job, task, at)?;
        self.commit(task, at, &capture, secrets)
    }

    /// Returns true if the job has the tasks of another controller, and this attempt is none of them.
    fn is_of_others(&self) -> Result<bool, StoreError> {
        is_foreign(self.store, self.interrupt, &self.attempt.name)
    }

    fn job(&self, version: &str) -> Result<ClusterJob, GenerateError> {
        let failure = |why: String| GenerateError::Job {
            job: self.store.job().to_owned(),
            why,
        };
        let job: Option<ClusterJob> = self.store.get_json(self.interrupt, JOB)?;
        let job = job.ok_or_else(|| failure("the store has no job of this name".to_owned()))?;
        if job.schema != JOB_SCHEMA {
            return Err(failure(format!(
                "its schema is {}, not {JOB_SCHEMA}",
                job.schema
            )));
        }
        if job.version != version {
            let known = &job.version;
            return Err(failure(format!(
                "the job was made by Stillwell {known}, and this is {version}: use the same version"
            )));
        }
        if self.attempt.task >= job.generators {
            let (task, of) = (self.attempt.task, job.generators);
            return Err(failure(format!("it has no generator {task}, only {of}")));
        }
        Ok(job)
    }

    /// Puts the plan as it was typed into the job.
    fn with_secrets(&self, job: ClusterJob) -> Result<ClusterJob, GenerateError> {
        let failure = |why: String| GenerateError::Job {
            job: self.store.job().to_owned(),
            why,
        };
        if !job.is_masked {
            return Ok(job);
        }
        let typed = self.typed.ok_or_else(|| {
            failure("its secrets are masked, and the engine provided no file with them".to_owned())
        })?;
        let text = std::fs::read(typed).map_err(|source| GenerateError::System {
            action: "read the secrets of the job",
            source,
        })?;
        let unread = |error: serde_json::Error| failure(format!("its secrets: {error}"));
        let plan: LoadPlan = serde_json::from_slice(&text).map_err(unread)?;
        if shared_plan(&plan, Secrets::Masked).map_err(unread)? != job.plan {
            return Err(failure("its secrets are those of another load".to_owned()));
        }
        Ok(ClusterJob { plan, ..job })
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
        let mut clock_answers = self.clock_answers(ClockStage::BeforeStart);
        loop {
            if let Some(soon) = clock_answers.look(self.interrupt, &|| self.read_clocks())? {
                pause(self.interrupt, soon);
                continue;
            }
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

    fn clock_answers(&self, stage: ClockStage) -> ClockAnswers<'_> {
        ClockAnswers::new(
            self.store,
            self.attempt.task.into(),
            &self.attempt.name,
            stage,
        )
    }

    fn read_clocks(&self) -> ClockReading {
        self.attempt.shift.apply(ClockReading::now())
    }

    /// Answers pings after the result. A store that does not answer costs the drift alone.
    fn answer_at_end(&self) -> Result<(), StoreError> {
        let mut answers = self.clock_answers(ClockStage::AfterEnd);
        let until = clock::now() + CLOCKS_MAX;
        while !answers.is_complete() && clock::now() < until && self.interrupt.signal().is_none() {
            let soon = answers.look(self.interrupt, &|| self.read_clocks())?;
            pause(self.interrupt, soon.unwrap_or(LOOK_EVERY));
        }
        Ok(())
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
        let sent = Arc::new(AtomicU64::new(0));
        let watch = beats::start(self.store, task, self.interrupt, &sent);
        let watch = watch.map_err(|source| GenerateError::System {
            action: "start a thread",
            source,
        })?;
        let mut agree = |_: &Interrupt| -> Option<Moment> {
            let now = self.read_clocks().wall;
            let rest = at.saturating_sub(now);
            (rest > Nanos::ZERO && rest <= START_LEAD + START_LEAD).then(|| clock::now() + rest)
        };
        let beside = LoadBeside {
            progress: &mut |snapshot| {
                sent.fetch_add(snapshot.second.sent, Ordering::Relaxed);
            },
            on_note: &mut |_| {},
            source: None,
            agree: Some(&mut agree),
        };
        let capture = conduct_load_beside(plan, job.address_family(), &[], self.interrupt, beside);
        watch.close(CLOSE_MAX);
        match capture {
            Err(LoadError::NoStart) => Err(GenerateError::Job {
                job: self.store.job().to_owned(),
                why: "this generator was not ready at the agreed start time, or its clock \
                      is wrong by seconds"
                    .to_owned(),
            }),
            capture => Ok(capture?),
        }
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
        let started = self.attempt.shift.apply(ClockReading {
            wall: manifest.started,
            monotonic: ClockReading::now().monotonic,
        });
        let early = planned.saturating_sub(started.wall);
        let result = GeneratorResult {
            attempt: self.attempt.name.clone(),
            node: self.attempt.node.clone(),
            boot: self.attempt.boot.clone(),
            began: self.began,
            ended: clock::wall(),
            start_delay: started.wall.saturating_sub(planned).max(early),
            workers: manifest.plan.workers,
            evidence: capture.evidence(),
        };
        let bytes = pack(capture, &result, secrets, &self.attempt.name)?;
        let quiet = Interrupt::new();
        match self.store.create(&quiet, &result_name(task), &bytes)? {
            Created::Now => {
                self.answer_at_end().unwrap_or_default();
                Ok(GeneratorEnd::Committed)
            }
            Created::Before => Ok(GeneratorEnd::NotNeeded),
        }
    }
}

/// Packs a capture into one object.
pub(crate) fn pack(
    capture: &LoadCapture,
    result: &GeneratorResult,
    secrets: Secrets,
    name: &str,
) -> Result<Vec<u8>, GenerateError> {
    let failure = |action| move |source| GenerateError::System { action, source };
    let folder = TemporaryFolder::new(name).map_err(failure("make a temporary folder"))?;
    capture.write(&folder.0, secrets)?;
    bundle::pack(&folder.0, result).map_err(failure("read the capture"))
}

/// Unpacks what [`pack`] made.
pub(crate) fn unpack(bytes: &[u8]) -> Result<(GeneratorResult, LoadCapture), String> {
    let folder = TemporaryFolder::new("merge").map_err(|error| explain(&error))?;
    let result = bundle::unpack(bytes, &folder.0)?;
    let capture = LoadCapture::open(&folder.0).map_err(|error| explain(&error))?;
    Ok((result, capture))
}
