//! Ranking of targets for one row.

use stillwell_stats::{Differences, Level, LogRatios, PairedEffect, holm};
use stillwell_units::count;

use super::TargetsMetric;
use crate::limits;

/// Comparison of one target with another by one row.
#[derive(Clone, Debug, PartialEq)]
pub struct PairFound {
    /// The first target, by its place among the columns.
    pub left: usize,
    /// The second.
    pub right: usize,
    /// Blocks in which both have a number.
    pub blocks: u32,
    /// The second by the first, less one; the second less the first where a number
    /// may be zero.
    pub change: f64,
    /// The chance of as much without any difference, by Holm over all pairs of the
    /// row.
    pub p_value: f64,
}

/// The numbers of one target, by its place and by blocks; `group` holds those
/// that may be compared with each other.
#[derive(Clone, Debug)]
pub(super) struct Ranked {
    pub(super) column: usize,
    pub(super) group: usize,
    pub(super) by_block: Vec<(u32, f64)>,
}

impl Ranked {
    pub(super) fn mean(&self) -> f64 {
        let sum: f64 = self.by_block.iter().map(|(_, value)| value).sum();
        sum / f64::from(count(self.by_block.len()).max(1))
    }
}

/// All pairs within groups that have blocks enough in common, with p values that
/// hold together.
pub(super) fn pairs(metric: TargetsMetric, ranked: &[Ranked]) -> Vec<PairFound> {
    let mut result = Vec::new();
    for (at, left) in ranked.iter().enumerate() {
        for right in &ranked[at + 1..] {
            if left.group == right.group {
                result.extend(pair(metric, left, right));
            }
        }
    }
    let raw: Vec<f64> = result.iter().map(|pair| pair.p_value).collect();
    for (pair, adjusted) in result.iter_mut().zip(holm(&raw)) {
        pair.p_value = adjusted;
    }
    result
}

fn pair(metric: TargetsMetric, left: &Ranked, right: &Ranked) -> Option<PairFound> {
    let both: Vec<(f64, f64)> = left
        .by_block
        .iter()
        .filter_map(|(block, value)| {
            let mut remaining = right.by_block.iter();
            let (_, paired) = remaining.find(|(item, _)| item == block)?;
            Some((*value, *paired))
        })
        .collect();
    let blocks = count(both.len());
    if blocks < limits::PAIRS_MIN {
        return None;
    }
    let effect = effect(metric, &both)?;
    Some(PairFound {
        left: left.column,
        right: right.column,
        blocks,
        change: effect.relative().value,
        p_value: effect.p_value(),
    })
}

fn effect(metric: TargetsMetric, both: &[(f64, f64)]) -> Option<PairedEffect> {
    let level = Level::NINETY_FIVE;
    if !metric.is_difference()
        && let Ok(ratios) = LogRatios::from_pairs(both)
    {
        return ratios.effect(level).ok();
    }
    Differences::from_pairs(both).ok()?.effect(level).ok()
}

/// The places of `group`: the one that is certainly better than all others, or
/// those that no target is certainly better than; a target that another is certainly better
/// than is behind, also the one with the best mean. Empty where the best mean was
/// not compared with all others, and where pairs go round in a circle.
pub(super) fn places(
    group: &[&Ranked],
    pairs: &[PairFound],
    is_higher_better: bool,
) -> Vec<(usize, Place)> {
    let better = |left: f64, right: f64| match is_higher_better {
        true => left > right,
        false => left < right,
    };
    let between = |left: usize, right: usize| {
        pairs.iter().find(|pair| {
            (pair.left, pair.right) == (left, right) || (pair.left, pair.right) == (right, left)
        })
    };
    let beats = |left: &Ranked, right: &Ranked| {
        between(left.column, right.column).is_some_and(|pair| {
            // A mean and a pair may point apart where blocks are missing.
            let falls = pair.change < 0.0;
            let other_is_lower = falls == (pair.right == right.column);
            pair.p_value <= limits::BETTER_CHANCE
                && pair.change != 0.0
                && other_is_lower == is_higher_better
        })
    };
    let is_tested = |left: &&Ranked| {
        let mut remaining = group.iter().filter(|right| right.column != left.column);
        group.len() > 1 && remaining.all(|right| between(left.column, right.column).is_some())
    };
    let best = group.iter().copied().reduce(|best, left| {
        if better(left.mean(), best.mean()) {
            left
        } else {
            best
        }
    });
    if best.filter(is_tested).is_none() {
        return Vec::new();
    }
    let is_behind = |left: &Ranked| group.iter().any(|right| beats(right, left));
    if group.iter().all(|left| is_behind(left)) {
        return Vec::new();
    }
    let place = |left: &Ranked| {
        let mut remaining = group.iter().filter(|right| right.column != left.column);
        if is_behind(left) {
            Place::Behind
        } else if remaining.all(|right| beats(left, right)) {
            Place::Winner
        } else {
            Place::Tied
        }
    };
    group
        .iter()
        .map(|left| (left.column, place(left)))
        .collect()
}

/// Rank of a target by one row.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Place {
    /// Certainly better than every other that it may be compared with.
    Winner,
    /// No target is certainly better, and it is not certainly better than all.
    Tied,
    /// Another is certainly better.
    Behind,
    /// Nothing is said.
    None,
}
