//! A group of runs, compared metric by metric.

use std::collections::{BTreeMap, BTreeSet};

use stillwell_metric::Unit;
use stillwell_plan::goal::{Direction, Scale};
use stillwell_plan::{GoalMetric, GoalPlan};
use stillwell_units::Tolerance;

use super::columns::{ColumnsQuestion, judge_paired, judge_unpaired};
use super::groups::RunGroup;
use super::run::{ComparableRun, Missing, PairKey, RunNumber, listed, scale_of, tolerance_of};
use super::{CompareError, ComparedGroup, ComparedRuns, ComparisonRow, Finding};
use crate::deltas::mean_on;
use crate::judge::compare::light_load_of;
use crate::judge::skipped::obstacle_of_runs;
use crate::judge::table::pair_warnings;
use crate::judge::tolerances::tolerance_at;
use crate::limits::COMPARED_RUNS_FEW;
use crate::summary::RunSummary;

/// The options of a comparison, besides its runs.
#[derive(Clone, Debug, Default)]
pub struct CompareOptions {
    /// The names of what is compared; empty for what both sides usually have.
    pub metrics: Vec<String>,
    /// Runs are paired by their place in the list.
    pub paired: bool,
    /// Pairs of a suite are ignored.
    pub unpaired: bool,
    /// The better direction, where it is given.
    pub better: Option<Direction>,
    /// The smallest change that matters, where it is given.
    pub tolerance: Option<Tolerance>,
}

/// Pairing of the runs of both sides.
enum Design {
    Unpaired,
    /// By the pairs of one suite. Pairs that do not count are here, each with the reason.
    Pairs(BTreeMap<PairKey, String>),
    /// By their place in the list.
    Places,
}

/// Compares all metrics of a group.
///
/// # Errors
/// Why there is nothing to compare.
pub fn compare_group<R: ComparableRun>(
    group: &RunGroup<R>,
    options: &CompareOptions,
) -> Result<ComparedGroup, CompareError> {
    let names = names(group, options)?;
    let (design, mut remarks) = design(group, options)?;
    let goals = goals_of(group);
    let rows = names.iter().zip(0_usize..).map(|(name, at)| {
        let goal = goals
            .iter()
            .find(|goal| goal.metric.name() == name.as_str());
        let mut row = Comparing {
            group,
            design: &design,
            options,
        }
        .row(name, goal);
        row.primary = at == 0;
        row.remarks.extend(spread_remark(&row.finding));
        row
    });
    let rows: Vec<ComparisonRow> = rows.collect();
    let runs = group.baseline.len().min(group.comparison.len());
    if runs < COMPARED_RUNS_FEW && rows.iter().any(|row| row.finding.change().is_some()) {
        remarks.push("with few runs, one outlier decides the result".to_owned());
    }
    let tools: BTreeSet<&str> = both_sides(group).map(R::tool).collect();
    if tools.len() > 1 {
        remarks.push("the results are from different tools, which count differently".to_owned());
    }
    if options.metrics.is_empty() {
        remarks.extend(errors_remark(group));
    }
    if looked_at(group) && !options.unpaired {
        remarks.push(
            "the experiment checked its verdict more than once, and this interval is not \
             corrected for that: `stillwell report` prints the corrected one"
                .to_owned(),
        );
    }
    Ok(ComparedGroup { rows, remarks })
}

fn both_sides<R>(group: &RunGroup<R>) -> impl Iterator<Item = &R> {
    group.baseline.iter().chain(&group.comparison)
}

/// The names to compare: the requested ones, or those that both sides usually have. The primary goal of
/// an experiment stays, also without a number on a side.
fn names<R: ComparableRun>(
    group: &RunGroup<R>,
    options: &CompareOptions,
) -> Result<Vec<String>, CompareError> {
    let runs = || both_sides(group);
    if !options.metrics.is_empty() {
        for name in &options.metrics {
            if runs().all(|run| run.number(name) == Err(Missing::Unknown)) {
                let known: BTreeSet<String> = runs().flat_map(R::all_names).collect();
                let known: Vec<String> = known.into_iter().collect();
                return Err(CompareError::UnknownMetric {
                    name: name.clone(),
                    known: listed(&known),
                });
            }
        }
        return Ok(options.metrics.clone());
    }
    let has = |runs: &[R], name: &str| runs.iter().any(|run| run.number(name).is_ok());
    let usual = group
        .baseline
        .first()
        .map(R::usual_names)
        .unwrap_or_default();
    let primary = primary_goal(group);
    let names = usual.iter().filter(|name| {
        let is_primary = primary.as_ref() == Some(*name);
        is_primary || (has(&group.baseline, name) && has(&group.comparison, name))
    });
    let names: Vec<String> = names.cloned().collect();
    if names.is_empty() {
        // Reported with the reasons, instead of an empty table.
        let first = usual.first().ok_or(CompareError::NoNumber)?;
        return Ok(vec![first.clone()]);
    }
    Ok(names)
}

/// Returns a remark if the sides differ and nothing varies.
fn spread_remark(finding: &Finding) -> Option<String> {
    if !finding.has_infinite_t() {
        return None;
    }
    let constant = if matches!(finding, Finding::Paired { .. }) {
        "the change does not vary between the pairs"
    } else {
        "the runs of each side do not vary"
    };
    Some(format!(
        "{constant}, so the noise is not known: the t test has no p value"
    ))
}

/// Returns a remark if one side alone has errors: some tools write only successes.
fn errors_remark<R: ComparableRun>(group: &RunGroup<R>) -> Option<String> {
    let has = |runs: &[R]| runs.iter().any(|run| run.number("errors").is_ok());
    let side = match (has(&group.baseline), has(&group.comparison)) {
        (true, false) => "baseline",
        (false, true) => "comparison",
        (true, true) | (false, false) => return None,
    };
    Some(format!(
        "only the {side} has `errors`, so they are not compared, and fast failures may count as \
         throughput"
    ))
}

/// Name of the goal that decides over the exit code: the first one of the baseline's experiment. Goals that
/// the machine of a side cannot count are skipped, as in an experiment.
fn primary_goal<R: ComparableRun>(group: &RunGroup<R>) -> Option<String> {
    let goals = &group.baseline.first()?.saved()?.goals;
    let cannot_count = |runs: &[R]| {
        let saved = runs.iter().filter_map(R::saved);
        obstacle_of_runs(saved.map(|saved| &saved.summary)).is_some()
    };
    let is_uncounted = cannot_count(&group.baseline) || cannot_count(&group.comparison);
    let is_skipped = |goal: &GoalPlan| is_uncounted && goal.metric.needs_instructions();
    let mut kept = goals.iter().filter(|goal| !is_skipped(goal));
    let primary = match kept.next() {
        Some(goal) => goal,
        None => goals.first()?,
    };
    Some(primary.metric.name().into_owned())
}

fn goals_of<R: ComparableRun>(group: &RunGroup<R>) -> Vec<GoalPlan> {
    let mut goals = both_sides(group).filter_map(|run| {
        let saved = run.saved().filter(|saved| !saved.goals.is_empty());
        saved.map(|saved| saved.goals.clone())
    });
    goals.next().unwrap_or_default()
}

fn looked_at<R: ComparableRun>(group: &RunGroup<R>) -> bool {
    both_sides(group).any(|run| run.saved().is_some_and(|saved| saved.looked_at))
}

fn pair_of<R: ComparableRun>(run: &R) -> Option<&PairKey> {
    run.saved()?.pair.as_ref()
}

/// Pairing of the runs, and notes about it for readers.
fn design<R: ComparableRun>(
    group: &RunGroup<R>,
    options: &CompareOptions,
) -> Result<(Design, Vec<String>), CompareError> {
    let keys = |runs: &[R]| -> Option<BTreeSet<PairKey>> {
        let keys: Option<BTreeSet<PairKey>> =
            runs.iter().map(|run| pair_of(run).cloned()).collect();
        keys.filter(|keys| keys.len() == runs.len())
    };
    let (left, right) = (keys(&group.baseline), keys(&group.comparison));
    let shared = left
        .zip(right)
        .is_some_and(|(left, right)| !left.is_disjoint(&right));
    if shared && !options.unpaired {
        return Ok((Design::Pairs(rejected_pairs(group)), Vec::new()));
    }
    if !options.paired {
        let single = group.baseline.len() < 2 || group.comparison.len() < 2;
        let warning = "the runs of both sides are compared unpaired, so the numbers include any \
                       change of the machine between them";
        let remarks = if single {
            Vec::new()
        } else {
            vec![warning.to_owned()]
        };
        return Ok((Design::Unpaired, remarks));
    }
    let (left, right) = (group.baseline.len(), group.comparison.len());
    if left != right {
        return Err(CompareError::Unequal { left, right });
    }
    let what = if group.baseline.iter().all(|run| run.tool().is_empty()) {
        "the columns have no pair numbers"
    } else {
        "the runs of both sides have no pair numbers in common"
    };
    let warning = format!(
        "{what}: runs are paired by position, which is valid only if the two runs of each position ran \
         next to each other"
    );
    Ok((Design::Places, vec![warning]))
}

/// Pairs of one suite whose runs had different environments, which the report of the suite discards,
/// each with the reason.
fn rejected_pairs<R: ComparableRun>(group: &RunGroup<R>) -> BTreeMap<PairKey, String> {
    let baseline = group.baseline.iter().filter_map(R::saved);
    let baseline: BTreeMap<&PairKey, &RunSummary> = baseline
        .filter_map(|run| Some((run.pair.as_ref()?, &run.summary)))
        .collect();
    let comparison = group.comparison.iter().filter_map(R::saved);
    let rejected = comparison.filter_map(|run| {
        let key = run.pair.as_ref()?;
        let warnings = pair_warnings(run.design?, baseline.get(key)?, &run.summary);
        Some((key.clone(), warnings.first()?.to_string()))
    });
    rejected.collect()
}

struct Comparing<'g, R> {
    group: &'g RunGroup<R>,
    design: &'g Design,
    options: &'g CompareOptions,
}

impl<R: ComparableRun> Comparing<'_, R> {
    fn row(&self, name: &str, planned: Option<&GoalPlan>) -> ComparisonRow {
        let parsed = name.parse::<GoalMetric>().ok();
        let result = |runs: &[R]| -> Vec<Result<RunNumber, String>> {
            runs.iter().map(|run| reported(run, name)).collect()
        };
        let (left, mut right) = (result(&self.group.baseline), result(&self.group.comparison));
        self.reject_pairs(&mut right);
        let number = left
            .iter()
            .chain(&right)
            .find_map(|number| number.as_ref().ok().copied());
        let direction = self.direction(planned, parsed.as_ref(), number);
        let baseline = left.iter().filter_map(|number| number.as_ref().ok());
        let baseline_mean = mean_on(Scale::Ratio, baseline.map(|number| number.value));
        let tolerance = self.tolerance(name, planned, parsed.as_ref(), baseline_mean);
        let scale = scale_of(name, parsed.as_ref());
        let question = ColumnsQuestion {
            direction,
            tolerance,
            scale,
        };
        let (mut baseline, mut comparison) = (
            sorted_out(&self.group.baseline, &left),
            sorted_out(&self.group.comparison, &right),
        );
        let mut remarks = Vec::new();
        let units_differ = units_differ(left.iter().chain(&right));
        let answer = if units_differ {
            remarks.push("its numbers are of different units, so they are not compared".to_owned());
            judge_unpaired(&[], &[], question)
        } else {
            match self.design {
                Design::Unpaired => judge_unpaired(&baseline.values, &comparison.values, question),
                Design::Pairs(_) | Design::Places => {
                    let pairs = self.pairs(&left, &right);
                    baseline.values = pairs.iter().map(|pair| pair.0).collect();
                    comparison.values = pairs.iter().map(|pair| pair.1).collect();
                    judge_paired(&pairs, question)
                }
            }
        };
        let metric = parsed.as_ref();
        let light = metric.and_then(|metric| self.light_load(metric, &left, &right));
        let answer = answer.under_light_load(light);
        let (unit, per_second) =
            number.map_or((Unit::Unknown, false), |item| (item.unit, item.per_second));
        ComparisonRow {
            metric: name.to_owned(),
            unit,
            per_second,
            primary: false,
            direction,
            tolerance,
            scale,
            baseline,
            comparison,
            finding: answer.finding,
            verdict: answer.verdict,
            reason: answer.reason,
            remarks,
        }
    }

    fn direction(
        &self,
        planned: Option<&GoalPlan>,
        parsed: Option<&GoalMetric>,
        number: Option<RunNumber>,
    ) -> Option<Direction> {
        let typed = self.options.better;
        typed
            .or_else(|| planned.map(|goal| goal.direction))
            .or_else(|| parsed.and_then(GoalMetric::direction))
            .or_else(|| number.and_then(|number| number.better))
    }

    fn tolerance(
        &self,
        name: &str,
        planned: Option<&GoalPlan>,
        parsed: Option<&GoalMetric>,
        baseline_mean: Option<f64>,
    ) -> Tolerance {
        let typed = self.options.tolerance;
        typed
            .or_else(|| planned.map(|goal| tolerance_at(goal, baseline_mean)))
            .unwrap_or_else(|| tolerance_of(name, parsed))
    }

    /// Reason for which a change of this cost may be hidden, if it is one.
    fn light_load(
        &self,
        metric: &GoalMetric,
        left: &[Result<RunNumber, String>],
        right: &[Result<RunNumber, String>],
    ) -> Option<String> {
        let baseline = with_number(&self.group.baseline, left);
        let comparison = with_number(&self.group.comparison, right);
        let sides = ["baseline", "comparison"];
        light_load_of(metric, sides, [&baseline, &comparison])
    }

    /// Replaces the comparison's numbers of pairs that do not count by the reason.
    fn reject_pairs(&self, comparison: &mut [Result<RunNumber, String>]) {
        let Design::Pairs(rejected) = self.design else {
            return;
        };
        for (run, number) in self.group.comparison.iter().zip(comparison) {
            let reason = pair_of(run).and_then(|key| rejected.get(key));
            if let Some(reason) = reason.filter(|_| number.is_ok()) {
                *number = Err(reason.clone());
            }
        }
    }

    /// (baseline, comparison) of every pair both of whose runs have the number.
    fn pairs(
        &self,
        left: &[Result<RunNumber, String>],
        right: &[Result<RunNumber, String>],
    ) -> Vec<(f64, f64)> {
        let value =
            |number: &Result<RunNumber, String>| number.as_ref().ok().map(|item| item.value);
        if matches!(self.design, Design::Places) {
            let both = left.iter().zip(right);
            return both
                .filter_map(|(left, right)| value(left).zip(value(right)))
                .collect();
        }
        let keyed = |runs: &[R], numbers: &[Result<RunNumber, String>]| -> BTreeMap<PairKey, f64> {
            let both = runs.iter().zip(numbers);
            both.filter_map(|(run, number)| pair_of(run).cloned().zip(value(number)))
                .collect()
        };
        let left = keyed(&self.group.baseline, left);
        let right = keyed(&self.group.comparison, right);
        let both = left
            .iter()
            .filter_map(|(key, left)| Some((*left, *right.get(key)?)));
        both.collect()
    }
}

fn reported<R: ComparableRun>(run: &R, name: &str) -> Result<RunNumber, String> {
    run.number(name).map_err(|missing| match missing {
        Missing::Unknown => format!("`{name}` was not recorded"),
        Missing::Because(reason) => reason,
    })
}

fn sorted_out<R: ComparableRun>(runs: &[R], numbers: &[Result<RunNumber, String>]) -> ComparedRuns {
    let mut sorted = ComparedRuns::default();
    for (run, number) in runs.iter().zip(numbers) {
        match number {
            Ok(number) => sorted.values.push(number.value),
            Err(reason) => sorted
                .left_out
                .push((run.label().to_owned(), reason.clone())),
        }
    }
    sorted
}

/// The summaries of Stillwell's runs that have the number.
fn with_number<'r, R: ComparableRun>(
    runs: &'r [R],
    numbers: &[Result<RunNumber, String>],
) -> Vec<&'r RunSummary> {
    let both = runs.iter().zip(numbers);
    let counted = both.filter(|(_, number)| number.is_ok());
    let saved = counted.filter_map(|(run, _)| run.saved());
    saved.map(|saved| &saved.summary).collect()
}

fn units_differ<'n>(numbers: impl Iterator<Item = &'n Result<RunNumber, String>>) -> bool {
    let numbers = numbers.filter_map(|number| number.as_ref().ok());
    let units: Vec<(Unit, bool)> = numbers.map(|item| (item.unit, item.per_second)).collect();
    units.windows(2).any(|pair| pair[0] != pair[1])
}
