//! Answers to the kernel's requests about logs.

use std::ffi::OsStr;
use std::sync::Arc;

use stillwell_fuse::protocol::{
    Attributes, FolderEntry, NodeKind, OpenFlags, Operation, Request, Validity, put_attributes,
    put_entry, put_folder_entry, put_open, put_statfs,
};
use stillwell_fuse::{Answer, Errno, FileSystem};
use stillwell_metric::{GeneratorShard, LogFsShard, LogRequests};
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos, as_usize, floor_to_u64};

use super::LogGrowth;
use super::model::{LogNode, Model};

/// Bits of an open's flags that hold the access mode.
const ACCESS_MODE: u32 = 3;
/// Interval between updates of the counters.
const PUBLISH_EVERY: Nanos = Nanos::from_millis(20);
const FILE_KIND: u32 = 0o100_000;
const FOLDER_KIND: u32 = 0o040_000;

/// The logs, as a file system.
#[derive(Debug)]
pub(super) struct LogFiles {
    pub(super) model: Model,
    pub(super) growth: LogGrowth,
    pub(super) load: Arc<GeneratorShard>,
    pub(super) shard: Arc<LogFsShard>,
    /// Difference between the wall clock and the run's clock.
    pub(super) wall_ahead: Nanos,
    pub(super) published_at: Moment,
    /// User and group of the files.
    pub(super) owner: (u32, u32),
}

impl LogFiles {
    /// Lets everything happen that was due by `now`.
    fn advance(&mut self, now: Moment) {
        let log_now = self.growth.log_time(now);
        if let Some(begin) = self.growth.begin.get()
            && !self.model.has_begun()
        {
            self.model.begin(&self.growth.rate, begin.start);
        }
        if self.growth.is_over() {
            self.model.stop(log_now);
        } else {
            self.model.advance(log_now);
        }
    }

    fn publish(&mut self, now: Moment) {
        self.published_at = now;
        let totals = self.model.totals();
        let (load, shard) = (&self.load, &self.shard);
        for (cell, total) in [
            (&load.bytes, totals.bytes),
            (&load.events, totals.events),
            (&load.blocks, totals.blocks),
            (&load.requests, totals.blocks),
            (&load.units, totals.data_points),
            (&load.sent_units, totals.sent_units),
            (&shard.read, totals.read),
            (&shard.missed, totals.missed),
            (&shard.unread, totals.unread()),
            (&shard.rotated, totals.rotated),
            (&shard.deleted, totals.deleted),
        ] {
            cell.set(total);
        }
        if !self.growth.is_over() {
            let requested = self.model.requested_until(self.growth.log_time(now));
            load.requested_units.set(floor_to_u64(requested));
        }
    }

    fn counters(&self, node: u64) -> Option<&LogRequests> {
        match self.model.node(node)? {
            LogNode::File { log, .. } => self.shard.requests.get(log),
            LogNode::Folder => None,
        }
    }

    fn attributes(&self, node: u64, now: Moment) -> Result<Attributes, Errno> {
        let (kind, size, modified) = match self.model.node(node).ok_or(Errno::NOENT)? {
            LogNode::Folder => (NodeKind::Folder, 0, Moment::new(0)),
            LogNode::File { size, modified, .. } => (NodeKind::File, size, modified),
        };
        let modified = self.growth.clock_time(modified, now);
        let time = Nanos::new((modified + self.wall_ahead).as_u64());
        Ok(Attributes::read_only(
            node,
            kind,
            size,
            time.split_seconds(),
            self.owner,
        ))
    }

    fn done(&mut self, request: &Request<'_>, now: Moment, out: &mut Vec<u8>) -> Result<(), Errno> {
        let node = request.node;
        match request.operation {
            Operation::Lookup { name } => {
                let name = name.to_str().ok_or(Errno::NOENT)?;
                let entry = self.model.lookup(node, name).ok_or(Errno::NOENT)?;
                self.counters(entry)
                    .inspect(|counters| counters.lookups.add(1));
                put_entry(out, entry, &self.attributes(entry, now)?, Validity::NONE);
            }
            Operation::GetAttributes => {
                self.counters(node)
                    .inspect(|counters| counters.attributes.add(1));
                put_attributes(out, &self.attributes(node, now)?, Validity::NONE);
            }
            Operation::Open { flags } => {
                if flags & ACCESS_MODE != 0 {
                    return Err(Errno::ROFS);
                }
                if !self.model.open(node) {
                    return Err(Errno::NOENT);
                }
                self.counters(node)
                    .inspect(|counters| counters.opens.add(1));
                // Without the page cache and read-ahead, every read arrives here.
                put_open(out, 0, OpenFlags::Direct);
            }
            Operation::Read { offset, size, .. } => {
                self.counters(node)
                    .inspect(|counters| counters.reads.add(1));
                self.model.read(node, offset, size, out);
            }
            Operation::Release { .. } => {
                self.counters(node)
                    .inspect(|counters| counters.releases.add(1));
                self.model.release(node);
            }
            Operation::OpenFolder => put_open(out, 0, OpenFlags::Direct),
            Operation::ReadFolder { offset, size, .. } => self.list((node, offset), size, out)?,
            Operation::StatFs => put_statfs(out, 0, 0),
            Operation::Flush { .. }
            | Operation::Fsync { .. }
            | Operation::FsyncFolder
            | Operation::ReleaseFolder { .. }
            | Operation::Forget { .. }
            | Operation::ForgetMany { .. } => {}
            Operation::Other(_) => return Err(Errno::NOSYS),
            _ => return Err(Errno::ROFS),
        }
        Ok(())
    }

    fn list(&self, (node, offset): (u64, u64), size: u32, out: &mut Vec<u8>) -> Result<(), Errno> {
        let entries = self.model.entries(node).ok_or(Errno::NOTDIR)?;
        if offset == 0 {
            self.shard.listings.add(1);
        }
        let from = out.len();
        let first = as_usize(offset);
        for (entry, at) in entries.iter().skip(first).zip(offset + 1..) {
            let entry = FolderEntry {
                inode: entry.node,
                offset: at,
                kind: if entry.is_folder {
                    FOLDER_KIND
                } else {
                    FILE_KIND
                },
                name: OsStr::new(&entry.name),
            };
            if !put_folder_entry(out, from, size, entry) {
                break;
            }
        }
        Ok(())
    }
}

impl FileSystem for LogFiles {
    fn answer(&mut self, request: &Request<'_>, now: Moment, out: &mut Vec<u8>) -> Answer {
        self.advance(now);
        if now.since(self.published_at) >= PUBLISH_EVERY {
            self.publish(now);
        }
        match self.done(request, now, out) {
            Ok(()) => Answer::Done,
            Err(error) => Answer::Failed(error),
        }
    }

    fn beat(&mut self, now: Moment) {
        self.advance(now);
        self.publish(now);
    }

    fn finish_delayed(&mut self, _unique: u64, _is_given_up: bool) {}
}

/// Difference between the wall clock and the run's clock.
pub(super) fn wall_ahead() -> Nanos {
    let wall = clock::wall();
    wall.saturating_sub(clock::now().since(Moment::new(0)))
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use stillwell_metric::{Labels, Recorder};
    use stillwell_pacer::{TurnPlan, Turns};
    use stillwell_payload::BlockSet;
    use stillwell_plan::payload::BlockShape;
    use stillwell_plan::{PayloadFormat, PayloadPlan, RatePlan, RateUnit};
    use stillwell_scope::Token;
    use stillwell_units::{ByteRate, ByteSize, Seed};

    use super::*;
    use crate::log_fs::Begin;
    use crate::log_fs::model::{ROOT, Shape};

    const START: Moment = Moment::new(10_000_000_000);

    /// One log that gets a block every millisecond of its own `turns`.
    fn files_in(turns: Turns) -> LogFiles {
        let plan = PayloadPlan {
            format: PayloadFormat::Ascii,
            blocks: BlockShape::UpTo {
                maximum: ByteSize::new(2000),
            },
            cache: ByteSize::new(50_000),
            repeats: false,
        };
        let seed = Seed::from_number(1);
        let set = BlockSet::build(&plan, plan.cache, seed, None).unwrap();
        let shape = Shape {
            logs: 1,
            depth_max: 0,
            rotations: 0,
            bytes_max: u64::MAX,
        };
        let begin = Begin {
            start: START,
            stop: Token::new(),
            turns: Some(turns),
        };
        let [lateness, response, service] = [(); 3].map(|()| Recorder::rare_pair().1);
        let load = GeneratorShard::new(Labels::none(), lateness, response, service);
        LogFiles {
            model: Model::new(set, shape, RateUnit::Bytes, &seed),
            growth: LogGrowth {
                rate: RatePlan::bytes(ByteRate::try_new(2_000_000).unwrap()),
                begin: Arc::new(OnceLock::from(begin)),
            },
            load: Arc::new(load),
            shard: Arc::new(LogFsShard::new(Labels::none(), 1)),
            wall_ahead: Nanos::ZERO,
            published_at: START,
            owner: (0, 0),
        }
    }

    /// Log time does not pass in the turns of the other side: after a minute a log in use was half a minute old.
    #[test]
    fn a_log_that_grows_in_turns_was_changed_at_the_time_of_the_clock() {
        let length = Nanos::from_millis(100);
        let plan = TurnPlan {
            turn_min: length,
            turn_max: length,
            gap: Nanos::from_millis(10),
        };
        let stretches = [Nanos::from_secs(5)];
        let [turns, _] = Turns::pair(plan, &Seed::from_number(3), START, &stretches);
        let mut files = files_in(turns.clone());
        let mut entries = files.model.entries(ROOT).unwrap().into_iter();
        let log = entries.find(|entry| !entry.is_folder).unwrap().node;
        let mut checked = 0;
        for elapsed in 0..2000 {
            let now = START + Nanos::from_millis(elapsed);
            files.advance(now);
            let modified = files.attributes(log, now).unwrap().modified;
            let shown_at = |moment: Moment| Nanos::new(moment.as_u64()).split_seconds();
            assert!(modified <= shown_at(now), "{elapsed}");
            let before = now - Nanos::from_millis(20);
            if before >= START && turns.is_on(before) && turns.is_on(now) {
                assert!(modified >= shown_at(before), "{elapsed}");
                checked += 1;
            }
        }
        assert!(checked > 500, "{checked}");
    }
}
