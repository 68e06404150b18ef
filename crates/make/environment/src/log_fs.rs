//! Logs in a FUSE file system. They grow by the clock, hold only the payload's blocks, and record which bytes
//! were read. Unread bytes that are removed count as missed.
//!
//! The file system is mounted before the target starts, with empty files. They grow while load runs, and remain
//! until the run ends.

mod model;
mod read_ranges;
mod service;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use rustix::process::{getegid, geteuid};
use stillwell_fuse::{ExistingEntries, Mount, MountNote, MountOwner, serve};
use stillwell_metric::{GeneratorShard, Labels, LogFsShard};
use stillwell_pacer::Turns;
use stillwell_payload::BlockSet;
use stillwell_plan::generator::FileLayout;
use stillwell_plan::{GeneratorPlan, RatePlan, TransportPlan};
use stillwell_scope::{Place, Scope, Token, clock};
use stillwell_units::{Moment, Seed};
use stillwell_worker::{Mounted, ShowError};

use model::{Model, Shape};
use service::LogFiles;

/// Logs that are ready to be mounted, or are mounted.
#[derive(Debug)]
pub(crate) struct LogFs {
    id: String,
    at: PathBuf,
    shape: Shape,
    seed: Seed,
    growth: LogGrowth,
    /// `None` once the file system is served.
    set: Option<BlockSet>,
    load: Arc<GeneratorShard>,
    shard: Arc<LogFsShard>,
}

/// Growth rate, with start and end.
#[derive(Clone, Debug)]
struct LogGrowth {
    rate: RatePlan,
    begin: Arc<OnceLock<Begin>>,
}

#[derive(Debug)]
struct Begin {
    start: Moment,
    stop: Token,
    /// Turns, if logs grow only in their own turns.
    turns: Option<Turns>,
}

impl LogGrowth {
    /// Time by which logs grow; it pauses outside of their turns.
    fn log_time(&self, now: Moment) -> Moment {
        let turns = self.begin.get().and_then(|begin| begin.turns.as_ref());
        turns.map_or(now, |turns| turns.active_time(now))
    }

    /// Time of the clock at which it was `log_time`, up to `now`.
    fn clock_time(&self, log_time: Moment, now: Moment) -> Moment {
        let turns = self.begin.get().and_then(|begin| begin.turns.as_ref());
        // What was due at the very end of a turn would be in the next one.
        turns.map_or(log_time, |turns| turns.clock_time(log_time).min(now))
    }

    /// Load has ended.
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
    /// Returns the logs of `plan`, if it has logs.
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
                logs: plan.concurrency.connections(),
                depth_max: *depth_max,
                rotations: *rotations,
                bytes_max: bytes_max.bytes().max(1),
            },
            seed: plan.seed,
            rate: plan.rate.clone(),
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
            growth: LogGrowth {
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

    /// Mounts the logs and starts the thread `gen-ID-0`. It serves them until the scope's token is cancelled or
    /// the mount has ended.
    fn show(
        &mut self,
        scope: &mut Scope,
        place: &Place,
        owner: MountOwner<'_>,
    ) -> Result<Option<(Mount, Vec<MountNote>)>, ShowError> {
        let Some(set) = self.set.take() else {
            return Ok(None);
        };
        let mounted = Mount::fuse(&self.at, ExistingEntries::Nothing, owner);
        let (mount, device, notes) = mounted.map_err(|source| ShowError::Mount {
            id: self.id.clone(),
            source,
        })?;
        let unit = self.growth.rate.unit;
        let (shape, seed) = (self.shape, self.seed);
        let (growth, load) = (self.growth.clone(), Arc::clone(&self.load));
        let shard = Arc::clone(&self.shard);
        let body = move |token: &Token| {
            let mut files = LogFiles {
                model: Model::new(set, shape, unit, &seed),
                growth,
                load,
                shard,
                wall_ahead: service::wall_ahead(),
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
        drop(self.growth.begin.set(Begin { start, stop, turns }));
    }
}
