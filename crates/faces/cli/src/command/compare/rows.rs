//! A group of runs, compared metric by metric.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use stillwell_metric::Unit;
use stillwell_plan::{Direction, GoalMetric, GoalPlan};
use stillwell_report::{ComparedRuns, ComparisonGroup, ComparisonRow};
use stillwell_units::Tolerance;

use super::ancestors;
use super::effect::{self, Question};
use super::goals;
use super::groups::Group;
use super::lookup::{Missing, Number};
use super::read::{Run, Source, listed};
use super::saved::PairKey;
use crate::arguments::CompareArguments;

/// Fewer runs than this on a side get a word of warning.
const RUNS_FEW: usize = 4;

/// How the runs of both sides belong together.
enum Design {
    Unpaired,
    /// By the pairs of one lab.
    Pairs,
    /// By their place in the list.
    Places,
}

/// Compares all metrics of a group.
pub(super) fn compare_group(
    group: &Group,
    arguments: &CompareArguments,
) -> anyhow::Result<ComparisonGroup> {
    let names = names(group, arguments)?;
    let (design, mut remarks) = design(group, arguments)?;
    let goals = goals_of(group);
    let rows = names.iter().zip(0_usize..).map(|(name, at)| {
        let goal = goals
            .iter()
            .find(|goal| goal.metric.name() == name.as_str());
        let mut row = Comparing {
            group,
            design: &design,
            arguments,
        }
        .row(name, goal);
        row.primary = at == 0;
        row
    });
    let rows: Vec<ComparisonRow> = rows.collect();
    let runs = group.baseline.len().min(group.comparison.len());
    if runs < RUNS_FEW && rows.iter().any(|row| row.finding.change().is_some()) {
        remarks.push("with so few runs one odd run decides over the answer".to_owned());
    }
    let tools: BTreeSet<&str> = tools(group).collect();
    if tools.len() > 1 {
        remarks.push("the results are of different tools, which do not count alike".to_owned());
    }
    if looked_at(group) && !arguments.unpaired {
        remarks.push(
            "the experiment looked at its runs more than once, and stopped when it saw fit: this \
             interval knows nothing of that, and `stillwell report` gives the one that does"
                .to_owned(),
        );
    }
    let ancestors = match arguments.method {
        Some(method) => Some(ancestors::tables(group, method, &names, arguments)?),
        None => None,
    };
    Ok(ComparisonGroup {
        name: group.name.clone(),
        rows,
        ancestors,
        remarks,
    })
}

/// What is compared: what was asked for, or what both sides usually have.
fn names(group: &Group, arguments: &CompareArguments) -> anyhow::Result<Vec<String>> {
    let runs = || group.baseline.iter().chain(&group.comparison);
    if !arguments.metric.is_empty() {
        for name in &arguments.metric {
            if runs().all(|run| run.number(name) == Err(Missing::Unknown)) {
                let known: BTreeSet<String> = runs().flat_map(Run::all_names).collect();
                let known: Vec<String> = known.into_iter().collect();
                bail!("no run has `{name}`; there are {}", listed(&known));
            }
        }
        return Ok(arguments.metric.clone());
    }
    let has = |runs: &[Run], name: &str| runs.iter().any(|run| run.number(name).is_ok());
    let usual = group
        .baseline
        .first()
        .map(Run::usual_names)
        .unwrap_or_default();
    let names = usual
        .iter()
        .filter(|name| has(&group.baseline, name) && has(&group.comparison, name));
    let names: Vec<String> = names.cloned().collect();
    if names.is_empty() {
        // Told with the reasons why, instead of an empty table.
        match usual.first() {
            Some(first) => return Ok(vec![first.clone()]),
            None => bail!("there is nothing to compare: the baseline has no number"),
        }
    }
    Ok(names)
}

fn goals_of(group: &Group) -> Vec<GoalPlan> {
    let runs = group.baseline.iter().chain(&group.comparison);
    let mut goals = runs.filter_map(|run| match &run.source {
        Source::Saved(saved) if !saved.goals.is_empty() => Some(saved.goals.clone()),
        _ => None,
    });
    goals.next().unwrap_or_default()
}

fn looked_at(group: &Group) -> bool {
    let mut runs = group.baseline.iter().chain(&group.comparison);
    runs.any(|run| matches!(&run.source, Source::Saved(saved) if saved.looked_at))
}

fn tools(group: &Group) -> impl Iterator<Item = &'static str> {
    let runs = group.baseline.iter().chain(&group.comparison);
    runs.map(|run| match &run.source {
        Source::Saved(_) => "Stillwell",
        Source::Lading { .. } => "lading",
        Source::Result(tool, _) => tool.name(),
        Source::Row(_) => "",
    })
}

fn pair_of(run: &Run) -> Option<&PairKey> {
    match &run.source {
        Source::Saved(saved) => saved.pair.as_ref(),
        _ => None,
    }
}

/// How the runs belong together, and what readers should know of that.
fn design(group: &Group, arguments: &CompareArguments) -> anyhow::Result<(Design, Vec<String>)> {
    let keys = |runs: &[Run]| -> Option<BTreeSet<PairKey>> {
        let keys: Option<BTreeSet<PairKey>> =
            runs.iter().map(|run| pair_of(run).cloned()).collect();
        keys.filter(|keys| keys.len() == runs.len())
    };
    let (one, other) = (keys(&group.baseline), keys(&group.comparison));
    let shared = one
        .zip(other)
        .is_some_and(|(one, other)| !one.is_disjoint(&other));
    if shared && !arguments.unpaired {
        return Ok((Design::Pairs, Vec::new()));
    }
    if !arguments.paired {
        let single = group.baseline.len() < 2 || group.comparison.len() < 2;
        let warning = "the runs of both sides are compared as they are, unpaired: whatever the \
                       machine did between them is in the numbers, too";
        let remarks = if single {
            Vec::new()
        } else {
            vec![warning.to_owned()]
        };
        return Ok((Design::Unpaired, remarks));
    }
    let (one, other) = (group.baseline.len(), group.comparison.len());
    if one != other {
        bail!("--paired needs as many runs on both sides: there are {one} and {other}");
    }
    let what = if group
        .baseline
        .iter()
        .all(|run| matches!(run.source, Source::Row(_)))
    {
        "the columns carry no pairing"
    } else {
        "the runs of both sides carry no pairing in common"
    };
    let warning = format!(
        "{what}: they are paired by their place in the list, which means something only if the \
         two runs of each place were made next to each other"
    );
    Ok((Design::Places, vec![warning]))
}

struct Comparing<'g> {
    group: &'g Group,
    design: &'g Design,
    arguments: &'g CompareArguments,
}

impl Comparing<'_> {
    fn row(&self, name: &str, planned: Option<&GoalPlan>) -> ComparisonRow {
        let parsed = name.parse::<GoalMetric>().ok();
        let found = |runs: &[Run]| -> Vec<Result<Number, String>> {
            runs.iter().map(|run| told(run, name)).collect()
        };
        let (one, other) = (found(&self.group.baseline), found(&self.group.comparison));
        let number = one
            .iter()
            .chain(&other)
            .find_map(|number| number.as_ref().ok().copied());
        let direction = self.direction(planned, parsed.as_ref(), number);
        let tolerance = self.tolerance(name, planned, parsed.as_ref());
        let scale = goals::scale_of(name, parsed.as_ref());
        let question = Question {
            direction,
            tolerance,
            scale,
        };
        let (mut baseline, mut comparison) = (
            sorted_out(&self.group.baseline, &one),
            sorted_out(&self.group.comparison, &other),
        );
        let mut remarks = Vec::new();
        let units_differ = units_differ(one.iter().chain(&other));
        let answer = if units_differ {
            remarks.push("its numbers are of different units, so they are not compared".to_owned());
            effect::unpaired(&[], &[], question)
        } else {
            match self.design {
                Design::Unpaired => {
                    effect::unpaired(&baseline.values, &comparison.values, question)
                }
                Design::Pairs | Design::Places => {
                    let pairs = self.pairs(&one, &other);
                    baseline.values = pairs.iter().map(|pair| pair.0).collect();
                    comparison.values = pairs.iter().map(|pair| pair.1).collect();
                    effect::paired(&pairs, question)
                }
            }
        };
        let (unit, per_second) =
            number.map_or((Unit::Unknown, false), |own| (own.unit, own.per_second));
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
        number: Option<Number>,
    ) -> Option<Direction> {
        let typed = self.arguments.better.map(Direction::from);
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
    ) -> Tolerance {
        let typed = self.arguments.tolerance;
        typed
            .or_else(|| planned.map(|goal| goal.tolerance))
            .unwrap_or_else(|| goals::tolerance_of(name, parsed))
    }

    /// (baseline, comparison) of every pair both of whose runs have the number.
    fn pairs(
        &self,
        one: &[Result<Number, String>],
        other: &[Result<Number, String>],
    ) -> Vec<(f64, f64)> {
        let value = |number: &Result<Number, String>| number.as_ref().ok().map(|own| own.value);
        if matches!(self.design, Design::Places) {
            let both = one.iter().zip(other);
            return both
                .filter_map(|(one, other)| value(one).zip(value(other)))
                .collect();
        }
        let keyed = |runs: &[Run], numbers: &[Result<Number, String>]| -> BTreeMap<PairKey, f64> {
            let both = runs.iter().zip(numbers);
            both.filter_map(|(run, number)| pair_of(run).cloned().zip(value(number)))
                .collect()
        };
        let one = keyed(&self.group.baseline, one);
        let other = keyed(&self.group.comparison, other);
        let both = one
            .iter()
            .filter_map(|(key, one)| Some((*one, *other.get(key)?)));
        both.collect()
    }
}

fn told(run: &Run, name: &str) -> Result<Number, String> {
    run.number(name).map_err(|missing| match missing {
        Missing::Unknown => format!("`{name}` was not recorded"),
        Missing::Because(reason) => reason,
    })
}

fn sorted_out(runs: &[Run], numbers: &[Result<Number, String>]) -> ComparedRuns {
    let mut sorted = ComparedRuns::default();
    for (run, number) in runs.iter().zip(numbers) {
        match number {
            Ok(number) => sorted.values.push(number.value),
            Err(reason) => sorted.left_out.push((run.label.clone(), reason.clone())),
        }
    }
    sorted
}

fn units_differ<'n>(numbers: impl Iterator<Item = &'n Result<Number, String>>) -> bool {
    let numbers = numbers.filter_map(|number| number.as_ref().ok());
    let units: Vec<(Unit, bool)> = numbers.map(|own| (own.unit, own.per_second)).collect();
    units.windows(2).any(|pair| pair[0] != pair[1])
}
