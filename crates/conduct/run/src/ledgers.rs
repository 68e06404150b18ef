//! Delivery ledgers of a run whose sinks are on several machines: each task writes its part into
//! the folder of its capture, and the controller joins them.

use std::io;
use std::path::Path;

use stillwell_capture::{
    CountBounds, DividedLedger, LedgerRecord, Manifest, make_private, write_private,
};
use stillwell_plan::GeneratorPlan;
use stillwell_scope::explain;
use stillwell_units::{RunId, count};

use crate::stamps::{RunLedger, ledger_of_others};

/// Folder of a part in the capture of its task.
const FOLDER: &str = "ledger";
/// Arrivals until the sinks closed.
const END: &str = "end.bin";
/// Arrivals until the drain ended; left out if none came afterwards.
const DRAINED: &str = "drained.bin";
/// Events that each stream has begun.
const SENT: &str = "sent.json";

/// A part of a delivery ledger that cannot be joined.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{reason}")]
pub struct LedgerJoinError {
    /// Index of the part.
    pub part: usize,
    /// The reason, for readers.
    pub reason: String,
}

/// Writes the part of a task into `folder`; `drained` are the arrivals until its drain ended.
pub(crate) fn write_part(
    folder: &Path,
    ledger: &RunLedger,
    drained: Option<&[u8]>,
) -> io::Result<()> {
    let folder = folder.join(FOLDER);
    make_private(&folder)?;
    let end = ledger.shared.to_bytes();
    if let Some(drained) = drained.filter(|drained| *drained != end) {
        write_private(&folder.join(DRAINED), drained)?;
    }
    write_private(&folder.join(END), end)?;
    let sent = serde_json::to_vec(&ledger.shared.sent())?;
    write_private(&folder.join(SENT), sent)
}

/// Joins the parts of the delivery ledger in the capture folders of all tasks with sinks. Counts
/// are as exact as if one process had seen all arrivals; order and lateness are those that each
/// task saw. `None` if the `generators`, which are those of all tasks, stamp nothing.
///
/// # Errors
/// [`LedgerJoinError`] for a part that is missing, damaged or of another run.
pub fn join_ledgers(
    generators: &[GeneratorPlan],
    run: &RunId,
    folders: &[&Path],
) -> Result<Option<LedgerRecord>, LedgerJoinError> {
    let empty = || {
        let ledger = ledger_of_others(generators, run);
        ledger.map_err(|error| LedgerJoinError {
            part: 0,
            reason: explain(&error),
        })
    };
    let (Some(end), Some(drained)) = (empty()?, empty()?) else {
        return Ok(None);
    };
    let mut joined = Joined {
        end,
        drained,
        sent: None,
        is_quiet: true,
        has_under_way: true,
        arrived: CountBounds::default(),
    };
    for (part, folder) in folders.iter().enumerate() {
        let added = joined.add(folder);
        added.map_err(|reason| LedgerJoinError { part, reason })?;
    }
    Ok(Some(joined.record(folders.len())))
}

/// Parts that are joined.
struct Joined {
    end: RunLedger,
    drained: RunLedger,
    /// Events that each stream has begun.
    sent: Option<Vec<u64>>,
    is_quiet: bool,
    has_under_way: bool,
    /// Sum of the events that arrived at each part.
    arrived: CountBounds,
}

impl Joined {
    fn add(&mut self, folder: &Path) -> Result<(), String> {
        let manifest = Manifest::open(folder).map_err(|error| explain(&error))?;
        let record = manifest
            .ledger
            .ok_or("its capture has no delivery ledger")?;
        let read = |name: &str| {
            let file = folder.join(FOLDER).join(name);
            std::fs::read(file)
                .map_err(|error| format!("its delivery ledger has no {name}: {error}"))
        };
        let end = read(END)?;
        let absorbed = self.end.shared.absorb(&end);
        absorbed.map_err(|error| format!("{END}: {}", explain(&error)))?;
        let has_drained = folder.join(FOLDER).join(DRAINED).exists();
        let drained = if has_drained { read(DRAINED)? } else { end };
        let absorbed = self.drained.shared.absorb(&drained);
        absorbed.map_err(|error| format!("{DRAINED}: {}", explain(&error)))?;
        let sent: Vec<u64> = serde_json::from_slice(&read(SENT)?)
            .map_err(|error| format!("{SENT} of its delivery ledger: {error}"))?;
        if sent.len() != self.end.shared.sent().len() {
            return Err("its delivery ledger counts other streams".to_owned());
        }
        if self.sent.get_or_insert_with(|| sent.clone()) != &sent {
            return Err("its delivery ledger has other counts of sent events".to_owned());
        }
        self.is_quiet &= record.quiet;
        self.has_under_way &= record.under_way.is_some();
        self.arrived = plus(self.arrived, received(&record));
        Ok(())
    }

    fn record(self, parts: usize) -> LedgerRecord {
        let sent = self.sent.unwrap_or_default();
        self.end.shared.set_sent(&sent);
        self.drained.shared.set_sent(&sent);
        let under_way = self.has_under_way.then(|| self.drained.shared.missing());
        let record = self.end.record(self.is_quiet, under_way);
        let together = received(&record);
        LedgerRecord {
            divided: Some(DividedLedger {
                machines: u16::try_from(count(parts)).unwrap_or(u16::MAX),
                arrived_again: CountBounds {
                    least: self.arrived.least.saturating_sub(together.most),
                    most: self.arrived.most.saturating_sub(together.least),
                },
            }),
            ..record
        }
    }
}

/// Returns the number of events of all generators that arrived.
fn received(record: &LedgerRecord) -> CountBounds {
    let all = record.generators.iter().map(|figures| figures.received);
    all.fold(CountBounds::default(), plus)
}

const fn plus(left: CountBounds, right: CountBounds) -> CountBounds {
    CountBounds {
        least: left.least.saturating_add(right.least),
        most: left.most.saturating_add(right.most),
    }
}
