//! The true size of a change, by the ledger.

use super::entry::{Entry, Kind};

/// The true change of `kind` in `entries`, by measurements that no interval of a search uses: the mean of
/// the new pairs of all confirmations, weighted by pairs, and of the reference if it has the very
/// change of the kind. A confirmation ends at the first certain look, so its number of pairs
/// depends on its values; the weights keep that from mattering much. `None` for a kind without a
/// truth.
pub(super) fn truth_of<'e>(
    kind: Kind,
    entries: impl IntoIterator<Item = &'e Entry>,
) -> Option<f64> {
    let reference = match kind {
        Kind::AaQuiet | Kind::AaLoaded | Kind::AaGoalsQuiet | Kind::AaGoalsLoaded => {
            return Some(0.0);
        }
        Kind::ReferenceCpu | Kind::ReferenceThroughput => return None,
        Kind::CpuPlus1 | Kind::CpuPlus1Loaded => Some(Kind::ReferenceCpu),
        // Its reference has many more rounds, which cost less each.
        Kind::ThroughputMinus5 | Kind::ThroughputMinus3 | Kind::ThroughputMinus3Loaded => None,
    };
    let (mut sum, mut weights) = (0.0, 0.0);
    for entry in entries {
        let (share, pairs) = if entry.kind == kind {
            (entry.confirming_share, entry.pairs_confirming)
        } else if Some(entry.kind) == reference {
            (entry.estimate_share, entry.pairs)
        } else {
            continue;
        };
        if let Some(share) = share {
            let weight = f64::from(pairs);
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
    fn new_pairs_add_to_the_reference() {
        let reference = Entry {
            estimate_share: Some(0.010),
            pairs: 16,
            ..example(Kind::ReferenceCpu, 1)
        };
        let mut entries = vec![reference, example(Kind::CpuPlus1, 1)];
        entries.push(example(Kind::CpuPlus1, 2));
        let truth = truth_of(Kind::CpuPlus1, &entries).unwrap();
        assert!((truth - 0.010).abs() < 1e-12, "nothing was confirmed");
        // Two confirmations of eight pairs weigh as much as the reference.
        for entry in &mut entries[1..] {
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
        assert_eq!(truth_of(entry.kind, [&entry]), None);
        entry.confirming_share = Some(-0.025);
        entry.pairs_confirming = 6;
        let truth = truth_of(entry.kind, [&entry]).unwrap();
        assert!((truth + 0.025).abs() < 1e-12, "{truth}");
    }
}
