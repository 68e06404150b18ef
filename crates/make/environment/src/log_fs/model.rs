//! Logs that grow and rotate by the clock, and a record of the bytes that were read. Pure: `now` is an
//! argument, and the only content is the payload's.
//!
//! Each log repeats the blocks of the payload from its own start. So a file is one range of that sequence,
//! given by its start and its length.

use std::collections::{BTreeMap, VecDeque};

use stillwell_pacer::{Schedule, Share};
use stillwell_payload::BlockSet;
use stillwell_plan::{RatePlan, RateUnit};
use stillwell_units::{Moment, Seed, as_usize};
use stillwell_worker::units;

use super::read_ranges::ReadRanges;
use crate::numbers::Numbers;

/// The folder that all lie in.
pub(super) const ROOT: u64 = 1;

/// Settings of the logs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    /// Logs at once.
    pub(super) logs: u16,
    /// Maximum number of folders between the root and a log.
    pub(super) depth_max: u8,
    /// Older parts of each that are kept.
    pub(super) rotations: u8,
    /// Size at which a part of a log is rotated.
    pub(super) bytes_max: u64,
}

/// All logs.
#[derive(Debug)]
pub(super) struct Model {
    set: BlockSet,
    shape: Shape,
    unit: RateUnit,
    folders: BTreeMap<u64, Folder>,
    logs: Vec<Log>,
    files: BTreeMap<u64, LogFile>,
    next_file: u64,
    /// Nothing grows any more.
    is_stopped: bool,
    totals: Totals,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) events: u64,
    pub(super) blocks: u64,
    /// Log records or similar items.
    pub(super) data_points: u64,
    /// Of the schedule.
    pub(super) sent_units: u64,
    /// Bytes that were read, counted at every read.
    pub(super) read: u64,
    /// Bytes that were read, each counted once.
    pub(super) unique_read: u64,
    /// Bytes that were removed unread.
    pub(super) missed: u64,
    pub(super) rotated: u64,
    pub(super) deleted: u64,
}

impl Totals {
    /// Bytes that exist and are unread.
    pub(super) const fn unread(&self) -> u64 {
        self.bytes - self.unique_read - self.missed
    }
}

#[derive(Debug, Default)]
struct Folder {
    folders: BTreeMap<String, u64>,
    /// By their names without an age.
    logs: BTreeMap<String, usize>,
    parent: u64,
}

#[derive(Debug)]
struct Log {
    /// The newest first.
    parts: VecDeque<u64>,
    /// `None` before load begins.
    schedule: Option<Schedule>,
    /// The next block.
    next: usize,
    /// And where it begins in the set.
    next_begins: u64,
}

#[derive(Debug)]
struct LogFile {
    log: usize,
    /// Offset in the block set at which the content begins.
    begins: u64,
    size: u64,
    modified: Moment,
    read_ranges: ReadRanges,
    open: u64,
    is_deleted: bool,
}

/// Kind of a node.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum LogNode {
    Folder,
    File {
        log: usize,
        size: u64,
        modified: Moment,
    },
}

/// One entry of a folder.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) node: u64,
    pub(super) is_folder: bool,
}

impl Model {
    /// Empty logs of `set`, as they are before load begins.
    pub(super) fn new(set: BlockSet, shape: Shape, unit: RateUnit, seed: &Seed) -> Self {
        let mut model = Self {
            set,
            shape,
            unit,
            folders: BTreeMap::from([(
                ROOT,
                Folder {
                    parent: ROOT,
                    ..Folder::default()
                },
            )]),
            logs: Vec::new(),
            files: BTreeMap::new(),
            next_file: ROOT + 1,
            is_stopped: false,
            totals: Totals::default(),
        };
        for index in 0..shape.logs {
            model.add_log(&mut Numbers::new(&seed.derive("log", index.into())));
        }
        model
    }

    fn add_log(&mut self, numbers: &mut Numbers) {
        let depths = usize::from(self.shape.depth_max) + 1;
        let depth = numbers.below(depths).unwrap_or(0);
        let mut folder = ROOT;
        for _ in 0..depth {
            folder = self.folder_in(folder, numbers.name(2));
        }
        let log = self.logs.len();
        let next = numbers.below(self.set.len()).unwrap_or(0);
        let next_begins = match next {
            0 => 0,
            next => self.set.run(0, next).bytes.len() as u64,
        };
        self.logs.push(Log {
            parts: VecDeque::new(),
            schedule: None,
            next,
            next_begins,
        });
        self.begin_part(log, Moment::new(0));
        let names = &mut self.folders.entry(folder).or_default().logs;
        // However unlikely: no log hides another.
        let mut name = numbers.name(12);
        while names.contains_key(&name) {
            name = numbers.name(12);
        }
        names.insert(name, log);
    }

    fn folder_in(&mut self, parent: u64, name: String) -> u64 {
        let node = self.next_file;
        let folders = &mut self.folders.entry(parent).or_default().folders;
        let existing = *folders.entry(name).or_insert(node);
        if existing == node {
            self.next_file += 1;
            let folder = Folder {
                parent,
                ..Folder::default()
            };
            self.folders.insert(node, folder);
        }
        existing
    }

    /// Load of `rate`, of all logs together, begins at `start`.
    pub(super) fn begin(&mut self, rate: &RatePlan, start: Moment) {
        let shares = Share::all(self.shape.logs.into());
        for (log, share) in self.logs.iter_mut().zip(shares) {
            log.schedule = Some(Schedule::new(&rate.shape, share, start));
        }
    }

    /// Nothing grows after `now`.
    pub(super) fn stop(&mut self, now: Moment) {
        self.advance(now);
        // Without an effect where it was stopped before.
        self.is_stopped = true;
    }

    /// Load has begun.
    pub(super) fn has_begun(&self) -> bool {
        self.logs.iter().any(|log| log.schedule.is_some())
    }

    /// Does all that was due until `now`.
    pub(super) fn advance(&mut self, now: Moment) {
        if self.is_stopped {
            return;
        }
        for log in 0..self.logs.len() {
            while let Some(at) = self.due(log, now) {
                self.write_block(log, at);
            }
        }
    }

    /// Time of the next block of a log, if it is due at `now`.
    fn due(&self, log: usize, now: Moment) -> Option<Moment> {
        let schedule = self.logs[log].schedule.as_ref()?;
        (schedule.due(now) > 0).then(|| schedule.next_due(now))
    }

    /// Units that the schedule has requested until `now`.
    pub(super) fn requested_until(&self, now: Moment) -> f64 {
        let schedules = self.logs.iter().filter_map(|log| log.schedule.as_ref());
        schedules
            .map(|schedule| schedule.requested_until(now))
            .sum()
    }

    fn write_block(&mut self, log: usize, at: Moment) {
        let newest = self.logs[log].parts.front().copied().unwrap_or(0);
        let is_full = |file: &LogFile| file.size >= self.shape.bytes_max;
        let newest = if self.files.get(&newest).is_none_or(is_full) {
            self.rotate(log, at)
        } else {
            newest
        };
        let state = &mut self.logs[log];
        let counts = self.set.block(state.next).counts();
        let sent = units(&self.set, state.next, state.next + 1, self.unit);
        state.next = (state.next + 1) % self.set.len();
        state.next_begins = match state.next {
            0 => 0,
            _ => state.next_begins + counts.bytes,
        };
        if let Some(schedule) = &mut state.schedule {
            schedule.advance(sent);
        }
        if let Some(file) = self.files.get_mut(&newest) {
            file.size += counts.bytes;
            file.modified = at;
        }
        self.totals.bytes += counts.bytes;
        self.totals.events += counts.events;
        self.totals.blocks += 1;
        self.totals.data_points += counts.units;
        self.totals.sent_units += sent;
    }

    /// Rotates the parts of a log: removes the oldest and starts a new one.
    fn rotate(&mut self, log: usize, at: Moment) -> u64 {
        self.totals.rotated += 1;
        let newest = self.begin_part(log, at);
        if self.logs[log].parts.len() > usize::from(self.shape.rotations) + 1
            && let Some(oldest) = self.logs[log].parts.pop_back()
        {
            self.totals.deleted += 1;
            if let Some(file) = self.files.get_mut(&oldest) {
                file.is_deleted = true;
            }
            self.end_if_unused(oldest);
        }
        newest
    }

    fn begin_part(&mut self, log: usize, at: Moment) -> u64 {
        let node = self.next_file;
        self.next_file += 1;
        let begins = self.logs[log].next_begins;
        self.logs[log].parts.push_front(node);
        let file = LogFile {
            log,
            begins,
            size: 0,
            modified: at,
            read_ranges: ReadRanges::default(),
            open: 0,
            is_deleted: false,
        };
        self.files.insert(node, file);
        node
    }

    /// Counts the unread bytes of a removed file as missed, once no reader has it open.
    fn end_if_unused(&mut self, node: u64) {
        let is_over = |file: &LogFile| file.is_deleted && file.open == 0;
        if self.files.get(&node).is_some_and(is_over)
            && let Some(mut file) = self.files.remove(&node)
        {
            self.totals.missed += file.read_ranges.insert(0, file.size);
        }
    }

    pub(super) const fn totals(&self) -> Totals {
        self.totals
    }

    /// Returns the kind of a node; `None` if it was removed.
    pub(super) fn node(&self, node: u64) -> Option<LogNode> {
        if self.folders.contains_key(&node) {
            return Some(LogNode::Folder);
        }
        let file = self.files.get(&node)?;
        Some(LogNode::File {
            log: file.log,
            size: file.size,
            modified: file.modified,
        })
    }

    /// Returns the entry `name` of a folder.
    pub(super) fn lookup(&self, folder: u64, name: &str) -> Option<u64> {
        let folder = self.folders.get(&folder)?;
        if let Some(folder) = folder.folders.get(name) {
            return Some(*folder);
        }
        let (stem, age) = match name.strip_suffix(".log") {
            Some(stem) => (stem, 0),
            None => {
                let (stem, text) = name.rsplit_once(".log.")?;
                let age: usize = text.parse().ok()?;
                // `.01` and `.0` are not names of parts.
                let is_plain = age > 0 && age.to_string() == text;
                (stem, is_plain.then_some(age)?)
            }
        };
        let log = *folder.logs.get(stem)?;
        self.logs[log].parts.get(age).copied()
    }

    /// All that lies in a folder.
    pub(super) fn entries(&self, node: u64) -> Option<Vec<Entry>> {
        let folder = self.folders.get(&node)?;
        let entry = |name: String, node, is_folder| Entry {
            name,
            node,
            is_folder,
        };
        let mut entries = vec![
            entry(".".to_owned(), node, true),
            entry("..".to_owned(), folder.parent, true),
        ];
        let folders = folder.folders.iter();
        entries.extend(folders.map(|(name, node)| entry(name.clone(), *node, true)));
        for (stem, log) in &folder.logs {
            for (age, part) in self.logs[*log].parts.iter().enumerate() {
                let name = match age {
                    0 => format!("{stem}.log"),
                    age => format!("{stem}.log.{age}"),
                };
                entries.push(entry(name, *part, false));
            }
        }
        Some(entries)
    }

    pub(super) fn open(&mut self, node: u64) -> bool {
        let file = self.files.get_mut(&node);
        file.map(|file| file.open += 1).is_some()
    }

    pub(super) fn release(&mut self, node: u64) {
        if let Some(file) = self.files.get_mut(&node) {
            file.open = file.open.saturating_sub(1);
        }
        self.end_if_unused(node);
    }

    /// Hands `out` the content of a file from `offset` on, `size` bytes at most.
    pub(super) fn read(&mut self, node: u64, offset: u64, size: u32, out: &mut Vec<u8>) {
        let Some(file) = self.files.get_mut(&node) else {
            return;
        };
        let end = file.size.min(offset.saturating_add(size.into()));
        if offset >= end {
            return;
        }
        self.totals.unique_read += file.read_ranges.insert(offset, end);
        self.totals.read += end - offset;
        let bytes = self.set.bytes();
        let cycle = bytes.len() as u64;
        let mut remaining = end - offset;
        let mut at = (file.begins + offset) % cycle;
        while remaining > 0 {
            let run = remaining.min(cycle - at);
            let index = |number: u64| as_usize(number);
            out.extend_from_slice(&bytes[index(at)..index(at + run)]);
            remaining -= run;
            at = 0;
        }
    }
}

#[cfg(test)]
mod tests;
