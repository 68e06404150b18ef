//! The true size of a change, by the whole ledger.

use super::entry::{Entry, Kind};

/// Pairs of the known change at the time of an experiment: those of one reference.
const REFERENCE_PAIRS: f64 = 16.0;

/// The true change of `kind`, by measurements that no interval of a search uses: the mean of the new
/// pairs of all confirmations, weighted by pairs, and of the reference if it has the very change
/// of the kind. A confirmation ends at the first certain look, so its number of pairs depends on
/// its values; the weights keep that from mattering much. `None` for a kind without a truth.
pub(super) fn truth_of(kind: Kind, entries: &[Entry]) -> Option<f64> {
    let is_reference_of_kind = match kind {
        Kind::AaQuiet | Kind::AaLoaded | Kind::AaGoalsQuiet | Kind::AaGoalsLoaded => {
            return Some(0.0);
        }
        Kind::ReferenceCpu | Kind::ReferenceThroughput => return None,
        Kind::CpuPlus1 | Kind::CpuPlus1Loaded => true,
        // The reference has many more rounds, which cost less each.
        Kind::ThroughputMinus5 | Kind::ThroughputMinus3 | Kind::ThroughputMinus3Loaded => false,
    };
    let selected = || entries.iter().filter(|entry| entry.kind == kind);
    let (mut sum, mut weights) = (0.0, 0.0);
    if is_reference_of_kind {
        let known = selected().rev().find_map(|entry| entry.truth_share)?;
        sum += REFERENCE_PAIRS * known.ln_1p();
        weights += REFERENCE_PAIRS;
    }
    for entry in selected() {
        if let Some(share) = entry.confirming_share {
            let weight = f64::from(entry.pairs_confirming);
            sum += weight * share.ln_1p();
            weights += weight;
        }
    }
    (weights > 0.0).then(|| (sum / weights).exp_m1())
}

#[cfg(test)]
mod tests {
    use super::super::entry::example;
    use super::*;

    #[test]
    fn equal_versions_are_equal_and_references_measure() {
        assert_eq!(truth_of(Kind::AaLoaded, &[]), Some(0.0));
        assert_eq!(truth_of(Kind::ReferenceCpu, &[]), None);
        assert_eq!(truth_of(Kind::CpuPlus1, &[]), None);
    }

    #[test]
    fn fresh_pairs_add_to_the_reference() {
        let mut entries: Vec<Entry> = (1..=3)
            .map(|number| example(Kind::CpuPlus1, number))
            .collect();
        for entry in &mut entries {
            entry.truth_share = Some(0.010);
        }
        let truth = truth_of(Kind::CpuPlus1, &entries).unwrap();
        assert!((truth - 0.010).abs() < 1e-12, "nothing was confirmed");
        // Two confirmations of eight pairs weigh as much as the reference.
        for entry in &mut entries[..2] {
            entry.confirming_share = Some(0.008);
            entry.pairs_confirming = 8;
        }
        let truth = truth_of(Kind::CpuPlus1, &entries).unwrap();
        assert!((truth - 0.009).abs() < 1e-6, "{truth}");
    }

    /// A size that was extrapolated from many more rounds counted as 16 measured pairs.
    #[test]
    fn a_planned_size_is_no_measurement() {
        let mut entry = example(Kind::ThroughputMinus3, 1);
        entry.truth_share = Some(-0.03);
        assert_eq!(truth_of(entry.kind, std::slice::from_ref(&entry)), None);
        entry.confirming_share = Some(-0.025);
        entry.pairs_confirming = 6;
        let truth = truth_of(entry.kind, std::slice::from_ref(&entry)).unwrap();
        assert!((truth + 0.025).abs() < 1e-12, "{truth}");
    }
}
