//! The input of the pipeline.

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use stillwell_metric::Volume;
use stillwell_scope::clock;
use stillwell_units::{Moment, Nanos, float_from_u64};

use crate::plan::{CheckedPlan, Rate};
use crate::shared::Shared;
use crate::ticket::Ticket;

/// Time before an event is due in which the source spins: the kernel wakes a sleeper late.
const SPIN: Nanos = Nanos::from_millis(1);
/// The longest time without a look at whether it was stopped.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

/// Says when the next event is due and gives it a ticket. There is one for each
/// bench; it is to be dropped before [`Bench::finish`](crate::Bench::finish).
#[derive(Debug)]
pub struct Source {
    shared: Arc<Shared>,
    rate: Rate,
    events: u64,
    duration: Option<Nanos>,
    begin: Option<Moment>,
    next: u64,
    sent: Volume,
}

/// The next step of the source.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Due {
    /// Send an event with this ticket.
    Now(Ticket),
    /// Nothing is due before this time has passed.
    In(Duration),
    /// That was all.
    End,
}

impl Source {
    pub(crate) fn new(plan: &CheckedPlan, shared: Arc<Shared>) -> Self {
        Self {
            shared,
            rate: plan.rate,
            events: plan.events,
            duration: plan.duration.map(Nanos::from),
            begin: None,
            next: 0,
            sent: Volume::default(),
        }
    }

    /// Waits until the next event is due, sleeping while there is time and spinning
    /// for the last millisecond; `None` once all were sent, the time is up or the
    /// bench was stopped. The schedule begins with the first call.
    #[expect(
        clippy::should_implement_trait,
        reason = "an iterator would hide that it waits"
    )]
    pub fn next(&mut self) -> Option<Ticket> {
        loop {
            match self.due() {
                Due::Now(ticket) => return Some(ticket),
                Due::End => return None,
                Due::In(wait) => {
                    let wait = Nanos::from(wait);
                    if wait > SPIN {
                        let wait = wait.saturating_sub(SPIN).min(LOOK_EVERY);
                        std::thread::park_timeout(wait.as_duration());
                    } else {
                        spin_loop();
                    }
                }
            }
        }
    }

    /// The same without waiting, for pipelines with timers of their own.
    pub fn due(&mut self) -> Due {
        let now = clock::now();
        let begin = match self.begin {
            Some(begin) => begin,
            None => self.begins(now),
        };
        let is_over = self
            .duration
            .is_some_and(|duration| now >= begin + duration);
        if self.next >= self.events || is_over || self.shared.stop.load(Ordering::Relaxed) {
            return Due::End;
        }
        let intended = match self.rate {
            Rate::Max => now,
            Rate::PerSecond(rate) => {
                let seconds = float_from_u64(self.next) / rate;
                begin + Nanos::from_secs_f64(seconds)
            }
        };
        if intended > now {
            return Due::In(intended.since(now).as_duration());
        }
        let ticket = Ticket {
            sequence: self.next,
            intended,
            sent: now,
        };
        self.next += 1;
        self.sent.events += 1;
        Due::Now(ticket)
    }

    /// Counts `bytes` that were sent, for the report.
    pub const fn wrote(&mut self, bytes: usize) {
        self.sent.bytes += bytes as u64;
    }

    #[cold]
    fn begins(&mut self, now: Moment) -> Moment {
        self.begin = Some(now);
        self.shared.begin.store(now.as_u64(), Ordering::Release);
        now
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        self.shared.source_ended(self.sent);
    }
}
