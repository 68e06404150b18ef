//! What goes on beside a load: who is told of it, and who hands its requests out.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use stillwell_load::{AnswerHeader, Feed, PreparedLoad};
use stillwell_metric::LoadShard;
use stillwell_scope::{Scope, Token, clock};
use stillwell_telemetry::LoadTelemetry;
use stillwell_units::{Moment, Nanos};

use super::collect::Collector;
use super::{LOOK_EVERY, LOOK_SELDOM, LoadError, LoadSnapshot, Pause};
use crate::interrupt::Interrupt;

/// How long the start waits for the first requests at most.
const REQUESTS_MAX: Nanos = Nanos::from_secs(2);

/// How long whoever hands requests out may take to end.
const CLOSE_MAX: Nanos = Nanos::from_secs(1);

/// Headers of answers that are told at a time, so that seconds are told in between.
const HEADERS_AT_ONCE: usize = 4096;

/// What goes on beside a load.
pub struct LoadBeside<'a> {
    /// Is told of each second, warm-up included.
    pub progress: &'a mut dyn FnMut(&LoadSnapshot<'_>),
    /// Is told the headers of answers that the plan names, soon after they came.
    pub heard: &'a mut dyn FnMut(&AnswerHeader),
    /// Who hands requests out in place of the plan's, if anybody does.
    pub source: Option<LoadSource<'a>>,
}

/// Who hands requests out while a load goes on.
pub struct LoadSource<'a> {
    /// Starts that in a scope of its own, with a feed for each worker. It ends once its
    /// feeds are closed, or its scope ends.
    pub start: &'a mut dyn FnMut(&mut Scope, Vec<Feed>) -> io::Result<()>,
    /// How many requests wait on each worker at most.
    pub waiting_max: usize,
}

impl fmt::Debug for LoadBeside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("LoadBeside");
        told.field("source", &self.source).finish_non_exhaustive()
    }
}

impl fmt::Debug for LoadSource<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("LoadSource");
        told.field("waiting_max", &self.waiting_max)
            .finish_non_exhaustive()
    }
}

/// The same, while it goes on.
pub(super) struct Company<'a> {
    progress: &'a mut dyn FnMut(&LoadSnapshot<'_>),
    heard: &'a mut dyn FnMut(&AnswerHeader),
    pub(super) telemetry: Option<LoadTelemetry>,
    headers: Option<Receiver<AnswerHeader>>,
    /// Who hands requests out, and how many of them are there before the start.
    source: Option<(Scope, u64)>,
}

impl<'a> Company<'a> {
    /// Starts whoever hands requests out.
    pub(super) fn start(
        beside: LoadBeside<'a>,
        telemetry: Option<LoadTelemetry>,
        prepared: &mut PreparedLoad,
    ) -> Result<Self, LoadError> {
        let source = match beside.source {
            None => None,
            Some(source) => {
                let feeds = prepared.feeds(source.waiting_max)?;
                let mut scope = Scope::new(&Token::new());
                (source.start)(&mut scope, feeds).map_err(LoadError::Start)?;
                Some((scope, source.waiting_max as u64))
            }
        };
        Ok(Self {
            progress: beside.progress,
            heard: beside.heard,
            telemetry,
            headers: prepared.take_headers(),
            source,
        })
    }

    /// Waits until as many requests are there as may wait, or no more come.
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

    /// How long nothing needs a look, where the workers end at `until`.
    pub(super) fn rest(&self, collector: &Collector, until: Option<Moment>) -> Nanos {
        let now = clock::now();
        if self.headers.is_some() || until.is_some_and(|until| now >= until) {
            return LOOK_EVERY;
        }
        let due = until.into_iter().chain([collector.next_look()]);
        // Not at once either: workers need a moment to hand over what they were asked for.
        let due = due.map(|due| due.since(now)).fold(LOOK_SELDOM, Nanos::min);
        due.max(LOOK_EVERY)
    }

    /// Tells of the piece of time that has ended just now, if one has, and of what
    /// answers said meanwhile.
    pub(super) fn tell(&mut self, collector: &mut Collector, is_draining: bool) {
        self.hear(HEADERS_AT_ONCE);
        if collector.look(clock::now())
            && let Some(snapshot) = collector.snapshot(is_draining)
        {
            (self.progress)(&snapshot);
            if let Some(telemetry) = &mut self.telemetry {
                telemetry.export(snapshot.shards, snapshot.times);
            }
        }
    }

    fn hear(&mut self, at_most: usize) {
        let headers = self.headers.iter().flat_map(Receiver::try_iter);
        for header in headers.take(at_most) {
            (self.heard)(&header);
        }
    }

    /// The workers have ended: so does all the rest but those who are told counts.
    pub(super) fn finish(mut self) -> Option<LoadTelemetry> {
        self.hear(usize::MAX);
        if let Some((scope, _)) = self.source.take() {
            scope.close(CLOSE_MAX);
        }
        self.telemetry
    }
}
