//! The order of experiments.

use super::entry::{Entry, Kind};
use stillwell_units::count;

/// One experiment that is wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Wanted {
    pub(super) kind: Kind,
    /// Within its kind, from 1.
    pub(super) number: u32,
}

/// Number of experiments of each kind: first the truth, then the required ones, then the goal
/// behind them. Within each step all kinds advance together.
const STEPS: [&[(Kind, u32)]; 3] = [
    &[(Kind::ReferenceCpu, 1), (Kind::ReferenceThroughput, 1)],
    &[
        (Kind::AaQuiet, 50),
        (Kind::AaLoaded, 50),
        (Kind::CpuPlus1, 20),
        (Kind::ThroughputMinus5, 20),
    ],
    &[
        (Kind::AaQuiet, 150),
        (Kind::AaLoaded, 150),
        (Kind::AaGoalsQuiet, 30),
        (Kind::AaGoalsLoaded, 30),
        (Kind::CpuPlus1, 30),
        (Kind::CpuPlus1Loaded, 30),
        (Kind::ThroughputMinus3, 30),
        (Kind::ThroughputMinus3Loaded, 30),
    ],
];

/// The next experiment of a ledger with these `entries`; `None` when it is full.
pub(super) fn next(entries: &[Entry]) -> Option<Wanted> {
    let done = |kind| {
        let is_one = |entry: &&Entry| entry.kind == kind && !entry.secondary;
        let same = entries.iter().filter(is_one);
        count(same.count())
    };
    let unfinished = STEPS.iter().find_map(|step| {
        let open = step.iter().filter(|(kind, wanted)| done(*kind) < *wanted);
        // The kind with the smallest share so far; the first of equals.
        open.min_by(|(left, left_wanted), (right, right_wanted)| {
            let left = u64::from(done(*left)) * u64::from(*right_wanted);
            left.cmp(&(u64::from(done(*right)) * u64::from(*left_wanted)))
        })
    });
    unfinished.map(|(kind, _)| Wanted {
        kind: *kind,
        number: done(*kind) + 1,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::entry::example;
    use super::*;

    fn filled(experiments: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        while entries.len() < experiments {
            let Some(wanted) = next(&entries) else { break };
            entries.push(example(wanted.kind, wanted.number));
        }
        entries
    }

    fn counts(entries: &[Entry]) -> BTreeMap<Kind, u32> {
        let mut counts = BTreeMap::new();
        for entry in entries {
            *counts.entry(entry.kind).or_insert(0) += 1;
        }
        counts
    }

    #[test]
    fn the_truth_comes_first() {
        let kinds: Vec<Kind> = filled(2).iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::ReferenceCpu, Kind::ReferenceThroughput]);
    }

    #[test]
    fn all_kinds_stay_in_step_wherever_it_stops() {
        for experiments in 2..=142 {
            let counts = counts(&filled(experiments));
            let share = |kind, of: f64| f64::from(counts.get(&kind).copied().unwrap_or(0)) / of;
            let shares = [
                share(Kind::AaQuiet, 50.0),
                share(Kind::AaLoaded, 50.0),
                share(Kind::CpuPlus1, 20.0),
                share(Kind::ThroughputMinus5, 20.0),
            ];
            let most = shares.iter().copied().fold(0.0, f64::max);
            let least = shares.iter().copied().fold(1.0, f64::min);
            assert!(most - least <= 0.05 + 1e-9, "{experiments}: {shares:?}");
        }
    }

    #[test]
    fn the_goal_is_600_of_equal_versions_and_60_of_each_change() {
        let entries = filled(10_000);
        assert_eq!(next(&entries), None);
        let counts = counts(&entries);
        let goals = 5 * (counts[&Kind::AaGoalsQuiet] + counts[&Kind::AaGoalsLoaded]);
        assert_eq!(
            counts[&Kind::AaQuiet] + counts[&Kind::AaLoaded] + goals,
            600
        );
        for [quiet, loaded] in [
            [Kind::CpuPlus1, Kind::CpuPlus1Loaded],
            [Kind::ThroughputMinus3, Kind::ThroughputMinus3Loaded],
        ] {
            assert_eq!([counts[&quiet], counts[&loaded]], [30, 30], "{quiet:?}");
        }
    }

    #[test]
    fn an_experiment_of_several_goals_counts_once() {
        let mut entries = filled(142);
        for number in 1..=2 {
            for secondary in [false, true, true] {
                entries.push(Entry {
                    secondary,
                    ..example(Kind::AaGoalsQuiet, number)
                });
            }
        }
        // Others come first, until their shares are as large.
        let wanted = std::iter::repeat_with(|| {
            let wanted = next(&entries);
            entries.extend(wanted.map(|wanted| example(wanted.kind, wanted.number)));
            wanted
        });
        let mut wanted = wanted.map_while(|wanted| wanted);
        let next_of_kind = wanted.find(|wanted| wanted.kind == Kind::AaGoalsQuiet);
        assert_eq!(next_of_kind.map(|wanted| wanted.number), Some(3));
    }
}
