//! The account of one stream.

use super::bytes::{LedgerReader, LedgerWriter};
use super::error::LedgerReadError;
use super::figures::{Bounds, Losses, StreamFigures, Walk};
use super::received::Received;
use super::store::{Store, Words};
use super::window::{Entry, WINDOW, Window};
use super::{ArrivalKind, ExpectedStream};
use crate::span::SpanCheck;
use crate::stamp::SEQUENCE_LIMIT;
use stillwell_units::Nanos;

/// Maximum number of damaged sequence numbers that are kept for the report.
const DAMAGED_KEPT: usize = 64;

/// One stream: which sequence numbers arrived, once for each expected copy. The
/// second set holds what arrived a second time, and so lies within the first.
#[derive(Clone, Debug)]
pub(super) struct StreamLedger {
    first: Received,
    further: Vec<Received>,
    /// One above the latest sequence number that arrived.
    next: u64,
    late_after: Nanos,
    tally: Tally,
}

/// Plain counters.
#[derive(Clone, Debug, Default)]
struct Tally {
    arrivals: u64,
    duplicated: u64,
    reordered: u64,
    displacement_max: u64,
    late: u64,
    unclear: u64,
    intact: u64,
    damaged: u64,
    unverifiable: u64,
    undeclared: u64,
    pending: u64,
    checked: u64,
    damaged_sequences: Vec<u64>,
}

impl StreamLedger {
    pub(super) fn new(expected: &ExpectedStream) -> Self {
        let further = usize::from(expected.copies.saturating_sub(1));
        Self {
            first: Received::default(),
            further: vec![Received::default(); further],
            next: 0,
            late_after: expected.late_after.unwrap_or(Nanos::new(u64::MAX)),
            tally: Tally::default(),
        }
    }

    #[inline(always)]
    pub(super) fn enter(
        &mut self,
        sequence: u64,
        latency: Nanos,
        store: &mut Store,
    ) -> ArrivalKind {
        self.tally.arrivals += 1;
        match self.first.enter(sequence, store) {
            Entry::New => {
                self.tally.late += u64::from(latency > self.late_after);
                self.order(sequence)
            }
            Entry::Known => self.enter_again(sequence, store),
            Entry::Unclear => {
                self.tally.unclear += 1;
                ArrivalKind::Unclear
            }
        }
    }

    /// Classifies a first arrival as in order or reordered.
    #[inline]
    fn order(&mut self, sequence: u64) -> ArrivalKind {
        if sequence + 1 >= self.next {
            self.next = sequence + 1;
            return ArrivalKind::First;
        }
        let displacement = self.next - 1 - sequence;
        self.tally.reordered += 1;
        self.tally.displacement_max = self.tally.displacement_max.max(displacement);
        ArrivalKind::Reordered { displacement }
    }

    fn enter_again(&mut self, sequence: u64, store: &mut Store) -> ArrivalKind {
        for received in &mut self.further {
            match received.enter(sequence, store) {
                Entry::New => return ArrivalKind::Copy,
                Entry::Known => {}
                Entry::Unclear => {
                    self.tally.unclear += 1;
                    return ArrivalKind::Unclear;
                }
            }
        }
        self.tally.duplicated += 1;
        ArrivalKind::Duplicated
    }

    #[inline(always)]
    pub(super) fn count_span(&mut self, sequence: u64, span: SpanCheck) {
        let tally = &mut self.tally;
        // Nearly always.
        if span == SpanCheck::Intact {
            tally.intact += 1;
        } else {
            self.count_other(sequence, span);
        }
    }

    /// Apart, because it is rare.
    #[cold]
    #[inline(never)]
    fn count_other(&mut self, sequence: u64, span: SpanCheck) {
        let tally = &mut self.tally;
        match span {
            SpanCheck::Undeclared => tally.undeclared += 1,
            SpanCheck::Intact => {}
            SpanCheck::Unverifiable => tally.unverifiable += 1,
            SpanCheck::Pending => tally.pending += 1,
            SpanCheck::Damaged => {
                tally.damaged += 1;
                if tally.damaged_sequences.len() < DAMAGED_KEPT {
                    tally.damaged_sequences.push(sequence);
                }
            }
        }
    }

    pub(super) fn count_checked_span(&mut self, sequence: u64, span: SpanCheck) {
        if span != SpanCheck::Pending {
            self.tally.checked += 1;
            self.count_span(sequence, span);
        }
    }

    pub(super) fn heap(&self) -> usize {
        self.all().map(Received::heap).sum()
    }

    pub(super) fn compress(&mut self, store: &mut Store) {
        for received in self.all_mut() {
            received.compress(store);
        }
    }

    /// Gives up what the largest set contains about its oldest windows. False if there
    /// is nothing to give up.
    pub(super) fn shrink(&mut self, store: &mut Store) -> bool {
        self.all_mut()
            .max_by_key(|received| received.heap())
            .is_some_and(|received| received.shrink(store))
    }

    fn all(&self) -> impl Iterator<Item = &Received> {
        std::iter::once(&self.first).chain(&self.further)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut Received> {
        std::iter::once(&mut self.first).chain(&mut self.further)
    }

    pub(super) fn figures(&self, sent: Option<u64>) -> StreamFigures {
        let sent = self.sent(sent);
        let tally = &self.tally;
        let received = self.first.arrived_below(sent);
        let complete = self.further.last().map_or(received, |last| {
            // An unclear arrival may have been the copy that was missing.
            let last = last.arrived_below(sent);
            Bounds {
                least: last.least,
                most: last
                    .most
                    .saturating_add(self.unclear().1)
                    .min(received.most),
            }
        });
        let (unclear, fresh) = self.unclear();
        StreamFigures {
            sent,
            received,
            lost: Bounds::exact(sent).minus(received),
            incomplete: received.minus(complete),
            duplicated: Bounds {
                least: tally.duplicated + (unclear - fresh),
                most: tally.duplicated + unclear,
            },
            unsent: self.first.arrived_below(u64::MAX).minus(received),
            arrivals: tally.arrivals,
            reordered: tally.reordered,
            displacement_max: tally.displacement_max,
            late: tally.late,
            unclear: tally.unclear,
            intact: tally.intact,
            damaged: tally.damaged,
            unverifiable: tally.unverifiable,
            undeclared: tally.undeclared,
            pending: tally.pending.saturating_sub(tally.checked),
            damaged_sequences: tally.damaged_sequences.clone(),
            bounded_windows: self.bounded_windows(),
        }
    }

    pub(super) fn losses(&self, sent: Option<u64>, most: usize) -> Losses {
        Walk::over(&self.first, self.sent(sent), most)
    }

    fn sent(&self, sent: Option<u64>) -> u64 {
        sent.unwrap_or(self.next)
    }

    /// Unclear arrivals of all sets, and how many of them may have been new.
    fn unclear(&self) -> (u64, u64) {
        let rooms = (0..=u64::try_from(self.further.len()).unwrap_or_default()).rev();
        self.all()
            .zip(rooms)
            .fold((0, 0), |(all, new), (set, room)| {
                let (unclear, fresh) = set.unclear(room);
                (all + unclear, new + fresh)
            })
    }

    fn bounded_windows(&self) -> u64 {
        let of = |received: &Received| {
            let prefix = received.prefix();
            let first = if prefix.is_complete() { 0 } else { prefix.end };
            let windows = received.windows().iter();
            let bounded = windows.filter(|entry| !entry.window.is_exact()).count();
            first + bounded as u64
        };
        self.all().map(of).max().unwrap_or_default()
    }

    /// Takes over all that `source` knows; see [`Ledger::absorb`](super::Ledger::absorb).
    pub(super) fn absorb(
        &mut self,
        source: &mut Self,
        store: &mut Store,
        source_store: &mut Store,
    ) {
        self.tally.absorb(&mut source.tally);
        self.next = self.next.max(source.next);
        let taken: Vec<Received> = source.all_mut().map(|set| set.take(source_store)).collect();
        // What is in a prefix that is not complete has lost its numbers: here too, then.
        let lossy = |set: &&Received| !set.prefix().is_complete();
        let raised = taken.iter().filter(lossy).map(|set| set.prefix().end).max();
        let raised = raised.unwrap_or_default();
        if raised > 0 {
            self.absorb_prefix(raised, &taken, store);
        }
        let Some(most) = taken.first() else { return };
        let whole = raised..most.prefix().end;
        let windows = most.windows().iter().map(|entry| entry.index);
        for index in whole.chain(windows.filter(|index| *index >= raised)) {
            self.absorb_window(index, &taken, store);
        }
    }

    /// Joins all windows before `end`, as counts.
    fn absorb_prefix(&mut self, end: u64, taken: &[Received], store: &mut Store) {
        let mut again = 0;
        for (set, taken_set) in self.all_mut().zip(taken) {
            let mut taken_set = taken_set.clone();
            // A throw-away account: the clone belongs to no ledger.
            taken_set.raise_prefix_to(end, &mut Store::new());
            set.raise_prefix_to(end, store);
            let known = set.prefix().known.min(taken_set.prefix().known);
            again += known + taken_set.prefix().unclear;
            let prefix = set.prefix_mut();
            prefix.known = prefix.known.max(taken_set.prefix().known);
        }
        // Which numbers of a prefix are known is not: what came again may be others.
        for set in self.all_mut() {
            if !set.prefix().is_complete() {
                set.prefix_mut().unclear += again;
                return;
            }
        }
        self.tally.duplicated += again;
    }

    fn absorb_window(&mut self, index: u64, taken: &[Received], store: &mut Store) {
        if self.absorb_exactly(index, taken, store).is_some() {
            return;
        }
        let mut again = 0;
        for (set, taken_set) in self.all_mut().zip(taken) {
            let ((known, unclear), (taken_known, taken_unclear)) =
                (set.counts(index), taken_set.counts(index));
            again += u64::from(known.min(taken_known)) + taken_unclear;
            let known = known.max(taken_known);
            set.replace(index, Window::Bounded { known, unclear }, store);
        }
        self.add_unclear(index, again, store);
    }

    /// Counts arrivals where they may have been new; where they cannot, as
    /// duplicated.
    fn add_unclear(&mut self, index: u64, arrivals: u64, store: &mut Store) {
        for set in self.all_mut() {
            if index < set.prefix().end {
                if !set.prefix().is_complete() {
                    set.prefix_mut().unclear += arrivals;
                    return;
                }
                continue;
            }
            let (known, unclear) = set.counts(index);
            if u64::from(known) < WINDOW {
                let unclear = unclear + arrivals;
                set.replace(index, Window::Bounded { known, unclear }, store);
                return;
            }
        }
        self.tally.duplicated += arrivals;
    }

    /// Joins a window number by number, if both sides know the numbers: what was
    /// there already goes on to the next copy, and what is left is duplicated.
    fn absorb_exactly(&mut self, index: u64, taken: &[Received], store: &mut Store) -> Option<()> {
        let read = |sets: &mut dyn Iterator<Item = &Received>| {
            sets.map(|set| {
                let mut words = Words([0; 1024]);
                set.add_to(index, &mut words).then_some(words)
            })
            .collect::<Option<Vec<Words>>>()
        };
        let mut set = read(&mut self.all())?;
        for mut carried in read(&mut taken.iter())? {
            for words in &mut set {
                for (word, carry) in words.0.iter_mut().zip(&mut carried.0) {
                    (*word, *carry) = (*word | *carry, *word & *carry);
                }
            }
            let left = carried.0.iter().map(|word| u64::from(word.count_ones()));
            self.tally.duplicated += left.sum::<u64>();
        }
        for (received, words) in self.all_mut().zip(&set) {
            received.replace(index, Window::from_words(words), store);
        }
        Some(())
    }

    pub(super) fn write(&self, to: &mut LedgerWriter) {
        to.number(self.next);
        self.tally.write(to);
        for set in self.all() {
            set.write(to);
        }
    }

    /// Reads what [`StreamLedger::write`] wrote into a new one.
    pub(super) fn read(
        &mut self,
        from: &mut LedgerReader<'_>,
        store: &mut Store,
        limit: usize,
    ) -> Result<(), LedgerReadError> {
        self.next = from.number(SEQUENCE_LIMIT)?;
        self.tally = Tally::read(from)?;
        for set in self.all_mut() {
            *set = Received::read(from, store, limit)?;
        }
        Ok(())
    }
}

impl Tally {
    fn write(&self, to: &mut LedgerWriter) {
        for count in [
            self.arrivals,
            self.duplicated,
            self.reordered,
            self.displacement_max,
            self.late,
            self.unclear,
            self.intact,
            self.damaged,
            self.unverifiable,
            self.undeclared,
            self.pending,
            self.checked,
        ] {
            to.number(count);
        }
        to.number(self.damaged_sequences.len() as u64);
        for sequence in &self.damaged_sequences {
            to.number(*sequence);
        }
    }

    fn read(from: &mut LedgerReader<'_>) -> Result<Self, LedgerReadError> {
        // In the order in which they were written.
        let mut tally = Self {
            arrivals: from.count()?,
            duplicated: from.count()?,
            reordered: from.count()?,
            displacement_max: from.number(SEQUENCE_LIMIT)?,
            late: from.count()?,
            unclear: from.count()?,
            intact: from.count()?,
            damaged: from.count()?,
            unverifiable: from.count()?,
            undeclared: from.count()?,
            pending: from.count()?,
            checked: from.count()?,
            damaged_sequences: Vec::new(),
        };
        for _ in 0..from.number(DAMAGED_KEPT as u64)? {
            tally.damaged_sequences.push(from.number(SEQUENCE_LIMIT)?);
        }
        Ok(tally)
    }

    fn absorb(&mut self, source: &mut Self) {
        let source = std::mem::take(source);
        self.arrivals += source.arrivals;
        self.duplicated += source.duplicated;
        self.reordered += source.reordered;
        self.displacement_max = self.displacement_max.max(source.displacement_max);
        self.late += source.late;
        self.unclear += source.unclear;
        self.intact += source.intact;
        self.damaged += source.damaged;
        self.unverifiable += source.unverifiable;
        self.undeclared += source.undeclared;
        self.pending += source.pending;
        self.checked += source.checked;
        let room = DAMAGED_KEPT.saturating_sub(self.damaged_sequences.len());
        let more = source.damaged_sequences.into_iter().take(room);
        self.damaged_sequences.extend(more);
    }
}
