//! One experiment of the ledger, and what is known of it beforehand.

use super::background::LOAD_PERCENT;
use super::entry::{Entry, Kind};
use super::error::LedgerError;
use super::schedule::Wanted;
use super::truth::truth_of;

/// Rounds of work for each event: nine tenths of what an event costs, and they
/// repeat better than memory does where others share the machine.
const ROUNDS: u32 = 2001;

/// Rounds more in the trials of cost and in their reference alike: about 1 %. How
/// rounds, reads and turns of the relay's tasks fall together moves the cost of an
/// event by some tenths of a percent from one number of rounds to another, so
/// the truth of a small change has to be measured at that very change.
const CPU_ROUNDS_MORE: u32 = 22;

/// Rounds more in the reference of throughput, which only chooses the rounds of the trials:
/// alternating runs are too noisy for a change of 5 %, and a round costs less among many.
const REFERENCE_THROUGHPUT_ROUNDS: u32 = 2000;

/// No trial has more rounds more.
const ROUNDS_MORE_MAX: u32 = 500;

/// Both variants alive, in turns so short that they meet the same neighbours.
const SLICED: &str = "{sliced: {turn_min: 20ms, turn_max: 60ms}}";

/// Throughput needs the socket buffers to itself: turns would share them out.
const PAIRED: &str = "paired";

/// About three fifths of what the relay with its rounds can take where this was
/// set up. Stated, so no experiment spends time on a probe.
const RATE: &str = "rate: 190k/s";
const RATE_MAX: &str = "rate: max";

/// A goal, and the smallest change of it that matters.
type Goal = (&'static str, f64);

/// Goals that are the default ones of some experiment, for events and for responses. Each is the primary goal of every fifth
/// experiment.
const GOALS: [Goal; 5] = [
    ("cpu_per_event", 0.005),
    ("ingress_throughput", 0.02),
    ("event_latency_p50", 0.02),
    ("event_latency_p99", 0.05),
    ("memory", 0.05),
];

/// Times of load, and how many pairs: enough that what is there is found.
struct TrialCourse {
    goals: &'static [Goal],
    stamps: &'static str,
    design: &'static str,
    rate: &'static str,
    warmup: &'static str,
    measure: &'static str,
    stopping: &'static str,
}

const AA: TrialCourse = TrialCourse {
    goals: &[("cpu_per_event", 0.02)],
    stamps: "",
    design: SLICED,
    rate: RATE,
    warmup: "300ms",
    measure: "1s",
    stopping: "pairs: {max: 20}",
};
const CPU: TrialCourse = TrialCourse {
    goals: &[("cpu_per_event", 0.005)],
    measure: "4s",
    ..AA
};
const THROUGHPUT: TrialCourse = TrialCourse {
    goals: &[("ingress_throughput", 0.02)],
    design: PAIRED,
    rate: RATE_MAX,
    ..AA
};
/// Latencies of events are known by their stamps.
const AA_GOALS: TrialCourse = TrialCourse {
    goals: &GOALS,
    stamps: "stamps: all",
    ..THROUGHPUT
};
const REFERENCE_CPU: TrialCourse = TrialCourse {
    stopping: "pairs: 16",
    ..CPU
};
const REFERENCE_THROUGHPUT: TrialCourse = TrialCourse {
    stopping: "pairs: 16",
    ..THROUGHPUT
};

/// One experiment of the ledger.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KnownTrial {
    pub(super) kind: Kind,
    pub(super) number: u32,
    pub(super) rounds_more: u32,
    /// The change that is there, for throughput the planned one; `None` where it is to be measured.
    pub(super) truth_share: Option<f64>,
}

impl KnownTrial {
    /// Resolves `wanted` by the references among `entries`.
    pub(super) fn new(wanted: Wanted, entries: &[Entry]) -> Result<Self, LedgerError> {
        let (rounds_more, truth_share) = match wanted.kind {
            Kind::ReferenceCpu => (CPU_ROUNDS_MORE, None),
            Kind::ReferenceThroughput => (REFERENCE_THROUGHPUT_ROUNDS, None),
            Kind::AaQuiet | Kind::AaLoaded | Kind::AaGoalsQuiet | Kind::AaGoalsLoaded => {
                (0, Some(0.0))
            }
            Kind::CpuPlus1 | Kind::CpuPlus1Loaded => {
                let cost = cost_of_a_round(entries, Kind::ReferenceCpu)?;
                (CPU_ROUNDS_MORE, Some(cost * f64::from(CPU_ROUNDS_MORE)))
            }
            Kind::ThroughputMinus5 => {
                let cost = cost_of_a_round(entries, Kind::ReferenceThroughput)?;
                rounds_and_truth(0.05, cost)?
            }
            Kind::ThroughputMinus3 | Kind::ThroughputMinus3Loaded => {
                rounds_and_truth(0.03, measured_cost_of_a_round(entries)?)?
            }
        };
        Ok(Self {
            kind: wanted.kind,
            number: wanted.number,
            rounds_more,
            truth_share,
        })
    }

    /// Its goals, the primary one first.
    pub(super) fn goals(&self) -> Vec<Goal> {
        let mut goals = self.course().goals.to_vec();
        let first = stillwell_units::as_usize(u64::from(self.number)) % goals.len();
        goals.rotate_left(first);
        goals
    }

    pub(super) const fn rounds(&self) -> u32 {
        ROUNDS
    }

    /// No two experiments of a ledger have the same.
    pub(super) fn seed(&self) -> u64 {
        let kind = match self.kind {
            Kind::ReferenceCpu => 1,
            Kind::ReferenceThroughput => 2,
            Kind::AaQuiet => 3,
            Kind::AaLoaded => 4,
            Kind::CpuPlus1 => 5,
            Kind::ThroughputMinus5 => 6,
            Kind::AaGoalsQuiet => 7,
            Kind::AaGoalsLoaded => 8,
            Kind::CpuPlus1Loaded => 9,
            Kind::ThroughputMinus3 => 10,
            Kind::ThroughputMinus3Loaded => 11,
        };
        100_000 * kind + u64::from(self.number)
    }

    /// The name of the additional load in the ledger.
    pub(super) fn load(&self) -> Option<String> {
        let text = || format!("two processes with {LOAD_PERCENT}% of a core each");
        self.kind.is_loaded().then(text)
    }

    pub(super) const fn design(&self) -> &'static str {
        self.course().design
    }

    const fn course(&self) -> &'static TrialCourse {
        match self.kind {
            Kind::ReferenceCpu => &REFERENCE_CPU,
            Kind::ReferenceThroughput => &REFERENCE_THROUGHPUT,
            Kind::AaQuiet | Kind::AaLoaded => &AA,
            Kind::AaGoalsQuiet | Kind::AaGoalsLoaded => &AA_GOALS,
            Kind::CpuPlus1 | Kind::CpuPlus1Loaded => &CPU,
            Kind::ThroughputMinus5 | Kind::ThroughputMinus3 | Kind::ThroughputMinus3Loaded => {
                &THROUGHPUT
            }
        }
    }

    /// The experiment's file.
    pub(super) fn experiment(&self) -> String {
        let course = self.course();
        let goals: String = self
            .goals()
            .iter()
            .map(|(metric, tolerance)| {
                format!(
                    "  - {{metric: {metric}, tolerance: {}%}}\n",
                    100.0 * tolerance
                )
            })
            .collect();
        format!(
            r#"seed: {seed}
target:
  name: relay
  command: ["{{self}}", relay, --in, "tcp://127.0.0.1:9100", --out, "tcp://127.0.0.1:9200"]
  ready: {{tcp: "127.0.0.1:9100"}}
variants:
  baseline: {{arguments: [--work-per-event, {ROUNDS}rounds]}}
  comparison: {{arguments: [--work-per-event, {more}rounds]}}
workload:
  generators:
    - tcp: {{address: "127.0.0.1:9100"}}
      payload: syslog5424
      cache: 16 MiB
      {rate}
      {stamps}
  sinks:
    - tcp: "127.0.0.1:9200"
phases: {{warmup: {warmup}, measure: {measure}}}
design: {design}
{stopping}
confirm: {confirm}
goals:
{goals}"#,
            seed = self.seed(),
            more = ROUNDS + self.rounds_more,
            rate = course.rate,
            stamps = course.stamps,
            warmup = course.warmup,
            measure = course.measure,
            design = course.design,
            stopping = course.stopping,
            confirm = !self.kind.is_reference(),
        )
    }
}

/// Cost of one more round, as a share of the cost of an event with [`ROUNDS`] of them: the mean
/// over all references of this `kind`.
fn cost_of_a_round(entries: &[Entry], kind: Kind) -> Result<f64, LedgerError> {
    let mut costs = Vec::new();
    for entry in entries.iter().filter(|entry| entry.kind == kind) {
        let missing = LedgerError::NoReference(kind.name());
        let change = entry.estimate_share.ok_or(missing)?;
        let cost = match kind {
            // Time for each event is what throughput is the inverse of.
            Kind::ReferenceThroughput => 1.0 / (1.0 + change) - 1.0,
            _ => change,
        };
        costs.push(cost / f64::from(entry.rounds_more));
    }
    if costs.is_empty() {
        return Err(LedgerError::NoReference(kind.name()));
    }
    let number = u32::try_from(costs.len()).map_or(f64::INFINITY, f64::from);
    Ok(costs.iter().sum::<f64>() / number)
}

/// The same, by the trials of 5 %, once one of them was confirmed. A reference has many more rounds,
/// which cost less each.
fn measured_cost_of_a_round(entries: &[Entry]) -> Result<f64, LedgerError> {
    let kind = Kind::ThroughputMinus5;
    let last = entries.iter().rfind(|entry| entry.kind == kind);
    match last.zip(truth_of(kind, entries)) {
        Some((last, truth)) => Ok((1.0 / (1.0 + truth) - 1.0) / f64::from(last.rounds_more)),
        None => cost_of_a_round(entries, Kind::ReferenceThroughput),
    }
}

/// Rounds that take `share` of the throughput, and the change that they are.
fn rounds_and_truth(share: f64, cost_of_a_round: f64) -> Result<(u32, Option<f64>), LedgerError> {
    let rounds = rounds_for(1.0 / (1.0 - share) - 1.0, cost_of_a_round)?;
    let truth = 1.0 / (1.0 + cost_of_a_round * f64::from(rounds)) - 1.0;
    Ok((rounds, Some(truth)))
}

/// The whole number of rounds nearest to `share` of the cost of an event.
fn rounds_for(share: f64, cost_of_a_round: f64) -> Result<u32, LedgerError> {
    let nearest = (1..=ROUNDS_MORE_MAX).min_by(|left, right| {
        let away = |rounds: u32| (cost_of_a_round * f64::from(rounds) - share).abs();
        away(*left).total_cmp(&away(*right))
    });
    nearest
        .filter(|_| cost_of_a_round > 0.0)
        .ok_or(LedgerError::Cost(cost_of_a_round))
}

#[cfg(test)]
mod tests {
    use super::super::entry::example;
    use super::*;

    fn references() -> [Entry; 2] {
        let cpu = Entry {
            rounds_more: 22,
            estimate_share: Some(0.0102),
            ..example(Kind::ReferenceCpu, 1)
        };
        let throughput = Entry {
            rounds_more: 2000,
            estimate_share: Some(-0.5),
            ..example(Kind::ReferenceThroughput, 1)
        };
        [cpu, throughput]
    }

    fn trial(kind: Kind) -> KnownTrial {
        KnownTrial::new(Wanted { kind, number: 7 }, &references()).unwrap()
    }

    #[test]
    fn truths_follow_from_the_references() {
        let cpu = trial(Kind::CpuPlus1);
        assert_eq!(cpu.rounds_more, 22);
        assert!((cpu.truth_share.unwrap() - 0.0102).abs() < 1e-9);
        // Half the throughput for 2000 rounds: a round takes 1/2000 of an event.
        let throughput = trial(Kind::ThroughputMinus5);
        assert_eq!(throughput.rounds_more, 105);
        let truth = 1.0 / 1.0525 - 1.0;
        assert!((throughput.truth_share.unwrap() - truth).abs() < 1e-9);
        // 3 % by the reference, as no trial of 5 % was confirmed.
        assert_eq!(trial(Kind::ThroughputMinus3).rounds_more, 62);
        // And 3 % by what 105 rounds were measured to take: more than the reference says.
        let mut entries = references().to_vec();
        entries.push(Entry {
            rounds_more: 105,
            confirming_share: Some(-0.06),
            pairs_confirming: 6,
            ..example(Kind::ThroughputMinus5, 1)
        });
        let wanted = Wanted {
            kind: Kind::ThroughputMinus3Loaded,
            number: 1,
        };
        let less = KnownTrial::new(wanted, &entries).unwrap();
        assert_eq!(less.rounds_more, 51);
        assert!((less.truth_share.unwrap() + 0.03).abs() < 3e-4);
        assert_eq!(trial(Kind::AaLoaded).truth_share, Some(0.0));
        assert_eq!(trial(Kind::ReferenceCpu).truth_share, None);
    }

    #[test]
    fn several_references_have_equal_weight() {
        let [cpu, _] = references();
        let less = Entry {
            estimate_share: Some(0.0098),
            ..cpu.clone()
        };
        let cost = cost_of_a_round(&[cpu, less], Kind::ReferenceCpu).unwrap();
        assert!((cost - 0.01 / 22.0).abs() < 1e-12);
    }

    #[test]
    fn without_a_reference_there_is_no_truth() {
        let wanted = Wanted {
            kind: Kind::CpuPlus1,
            number: 1,
        };
        let error = KnownTrial::new(wanted, &[]).unwrap_err();
        assert_eq!(error.to_string(), "the ledger has no reference_cpu");
        assert!(rounds_for(0.01, -0.1).is_err());
    }

    #[test]
    fn a_file_has_the_settings_of_the_ledger() {
        let text = trial(Kind::CpuPlus1).experiment();
        for line in [
            "seed: 500007",
            "  comparison: {arguments: [--work-per-event, 2023rounds]}",
            "  - {metric: cpu_per_event, tolerance: 0.5%}",
            "design: {sliced: {turn_min: 20ms, turn_max: 60ms}}",
            "confirm: true",
        ] {
            assert!(
                text.lines().any(|line_of_text| line_of_text == line),
                "{line}\n{text}"
            );
        }
        let text = trial(Kind::ThroughputMinus5).experiment();
        assert!(text.contains("rate: max\n"), "{text}");
        assert!(text.contains("tolerance: 2%"), "{text}");
        assert!(trial(Kind::CpuPlus1).load().is_none());
        assert!(trial(Kind::AaLoaded).load().unwrap().contains("15%"));
    }

    #[test]
    fn each_goal_is_the_primary_one_in_turn() {
        let mut primaries = std::collections::BTreeSet::new();
        for number in 1..=5 {
            let wanted = Wanted {
                kind: Kind::AaGoalsQuiet,
                number,
            };
            let trial = KnownTrial::new(wanted, &[]).unwrap();
            let goals = trial.goals();
            let names: std::collections::BTreeSet<&str> =
                goals.iter().map(|(name, _)| *name).collect();
            assert_eq!(names.len(), GOALS.len());
            primaries.insert(goals[0].0);
            let text = trial.experiment();
            let first = format!("goals:\n  - {{metric: {}, ", goals[0].0);
            assert!(text.contains(&first), "{text}");
            assert!(text.contains("stamps: all\n"), "{text}");
        }
        assert_eq!(primaries.len(), GOALS.len());
    }
}
