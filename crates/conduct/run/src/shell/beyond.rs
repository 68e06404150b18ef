//! Waits for the other parts of a run on several machines.

use std::sync::Arc;

use stillwell_metric::Cell;
use stillwell_plan::Phase;
use stillwell_scope::{clock, explain};
use stillwell_worker::Prepared;

use crate::fleet::{FleetStart, Milestone};
use crate::ledgers::write_part;
use crate::machine::Event;
use crate::shell::Shell;
use crate::stamps::RunLedger;

/// State of a part that concerns the others.
#[derive(Debug, Default)]
pub(super) struct Beyond {
    /// The agreed start, once load has begun.
    pub(super) start: Option<FleetStart>,
    /// True if the target starts as soon as sinks elsewhere listen.
    is_start_held: bool,
    /// True if calls are described as soon as the target elsewhere is ready.
    is_description_held: bool,
    /// True if the part has stopped, and the target elsewhere has not.
    is_stop_held: bool,
    /// True if the counts of generators elsewhere are in the ledger.
    has_counts: bool,
    /// Events that each stream of this part has begun.
    counts: Vec<Arc<[Cell]>>,
    /// Arrivals until the drain ended, where the ledger is a part of that of the run.
    drained: Option<Vec<u8>>,
    /// True if a failure elsewhere was taken.
    has_failed: bool,
}

impl Shell {
    /// Reads the state of the other parts.
    pub(super) fn look_beyond(&mut self) {
        let Some(fleet) = self.request.fleet.clone() else {
            return;
        };
        if let Some((part, reason)) = fleet.failure_elsewhere()
            && !std::mem::replace(&mut self.beyond.has_failed, true)
        {
            let what = format!("{part} failed: {reason}");
            self.record.event(self.machine.phase(), what);
            self.happen(Event::PartFailed { part, reason });
            return self.release_stop();
        }
        if self.beyond.is_start_held
            && self.machine.phase() == Phase::Start
            && fleet.have_others_reached(Milestone::Bound)
        {
            self.beyond.is_start_held = false;
            self.start_target();
        }
        if self.beyond.is_description_held
            && self.machine.phase() == Phase::Ready
            && fleet.have_others_reached(Milestone::TargetReady)
        {
            self.beyond.is_description_held = false;
            self.describe_calls();
        }
        if self.machine.phase() == Phase::Ready
            && let Some(start) = fleet.start()
        {
            if let Some(ledger) = &self.ledger {
                ledger.shared.set_leads(fleet.of_streams(&start.leads).0);
            }
            let at = start.at;
            self.beyond.start = Some(start);
            self.happen(Event::Agreed(at));
        }
        self.take_counts();
        let is_target_gone = fleet.is_target() || fleet.have_others_reached(Milestone::Stopped);
        if is_target_gone && self.beyond.has_counts {
            self.release_stop();
        }
    }

    fn release_stop(&mut self) {
        if std::mem::take(&mut self.beyond.is_stop_held) {
            self.happen(Event::Stopped);
        }
    }

    /// Starts the target, once sinks elsewhere listen.
    pub(super) fn start_target_in_turn(&mut self) {
        let waits = self.request.fleet.as_ref().is_some_and(|fleet| {
            fleet.is_target() && !fleet.has_sinks() && !fleet.have_others_reached(Milestone::Bound)
        });
        self.beyond.is_start_held = waits;
        if !waits {
            self.start_target();
        }
    }

    /// Has the calls described once the target elsewhere is ready.
    pub(super) fn wait_for_target(&mut self) {
        self.beyond.is_description_held = true;
    }

    /// Reports that the sinks of this part listen.
    pub(super) fn listen_beyond(&self) {
        if let Some(fleet) = self
            .request
            .fleet
            .as_ref()
            .filter(|fleet| fleet.has_sinks())
        {
            fleet.reach(Milestone::Bound);
        }
    }

    /// Puts the counts of generators elsewhere into the ledger, once they have ended.
    fn take_counts(&mut self) {
        let Some(fleet) = &self.request.fleet else {
            return;
        };
        if self.beyond.has_counts
            || fleet.is_generator()
            || !fleet.have_others_reached(Milestone::Sent)
        {
            return;
        }
        self.beyond.has_counts = true;
        if let Some(ledger) = &self.ledger {
            ledger.shared.set_sent(&fleet.of_streams(&[]).1);
        }
        if let Some((since, _)) = &mut self.quiet_since {
            // What is missing is known only now.
            *since = clock::now();
        }
    }

    /// Returns true if no part elsewhere has something to send.
    pub(super) fn may_be_quiet(&self) -> bool {
        match &self.request.fleet {
            Some(fleet) if fleet.has_sinks() => self.beyond.has_counts,
            Some(fleet) if fleet.is_target() => fleet.have_others_reached(Milestone::Quiet),
            _ => true,
        }
    }

    /// The target of this part is gone, or it has none. Sinks wait for the target of the run, and
    /// for the counts of what was sent.
    pub(super) fn target_stopped(&mut self) {
        let Some(fleet) = self.request.fleet.clone() else {
            return self.happen(Event::Stopped);
        };
        if fleet.has_sinks() {
            fleet.reach(Milestone::Quiet);
        }
        if fleet.is_target() {
            fleet.reach(Milestone::Stopped);
        }
        self.beyond.is_stop_held = true;
        if !fleet.has_sinks() || self.machine.failure().is_some() {
            self.release_stop();
        }
    }

    /// Returns true if the ledger of this part has the counts of all that was sent.
    pub(super) fn has_counts(&self) -> bool {
        self.request.fleet.is_none() || self.beyond.has_counts
    }

    /// Returns the ledger, if it is complete and a part of that of the run.
    fn ledger_part(&self) -> Option<&RunLedger> {
        let fleet = self.request.fleet.as_ref()?;
        let is_part = fleet.has_some_sinks() && self.beyond.has_counts;
        self.ledger.as_ref().filter(|_| is_part)
    }

    /// Keeps the arrivals until now, because the drain ends.
    pub(super) fn keep_arrivals(&mut self) {
        let drained = self.ledger_part().map(|ledger| ledger.shared.to_bytes());
        self.beyond.drained = drained;
    }

    /// Writes the ledger for the controller, which joins those of all parts.
    pub(super) fn write_ledger_part(&mut self) {
        let Some(ledger) = self.ledger_part() else {
            return;
        };
        let drained = self.beyond.drained.as_deref();
        if let Err(error) = write_part(&self.request.folder, ledger, drained) {
            self.record.note("delivery ledger", explain(&error));
        }
    }

    /// Keeps the counts of what the generators of this part stamp.
    pub(super) fn count_beyond(&mut self) {
        let counts = self.generators.iter().filter_map(Prepared::streams);
        self.beyond.counts = counts.collect();
    }

    /// Reports that the generators of this part have ended, and what they have begun.
    pub(super) fn end_load_beyond(&self) {
        let Some(fleet) = self
            .request
            .fleet
            .as_ref()
            .filter(|fleet| fleet.is_generator())
        else {
            return;
        };
        let sent = self.beyond.counts.iter().flat_map(|cells| cells.iter());
        fleet.end_load(sent.map(|cell| cell.total()).collect());
    }
}
