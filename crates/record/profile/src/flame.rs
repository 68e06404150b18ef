//! A tree of call stacks.

use std::collections::BTreeMap;

/// A function at one place of the stacks, with the functions that it called there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlameNode {
    /// Amounts of the baseline and of the comparison, with those of all callees.
    pub amounts: [f64; 2],
    /// Called functions by name.
    pub callees: BTreeMap<String, Self>,
}

impl FlameNode {
    /// Adds an amount to every node on the way of `stack`; `side` is 0 for the baseline and 1 for the comparison.
    pub(crate) fn add(&mut self, stack: &[String], side: usize, amount: f64) {
        let mut node = self;
        node.amounts[side] += amount;
        for name in stack {
            node = node.callees.entry(name.clone()).or_default();
            node.amounts[side] += amount;
        }
    }

    /// Sum of both amounts: the width of the node in a chart that shows frames of either variant.
    #[must_use]
    pub fn width(&self) -> f64 {
        self.amounts[0] + self.amounts[1]
    }
}
