//! Profiles of one variant, without a comparison.

use crate::compare::ProfileComparison;
use crate::flame::FlameNode;
use crate::quantity::ProfileQuantity;

/// One quantity of the runs of one variant: mean amounts, for each event of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileSummary {
    /// The quantity.
    pub quantity: ProfileQuantity,
    /// Number of runs with profiles.
    pub runs: u32,
    /// Amount of all stacks.
    pub total: f64,
    /// Number of samples of the CPU; 0 for other quantities.
    pub samples: u64,
    /// Functions, the one that spent most itself first.
    pub functions: Vec<FunctionAmount>,
    /// All stacks as a tree; the first of both amounts of a node is used.
    pub root: FlameNode,
}

/// Amounts of one function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionAmount {
    /// Name of the function.
    pub name: String,
    /// Amount of stacks that end in it.
    pub itself: f64,
    /// Amount of stacks that contain it.
    pub with_callees: f64,
}

impl ProfileSummary {
    /// Returns the first side of a comparison.
    pub(crate) fn of(comparison: ProfileComparison) -> Self {
        let functions = comparison.functions.into_iter();
        let functions = functions.map(|function| FunctionAmount {
            itself: function.itself[0],
            with_callees: function.with_callees[0],
            name: function.name,
        });
        let mut functions: Vec<FunctionAmount> = functions.collect();
        functions.sort_by(|a, b| {
            let by_callees = b.with_callees.total_cmp(&a.with_callees);
            b.itself.total_cmp(&a.itself).then(by_callees)
        });
        Self {
            quantity: comparison.quantity,
            runs: comparison.runs[0],
            total: comparison.totals[0],
            samples: comparison.samples[0],
            functions,
            root: comparison.root,
        }
    }

    /// Returns the `max` functions that spent most themselves.
    pub fn largest(&self, max: usize) -> impl Iterator<Item = &FunctionAmount> {
        let spent = self.functions.iter();
        spent.filter(|function| function.itself > 0.0).take(max)
    }
}
