//! The result of one worker, or of all of them together.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stillwell_metric::Outcome;
use stillwell_units::{Nanos, count};

use super::LoadStatistic;

/// The name of the result of all workers together.
pub const GLOBAL: &str = "global";

/// The result of one worker, or of all of them together.
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
    /// Number of requests by their end, each counted once.
    pub outcomes: Vec<OutcomeCount>,
    /// Responses by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// Times and sizes, each id once; empty ones may be there.
    pub statistics: Vec<LoadStatistic>,
    /// Latency and outcome by kind of request, the order of the report; empty
    /// where requests are all alike.
    pub classes: Vec<RequestClass>,
}

/// Number of requests with the same end.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeCount {
    /// The way.
    #[serde(with = "outcome_name")]
    pub outcome: Outcome,
    /// The number.
    pub count: u64,
}

/// Requests of one kind: of one target, or one entry of a request source.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct RequestClass {
    /// Name of the class for readers, such as `GET /cart`.
    pub name: String,
    /// Requests sent.
    pub sent: u64,
    /// Number of requests by their end.
    pub outcomes: Vec<OutcomeCount>,
    /// Responses by status code.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub statuses: BTreeMap<u16, u64>,
    /// Latency from the intended time.
    pub response_time: LoadStatistic,
    /// Latency from the sent time.
    pub service_time: LoadStatistic,
    /// Time from the sent time to the first byte of the response.
    pub first_byte: LoadStatistic,
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
        let same = |entry: &&mut LoadStatistic| entry.id == statistic.id;
        match self.statistics.iter_mut().find(same) {
            Some(entry) => *entry = statistic,
            None => self.statistics.push(statistic),
        }
    }

    /// The statistic with this id.
    #[must_use]
    pub fn statistic(&self, id: &str) -> Option<&LoadStatistic> {
        self.statistics.iter().find(|statistic| statistic.id == id)
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
            for entry in &part.outcomes {
                add_outcome(&mut all.outcomes, *entry);
            }
            for (status, count) in &part.statuses {
                let sum = all.statuses.entry(*status).or_default();
                *sum = sum.saturating_add(*count);
            }
            for entry in &part.statistics {
                merge_statistic(&mut all.statistics, entry);
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
        let mean = total / u128::from(count(parts.len()).max(1));
        let mean = u64::try_from(mean).expect("a mean is at most the largest value");
        all.execution_duration = Nanos::new(mean);
        all
    }
}

/// Adds `added` to the count of the same outcome.
pub(super) fn add_outcome(outcomes: &mut Vec<OutcomeCount>, added: OutcomeCount) {
    let same = |entry: &&mut OutcomeCount| entry.outcome == added.outcome;
    match outcomes.iter_mut().find(same) {
        Some(entry) => entry.count = entry.count.saturating_add(added.count),
        None => outcomes.push(added),
    }
}

fn merge_statistic(statistics: &mut Vec<LoadStatistic>, added: &LoadStatistic) {
    match statistics
        .iter_mut()
        .find(|statistic| statistic.id == added.id)
    {
        Some(statistic) => statistic.merge(added),
        None => statistics.push(added.clone()),
    }
}

fn merge_class(classes: &mut Vec<RequestClass>, added: &RequestClass) {
    let Some(class) = classes.iter_mut().find(|class| class.name == added.name) else {
        classes.push(added.clone());
        return;
    };
    class.sent = class.sent.saturating_add(added.sent);
    for outcome in &added.outcomes {
        add_outcome(&mut class.outcomes, *outcome);
    }
    class.response_time.merge(&added.response_time);
    class.service_time.merge(&added.service_time);
    class.first_byte.merge(&added.first_byte);
    for (status, count) in &added.statuses {
        let entry = class.statuses.entry(*status).or_default();
        *entry = entry.saturating_add(*count);
    }
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
            .ok_or_else(|| D::Error::custom(format!("`{name}` is not an outcome")))
    }
}
