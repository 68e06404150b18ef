//! Logs in a file system of our own: they grow by the clock and not by anybody's
//! writing, hold nothing but the payload's blocks, and know what was read of them. What
//! goes before anybody has read it was missed.
//!
//! It is there before the subject starts, its files empty; they grow once load begins,
//! and stay as they are once it has ended, until the run is over.

mod answer;
mod model;
mod seen;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustix::process::{getegid, geteuid};
use stillwell_fuse::{Beneath, Mount, MountError, MountNote, serve};
use stillwell_metric::{GeneratorShard, Labels, LogFsShard};
use stillwell_pacer::Turns;
use stillwell_payload::BlockSet;
use stillwell_plan::{FileLayout, GeneratorPlan, RatePlan, TransportPlan};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Seed};

use answer::LogFiles;
use model::{Model, Shape};

/// Logs that are not mounted yet, or are.
#[derive(Debug)]
pub(crate) struct LogFs {
    id: String,
    at: PathBuf,
    shape: Shape,
    seed: Seed,
    course: Course,
    /// `None` once it answers.
    set: Option<BlockSet>,
    pub(crate) load: Arc<GeneratorShard>,
    pub(crate) shard: Arc<LogFsShard>,
}

/// How fast, and from when to when.
#[derive(Clone, Debug)]
struct Course {
    rate: RatePlan,
    begin: Arc<OnceLock<Begin>>,
}

#[derive(Debug)]
struct Begin {
    start: Moment,
    stop: Token,
    /// Logs stand still while it is not their turn, where turns are taken.
    turns: Option<Turns>,
}

/// Why logs cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum ShowError {
    /// Their file system cannot be mounted.
    #[error(
        "show the logs of generator `{id}` in a file system of their own; where that cannot be, \
         `folder` in place of `mount` (in lading's files `logrotate` with `root`, a `throttle` and \
         no `load_profile`) writes real files, of which nobody counts what was missed"
    )]
    Mount {
        /// The generator.
        id: String,
        /// Why not.
        source: MountError,
    },
    /// The kernel starts no more threads.
    #[error("start the thread that answers for the logs of generator `{id}`")]
    Thread {
        /// The generator.
        id: String,
        /// The kernel's answer.
        source: std::io::Error,
    },
}

impl Course {
    /// The time that logs know of: it stands still while it is not their turn.
    fn own_time(&self, now: Moment) -> Moment {
        let turns = self.begin.get().and_then(|begin| begin.turns.as_ref());
        turns.map_or(now, |turns| turns.own_time(now))
    }

    /// Whether load has ended.
    fn is_over(&self) -> bool {
        let begin = self.begin.get();
        begin.is_some_and(|begin| begin.stop.is_cancelled())
    }
}

impl LogFs {
    /// The logs of `plan`, if it asks for such.
    pub(crate) fn wanted(plan: &GeneratorPlan) -> bool {
        let TransportPlan::Files { layout, .. } = &plan.transport else {
            return false;
        };
        matches!(layout, FileLayout::Mounted { .. })
    }

    /// The logs of `plan`, whose content is `set` and whose load counts in `load`.
    pub(crate) fn new(
        plan: &GeneratorPlan,
        set: BlockSet,
        load: Arc<GeneratorShard>,
    ) -> Option<Self> {
        let TransportPlan::Files {
            layout:
                FileLayout::Mounted {
                    at,
                    depth_max,
                    rotations,
                },
            bytes_max,
        } = &plan.transport
        else {
            return None;
        };
        let labels = Labels::none()
            .with("component", "generator")
            .with("component_name", plan.transport.name())
            .with("id", plan.id.as_str());
        let logs = plan.connections.max(1);
        Some(Self {
            id: plan.id.clone(),
            at: at.clone(),
            shape: Shape {
                logs,
                depth_max: *depth_max,
                rotations: *rotations,
                bytes_max: bytes_max.bytes().max(1),
            },
            seed: plan.seed,
            course: Course {
                rate: plan.rate,
                begin: Arc::default(),
            },
            set: Some(set),
            load,
            shard: Arc::new(LogFsShard::new(labels, logs.into())),
        })
    }

    pub(crate) fn set(&self) -> Option<&BlockSet> {
        self.set.as_ref()
    }

    /// Mounts the logs and starts the thread `gen-ID-0`, which answers for them until the
    /// scope's token is cancelled or the mount has ended.
    pub(crate) fn show(
        &mut self,
        scope: &mut Scope,
        place: &Place,
    ) -> Result<Option<(Mount, Vec<MountNote>)>, ShowError> {
        let Some(set) = self.set.take() else {
            return Ok(None);
        };
        let mounted = Mount::fuse(&self.at, Beneath::Nothing);
        let (mount, device, notes) = mounted.map_err(|source| ShowError::Mount {
            id: self.id.clone(),
            source,
        })?;
        let unit = self.course.rate.unit;
        let (shape, seed) = (self.shape, self.seed);
        let (course, load) = (self.course.clone(), Arc::clone(&self.load));
        let shard = Arc::clone(&self.shard);
        let body = move |token: &Token| {
            let mut files = LogFiles {
                model: Model::new(set, shape, unit, &seed),
                course,
                load,
                shard,
                wall_ahead: answer::wall_ahead(),
                published_at: clock::now(),
                owner: (geteuid().as_raw(), getegid().as_raw()),
            };
            serve(device, &mut files, token)
        };
        let started = scope.thread(place.clone(), &format!("gen-{}-0", self.id), body);
        started.map_err(|source| ShowError::Thread {
            id: self.id.clone(),
            source,
        })?;
        Ok(Some((mount, notes)))
    }

    /// Logs grow from `start` on, in `turns` alone if there are any, until `stop` is
    /// cancelled.
    pub(crate) fn begin(&self, start: Moment, stop: &Token, turns: Option<Turns>) {
        let stop = stop.clone();
        // Load begins once.
        drop(self.course.begin.set(Begin { start, stop, turns }));
    }
}
