//! Response curves: the experiments of one matrix, side by side.

use stillwell_plan::FamilyPlan;
use stillwell_verdict::{ExperimentVerdict, GoalVerdict};

use crate::words;

/// The experiments that one matrix was expanded into.
#[derive(Debug)]
pub(crate) struct Family<'a> {
    /// The name that they share.
    pub(crate) name: &'a str,
    /// Its parameters, in the order of the file.
    pub(crate) parameters: Vec<&'a str>,
    /// Its experiments, in the order of the plan.
    pub(crate) cells: Vec<&'a ExperimentVerdict>,
}

/// The families of two experiments or more, in the order of their first ones.
pub(crate) fn families(experiments: &[ExperimentVerdict]) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for experiment in experiments {
        let Some(plan) = &experiment.family else {
            continue;
        };
        match families.iter_mut().find(|own| own.name == plan.name) {
            Some(family) => family.cells.push(experiment),
            None => families.push(Family {
                name: &plan.name,
                parameters: plan.parameters.iter().map(|(name, _)| &**name).collect(),
                cells: vec![experiment],
            }),
        }
    }
    families.retain(|family| family.cells.len() > 1);
    families
}

impl Family<'_> {
    /// The heads of its rows.
    pub(crate) fn heads(&self) -> Vec<String> {
        let parameters = self.parameters.iter().map(|name| words::plain(name));
        let fixed = [
            "goal",
            "baseline",
            "comparison",
            "change (95 % interval)",
            "verdict",
        ];
        parameters.chain(fixed.map(str::to_owned)).collect()
    }

    /// One row for each cell: its parameters, its primary goal's cost on both
    /// sides, and the effect.
    pub(crate) fn rows(&self) -> Vec<Vec<String>> {
        self.cells.iter().map(|cell| self.row(cell)).collect()
    }

    fn row(&self, cell: &ExperimentVerdict) -> Vec<String> {
        let value = |name: &&str| parameter(cell.family.as_ref(), name);
        let mut row: Vec<String> = self.parameters.iter().map(value).collect();
        let goal = words::deciding(cell).or_else(|| cell.goals.first());
        let shown = |value: fn(&GoalVerdict) -> Option<f64>| {
            let shown = goal.and_then(|own| Some(words::goal_value(&own.metric, value(own)?)));
            words::or_missing(shown)
        };
        row.push(words::or_missing(
            goal.map(|own| words::goal_name(own, cell)),
        ));
        row.push(shown(|own| own.baseline_mean));
        row.push(shown(|own| own.comparison_mean));
        let change = goal.and_then(|own| Some(words::change_with_interval(own.scale, own.change?)));
        row.push(words::or_missing(change));
        row.push(format!(
            "{} {}",
            words::symbol(cell.verdict),
            cell.verdict.name()
        ));
        row
    }

    /// For each parameter with more than one value: what its change along the
    /// file's order comes to on average, as `parameter: 8 MiB +0.2 %, 64 MiB …`.
    pub(crate) fn curves(&self) -> Vec<String> {
        let curves = self.parameters.iter().filter_map(|name| self.curve(name));
        curves.collect()
    }

    fn curve(&self, name: &str) -> Option<String> {
        let mut values: Vec<(String, Vec<f64>)> = Vec::new();
        for cell in &self.cells {
            let own = parameter(cell.family.as_ref(), name);
            let goal = words::deciding(cell).or_else(|| cell.goals.first());
            let Some(change) = goal.and_then(|goal| goal.change) else {
                continue;
            };
            match values.iter_mut().find(|(value, _)| *value == own) {
                Some((_, changes)) => changes.push(change.estimate),
                None => values.push((own, vec![change.estimate])),
            }
        }
        let points = values
            .iter()
            .map(|(value, changes)| format!("{value} {}", words::signed_percent(mean(changes))));
        let points: Vec<String> = points.collect();
        (points.len() > 1).then(|| {
            format!(
                "mean change against {}: {}",
                words::plain(name),
                points.join(", ")
            )
        })
    }
}

/// The arithmetic mean; zero of nothing.
fn mean(values: &[f64]) -> f64 {
    let (_, mean) = values.iter().fold((0.0, 0.0), |(count, mean), value| {
        let count = count + 1.0;
        (count, mean + (value - mean) / count)
    });
    mean
}

fn parameter(family: Option<&FamilyPlan>, name: &str) -> String {
    let parameters = family.map(|family| family.parameters.iter());
    let found = parameters.and_then(|mut all| all.find(|(own, _)| own == name));
    words::or_missing(found.map(|(_, value)| words::plain(value)))
}
