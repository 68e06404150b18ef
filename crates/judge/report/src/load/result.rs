//! What one worker found, or all of them together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_metric::Outcome;
use stillwell_units::Nanos;

use super::LoadStatistic;

/// The name of the result of all workers together.
pub const GLOBAL: &str = "global";

/// What one worker found, or all of them together.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct LoadResult {
    /// `worker_0` and so on, or [`GLOBAL`].
    pub name: String,
    /// When measuring began, since the Unix epoch; everything here is of the time
    /// from then on, and nothing of a warm-up.
    #[serde(rename = "execution_start_unix_ns")]
    pub execution_start: Nanos,
    /// From there to the end of the load: of all workers until the last of them had
    /// ended, or as Nighthawk has it the mean of theirs.
    #[serde(rename = "execution_duration_ns")]
    pub execution_duration: Nanos,
    /// Counters of that time by Nighthawk's names without its prefixes, such as
    /// `benchmark.http_2xx`. Zeros are left out of what is printed.
    pub counters: BTreeMap<String, u64>,
    /// How requests ended: each exactly once.
    pub outcomes: Vec<OutcomeCount>,
    /// Times and sizes, each id once; empty ones may be there.
    pub statistics: Vec<LoadStatistic>,
    /// Latency and outcome by kind of request, the order of the report; empty
    /// where requests are all alike.
    pub classes: Vec<RequestClass>,
}

/// How many requests ended in one way.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCount {
    /// The way.
    #[serde(with = "outcome_name")]
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
}

/// Requests of one kind: of one target, or one entry of a request source.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RequestClass {
    /// What sets it apart, for readers, such as `GET /cart`.
    pub name: String,
    /// Requests sent.
    pub sent: u64,
    /// How they ended.
    pub outcomes: Vec<OutcomeCount>,
    /// Latency from the intended time.
    pub response_time: LoadStatistic,
    /// Latency from the sent time.
    pub service_time: LoadStatistic,
}

impl LoadResult {
    /// One that has found nothing yet.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            ..Self::default()
        }
    }

    /// Adds `value` to the counter `name`.
    pub fn count(&mut self, name: &str, value: u64) {
        match self.counters.get_mut(name) {
            Some(counter) => *counter = counter.saturating_add(value),
            None => {
                self.counters.insert(name.to_owned(), value);
            }
        }
    }

    /// The counter `name`; zero where it never counted.
    #[must_use]
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Adds `count` requests that ended so.
    pub fn end(&mut self, outcome: Outcome, count: u64) {
        add_outcome(&mut self.outcomes, OutcomeCount { outcome, count });
    }

    /// Adds a statistic whose id is not there yet, or replaces the one that is.
    pub fn add_statistic(&mut self, statistic: LoadStatistic) {
        let same = |own: &&mut LoadStatistic| own.id == statistic.id;
        match self.statistics.iter_mut().find(same) {
            Some(own) => *own = statistic,
            None => self.statistics.push(statistic),
        }
    }

    /// The statistic with this id.
    #[must_use]
    pub fn statistic(&self, id: &str) -> Option<&LoadStatistic> {
        self.statistics.iter().find(|own| own.id == id)
    }

    /// All `parts` together: counters and outcomes summed, statistics and classes
    /// merged by name, the earliest start, and the mean of the durations.
    #[must_use]
    pub fn merged(name: &str, parts: &[Self]) -> Self {
        let mut all = Self::named(name);
        for part in parts {
            for (counter, value) in &part.counters {
                all.count(counter, *value);
            }
            for own in &part.outcomes {
                add_outcome(&mut all.outcomes, *own);
            }
            for own in &part.statistics {
                merge_statistic(&mut all.statistics, own);
            }
            for class in &part.classes {
                merge_class(&mut all.classes, class);
            }
        }
        let starts = parts.iter().map(|part| part.execution_start);
        all.execution_start = starts.min().unwrap_or_default();
        let total = parts.iter().fold(0_u128, |sum, part| {
            sum + u128::from(part.execution_duration.as_u64())
        });
        let count = u128::try_from(parts.len().max(1)).unwrap_or(1);
        all.execution_duration = Nanos::new(u64::try_from(total / count).unwrap_or(u64::MAX));
        all
    }
}

fn add_outcome(outcomes: &mut Vec<OutcomeCount>, one: OutcomeCount) {
    let same = |own: &&mut OutcomeCount| own.outcome == one.outcome;
    match outcomes.iter_mut().find(same) {
        Some(own) => own.count = own.count.saturating_add(one.count),
        None => outcomes.push(one),
    }
}

fn merge_statistic(statistics: &mut Vec<LoadStatistic>, one: &LoadStatistic) {
    match statistics.iter_mut().find(|own| own.id == one.id) {
        Some(own) => own.merge(one),
        None => statistics.push(one.clone()),
    }
}

fn merge_class(classes: &mut Vec<RequestClass>, one: &RequestClass) {
    let Some(own) = classes.iter_mut().find(|own| own.name == one.name) else {
        classes.push(one.clone());
        return;
    };
    own.sent = own.sent.saturating_add(one.sent);
    for outcome in &one.outcomes {
        add_outcome(&mut own.outcomes, *outcome);
    }
    own.response_time.merge(&one.response_time);
    own.service_time.merge(&one.service_time);
}

mod outcome_name {
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serializer};
    use stillwell_metric::Outcome;

    pub(super) fn serialize<S: Serializer>(outcome: &Outcome, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(outcome.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Outcome, D::Error> {
        let name = String::deserialize(from)?;
        let mut all = Outcome::ALL.into_iter();
        all.find(|outcome| outcome.name() == name)
            .ok_or_else(|| D::Error::custom(format!("`{name}` is no outcome")))
    }
}
