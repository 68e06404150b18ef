//! Profiles of several runs of two variants, compared by unit of work.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::BTreeMap;

use stillwell_units::floor_to_u64;

use crate::flame::FlameNode;
use crate::quantity::ProfileQuantity;
use crate::run::{ProfileFile, RunWork, amounts, cpu_samples};
use crate::summary::ProfileSummary;

/// Sums the profiles of runs by variant.
#[derive(Debug, Default)]
pub struct ProfileCollector {
    /// By variant.
    variants: BTreeMap<String, BTreeMap<ProfileQuantity, SummedStacks>>,
}

/// Amounts by stack, summed over runs.
#[derive(Debug, Default)]
struct SummedStacks {
    runs: u32,
    samples: u64,
    stacks: BTreeMap<Vec<String>, f64>,
}

/// Difference between two variants in one quantity: mean amounts of their runs, for each event of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct ProfileComparison {
    /// The quantity.
    pub quantity: ProfileQuantity,
    /// Number of runs with profiles, of the baseline and of the comparison.
    pub runs: [u32; 2],
    /// Total of the baseline and of the comparison.
    pub totals: [f64; 2],
    /// Number of samples of the CPU, of the baseline and of the comparison; 0 for other quantities.
    pub samples: [u64; 2],
    /// Functions, the clearest change first.
    pub functions: Vec<FunctionChange>,
    /// All stacks as a tree.
    pub root: FlameNode,
}

/// Amounts of one function in the baseline and in the comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionChange {
    /// Name of the function.
    pub name: String,
    /// Amounts of stacks that end in it.
    pub itself: [f64; 2],
    /// Amounts of stacks that contain it.
    pub with_callees: [f64; 2],
    /// Number of its callers in the shortest stack.
    pub depth: u32,
}

impl FunctionChange {
    /// Returns how clearly the function changed, callees included: the square of the difference over the sum.
    ///
    /// For amounts that are numbers of samples this is the chi-squared statistic of their difference. A function that
    /// is new comes before its callers, which grew by the same amount but existed before, and before its callees.
    #[must_use]
    pub fn clarity(&self) -> f64 {
        let [baseline, comparison] = self.with_callees;
        let sum = baseline + comparison;
        if sum > 0.0 {
            (comparison - baseline).powi(2) / sum
        } else {
            0.0
        }
    }
}

impl ProfileCollector {
    /// Adds the profiles of one run.
    pub fn add_run(&mut self, variant: &str, files: &[ProfileFile], work: &RunWork) {
        let of_variant = self.variants.entry(variant.to_owned()).or_default();
        for (quantity, stacks) in amounts(files, work) {
            let sum = of_variant.entry(quantity).or_default();
            sum.runs += 1;
            if quantity == ProfileQuantity::CpuTime {
                sum.samples += cpu_samples(files, work);
            }
            for (stack, amount) in stacks {
                let stack = stack.into_iter().map(str::to_owned).collect();
                *sum.stacks.entry(stack).or_default() += amount;
            }
        }
    }

    /// Returns each quantity of one variant, without a comparison.
    #[must_use]
    pub fn summary(&self, variant: &str) -> Vec<ProfileSummary> {
        let quantities = self.variants.get(variant).into_iter().flatten();
        let summaries = quantities.map(|(quantity, sum)| {
            let alone = compare(*quantity, [sum, &SummedStacks::default()]);
            ProfileSummary::of(alone)
        });
        summaries.collect()
    }

    /// Returns the difference in each quantity that both variants have.
    #[must_use]
    pub fn compare(&self, baseline: &str, comparison: &str) -> Vec<ProfileComparison> {
        let sides = [baseline, comparison].map(|variant| self.variants.get(variant));
        let [Some(baseline), Some(comparison)] = sides else {
            return Vec::new();
        };
        let both = baseline.iter().filter_map(|(quantity, baseline)| {
            let comparison = comparison.get(quantity)?;
            Some(compare(*quantity, [baseline, comparison]))
        });
        both.collect()
    }
}

fn compare(quantity: ProfileQuantity, sides: [&SummedStacks; 2]) -> ProfileComparison {
    let mut root = FlameNode::default();
    let mut functions: BTreeMap<&str, FunctionChange> = BTreeMap::new();
    for (side, sum) in sides.iter().enumerate() {
        let runs = f64::from(sum.runs);
        for (stack, amount) in &sum.stacks {
            let amount = amount / runs;
            root.add(stack, side, amount);
            let mut distinct = BTreeMap::new();
            for (depth, name) in (0_u32..).zip(stack) {
                distinct.entry(name.as_str()).or_insert(depth);
            }
            for (name, depth) in distinct {
                let function = functions.entry(name);
                let function = function.or_insert_with(|| FunctionChange {
                    name: name.to_owned(),
                    itself: [0.0; 2],
                    with_callees: [0.0; 2],
                    depth,
                });
                function.depth = function.depth.min(depth);
                function.with_callees[side] += amount;
                if stack.last().is_some_and(|leaf| leaf == name) {
                    function.itself[side] += amount;
                }
            }
        }
    }
    let mut functions: Vec<_> = functions.into_values().collect();
    functions.sort_by_key(rank);
    ProfileComparison {
        quantity,
        runs: sides.map(|sum| sum.runs),
        samples: sides.map(|sum| sum.samples),
        totals: root.amounts,
        functions,
        root,
    }
}

/// Returns the key by which functions are sorted: the clearest change first, and of nearly equal ones the caller.
fn rank(function: &FunctionChange) -> (Reverse<u64>, u32) {
    // Steps of two percent from a billionth on, below which nothing is measured.
    let steps = (function.clarity().max(1e-9) * 1e9).ln() * 50.0;
    (Reverse(floor_to_u64(steps)), function.depth)
}

impl ProfileComparison {
    /// Returns the `max` functions that changed most clearly; those without a change are left out.
    pub fn clearest_changes(&self, max: usize) -> impl Iterator<Item = &FunctionChange> {
        let functions = self.functions.iter().take(max);
        functions.filter(|function| function.clarity() > 0.0)
    }
}
