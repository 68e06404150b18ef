//! Two columns of numbers, one a run, and what they say.

use stillwell_plan::goal::{Direction, Scale};
use stillwell_stats::{
    Differences, Estimate, Level, LogRatios, PairedEffect, PairedError, Sample, StudentT, Welch,
    hodges_lehmann, mann_whitney, mann_whitney_p_min, welch, wilcoxon_p_min, wilcoxon_signed_rank,
};
use stillwell_units::{Tolerance, count, float_from_u64};

use super::Finding;
use crate::judge::compare::too_few_for_equivalent;
use crate::judge::pairs::is_lost;
use crate::limits::{
    COMPARED_CENTRE_PAIRS_MAX, COMPARED_DEGREES_MIN, COMPARED_RANKS_BELOW, PAIRS_EQUIVALENT_MIN,
};
use crate::rule::{Change, Verdict, verdict_of};

/// The question that two columns of numbers answer.
#[derive(Clone, Copy, Debug)]
pub struct ColumnsQuestion {
    /// Better direction, where that is known.
    pub direction: Option<Direction>,
    /// Smallest change that matters.
    pub tolerance: Tolerance,
    /// By what the columns are compared.
    pub scale: Scale,
}

/// The answer of two columns of numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnsAnswer {
    /// The change, and how sure it is.
    pub finding: Finding,
    /// The verdict; `None` where none can be given.
    pub verdict: Option<Verdict>,
    /// Reason why there is no verdict, or not the one that a reader might expect.
    pub reason: Option<String>,
}

impl ColumnsAnswer {
    fn without_verdict(finding: Finding, reason: impl Into<String>) -> Self {
        Self {
            finding,
            verdict: None,
            reason: Some(reason.into()),
        }
    }

    /// The same answer under a light load, if `reason` names one: a change that it may hide is not
    /// surely within the tolerance.
    pub(super) fn under_light_load(self, reason: Option<String>) -> Self {
        if self.verdict != Some(Verdict::Equivalent) || reason.is_none() {
            return self;
        }
        Self {
            verdict: Some(Verdict::Inconclusive),
            reason,
            ..self
        }
    }
}

/// Compares the means of runs that were not made in pairs.
#[must_use]
pub fn judge_unpaired(
    baseline: &[f64],
    comparison: &[f64],
    question: ColumnsQuestion,
) -> ColumnsAnswer {
    let (left, right) = (baseline.len(), comparison.len());
    if left == 0 || right == 0 {
        let reason = "a side has no run with this number";
        return ColumnsAnswer::without_verdict(Finding::Nothing, reason);
    }
    let plain = Finding::Plain(plain_change(baseline, comparison, question.scale));
    if left < 2 || right < 2 {
        let reason = "one run on a side gives no estimate of the noise, so this change may be \
                      noise: give several runs of each side";
        return ColumnsAnswer::without_verdict(plain, reason);
    }
    let (test, change) = match unpaired_change(baseline, comparison, question.scale) {
        Ok(result) => result,
        Err(reason) => return ColumnsAnswer::without_verdict(plain, reason),
    };
    let ranks = mann_whitney(baseline, comparison);
    let ranks = ranks.filter(|_| mann_whitney_p_min(left, right) < COMPARED_RANKS_BELOW);
    let finding = Finding::Unpaired {
        change,
        t: test.t,
        degrees: test.degrees,
        p_value: test.p_value,
        mann_whitney_p: ranks.map(|ranks| ranks.p_value),
    };
    let too_few = too_few(count(left.min(right)), ["runs", " on each side"]);
    judged(finding, change, (test.degrees, too_few), question)
}

/// Compares pair by pair, (baseline, comparison).
#[must_use]
pub fn judge_paired(pairs: &[(f64, f64)], question: ColumnsQuestion) -> ColumnsAnswer {
    // A loss of everything has no logarithm: the shares of the baseline are compared as they are.
    if question.scale == Scale::Ratio && is_lost(pairs) {
        let shares = vec![(1.0, 0.0); pairs.len()];
        let question = ColumnsQuestion {
            scale: Scale::Difference,
            ..question
        };
        return judge_paired(&shares, question);
    }
    if pairs.is_empty() {
        let reason = "no pair has this number in both runs";
        return ColumnsAnswer::without_verdict(Finding::Nothing, reason);
    }
    let (baseline, comparison): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let plain = Finding::Plain(plain_change(&baseline, &comparison, question.scale));
    if pairs.len() < 2 {
        let reason = "one pair gives no estimate of the noise: give several pairs";
        return ColumnsAnswer::without_verdict(plain, reason);
    }
    let (values, effect) = match effect(pairs, question.scale) {
        Ok(result) => result,
        Err(error) => return ColumnsAnswer::without_verdict(plain, error.to_string()),
    };
    let change = Change::from(effect.relative());
    let reported = |value: f64| match question.scale {
        Scale::Ratio => value.exp_m1(),
        Scale::Difference => value,
    };
    let degrees = float_from_u64(values.len() as u64) - 1.0;
    let ranks = wilcoxon_signed_rank(&values);
    let ranks = ranks.filter(|_| wilcoxon_p_min(values.len()) < COMPARED_RANKS_BELOW);
    let has_centre = values.len() <= COMPARED_CENTRE_PAIRS_MAX;
    let centre = has_centre.then(|| hodges_lehmann(&values)).flatten();
    let finding = Finding::Paired {
        change,
        pairs: count(values.len()),
        p_value: effect.p_value(),
        wilcoxon_p: ranks.map(|ranks| ranks.p_value),
        hodges_lehmann: centre.map(reported),
    };
    let too_few = too_few(count(values.len()), ["pairs", ""]);
    judged(finding, change, (degrees, too_few), question)
}

/// Reason for which so few pairs, or runs on a side, do not show `equivalent`; `None` if they are enough.
fn too_few(number: u32, words: [&str; 2]) -> Option<String> {
    (number < PAIRS_EQUIVALENT_MIN).then(|| too_few_for_equivalent(number, words))
}

fn effect(pairs: &[(f64, f64)], scale: Scale) -> Result<(Vec<f64>, PairedEffect), PairedError> {
    match scale {
        Scale::Ratio => {
            let values = LogRatios::from_pairs(pairs)?;
            let effect = values.effect(Level::NINETY_FIVE)?;
            Ok((values.values().to_vec(), effect))
        }
        Scale::Difference => {
            let values = Differences::from_pairs(pairs)?;
            let effect = values.effect(Level::NINETY_FIVE)?;
            Ok((values.values().to_vec(), effect))
        }
    }
}

fn judged(
    finding: Finding,
    change: Change,
    (degrees, too_few): (f64, Option<String>),
    question: ColumnsQuestion,
) -> ColumnsAnswer {
    if degrees < COMPARED_DEGREES_MIN {
        let reason = format!(
            "few runs estimate the noise poorly ({degrees:.1} degrees of freedom; four pairs \
             have 3)"
        );
        return ColumnsAnswer::without_verdict(finding, reason);
    }
    let direction = question.direction.unwrap_or(Direction::LowerIsBetter);
    let (verdict, reason) = match verdict_of(change, direction, question.tolerance) {
        Verdict::Regressed | Verdict::Improved if question.direction.is_none() => {
            let reason = "the better direction is unknown: add --better lower or --better higher";
            (Verdict::Different, Some(reason.to_owned()))
        }
        Verdict::Equivalent if too_few.is_some() => (Verdict::Inconclusive, too_few),
        verdict => (verdict, None),
    };
    ColumnsAnswer {
        finding,
        verdict: Some(verdict),
        reason,
    }
}

/// Welch's test and its change: of logarithms where a ratio is wanted and all numbers are above
/// zero; of the numbers with Fieller's interval for the ratio of means where they are not; of
/// the numbers as they are where a difference is wanted. The baseline's uncertainty is part of
/// each, and swapped sides give the inverse change.
fn unpaired_change(
    baseline: &[f64],
    comparison: &[f64],
    scale: Scale,
) -> Result<(Welch, Change), String> {
    let test = |left: &[f64], right: &[f64]| {
        welch(left, right, Level::NINETY_FIVE).map_err(|error| error.to_string())
    };
    let has_logs = baseline.iter().chain(comparison).all(|value| *value > 0.0);
    if scale == Scale::Ratio && has_logs {
        let logs = |values: &[f64]| values.iter().map(|value| value.ln()).collect::<Vec<f64>>();
        let test = test(&logs(baseline), &logs(comparison))?;
        let Estimate {
            value,
            lower,
            upper,
        } = test.difference;
        let change = Change {
            estimate: value.exp_m1(),
            lower: lower.exp_m1(),
            upper: upper.exp_m1(),
        };
        return Ok((test, change));
    }
    let test = test(baseline, comparison)?;
    if scale == Scale::Difference {
        return Ok((test, test.difference.into()));
    }
    let change = fieller(baseline, comparison, &test).ok_or_else(|| {
        "the baseline's mean may be zero, so the change has no percentage".to_owned()
    })?;
    Ok((test, change))
}

/// Change of the ratio of two means with Fieller's interval (1954); `None` where the baseline's
/// mean is not surely above zero.
fn fieller(baseline: &[f64], comparison: &[f64], test: &Welch) -> Option<Change> {
    let critical = StudentT::try_new(test.degrees)
        .ok()?
        .critical(Level::NINETY_FIVE);
    let reach = |values: &[f64]| {
        let sample = Sample::try_new(values, 2).ok()?;
        let count = float_from_u64(u64::try_from(values.len()).ok()?);
        Some(critical * sample.standard_deviation()? / count.sqrt())
    };
    let (below, above) = (reach(baseline)?, reach(comparison)?);
    let (left, right) = (test.baseline_mean, test.comparison_mean);
    let divisor = left * left - below * below;
    if left <= 0.0 || divisor <= 0.0 {
        return None;
    }
    let product = left * right;
    let numerator = right * right - above * above;
    let half = (product * product - divisor * numerator).max(0.0).sqrt();
    Some(Change {
        estimate: right / left - 1.0,
        lower: (product - half) / divisor - 1.0,
        upper: (product + half) / divisor - 1.0,
    })
}

fn plain_change(baseline: &[f64], comparison: &[f64], scale: Scale) -> Option<f64> {
    let mean = |values: &[f64]| {
        let count = float_from_u64(u64::try_from(values.len()).ok()?);
        Some(values.iter().sum::<f64>() / count)
    };
    let (left, right) = (mean(baseline)?, mean(comparison)?);
    let change = match scale {
        Scale::Ratio => (right - left) / left.abs(),
        Scale::Difference => right - left,
    };
    change.is_finite().then_some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(direction: Option<Direction>, tolerance: f64) -> ColumnsQuestion {
        ColumnsQuestion {
            direction,
            tolerance: Tolerance::try_new(tolerance).unwrap(),
            scale: Scale::Ratio,
        }
    }

    /// MiB a second: the run means that an old soak report printed.
    const BASELINE: [f64; 3] = [7.88, 7.86, 7.85];
    const COMPARISON: [f64; 3] = [7.86, 7.84, 7.82];

    #[test]
    fn six_runs_that_a_soak_called_significant_are_not() {
        let answer = judge_unpaired(&BASELINE, &COMPARISON, question(None, 0.05));
        let Finding::Unpaired {
            change,
            p_value,
            mann_whitney_p,
            ..
        } = answer.finding
        else {
            panic!("{answer:?}");
        };
        let shown = [change.estimate, change.lower, change.upper];
        let shown = shown.map(|share| format!("{:.2}", share * 100.0));
        assert_eq!(shown, ["-0.30", "-0.82", "0.23"]);
        assert_eq!(format!("{p_value:.3}"), "0.189");
        // Of twenty ways to split six into three and three, none is rarer than 0.1.
        assert_eq!(mann_whitney_p, None);
        // Within the tolerance, but three runs on a side do not show `equivalent`.
        assert_eq!(answer.verdict, Some(Verdict::Inconclusive));
    }

    /// The audit's example: 10, 11, 9, 10.5 against 20, 23, 18, 21.
    #[test]
    fn f7_the_interval_carries_the_uncertainty_of_the_baseline() {
        let (low, high) = ([10.0, 11.0, 9.0, 10.5], [20.0, 23.0, 18.0, 21.0]);
        let change = |left: &[f64], right: &[f64]| {
            let answer = judge_unpaired(left, right, question(None, 0.05));
            answer.finding.change().unwrap()
        };
        let up = change(&low, &high);
        let shown = [up.estimate, up.lower, up.upper].map(|share| (share * 1000.0).round());
        assert!((shown[0] - 1022.0).abs() < 5.0, "{shown:?}");
        assert!(shown[1] < 720.0 && shown[2] > 1334.0, "{shown:?}");
        // Zeros have no logarithm: Fieller's interval.
        let with_zero = change(&[9.0, 10.0, 11.0, 10.0], &[0.0, 1.0, 2.0, 1.0]);
        assert!(
            with_zero.lower < -0.9 && with_zero.upper > -0.9,
            "{with_zero:?}"
        );
    }

    proptest::proptest! {
        /// For all runs: swapped sides give the inverse change and the same p value.
        #[test]
        fn f7_swapped_sides_are_a_mirror_image(
            left in proptest::collection::vec(1.0_f64..100.0, 3..8),
            right in proptest::collection::vec(1.0_f64..100.0, 3..8),
        ) {
            let [there, back] = [(&left, &right), (&right, &left)].map(|(left, right)| {
                match judge_unpaired(left, right, question(None, 0.05)).finding {
                    Finding::Unpaired { change, p_value, .. } => (change, p_value),
                    finding => panic!("{finding:?}"),
                }
            });
            let inverse = |change: f64| 1.0 / (1.0 + change) - 1.0;
            let close = |left: f64, right: f64| (left - right).abs() < 1e-9 * (1.0 + left.abs());
            proptest::prop_assert!(close(there.0.estimate, inverse(back.0.estimate)));
            proptest::prop_assert!(close(there.0.lower, inverse(back.0.upper)));
            proptest::prop_assert!(close(there.0.upper, inverse(back.0.lower)));
            proptest::prop_assert!(close(there.1, back.1));
        }
    }

    #[test]
    fn one_run_a_side_has_no_verdict() {
        let answer = judge_unpaired(&[100.0], &[90.0, 91.0], question(None, 0.05));
        assert_eq!(answer.verdict, None);
        assert!(
            matches!(answer.finding, Finding::Plain(Some(change)) if (change + 0.095).abs() < 1e-9)
        );
        assert!(answer.reason.unwrap().contains("may be noise:"));
        let answer = judge_unpaired(&[], &[90.0], question(None, 0.05));
        assert_eq!(answer.finding, Finding::Nothing);
        let answer = judge_paired(&[(1.0, 2.0)], question(None, 0.05));
        assert_eq!(answer.verdict, None);
    }

    #[test]
    fn two_runs_a_side_have_an_interval_and_no_verdict() {
        let answer = judge_unpaired(&[100.0, 101.0], &[90.0, 91.0], question(None, 0.05));
        assert!(answer.finding.change().is_some());
        assert_eq!(answer.verdict, None);
        assert!(answer.reason.unwrap().contains("degrees of freedom"));
    }

    #[test]
    fn the_direction_decides_and_without_one_a_change_is_different() {
        let (slow, fast) = ([100.0, 101.0, 99.0, 100.5], [90.0, 91.0, 89.0, 90.5]);
        let verdict = |direction| judge_unpaired(&slow, &fast, question(direction, 0.02)).verdict;
        assert_eq!(
            verdict(Some(Direction::HigherIsBetter)),
            Some(Verdict::Regressed)
        );
        assert_eq!(
            verdict(Some(Direction::LowerIsBetter)),
            Some(Verdict::Improved)
        );
        assert_eq!(verdict(None), Some(Verdict::Different));
    }

    #[test]
    fn pairs_see_what_drift_hides() {
        let drift = [100.0, 120.0, 90.0, 140.0, 80.0, 110.0];
        let pairs: Vec<(f64, f64)> = drift
            .iter()
            .zip(0_u32..)
            .map(|(value, at)| (*value, value * (1.03 + 0.001 * f64::from(at % 3))))
            .collect();
        let (left, right): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
        let question = question(Some(Direction::LowerIsBetter), 0.02);
        assert_eq!(
            judge_paired(&pairs, question).verdict,
            Some(Verdict::Regressed)
        );
        assert_eq!(
            judge_unpaired(&left, &right, question).verdict,
            Some(Verdict::Inconclusive)
        );
        let Finding::Paired { wilcoxon_p, .. } = judge_paired(&pairs, question).finding else {
            panic!("not paired");
        };
        assert!(wilcoxon_p.unwrap() < 0.05);
    }

    /// The estimate of 100,000 pairs needed 40 GB.
    #[test]
    fn the_hodges_lehmann_estimate_has_a_limit_of_pairs() {
        for (above, has_centre) in [(0, true), (1, false)] {
            let numbers = (0_u32..).take(COMPARED_CENTRE_PAIRS_MAX + above);
            let pairs = numbers.map(|at| (100.0, 110.0 + f64::from(at % 2)));
            let pairs: Vec<(f64, f64)> = pairs.collect();
            let answer = judge_paired(&pairs, question(None, 0.05));
            let Finding::Paired {
                change,
                hodges_lehmann: centre,
                ..
            } = answer.finding
            else {
                panic!("{answer:?}");
            };
            assert!((change.estimate - 0.105).abs() < 1e-3, "{change:?}");
            assert_eq!(centre.is_some(), has_centre, "{above}");
            if let Some(centre) = centre {
                assert!((centre - change.estimate).abs() < 1e-3, "{centre}");
            }
        }
    }

    /// Zeros have no logarithm, so such pairs had no verdict, and the comparison passed.
    #[test]
    fn losing_everything_in_every_pair_is_a_regression() {
        let higher = question(Some(Direction::HigherIsBetter), 0.05);
        let answer = judge_paired(&[(100.0, 0.0); 6], higher);
        let lost = Change {
            estimate: -1.0,
            lower: -1.0,
            upper: -1.0,
        };
        assert_eq!(answer.verdict, Some(Verdict::Regressed));
        assert_eq!(answer.finding.change(), Some(lost));
        assert_eq!(answer.finding.p_value(), Some(0.0));
        let unknown = judge_paired(&[(100.0, 0.0); 6], question(None, 0.05));
        assert_eq!(unknown.verdict, Some(Verdict::Different));
        let few = judge_paired(&[(100.0, 0.0); 2], higher);
        assert_eq!(few.verdict, None);
        assert_eq!(few.finding.change(), Some(lost));
        // Nothing on both sides is no loss.
        assert_eq!(judge_paired(&[(0.0, 0.0); 6], higher).verdict, None);
    }

    #[test]
    fn a_baseline_of_zero_is_no_percentage() {
        let answer = judge_unpaired(
            &[0.0, 0.0, 0.0, 0.0],
            &[1.0, 1.0, 1.0, 2.0],
            question(None, 0.05),
        );
        assert_eq!(answer.verdict, None);
        assert!(answer.reason.unwrap().contains("zero"));
        let share = ColumnsQuestion {
            scale: Scale::Difference,
            ..question(Some(Direction::LowerIsBetter), 0.05)
        };
        let answer = judge_unpaired(&[0.0; 4], &[0.1, 0.11, 0.1, 0.12], share);
        assert_eq!(answer.verdict, Some(Verdict::Regressed));
    }
}
