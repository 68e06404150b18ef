//! Consumers of a load's progress, and sources of its requests.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stillwell_load::{AnswerNote, Feed, PreparedLoad};
use stillwell_metric::LoadShard;
use stillwell_scope::{Scope, Token, clock};
use stillwell_telemetry::LoadTelemetry;
use stillwell_units::{Moment, Nanos};

use super::collect::Collector;
use super::{LEAD, LOOK_EVERY, LOOK_RARELY, LoadError, LoadSnapshot, Pause};
use crate::interrupt::Interrupt;

/// Maximum wait of the start for the first requests.
const REQUESTS_MAX: Nanos = Nanos::from_secs(2);

/// Maximum time in which a source ends.
const CLOSE_MAX: Nanos = Nanos::from_secs(1);

/// Maximum number of notes forwarded at a time, so seconds are reported in between.
const NOTES_AT_ONCE: usize = 4096;

/// Consumers and the source of a load.
pub struct LoadBeside<'a> {
    /// Receives each second, warm-up included.
    pub progress: &'a mut dyn FnMut(&LoadSnapshot<'_>),
    /// Receives the notes about answers that the plan wants.
    pub on_note: &'a mut dyn FnMut(&AnswerNote),
    /// Source of requests other than the plan.
    pub source: Option<&'a dyn LoadSource>,
    /// Returns the start once connections are open, or `None` to give up; without it the
    /// load starts at once.
    pub agree: Option<AgreeStart<'a>>,
}

/// Returns the moment at which a load starts, or `None` to give up. It ends early with the
/// interrupt.
pub type AgreeStart<'a> = &'a mut dyn FnMut(&Interrupt) -> Option<Moment>;

/// A source of requests while a load goes on.
pub trait LoadSource: fmt::Debug {
    /// Maximum number of requests that wait on each worker.
    fn waiting_max(&self) -> usize;

    /// Starts the source in `scope`, with a feed for each worker. It ends after its feeds are
    /// closed, or with its scope.
    ///
    /// # Errors
    /// The kernel starts no more threads.
    fn start(&self, scope: &mut Scope, feeds: Vec<Feed>) -> io::Result<()>;
}

impl fmt::Debug for LoadBeside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LoadBeside");
        shown.field("source", &self.source).finish_non_exhaustive()
    }
}

/// The started consumers and source of a load.
pub(super) struct LoadCompanions<'a> {
    progress: &'a mut dyn FnMut(&LoadSnapshot<'_>),
    on_note: &'a mut dyn FnMut(&AnswerNote),
    agree: Option<AgreeStart<'a>>,
    pub(super) telemetry: Option<LoadTelemetry>,
    notes: Option<Receiver<AnswerNote>>,
    /// Scope of the source, and the number of requests to wait for before the start.
    source: Option<(Scope, u64)>,
}

impl<'a> LoadCompanions<'a> {
    /// Starts the source.
    pub(super) fn start(
        beside: LoadBeside<'a>,
        telemetry: Option<LoadTelemetry>,
        prepared: &mut PreparedLoad,
    ) -> Result<Self, LoadError> {
        let source = match beside.source {
            None => None,
            Some(source) => {
                let feeds = prepared.feeds(source.waiting_max())?;
                let mut scope = Scope::new(&Token::new());
                source.start(&mut scope, feeds).map_err(LoadError::Start)?;
                Some((scope, source.waiting_max() as u64))
            }
        };
        Ok(Self {
            progress: beside.progress,
            on_note: beside.on_note,
            agree: beside.agree,
            telemetry,
            notes: prepared.take_notes(),
            source,
        })
    }

    /// Waits until the queues are full or the source has ended.
    pub(super) fn wait_for_requests(
        &self,
        shards: &[Arc<LoadShard>],
        interrupt: &Interrupt,
        pause: &Pause,
    ) {
        let Some((_, waiting_max)) = &self.source else {
            return;
        };
        let until = clock::now() + REQUESTS_MAX;
        let is_filled = |shard: &Arc<LoadShard>| {
            shard.source.requests.total() >= *waiting_max || shard.source.is_over()
        };
        while clock::now() < until && interrupt.signal().is_none() && !shards.iter().all(is_filled)
        {
            pause.wait(LOOK_EVERY);
        }
    }

    /// Returns the agreed start, or one in a moment.
    pub(super) fn start_moment(&mut self, interrupt: &Interrupt) -> Result<Moment, LoadError> {
        match self.agree.take() {
            Some(agree) => agree(interrupt).ok_or(LoadError::NoStart),
            None => Ok(clock::now() + LEAD),
        }
    }

    /// Time until the next event; the workers end at `until`.
    pub(super) fn pause_length(&self, collector: &Collector, until: Option<Moment>) -> Nanos {
        let now = clock::now();
        if self.notes.is_some() || until.is_some_and(|until| now >= until) {
            return LOOK_EVERY;
        }
        let due = until.into_iter().chain([collector.next_look()]);
        // Not at once either: workers need a moment to hand over their counts.
        let due = due.map(|due| due.since(now)).fold(LOOK_RARELY, Nanos::min);
        due.max(LOOK_EVERY)
    }

    /// Publishes the interval that has just ended, if one has, and the notes about answers.
    pub(super) fn publish(&mut self, collector: &mut Collector, is_draining: bool) {
        self.forward_notes(NOTES_AT_ONCE);
        if collector.look(clock::now())
            && let Some(snapshot) = collector.snapshot(is_draining)
        {
            (self.progress)(&snapshot);
            if let Some(telemetry) = &mut self.telemetry {
                telemetry.export(snapshot.shards, snapshot.times, snapshot.worker_times);
            }
        }
    }

    fn forward_notes(&mut self, at_most: usize) {
        let notes = self.notes.iter().flat_map(Receiver::try_iter);
        for note in notes.take(at_most) {
            (self.on_note)(&note);
        }
    }

    /// Ends everything but the telemetry, after the workers.
    pub(super) fn finish(mut self) -> Option<LoadTelemetry> {
        self.forward_notes(usize::MAX);
        if let Some((scope, _)) = self.source.take() {
            scope.close(CLOSE_MAX);
        }
        self.telemetry
    }
}
