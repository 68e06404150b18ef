//! Stamped events: who numbers them, who keeps account of them, and what the
//! capture says of it.

use std::num::NonZeroU32;
use std::sync::Arc;

use stillwell_capture::{CountBounds, LedgerEvent, LedgerFigures, LedgerRange, LedgerRecord};
use stillwell_metric::Cell;
use stillwell_plan::{GeneratorPlan, StampPlan};
use stillwell_sink::{SharedLedger, StampedGenerator, StreamAccount};
use stillwell_stamp::{Bounds, LedgerError, RunMark};
use stillwell_units::{ByteSize, RunId, as_usize};
use stillwell_worker::{PrepareError, Prepared};

/// Memory limit of a run's ledger. It is exact within that for 10⁹ events of which 1 % are missing.
const MEMORY: ByteSize = ByteSize::mib(64);

/// Number of a generator's ranges in a capture.
const RANGES_KEPT: usize = 64;

/// The account of a run's stamped events, and whose they are.
#[derive(Clone, Debug)]
pub(crate) struct RunLedger {
    pub(crate) shared: Arc<SharedLedger>,
    generators: Vec<(String, StampPlan)>,
    /// True if the run sends no event without a stamp.
    has_all_events: bool,
}

/// Gives the streams of all generators their numbers.
pub(crate) fn number(prepared: Vec<Prepared>, run: &RunId) -> Result<Vec<Prepared>, PrepareError> {
    let mark = RunMark::of(run);
    let mut next = 0;
    let numbered = prepared.into_iter().map(|generator| {
        let streams = generator.all_streams();
        let generator = generator.numbered(mark, next)?;
        next = next.saturating_add(streams);
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
    of_stamped(plans, stamped.collect(), run)
}

/// The account of what the generators of `plans` stamp in other processes, if they do.
pub(crate) fn ledger_of_others(
    plans: &[GeneratorPlan],
    run: &RunId,
) -> Result<Option<RunLedger>, LedgerError> {
    let stamped = plans.iter().filter_map(|plan| {
        let stamps = plan.stamps?;
        let cells = std::iter::repeat_with(Cell::default);
        Some(StampedGenerator {
            id: plan.id.clone(),
            plan: stamps,
            sent: cells.take(as_usize(plan.all_streams())).collect(),
        })
    });
    of_stamped(plans, stamped.collect(), run)
}

fn of_stamped(
    plans: &[GeneratorPlan],
    stamped: Vec<StampedGenerator>,
    run: &RunId,
) -> Result<Option<RunLedger>, LedgerError> {
    if stamped.is_empty() {
        return Ok(None);
    }
    let generators = stamped
        .iter()
        .map(|stream| (stream.id.clone(), stream.plan));
    let has_all = |stream: &StampedGenerator| stream.plan.every == NonZeroU32::MIN;
    Ok(Some(RunLedger {
        generators: generators.collect(),
        has_all_events: stamped.len() == plans.len() && stamped.iter().all(has_all),
        shared: Arc::new(SharedLedger::new(RunMark::of(run), stamped, MEMORY)?),
    }))
}

impl RunLedger {
    /// Returns true if all that the run has sent until now has arrived, in all its copies.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_all_events && self.shared.outstanding() == 0
    }

    /// Returns the record, once nothing more comes.
    pub(crate) fn record(&self, quiet: bool, under_way: Option<u64>) -> LedgerRecord {
        let (broken, foreign, memory) = self.shared.unattributed();
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
            clock_error: None,
            divided: None,
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
    let displacements = streams.iter().map(|stream| stream.figures.displacement_max);
    LedgerFigures {
        id: id.to_owned(),
        expected,
        streams: streams.len() as u64,
        sent: count(|stream| stream.figures.sent),
        received: bounds(|stream| stream.figures.received),
        lost: bounds(|stream| stream.figures.lost),
        incomplete: bounds(|stream| stream.figures.incomplete),
        duplicated: bounds(|stream| stream.figures.duplicated),
        unsent: bounds(|stream| stream.figures.unsent),
        arrivals: count(|stream| stream.figures.arrivals),
        reordered: count(|stream| stream.figures.reordered),
        displacement_max: displacements.max().unwrap_or_default(),
        late: count(|stream| stream.figures.late),
        unclear: count(|stream| stream.figures.unclear),
        intact: count(|stream| stream.figures.intact),
        damaged: count(|stream| stream.figures.damaged),
        // What never was settled is not known to be as it was sent.
        unverifiable: count(|stream| stream.figures.unverifiable + stream.figures.pending),
        undeclared: count(|stream| stream.figures.undeclared),
        bounded_windows: count(|stream| stream.figures.bounded_windows),
        losses: losses(streams),
        loss_ranges: count(|stream| stream.losses.count),
        damages: damages(streams),
    }
}

fn losses(streams: &[StreamAccount]) -> Vec<LedgerRange> {
    let ranges = streams.iter().flat_map(|stream| {
        let ranges = stream.losses.ranges.iter();
        ranges.map(|range| LedgerRange {
            stream: stream.stream.number(),
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
    let damages = streams.iter().flat_map(|stream| {
        let sequences = stream.figures.damaged_sequences.iter();
        sequences.map(|sequence| LedgerEvent {
            stream: stream.stream.number(),
            sequence: *sequence,
        })
    });
    damages.take(RANGES_KEPT).collect()
}

#[cfg(test)]
mod tests {
    use stillwell_plan::generator::Concurrency;
    use stillwell_plan::{PayloadPlan, RatePlan, TransportPlan};
    use stillwell_units::Seed;

    use super::*;

    fn generator(stamps: Option<StampPlan>) -> GeneratorPlan {
        GeneratorPlan {
            id: "g".to_owned(),
            transport: TransportPlan::Tcp {
                address: "127.0.0.1:1".to_owned(),
            },
            payload: PayloadPlan::PACE,
            rate: RatePlan::MAX,
            concurrency: Concurrency::ONE,
            seed: Seed::from_number(1),
            stamps,
        }
    }

    /// Else the drain would end before the last of it arrives.
    #[test]
    fn a_run_is_complete_only_if_all_its_events_are_stamped_and_none_is_outstanding() {
        let some = StampPlan {
            every: NonZeroU32::new(2).unwrap(),
            ..StampPlan::ALL
        };
        let all = Some(StampPlan::ALL);
        for (stamps, sent, is_complete) in [
            (vec![all], 0, true),
            (vec![all], 1, false),
            (vec![all, all], 0, true),
            (vec![all, None], 0, false),
            (vec![all, Some(some)], 0, false),
            (vec![Some(some)], 0, false),
        ] {
            let plans: Vec<_> = stamps.into_iter().map(generator).collect();
            let ledger = ledger_of_others(&plans, &RunId::from_bytes([7; 16]));
            let ledger = ledger.unwrap().unwrap();
            ledger.shared.set_sent(&[sent]);
            assert_eq!(ledger.is_complete(), is_complete, "{plans:?}, {sent} sent");
        }
    }
}
