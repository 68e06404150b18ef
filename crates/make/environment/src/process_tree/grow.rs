//! Shape of a process tree.

use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use stillwell_plan::generator::{ProcessTreePlan, WordsPlan};
use stillwell_units::{Seed, as_usize};

use crate::numbers::Numbers;

/// One process and what is below it.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Growth {
    pub(super) children: Vec<Self>,
    /// Lifetime after the start of its children.
    pub(super) sleep_nanos: u64,
    /// Program of a process without children.
    pub(super) becomes: Option<Program>,
}

/// A program with its arguments and environment.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub(super) struct Program {
    pub(super) path: PathBuf,
    pub(super) arguments: Vec<String>,
    /// Names and values.
    pub(super) environment: Vec<(String, String)>,
}

impl Growth {
    /// Draws the tree of `seed`. Children are drawn level by level, so the limit on processes shortens the
    /// lowest level.
    pub(super) fn draw(plan: &ProcessTreePlan, seed: &Seed) -> Self {
        let mut numbers = Numbers::new(seed);
        // The parent of each process; levels are in order.
        let mut parents: Vec<Option<usize>> = vec![None];
        let processes_max = as_usize(plan.processes_max.get());
        let mut level = 0..1;
        for _ in 1..plan.depth_max.get() {
            for parent in level.clone() {
                let children = numbers.below(as_usize(plan.children_max.get()) + 1);
                // A root alone would be no tree.
                let children = children.unwrap_or(0).max(usize::from(parent == 0));
                let children = children.min(processes_max.saturating_sub(parents.len()));
                parents.extend(std::iter::repeat_n(Some(parent), children));
            }
            level = level.end..parents.len();
        }
        let mut grown: Vec<Self> = vec![Self::default(); parents.len()];
        for (index, parent) in parents.iter().enumerate().rev() {
            let mut process = std::mem::take(&mut grown[index]);
            if process.children.is_empty() {
                process.becomes = program(plan, &mut numbers);
            } else {
                // Children were added in reverse order.
                process.children.reverse();
                process.sleep_nanos = plan.sleep.as_u64();
            }
            match parent {
                Some(parent) => grown[*parent].children.push(process),
                None => return process,
            }
        }
        Self::default()
    }

    pub(super) fn bytes(&self) -> io::Result<Vec<u8>> {
        Ok(serde_json::to_vec(self)?)
    }
}

fn program(plan: &ProcessTreePlan, numbers: &mut Numbers) -> Option<Program> {
    let executable = &plan.executables[numbers.below(plan.executables.len())?];
    let environment = match &executable.environment {
        WordsPlan::Fixed(words) => words.iter().map(|word| pair(word)).collect(),
        WordsPlan::Drawn { length, count } => (0..*count)
            .map(|_| (numbers.name(*length), numbers.name(*length)))
            .collect(),
    };
    let arguments = match &executable.arguments {
        WordsPlan::Fixed(words) => words.clone(),
        WordsPlan::Drawn { length, count } => (0..*count).map(|_| numbers.name(*length)).collect(),
    };
    Some(Program {
        path: executable.program.clone(),
        arguments,
        environment,
    })
}

/// `NAME=VALUE` as its parts.
fn pair(word: &str) -> (String, String) {
    let (name, value) = word.split_once('=').unwrap_or((word, ""));
    (name.to_owned(), value.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stillwell_plan::generator::ExecutablePlan;
    use stillwell_units::Nanos;

    use super::*;

    fn shape(growth: &Growth) -> (u32, usize, usize) {
        let below = growth.children.iter().map(shape);
        let widest = growth.children.len();
        let (depth, widest, count) = below.fold((0, widest, 0), |total, child| {
            (
                total.0.max(child.0),
                total.1.max(child.1),
                total.2 + child.2,
            )
        });
        assert_eq!(growth.becomes.is_some(), growth.children.is_empty());
        (depth + 1, widest, count + 1)
    }

    proptest! {
        #[test]
        fn for_all_plans_a_tree_keeps_its_bounds(
            depth_max in 1_u32..50, children_max in 1_u32..6, processes_max in 1_u32..200, number: u64,
        ) {
            let plan = ProcessTreePlan {
                depth_max: depth_max.try_into().unwrap(),
                children_max: children_max.try_into().unwrap(),
                processes_max: processes_max.try_into().unwrap(),
                sleep: Nanos::from_millis(1),
                executables: vec![ExecutablePlan {
                    program: "/bin/true".into(),
                    arguments: WordsPlan::Drawn { length: 3, count: 2 },
                    environment: WordsPlan::Fixed(vec!["A=b=c".to_owned()]),
                }],
            };
            let tree = Growth::draw(&plan, &Seed::from_number(number));
            let (depth, widest, count) = shape(&tree);
            prop_assert!(depth <= depth_max);
            prop_assert!(widest <= children_max as usize);
            prop_assert!(count <= processes_max as usize);
            prop_assert!(count > 1 || depth_max == 1 || processes_max == 1);
            prop_assert_eq!(&tree, &Growth::draw(&plan, &Seed::from_number(number)));
            let read: Growth = serde_json::from_slice(&tree.bytes().unwrap()).unwrap();
            prop_assert_eq!(tree, read);
        }
    }

    #[test]
    fn words_have_the_requested_number_and_length() {
        let drawn = |length, count| WordsPlan::Drawn { length, count };
        let plan = ProcessTreePlan {
            depth_max: 1.try_into().unwrap(),
            children_max: 1.try_into().unwrap(),
            processes_max: 1.try_into().unwrap(),
            sleep: Nanos::ZERO,
            executables: vec![ExecutablePlan {
                program: "x".into(),
                arguments: drawn(5, 3),
                environment: drawn(4, 2),
            }],
        };
        let program = Growth::draw(&plan, &Seed::from_number(1)).becomes.unwrap();
        let lengths: Vec<usize> = program.arguments.iter().map(String::len).collect();
        assert_eq!(lengths, [5, 5, 5]);
        assert_eq!(program.environment.len(), 2);
        assert_eq!(pair("A=b=c"), ("A".to_owned(), "b=c".to_owned()));
    }
}
