//! A buffer in files, which outlives the relay: what was taken in and not handed over
//! is sent by the next one that uses the same folder.
//!
//! Events go to the end of the newest segment. From there they are read back into the buffer
//! in memory, a few at a time. Once they are handed over, the position moves on and segments
//! behind it go. A relay that ends between these two steps sends the events again: at least
//! once.

mod content_type;
mod position;
mod record;
mod recover;
mod segment;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use stillwell_units::{ByteSize, Nanos, as_usize};
use tokio::select;
use tokio::sync::Notify;
use tokio::time::sleep;

use self::position::{Position, PositionFile};
use self::recover::Recovered;
use self::segment::{SegmentReader, Writer};
use crate::options::{DiskOptions, SyncWhen};

pub use self::recover::DiskError;

/// Size of the write buffer.
const PENDING_BYTES_MAX: usize = 256 << 10;

/// Of so many parts the buffer is made: the oldest goes when all in it was handed over.
const SEGMENTS: u64 = 8;

/// Time between two attempts to write, or to sync, that the kernel refuses.
pub(crate) const WRITE_AGAIN: Duration = Duration::from_millis(50);

/// Maximum time that an event waits for others, where a sync covers a number of events.
const SYNC_WAIT_MAX: Duration = Duration::from_millis(100);

/// A buffer in files.
#[derive(Debug)]
pub(crate) struct Disk {
    state: RefCell<State>,
    sync: SyncWhen,
    /// Room became free.
    freed: Notify,
    /// Something was written that can be read back, or nothing more will be.
    written: Notify,
    /// Enough was written to be synced, or nothing more will be.
    due: Notify,
    /// Something was synced.
    synced: Notify,
    closed: Cell<bool>,
    /// Content type of the newest request of the relay before, if events of it are left.
    content_type: Vec<u8>,
    /// Keeps others out of the folder for as long as it is open.
    _lock: File,
}

#[derive(Debug)]
struct State {
    folder: PathBuf,
    bytes_max: u64,
    writer: Writer,
    reader: Option<SegmentReader>,
    position: PositionFile,
    /// Up to here all was handed over.
    handed_over: Position,
    /// The segments that there are and where they end; that of the writer is not
    /// among them.
    segments: VecDeque<(u64, u64)>,
    /// Ends of the events that are in memory and not handed over, the oldest first.
    under_way: VecDeque<Position>,
    pending: Vec<u8>,
    reserved: u64,
    counts: DiskCounts,
}

/// Counters of a buffer on disk.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DiskCounts {
    /// Events found when it was opened.
    pub(crate) recovered: u64,
    /// Bytes found then that were no whole event.
    pub(crate) torn_bytes: u64,
    pub(crate) appended: u64,
    written: u64,
    synced: u64,
    handed_over: u64,
    pub(crate) syncs: u64,
    /// Writes and syncs that the kernel refused, as on a full disk; all are tried again.
    pub(crate) refused: u64,
}

impl DiskCounts {
    /// Events that lie on disk and were not handed over.
    pub(crate) const fn kept(&self) -> u64 {
        (self.recovered + self.written).saturating_sub(self.handed_over)
    }
}

impl Disk {
    /// Opens the buffer in the folder of `options`, and finds what an earlier one left.
    pub(crate) fn open(options: &DiskOptions) -> Result<Self, DiskError> {
        let Recovered {
            lock,
            writer,
            position,
            handed_over,
            segments,
            counts,
            content_type,
        } = recover::open(&options.folder, options.sync != SyncWhen::Never)?;
        Ok(Self {
            state: RefCell::new(State {
                folder: options.folder.clone(),
                bytes_max: options.bytes_max.bytes(),
                writer,
                reader: None,
                position,
                handed_over,
                segments: segments.into(),
                under_way: VecDeque::new(),
                pending: Vec::new(),
                reserved: 0,
                counts,
            }),
            sync: options.sync,
            freed: Notify::new(),
            written: Notify::new(),
            due: Notify::new(),
            synced: Notify::new(),
            closed: Cell::new(false),
            content_type,
            _lock: lock,
        })
    }

    pub(crate) fn counts(&self) -> DiskCounts {
        self.state.borrow().counts
    }

    /// Content type of the newest request of the relay before; empty if it had none, or if no event is left of that
    /// relay.
    pub(crate) fn content_type(&self) -> &[u8] {
        &self.content_type
    }

    /// Keeps the content type of the newest request for the next relay.
    pub(crate) fn keep_content_type(&self, content_type: &[u8]) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        let is_synced = self.sync != SyncWhen::Never;
        let kept = content_type::keep(&state.folder, content_type, is_synced);
        kept.inspect_err(|_| state.counts.refused += 1)
    }

    /// Size on disk.
    pub(crate) fn bytes(&self) -> ByteSize {
        ByteSize::new(self.state.borrow().used())
    }

    /// Size of `events` records with `bytes` bytes of payload.
    pub(crate) const fn room_of(events: usize, bytes: usize) -> u64 {
        (bytes + events * record::HEAD_BYTES) as u64
    }

    /// Returns true if the empty buffer has room for this.
    pub(crate) fn can_hold(&self, room: u64) -> bool {
        room <= self.state.borrow().bytes_max / SEGMENTS * (SEGMENTS - 1)
    }

    /// Reserves room, if there is that much.
    pub(crate) fn try_reserve(&self, room: u64) -> bool {
        let mut state = self.state.borrow_mut();
        let fits = state.used() + state.reserved + room <= state.bytes_max;
        if fits {
            state.reserved += room;
        }
        fits
    }

    /// Waits for room and reserves it. Cancel-safe.
    pub(crate) async fn reserve(&self, room: u64) {
        while !self.try_reserve(room) {
            self.freed.notified().await;
        }
    }

    /// Gives up room that was reserved.
    pub(crate) fn release(&self, room: u64) {
        let mut state = self.state.borrow_mut();
        state.reserved = state.reserved.saturating_sub(room);
    }

    /// The same of room that is not used, which others may wait for.
    pub(crate) fn give_back(&self, room: u64) {
        self.release(room);
        self.freed.notify_waiters();
    }

    /// Returns true if a record can have this event; a longer one could not be read again.
    pub(crate) const fn can_store(event: &[u8]) -> bool {
        event.len() <= record::EVENT_BYTES_MAX
    }

    /// Takes an event that can be stored; it is there once [`Disk::write_out`] has written it.
    pub(crate) fn append(&self, event: &[u8]) {
        let mut state = self.state.borrow_mut();
        record::write(event, &mut state.pending);
        state.counts.appended += 1;
    }

    /// Returns true if enough is pending for a write.
    pub(crate) fn is_full_of_pending(&self) -> bool {
        self.state.borrow().pending.len() >= PENDING_BYTES_MAX
    }

    /// Writes what was appended.
    pub(crate) fn write_out(&self) -> io::Result<()> {
        let mut state = self.state.borrow_mut();
        if state.pending.is_empty() {
            return Ok(());
        }
        if let Err(error) = state.write_out(self.sync != SyncWhen::Never) {
            state.counts.refused += 1;
            return Err(error);
        }
        self.written.notify_one();
        self.due.notify_one();
        Ok(())
    }

    /// Waits until all earlier events are as safe as the options say.
    pub(crate) async fn kept(&self) {
        if self.sync == SyncWhen::Never {
            return;
        }
        let wanted = self.counts().appended;
        loop {
            let synced = self.synced.notified();
            if self.counts().synced >= wanted {
                return;
            }
            synced.await;
        }
    }

    /// Syncs written events as often as the options say, until nothing more comes. Refused
    /// syncs are tried again: clients wait for them.
    pub(crate) async fn keep_synced(&self) {
        if self.sync == SyncWhen::Never {
            return;
        }
        loop {
            let waiting = self.state.borrow().unsynced();
            match (waiting, self.closed.get()) {
                (0, true) => return,
                (0, false) => {
                    self.due.notified().await;
                    continue;
                }
                (_, true) => {}
                (waiting, false) => self.gather(waiting).await,
            }
            while self.state.borrow_mut().sync().is_err() {
                sleep(WRITE_AGAIN).await;
            }
            self.synced.notify_waiters();
        }
    }

    /// Waits for more to be synced together with the `waiting` events.
    async fn gather(&self, waiting: u64) {
        let longest = match self.sync {
            SyncWhen::Events(wanted) if waiting >= wanted.get() => return,
            SyncWhen::Every(length) => length.as_duration(),
            _ => SYNC_WAIT_MAX,
        };
        let end = sleep(longest);
        tokio::pin!(end);
        loop {
            select! {
                () = &mut end => return,
                () = self.due.notified() => {}
            }
            let waiting = self.state.borrow().unsynced();
            let is_enough =
                matches!(self.sync, SyncWhen::Events(wanted) if waiting >= wanted.get());
            if is_enough || self.closed.get() {
                return;
            }
        }
    }

    /// The next event that was written; waits for it. `None` once there is none and
    /// none will come.
    pub(crate) async fn next(&self) -> Result<Option<Bytes>, DiskError> {
        loop {
            let event = self.state.borrow_mut().read();
            if let Some(event) = event.map_err(|source| self.failed(source))? {
                return Ok(Some(event));
            }
            if self.closed.get() {
                return Ok(None);
            }
            self.written.notified().await;
        }
    }

    fn failed(&self, source: io::Error) -> DiskError {
        let folder = self.state.borrow().folder.clone();
        DiskError::Storage { folder, source }
    }

    /// The oldest `events` in memory were handed over.
    pub(crate) fn handed_over(&self, events: u64) -> io::Result<()> {
        let is_synced = self.sync != SyncWhen::Never;
        self.state.borrow_mut().move_on(events, is_synced)?;
        self.freed.notify_waiters();
        Ok(())
    }

    /// Nothing more will be appended.
    pub(crate) fn close(&self) {
        self.closed.set(true);
        self.written.notify_one();
        self.due.notify_one();
    }
}

impl State {
    fn used(&self) -> u64 {
        let segments: u64 = self.segments.iter().map(|(_, end)| *end).sum();
        segments + self.writer.end + self.pending.len() as u64
    }

    const fn unsynced(&self) -> u64 {
        self.counts.written - self.counts.synced
    }

    fn write_out(&mut self, is_synced: bool) -> io::Result<()> {
        let after = self.writer.end + self.pending.len() as u64;
        if after > self.bytes_max / SEGMENTS && self.writer.end > segment::FIRST {
            if is_synced {
                // What lies in it counts as synced with what comes next.
                self.writer.sync(&self.folder)?;
            }
            self.rotate(is_synced)?;
        }
        self.writer.append(&self.pending)?;
        self.pending.clear();
        self.counts.written = self.counts.appended;
        Ok(())
    }

    /// Begins the next segment.
    fn rotate(&mut self, is_synced: bool) -> io::Result<()> {
        let next = Writer::begin(&self.folder, self.writer.number + 1, is_synced)?;
        let full = std::mem::replace(&mut self.writer, next);
        self.segments.push_back((full.number, full.end));
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let synced = self.writer.sync(&self.folder);
        synced.inspect_err(|_| self.counts.refused += 1)?;
        self.counts.synced = self.counts.written;
        self.counts.syncs += 1;
        Ok(())
    }

    /// The next event that was written, if there is one.
    fn read(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if self.reader.is_none() {
                let Position { segment, offset } = self.handed_over;
                let number = self.from(segment);
                let offset = if number == segment { offset } else { 0 };
                self.reader = SegmentReader::open(&self.folder, number, offset)?;
            }
            let Some(reader) = &mut self.reader else {
                return Ok(None);
            };
            let number = reader.number;
            let segment = self.segments.iter().find(|(known, _)| *known == number);
            let end = match segment {
                Some((_, end)) => *end,
                None if number == self.writer.number => self.writer.end,
                // All of it was handed over, and the segment is gone.
                None => reader.offset,
            };
            if let Some((event, _)) = reader.next(end)? {
                let event = Bytes::copy_from_slice(event);
                let (segment, offset) = (number, reader.offset);
                self.under_way.push_back(Position { segment, offset });
                return Ok(Some(event));
            }
            if number == self.writer.number {
                return Ok(None);
            }
            let next = self.from(number + 1);
            self.reader = SegmentReader::open(&self.folder, next, 0)?;
        }
    }

    /// The first segment from `number` on.
    fn from(&self, number: u64) -> u64 {
        let mut segments = self.segments.iter().map(|(number, _)| *number);
        let first = segments.find(|known| *known >= number);
        first.unwrap_or(self.writer.number)
    }

    fn move_on(&mut self, events: u64, is_synced: bool) -> io::Result<()> {
        let count = as_usize(events);
        let count = count.min(self.under_way.len());
        let Some(last) = self.under_way.drain(..count).next_back() else {
            return Ok(());
        };
        self.counts.handed_over += count as u64;
        self.handed_over = last;
        self.position.keep(last)?;
        let written = (self.writer.number, self.writer.end);
        let is_empty = self.pending.is_empty() && (last.segment, last.offset) == written;
        // Else the room of large events would not be free before the next write.
        if is_empty && self.writer.end > self.bytes_max / SEGMENTS {
            self.rotate(is_synced)?;
        }
        while let Some((number, end)) = self.segments.front().copied() {
            if (number, end) > (last.segment, last.offset) {
                break;
            }
            remove(&segment::path(&self.folder, number))?;
            self.segments.pop_front();
        }
        Ok(())
    }
}

/// Another process may have removed it.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The least that a buffer on disk may have: the longest event in one of its parts.
pub(crate) const BYTES_MIN: ByteSize = ByteSize::mib(16);

/// The longest that something may wait to be synced.
pub(crate) const SYNC_EVERY_MAX: Nanos = Nanos::from_secs(60);

#[cfg(test)]
mod tests;
