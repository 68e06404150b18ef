//! Response curves: the experiments of one matrix, side by side.

use stillwell_plan::experiment::FamilyPlan;
use stillwell_plan::goal::Scale;
use stillwell_verdict::{ExperimentVerdict, GoalVerdict};

use crate::document::{Block, Cell, Column, Fold, Section, Table, Text};
use crate::words;

/// The experiments that one matrix was expanded into.
#[derive(Debug)]
pub(super) struct Family<'a> {
    /// The name that they share.
    pub(super) name: &'a str,
    /// Its parameters, in the order of the file.
    pub(super) parameters: Vec<&'a str>,
    /// Its experiments, in the order of the plan.
    pub(super) cells: Vec<&'a ExperimentVerdict>,
}

/// The families of two experiments or more, in the order of their first ones.
pub(super) fn families(experiments: &[ExperimentVerdict]) -> Vec<Family<'_>> {
    let mut families: Vec<Family<'_>> = Vec::new();
    for experiment in experiments {
        let Some(plan) = &experiment.family else {
            continue;
        };
        match families.iter_mut().find(|entry| entry.name == plan.name) {
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
    /// Returns one row for each cell, and the mean changes along each parameter.
    pub(super) fn section(&self) -> Block {
        const HEADS: [&str; 5] = [
            "goal",
            "baseline",
            "comparison",
            "change (95 % interval)",
            "verdict",
        ];
        let heads = self.parameters.iter().copied().chain(HEADS);
        let table = Table::new(
            heads.map(Column::named),
            self.cells.iter().map(|cell| self.row(cell)),
        );
        let curves = Block::list(self.curves().into_iter().map(Text::dim));
        let title = format!("{}: response", self.name);
        Block::Section(Section {
            fold: Fold::Optional(title.as_str().into()),
            ..Section::titled(2, title, [Block::Table(table), curves])
        })
    }

    /// Returns the parameters of a cell, its primary goal's cost on both sides, and the effect.
    fn row(&self, cell: &ExperimentVerdict) -> Vec<Cell> {
        let value = |name: &&str| parameter(cell.family.as_ref(), name).into();
        let mut row: Vec<Cell> = self.parameters.iter().map(value).collect();
        let goal = words::deciding(cell).or_else(|| cell.goals.first());
        row.push(words::or_missing(goal.map(|entry| words::goal_name(entry, cell))).into());
        let means: [fn(&GoalVerdict) -> Option<f64>; 2] =
            [|entry| entry.baseline_mean, |entry| entry.comparison_mean];
        row.extend(means.map(|mean| {
            goal.map_or_else(
                || words::MISSING.into(),
                |entry| super::value(entry, mean(entry)),
            )
        }));
        let change = goal.and_then(|entry| entry.change.map(|change| (entry.scale, change)));
        row.push(change.map_or_else(
            || words::MISSING.into(),
            |(scale, change)| Cell::interval(words::change_with_interval(scale, change), change),
        ));
        row.push(Text::verdict(cell.verdict).into());
        row
    }

    /// For each parameter with more than one value: what its change along the
    /// file's order comes to on average, as `parameter: 8 MiB +0.2 %, 64 MiB …`.
    fn curves(&self) -> Vec<String> {
        let curves = self.parameters.iter().filter_map(|name| self.curve(name));
        curves.collect()
    }

    fn curve(&self, name: &str) -> Option<String> {
        let mut values: Vec<(String, Vec<f64>)> = Vec::new();
        let mut scale = Scale::Ratio;
        for cell in &self.cells {
            let entry = parameter(cell.family.as_ref(), name);
            let goal = words::deciding(cell).or_else(|| cell.goals.first());
            let Some((goal, change)) = goal.and_then(|goal| Some((goal, goal.change?))) else {
                continue;
            };
            scale = goal.scale;
            match values.iter_mut().find(|(value, _)| *value == entry) {
                Some((_, changes)) => changes.push(change.estimate),
                None => values.push((entry, vec![change.estimate])),
            }
        }
        let points = values.iter().map(|(value, changes)| {
            format!("{value} {}", words::change_size(scale, mean(changes)))
        });
        let points: Vec<String> = points.collect();
        (points.len() > 1).then(|| format!("mean change against {}: {}", name, points.join(", ")))
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
    let result = parameters.and_then(|mut all| all.find(|(key, _)| key == name));
    words::or_missing(result.map(|(_, value)| value.clone()))
}
