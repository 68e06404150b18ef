//! Stamped events: who numbers them, who keeps account of them, and what the
//! capture says of it.

use std::sync::Arc;

use stillwell_capture::{CountBounds, LedgerEvent, LedgerFigures, LedgerRange, LedgerRecord};
use stillwell_plan::{GeneratorPlan, StampPlan};
use stillwell_sink::{SharedLedger, StampedGenerator, StreamAccount};
use stillwell_stamp::{Bounds, LedgerError, RunMark};
use stillwell_units::{ByteSize, RunId};
use stillwell_worker::{PrepareError, Prepared};

/// What the account of a run may take. It is exact within that for 10⁹ events of
/// which 1 % are missing.
const MEMORY: ByteSize = ByteSize::mib(64);

/// The number of ranges of a generator stand in a capture.
const RANGES_KEPT: usize = 64;

/// The account of a run's stamped events, and whose they are.
#[derive(Clone, Debug)]
pub(crate) struct RunLedger {
    pub(crate) shared: Arc<SharedLedger>,
    generators: Vec<(String, StampPlan)>,
}

/// Gives the streams of all generators their numbers.
pub(crate) fn number(prepared: Vec<Prepared>, run: &RunId) -> Result<Vec<Prepared>, PrepareError> {
    let mark = RunMark::of(run);
    let mut next = 0;
    let numbered = prepared.into_iter().map(|generator| {
        let streams = generator.streams().map_or(0, |streams| streams.len());
        let generator = generator.numbered(mark, next)?;
        next = next.saturating_add(u32::try_from(streams).unwrap_or(u32::MAX));
        Ok(generator)
    });
    numbered.collect()
}

/// The account of what `prepared` will stamp, if they do.
pub(crate) fn ledger(
    plans: &[GeneratorPlan],
    prepared: &[Prepared],
    run: &RunId,
) -> Result<Option<RunLedger>, LedgerError> {
    let both = plans.iter().zip(prepared);
    let stamped = both.filter_map(|(plan, prepared)| {
        Some(StampedGenerator {
            id: plan.id.clone(),
            plan: plan.stamps?,
            sent: prepared.streams()?,
        })
    });
    let stamped: Vec<_> = stamped.collect();
    if stamped.is_empty() {
        return Ok(None);
    }
    let generators = stamped.iter().map(|one| (one.id.clone(), one.plan));
    Ok(Some(RunLedger {
        generators: generators.collect(),
        shared: Arc::new(SharedLedger::new(RunMark::of(run), stamped, MEMORY)?),
    }))
}

impl RunLedger {
    /// What the capture says, once nothing more comes.
    pub(crate) fn record(&self, quiet: bool, under_way: Option<u64>) -> LedgerRecord {
        let (broken, foreign, memory) = self.shared.besides();
        let accounts = self.shared.accounts();
        let generators = self.generators.iter().zip(&accounts);
        LedgerRecord {
            generators: generators
                .map(|((id, plan), streams)| figures(id, *plan, streams))
                .collect(),
            broken,
            foreign,
            memory_bytes: memory.bytes(),
            quiet,
            under_way,
        }
    }
}

/// The figures of all streams of a generator together.
fn figures(id: &str, expected: StampPlan, streams: &[StreamAccount]) -> LedgerFigures {
    let count = |of: fn(&StreamAccount) -> u64| streams.iter().map(of).sum::<u64>();
    let bounds = |of: fn(&StreamAccount) -> Bounds| CountBounds {
        least: streams.iter().map(|stream| of(stream).least).sum(),
        most: streams.iter().map(|stream| of(stream).most).sum(),
    };
    let displacements = streams.iter().map(|one| one.figures.displacement_max);
    LedgerFigures {
        id: id.to_owned(),
        expected,
        streams: streams.len() as u64,
        sent: count(|one| one.figures.sent),
        received: bounds(|one| one.figures.received),
        lost: bounds(|one| one.figures.lost),
        incomplete: bounds(|one| one.figures.incomplete),
        duplicated: bounds(|one| one.figures.duplicated),
        unsent: bounds(|one| one.figures.unsent),
        arrivals: count(|one| one.figures.arrivals),
        reordered: count(|one| one.figures.reordered),
        displacement_max: displacements.max().unwrap_or_default(),
        late: count(|one| one.figures.late),
        unclear: count(|one| one.figures.unclear),
        intact: count(|one| one.figures.intact),
        damaged: count(|one| one.figures.damaged),
        // What never was settled is not known to be as it was sent.
        unverifiable: count(|one| one.figures.unverifiable + one.figures.pending),
        undeclared: count(|one| one.figures.undeclared),
        bounded_windows: count(|one| one.figures.bounded_windows),
        losses: losses(streams),
        loss_ranges: count(|one| one.losses.count),
        damages: damages(streams),
    }
}

fn losses(streams: &[StreamAccount]) -> Vec<LedgerRange> {
    let ranges = streams.iter().flat_map(|one| {
        let ranges = one.losses.ranges.iter();
        ranges.map(|range| LedgerRange {
            stream: one.stream.number(),
            first: range.first,
            last: range.last,
            lost: CountBounds {
                least: range.lost.least,
                most: range.lost.most,
            },
        })
    });
    ranges.take(RANGES_KEPT).collect()
}

fn damages(streams: &[StreamAccount]) -> Vec<LedgerEvent> {
    let damages = streams.iter().flat_map(|one| {
        let sequences = one.figures.damaged_sequences.iter();
        sequences.map(|sequence| LedgerEvent {
            stream: one.stream.number(),
            sequence: *sequence,
        })
    });
    damages.take(RANGES_KEPT).collect()
}
