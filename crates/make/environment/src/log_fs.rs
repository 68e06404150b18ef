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
use stillwell_fuse::{Beneath, Mount, MountNote, serve};
use stillwell_metric::{GeneratorShard, Labels, LogFsShard};
use stillwell_pacer::Turns;
use stillwell_payload::BlockSet;
use stillwell_plan::{FileLayout, GeneratorPlan, RatePlan, TransportPlan};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Seed};
use stillwell_worker::{Mounted, ShowError};

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
    load: Arc<GeneratorShard>,
    shard: Arc<LogFsShard>,
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

/// Logs without their content.
#[derive(Debug)]
pub(crate) struct LogPlan {
    id: String,
    at: PathBuf,
    shape: Shape,
    seed: Seed,
    rate: RatePlan,
    labels: Labels,
}

impl LogFs {
    /// The logs of `plan`, if it asks for such.
    pub(crate) fn of(plan: &GeneratorPlan) -> Option<LogPlan> {
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
        Some(LogPlan {
            id: plan.id.clone(),
            at: at.clone(),
            shape: Shape {
                logs: plan.connections.max(1),
                depth_max: *depth_max,
                rotations: *rotations,
                bytes_max: bytes_max.bytes().max(1),
            },
            seed: plan.seed,
            rate: plan.rate,
            labels: Labels::none()
                .with("component", "generator")
                .with("component_name", plan.transport.name())
                .with("id", plan.id.as_str()),
        })
    }
}

impl LogPlan {
    /// The logs whose content is `set` and whose load counts in `load`.
    pub(crate) fn serve(self, set: BlockSet, load: Arc<GeneratorShard>) -> LogFs {
        let logs = self.shape.logs.into();
        LogFs {
            id: self.id,
            at: self.at,
            shape: self.shape,
            seed: self.seed,
            course: Course {
                rate: self.rate,
                begin: Arc::default(),
            },
            set: Some(set),
            load,
            shard: Arc::new(LogFsShard::new(self.labels, logs)),
        }
    }
}

impl Mounted for LogFs {
    fn load(&self) -> Arc<GeneratorShard> {
        Arc::clone(&self.load)
    }

    fn shard(&self) -> Arc<LogFsShard> {
        Arc::clone(&self.shard)
    }

    fn set(&self) -> Option<&BlockSet> {
        self.set.as_ref()
    }

    /// Mounts the logs and starts the thread `gen-ID-0`, which answers for them until the
    /// scope's token is cancelled or the mount has ended.
    fn show(
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
    fn begin(&self, start: Moment, stop: &Token, turns: Option<Turns>) {
        let stop = stop.clone();
        // Load begins once.
        drop(self.course.begin.set(Begin { start, stop, turns }));
    }
}
