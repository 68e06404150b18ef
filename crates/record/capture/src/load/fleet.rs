//! The generators of a load that several made together.

use serde::{Deserialize, Serialize};
use stillwell_metric::{ClockDrift, GeneratorEvidence, LoadEvidence};
use stillwell_units::Nanos;

use super::LoadManifest;

/// The generators of a load.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct FleetRecord {
    /// Name of the engine that started them.
    pub engine: String,
    /// Each generator, in the order of its index.
    pub generators: Vec<GeneratorRecord>,
}

/// One generator of a load.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorRecord {
    /// Its result, or the reason why it has none.
    pub result: Result<GeneratorResult, String>,
    /// Its clock, if the controller measured it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<GeneratorClock>,
}

/// The clock of a generator, as the controller measured it.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct GeneratorClock {
    /// Nanoseconds by which it was ahead of the controller's before the start; negative if it was
    /// behind.
    pub ahead: i64,
    /// Bound on the error of that.
    pub error: Nanos,
    /// Drift from then until the end of the load, if it was measured again.
    pub drift: Option<ClockDrift>,
}

/// The result of a generator, besides what was merged.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct GeneratorResult {
    /// Name of its attempt.
    pub attempt: String,
    /// Name of its node.
    pub node: String,
    /// Identity of the boot of its node: generators with the same one share a machine.
    pub boot: String,
    /// Start of its process, since 1970 by its own clock.
    pub began: Nanos,
    /// End of its load, since 1970 by its own clock.
    pub ended: Nanos,
    /// Time of its start minus the agreed time, by its own clock.
    pub start_delay: Nanos,
    /// Workers that it ran.
    pub workers: u16,
    /// Evidence by which its own part is judged.
    pub evidence: LoadEvidence,
}

impl FleetRecord {
    /// Returns the evidence of each generator.
    #[must_use]
    pub fn evidence(&self) -> Vec<GeneratorEvidence> {
        let generators = (0..).zip(&self.generators);
        let evidence = generators.map(|(index, generator)| GeneratorEvidence {
            index,
            node: match &generator.result {
                Ok(result) => result.node.clone(),
                Err(_) => String::new(),
            },
            evidence: match &generator.result {
                Ok(result) => Ok(result.evidence.clone()),
                Err(why) => Err(why.clone()),
            },
            drift: generator.clock.and_then(|clock| clock.drift),
        });
        evidence.collect()
    }

    /// Returns the results of the generators that have one.
    pub fn results(&self) -> impl Iterator<Item = &GeneratorResult> {
        self.generators
            .iter()
            .filter_map(|generator| generator.result.as_ref().ok())
    }

    /// Returns the largest delay of a start.
    #[must_use]
    pub fn start_delay_max(&self) -> Nanos {
        let delays = self.results().map(|result| result.start_delay);
        delays.max().unwrap_or(Nanos::ZERO)
    }

    /// Returns the time that generators held a node, all of them together.
    #[must_use]
    pub fn held(&self) -> Nanos {
        let times = self
            .results()
            .map(|result| result.ended.saturating_sub(result.began));
        times.fold(Nanos::ZERO, |sum, time| sum + time)
    }

    /// Returns the number of machines.
    #[must_use]
    pub fn machines(&self) -> usize {
        let boots = self.results().map(|result| result.boot.as_str());
        boots.collect::<std::collections::BTreeSet<_>>().len()
    }
}

impl LoadManifest {
    /// Returns the generators that have no result, with the reason of each.
    pub fn missing_generators(&self) -> impl Iterator<Item = (usize, &str)> {
        let generators = self.fleet.iter().flat_map(|fleet| &fleet.generators);
        generators.enumerate().filter_map(|(index, generator)| {
            let why = generator.result.as_ref().err()?;
            Some((index, why.as_str()))
        })
    }
}
