//! What the tasks of a relay share.

use std::cell::RefCell;

use bytes::Bytes;
use memchr::memchr_iter;
use stillwell_scope::{Drain, Stopping, Token};
use stillwell_units::Nanos;
use tokio::select;
use tokio::task::yield_now;

use crate::buffer::Buffer;
use crate::counters::{Counters, RelayReport, add};
use crate::fault::{Faults, Passed};
use crate::limit::Limit;
use crate::options::RelayOptions;
use crate::stall::Gate;
use crate::transform::Transform;
use crate::work::Work;

/// Other tasks get their turn after so many events, or sooner where events cost
/// much.
const TURN_EVENTS_MAX: u64 = 256;
/// Rounds of work after which they do: some 200 µs.
const TURN_ROUNDS: u64 = 100_000;

/// So long, or so many reads, an input goes on taking what has arrived when the
/// relay is to end.
const DRAIN: Drain = Drain {
    length: Nanos::SECOND,
    items: 1024,
};

/// What the tasks of a relay share.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) counters: Counters,
    pub(crate) buffer: Buffer,
    pub(crate) gate: Gate,
    limit: Option<Limit>,
    /// Asks the inputs to end; the output ends when the buffer is empty then.
    pub(crate) token: Token,
    transform: RefCell<Transform>,
    faults: RefCell<Faults>,
    turn_events: u64,
}

impl Core {
    pub(crate) fn new(options: &RelayOptions, token: Token) -> Self {
        let work = Work::new(options.work_per_event);
        let turn_events = (TURN_ROUNDS / work.rounds().max(1)).clamp(1, TURN_EVENTS_MAX);
        Self {
            counters: Counters::default(),
            buffer: Buffer::new(options.buffer_events),
            gate: Gate::default(),
            limit: options.limit.map(Limit::new),
            token,
            transform: RefCell::new(Transform::new(options, work)),
            faults: RefCell::new(Faults::new(&options.faults)),
            turn_events,
        }
    }

    /// How one of the relay's loops over a socket ends.
    pub(crate) fn stopping(&self) -> Stopping {
        Stopping::new(&self.token, DRAIN)
    }

    /// Takes in the events in `lines`, each with its end, in order; waits where
    /// the buffer is full, unless `reserved` says that there is room.
    pub(crate) async fn take_in(&self, lines: Bytes, reserved: bool) {
        self.gate.pass().await;
        self.keep_to_limit(lines.len()).await;
        let mut start = 0;
        let mut turn = 0;
        for end in memchr_iter(b'\n', &lines) {
            if !reserved && !self.buffer.try_reserve(1) {
                self.buffer.reserve(1).await;
            }
            self.take_one(lines.slice(start..end));
            start = end + 1;
            turn += 1;
            if turn == self.turn_events {
                turn = 0;
                yield_now().await;
                self.gate.pass().await;
            }
        }
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
        match self.faults.borrow_mut().pass(event) {
            Passed::One(event) => self.buffer.push(self.transformed(event)),
            other => self.take_with_faults(other),
        }
    }

    /// Takes in what is not what came. What waits or is doubled goes beyond the
    /// room that was reserved: one event for each that came, at most.
    #[cold]
    fn take_with_faults(&self, passed: Passed) {
        self.buffer.release();
        for event in passed {
            self.buffer.push_beyond(self.transformed(event));
        }
    }

    /// Whether a request of so many events is refused on purpose.
    pub(crate) fn refuses(&self, events: usize) -> bool {
        self.faults.borrow_mut().refuses(events as u64)
    }

    /// Nothing more comes in.
    pub(crate) fn finish(&self) {
        let last = self.faults.borrow_mut().finish();
        for event in last {
            self.buffer.push_beyond(self.transformed(event));
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

    /// Counts events handed over.
    pub(crate) fn handed_over(&self, events: u64, bytes: u64) {
        add(&self.counters.events_out, events);
        add(&self.counters.bytes_out, bytes);
    }

    /// What stands in the counters now.
    pub(crate) fn report(&self) -> RelayReport {
        let counters = &self.counters;
        let planted = self.faults.borrow().planted;
        RelayReport {
            events_in: counters.events_in.get(),
            events_out: counters.events_out.get(),
            events_dropped: counters.events_dropped.get() + planted.dropped,
            faults_dropped: planted.dropped,
            faults_flipped: planted.flipped,
            faults_swapped: planted.swapped,
            faults_doubled: planted.doubled,
            faults_refused: planted.refused,
            parse_errors: counters.parse_errors.get(),
            bytes_in: counters.bytes_in.get(),
            bytes_out: counters.bytes_out.get(),
            buffer_events: self.buffer.len() as u64,
            buffer_events_max: self.buffer.longest() as u64,
            hoard_bytes: self.transform.borrow().hoard_bytes(),
        }
    }
}
