//! State that the tasks of a relay share.

use std::cell::{Cell, RefCell};

use bytes::Bytes;
use memchr::memchr_iter;
use stillwell_scope::{Drain, Stopping, Token};
use stillwell_units::Nanos;
use tokio::select;
use tokio::task::yield_now;
use tokio::time::sleep;

use crate::buffer::Buffer;
use crate::counters::{Counters, RelayReport, add};
use crate::disk::{Disk, DiskError, WRITE_AGAIN};
use crate::fault::{Faults, Passed};
use crate::limit::Limit;
use crate::options::{Format, RelayOptions};
use crate::stall::Gate;
use crate::transform::Transform;
use crate::work::Work;

/// Other tasks get their turn after so many events, or sooner where events cost
/// much.
const TURN_EVENTS_MAX: u64 = 256;
/// Rounds of work after which they do: some 200 µs.
const TURN_ROUNDS: u64 = 100_000;

/// Limits on the input that a relay still takes after its stop: a time, and a number of
/// reads.
const DRAIN: Drain = Drain {
    length: Nanos::SECOND,
    items: 1024,
    quiet: Nanos::ZERO,
};

/// The most bytes of bodies that are not taken in yet, over all connections, beyond the first of each body.
const BODIES_BYTES_MAX: usize = 256 << 20;

/// State that the tasks of a relay share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) counters: Counters,
    pub(crate) buffer: Buffer,
    /// The buffer on disk, before the one in memory.
    pub(crate) disk: Option<Disk>,
    pub(crate) gate: Gate,
    limit: Option<Limit>,
    /// Ends the inputs; the output ends when the buffer is empty after that.
    pub(crate) token: Token,
    transform: RefCell<Transform>,
    faults: RefCell<Faults>,
    turn_events: u64,
    /// True where events are whole requests.
    takes_requests: bool,
    /// Content type of the newest request; empty before the first and where it has none.
    content_type: RefCell<Vec<u8>>,
    /// Bytes of bodies that are not taken in yet, over all connections.
    bodies: Cell<usize>,
}

/// Room that is reserved for events. Dropping it gives back the room that was not used.
#[derive(Debug)]
pub(crate) struct Reservation<'c> {
    core: &'c Core,
    events: usize,
    bytes: usize,
}

impl Reservation<'_> {
    /// An event of so many bytes is taken in, and uses its room.
    const fn use_for(&mut self, bytes: usize) {
        self.events = self.events.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.events == 0 {
            return;
        }
        match &self.core.disk {
            Some(disk) => disk.give_back(Disk::room_of(self.events, self.bytes)),
            None => self.core.buffer.release(self.events),
        }
    }
}

impl Core {
    pub(crate) fn new(options: &RelayOptions, disk: Option<Disk>, token: Token) -> Self {
        let work = Work::new(options.work_per_event);
        let turn_events = (TURN_ROUNDS / work.rounds().max(1)).clamp(1, TURN_EVENTS_MAX);
        let content_type = disk.as_ref().map(|disk| disk.content_type().to_vec());
        Self {
            counters: Counters::default(),
            buffer: Buffer::new(options.buffer_events),
            disk,
            gate: Gate::default(),
            limit: options.limit.map(Limit::new),
            token,
            transform: RefCell::new(Transform::new(options, work)),
            faults: RefCell::new(Faults::new(&options.faults)),
            turn_events,
            takes_requests: options.format == Format::Requests,
            content_type: RefCell::new(content_type.unwrap_or_default()),
            bodies: Cell::default(),
        }
    }

    /// Reserves memory for `bytes` of a body, until [`Self::release`]. Returns false where the bodies of all connections
    /// have as much as they may.
    #[must_use]
    pub(crate) fn hold(&self, bytes: usize) -> bool {
        let held = self.bodies.get() + bytes;
        let has_room = held <= BODIES_BYTES_MAX;
        if has_room {
            self.bodies.set(held);
        }
        has_room
    }

    /// Gives back memory for `bytes` of a body.
    pub(crate) fn release(&self, bytes: usize) {
        self.bodies.set(self.bodies.get() - bytes);
    }

    /// Notes the content type of a request whose lines are events, and keeps it on disk with
    /// them. Refused writes are tried again.
    pub(crate) async fn note_content_type(&self, content_type: &[u8]) {
        if *self.content_type.borrow() == content_type {
            return;
        }
        if let Some(disk) = &self.disk {
            while disk.keep_content_type(content_type).is_err() {
                sleep(WRITE_AGAIN).await;
            }
        }
        content_type.clone_into(&mut self.content_type.borrow_mut());
    }

    /// Content type of the newest request; empty before the first and where it has none.
    pub(crate) fn content_type(&self) -> Vec<u8> {
        self.content_type.borrow().clone()
    }

    /// True where events are whole requests, in the layout of [`crate::server::RequestParts::event`].
    pub(crate) const fn takes_requests(&self) -> bool {
        self.takes_requests
    }

    /// The rules by which one of the relay's loops over a socket ends.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping::new(&self.token, DRAIN)
    }

    /// Takes in the events in `lines`, each with its end, in order; waits where
    /// the buffer is full, unless room for all of them is `reserved`.
    pub(crate) async fn take_in(&self, lines: Bytes, mut reserved: Option<Reservation<'_>>) {
        self.gate.pass().await;
        self.keep_to_limit(lines.len()).await;
        let mut start = 0;
        let mut turn = 0;
        for end in memchr_iter(b'\n', &lines) {
            match &mut reserved {
                Some(reserved) => reserved.use_for(end - start),
                None if self.try_reserve(1, end - start) => {}
                None => {
                    self.write_out().await;
                    self.wait_for_room(1, end - start).await;
                }
            }
            self.take_one(lines.slice(start..end));
            start = end + 1;
            turn += 1;
            if turn == self.turn_events || self.disk.as_ref().is_some_and(Disk::is_full_of_pending)
            {
                turn = 0;
                self.write_out().await;
                yield_now().await;
                self.gate.pass().await;
            }
        }
        self.write_out().await;
    }

    /// Takes in one event that may hold ends of lines, for which room is `reserved`.
    pub(crate) async fn take_whole(&self, event: Bytes, mut reserved: Reservation<'_>) {
        self.gate.pass().await;
        self.keep_to_limit(event.len()).await;
        reserved.use_for(event.len());
        self.take_one(event);
        self.write_out().await;
    }

    /// Returns true if the empty buffer has room for this.
    pub(crate) fn can_hold(&self, events: usize, bytes: usize) -> bool {
        match &self.disk {
            Some(disk) => disk.can_hold(Disk::room_of(events, bytes)),
            None => events <= self.buffer.capacity(),
        }
    }

    /// Reserves room for `events` of so many bytes, if there is that much.
    pub(crate) fn try_reserve(&self, events: usize, bytes: usize) -> bool {
        match &self.disk {
            Some(disk) => disk.try_reserve(Disk::room_of(events, bytes)),
            None => self.buffer.try_reserve(events),
        }
    }

    /// Waits for room for `events` of so many bytes and reserves it. Cancel-safe.
    pub(crate) async fn reserve(&self, events: usize, bytes: usize) -> Reservation<'_> {
        self.wait_for_room(events, bytes).await;
        Reservation {
            core: self,
            events,
            bytes,
        }
    }

    /// The same for events that are taken in at once.
    async fn wait_for_room(&self, events: usize, bytes: usize) {
        match &self.disk {
            Some(disk) => disk.reserve(Disk::room_of(events, bytes)).await,
            None => self.buffer.reserve(events).await,
        }
    }

    /// Writes accepted events to disk where the options say so. Tries again what the kernel
    /// refuses, as after a full disk.
    pub(crate) async fn write_out(&self) {
        if let Some(disk) = &self.disk {
            while disk.write_out().is_err() {
                sleep(WRITE_AGAIN).await;
            }
        }
    }

    /// Waits until accepted events are as safe as the options say, before their sender gets
    /// an answer.
    pub(crate) async fn kept(&self) {
        if let Some(disk) = &self.disk {
            disk.kept().await;
        }
    }

    /// Moves events from `disk` to the buffer until nothing more comes, and closes the buffer.
    pub(crate) async fn refill(&self, disk: &Disk) -> Result<(), DiskError> {
        let moved = self.move_from(disk).await;
        // After a failure, too: the output waits for no more.
        self.buffer.close();
        moved
    }

    async fn move_from(&self, disk: &Disk) -> Result<(), DiskError> {
        let mut turn = 0;
        while let Some(event) = disk.next().await? {
            self.buffer.reserve(1).await;
            self.buffer.push(event);
            turn += 1;
            if turn % TURN_EVENTS_MAX == 0 {
                yield_now().await;
            }
        }
        Ok(())
    }

    /// Waits for the turn of `bytes` where there is a limit; not once the relay is
    /// to end.
    pub(crate) async fn keep_to_limit(&self, bytes: usize) {
        if let Some(limit) = &self.limit {
            select! {
                () = self.token.cancelled() => {}
                () = limit.pass(bytes) => {}
            }
        }
    }

    /// Takes in one event, for which room has been reserved.
    pub(crate) fn take_one(&self, event: Bytes) {
        add(&self.counters.events_in, 1);
        let bytes = event.len();
        match self.faults.borrow_mut().pass(event) {
            Passed::One(event) => match &self.disk {
                Some(disk) => {
                    disk.release(Disk::room_of(1, bytes));
                    self.append(disk, &self.transformed(event));
                }
                None => self.buffer.push(self.transformed(event)),
            },
            other => self.take_with_faults(other, bytes),
        }
    }

    /// Takes in what is not what came. What waits or is duplicated goes beyond the
    /// room that was reserved: one event for each that came, at most.
    #[cold]
    fn take_with_faults(&self, passed: Passed, bytes: usize) {
        match &self.disk {
            Some(disk) => disk.release(Disk::room_of(1, bytes)),
            None => self.buffer.release(1),
        }
        self.put_beyond(passed);
    }

    /// Puts an event on disk; one that is too long for a record is dropped.
    fn append(&self, disk: &Disk, event: &[u8]) {
        if Disk::can_store(event) {
            disk.append(event);
        } else {
            add(&self.counters.events_dropped, 1);
        }
    }

    /// Puts events for which no room was reserved.
    fn put_beyond(&self, events: impl IntoIterator<Item = Bytes>) {
        for event in events {
            let event = self.transformed(event);
            match &self.disk {
                Some(disk) => self.append(disk, &event),
                None => self.buffer.push_beyond(event),
            }
        }
    }

    /// Returns true if a request of `events` events is refused on purpose.
    pub(crate) fn refuses(&self, events: usize) -> bool {
        self.faults.borrow_mut().refuses(events as u64)
    }

    /// Nothing more comes in.
    pub(crate) async fn finish(&self) {
        let last = self.faults.borrow_mut().finish();
        self.put_beyond(last);
        self.write_out().await;
        match &self.disk {
            Some(disk) => disk.close(),
            None => self.buffer.close(),
        }
    }

    fn transformed(&self, mut event: Bytes) -> Bytes {
        if self.transform.borrow_mut().apply(&mut event).is_err() {
            add(&self.counters.parse_errors, 1);
        }
        event
    }

    /// Counts `events` that are taken in and thrown away.
    pub(crate) fn drop_events(&self, events: u64) {
        add(&self.counters.events_in, events);
        add(&self.counters.events_dropped, events);
    }

    /// Counts events handed over: the oldest that are not.
    pub(crate) fn handed_over(&self, events: u64, bytes: u64) {
        add(&self.counters.events_out, events);
        add(&self.counters.bytes_out, bytes);
        self.move_on(events);
    }

    /// Counts events that no output will take: the oldest that were not handed over.
    pub(crate) fn gave_up(&self, events: u64) {
        add(&self.counters.events_dropped, events);
        self.move_on(events);
    }

    fn move_on(&self, events: u64) {
        if let Some(disk) = &self.disk
            && disk.handed_over(events).is_err()
        {
            // They are sent again after a new start.
            add(&self.counters.disk_errors, 1);
        }
    }

    /// Returns the present values of the counters.
    pub(crate) fn report(&self) -> RelayReport {
        let counters = &self.counters;
        let planted = self.faults.borrow().planted;
        let disk = self.disk.as_ref();
        let counts = disk.map(Disk::counts).unwrap_or_default();
        RelayReport {
            events_in: counters.events_in.get(),
            events_out: counters.events_out.get(),
            events_dropped: counters.events_dropped.get() + planted.dropped,
            faults_dropped: planted.dropped,
            faults_flipped: planted.flipped,
            faults_swapped: planted.swapped,
            faults_duplicated: planted.duplicated,
            faults_refused: planted.refused,
            compressed_refused: counters.compressed_refused.get(),
            parse_errors: counters.parse_errors.get(),
            bytes_in: counters.bytes_in.get(),
            bytes_out: counters.bytes_out.get(),
            buffer_events: self.buffer.len() as u64,
            buffer_events_max: self.buffer.longest() as u64,
            hoard_bytes: self.transform.borrow().hoard_bytes(),
            events_recovered: counts.recovered,
            events_kept: counts.kept(),
            torn_bytes: counts.torn_bytes,
            disk_syncs: counts.syncs,
            disk_errors: counters.disk_errors.get() + counts.refused,
            disk_bytes: disk.map_or(0, |disk| disk.bytes().bytes()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    use stillwell_units::ByteSize;

    use super::*;
    use crate::endpoint::Endpoint;
    use crate::options::{DiskOptions, SyncWhen};
    use crate::work::WorkAmount;

    fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    /// Room for events of a connection that was closed stayed reserved, and was never available again.
    #[test]
    fn room_that_is_reserved_and_not_used_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskOptions {
            folder: folder.path().to_owned(),
            bytes_max: ByteSize::kib(8),
            sync: SyncWhen::Never,
        };
        for disk in [None, Some(Disk::open(&disk).unwrap())] {
            let mut options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
            options.buffer_events = 3;
            // Other tasks get their turn after each event.
            options.work_per_event = WorkAmount::Rounds(TURN_ROUNDS);
            let core = Core::new(&options, disk, Token::new());
            let Poll::Ready(reserved) = poll(pin!(core.reserve(3, 6000))) else {
                panic!("the empty buffer has room");
            };
            let line = [&[b'x'; 2000][..], b"\n"].concat();
            let mut taken = Box::pin(core.take_in(line.repeat(3).into(), Some(reserved)));
            assert!(poll(taken.as_mut()).is_pending());
            let mut next = pin!(core.reserve(2, 4000));
            assert!(poll(next.as_mut()).is_pending());
            drop(taken);
            assert_eq!(core.counters.events_in.get(), 1);
            assert!(poll(next.as_mut()).is_ready());
        }
    }

    #[test]
    fn nothing_more_comes_from_a_disk_that_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let disk = DiskOptions {
            folder: folder.path().to_owned(),
            bytes_max: ByteSize::kib(8),
            sync: SyncWhen::Never,
        };
        let disk = Disk::open(&disk).unwrap();
        let options = RelayOptions::new(Endpoint::Discard, Endpoint::Discard);
        let core = Core::new(&options, Some(disk), Token::new());
        fs::remove_file(folder.path().join("000000000001.segment")).unwrap();
        let disk = core.disk.as_ref().unwrap();
        let refilled = poll(pin!(core.refill(disk)));
        assert!(matches!(refilled, Poll::Ready(Err(_))), "{refilled:?}");
        assert_eq!(poll(pin!(core.buffer.wait())), Poll::Ready(false));
    }
}
