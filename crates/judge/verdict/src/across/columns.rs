//! Two columns of numbers, one a run, and what they say.

use stillwell_plan::{Direction, Scale};
use stillwell_stats::{
    Differences, Estimate, Level, LogRatios, PairedEffect, PairedError, Welch, hodges_lehmann,
    mann_whitney, mann_whitney_p_min, welch, wilcoxon_p_min, wilcoxon_signed_rank,
};
use stillwell_units::{Tolerance, float_from_u64};

use super::Finding;
use crate::limits::{COMPARED_DEGREES_MIN, COMPARED_RANKS_BELOW};
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
        let reason = "one run on a side says nothing of how much runs differ among themselves, so \
                      this may be noise or not: give several runs of each side";
        return ColumnsAnswer::without_verdict(plain, reason);
    }
    let test = match welch(baseline, comparison, Level::NINETY_FIVE) {
        Ok(test) => test,
        Err(error) => return ColumnsAnswer::without_verdict(plain, error.to_string()),
    };
    let Some(change) = relative(&test, question.scale) else {
        let reason = "the baseline's mean is zero, so nothing can be said in percent of it";
        return ColumnsAnswer::without_verdict(plain, reason);
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
    judged(finding, change, test.degrees, question)
}

/// Compares pair by pair, (baseline, comparison).
#[must_use]
pub fn judge_paired(pairs: &[(f64, f64)], question: ColumnsQuestion) -> ColumnsAnswer {
    if pairs.is_empty() {
        let reason = "there is no pair both of whose runs have this number";
        return ColumnsAnswer::without_verdict(Finding::Nothing, reason);
    }
    let (baseline, comparison): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let plain = Finding::Plain(plain_change(&baseline, &comparison, question.scale));
    if pairs.len() < 2 {
        let reason = "one pair says nothing of how much pairs differ among themselves";
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
    let degrees = float_from_u64(u64::try_from(values.len()).unwrap_or(u64::MAX)) - 1.0;
    let ranks = wilcoxon_signed_rank(&values);
    let ranks = ranks.filter(|_| wilcoxon_p_min(values.len()) < COMPARED_RANKS_BELOW);
    let finding = Finding::Paired {
        change,
        pairs: u32::try_from(values.len()).unwrap_or(u32::MAX),
        p_value: effect.p_value(),
        wilcoxon_p: ranks.map(|ranks| ranks.p_value),
        hodges_lehmann: hodges_lehmann(&values).map(reported),
    };
    judged(finding, change, degrees, question)
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
    degrees: f64,
    question: ColumnsQuestion,
) -> ColumnsAnswer {
    if degrees < COMPARED_DEGREES_MIN {
        let reason = format!(
            "so few runs hardly know their own noise ({degrees:.1} degrees of freedom; four pairs \
             have 3)"
        );
        return ColumnsAnswer::without_verdict(finding, reason);
    }
    let direction = question.direction.unwrap_or(Direction::LowerIsBetter);
    let verdict = verdict_of(change, direction, question.tolerance);
    let unknown = question.direction.is_none();
    let turned = matches!(verdict, Verdict::Regressed | Verdict::Improved) && unknown;
    let (verdict, reason) = if turned {
        let reason = "which way is better is not known: --better lower or --better higher says so";
        (Verdict::Different, Some(reason.to_owned()))
    } else {
        (verdict, None)
    };
    ColumnsAnswer {
        finding,
        verdict: Some(verdict),
        reason,
    }
}

/// Welch's difference in terms of the baseline's mean, or as it is.
fn relative(test: &Welch, scale: Scale) -> Option<Change> {
    let Estimate {
        value,
        lower,
        upper,
    } = test.difference;
    let unit = match scale {
        Scale::Ratio => test.baseline_mean.abs(),
        Scale::Difference => 1.0,
    };
    (unit > 0.0).then(|| Change {
        estimate: value / unit,
        lower: lower / unit,
        upper: upper / unit,
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
        assert_eq!(format!("{p_value:.3}"), "0.188");
        // Of twenty ways to split six into three and three, none is rarer than 0.1.
        assert_eq!(mann_whitney_p, None);
        assert_eq!(answer.verdict, Some(Verdict::Equivalent));
    }

    #[test]
    fn one_run_a_side_has_no_verdict() {
        let answer = judge_unpaired(&[100.0], &[90.0, 91.0], question(None, 0.05));
        assert_eq!(answer.verdict, None);
        assert!(
            matches!(answer.finding, Finding::Plain(Some(change)) if (change + 0.095).abs() < 1e-9)
        );
        assert!(answer.reason.unwrap().contains("may be noise or not"));
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
