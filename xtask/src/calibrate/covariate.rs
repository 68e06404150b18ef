//! Tables of an adjustment for a recorded disturbance.

use std::fmt::Write as _;

use anyhow::Context as _;
use stillwell_stats::simulate::{CovariateMachine, adjusted_change};
use stillwell_stats::{Estimate, Level, one_sample};

use super::percent;

/// Pairs of an experiment.
const PAIRS: [u32; 2] = [8, 20];

/// Noise of a pair that the disturbance does not explain.
const NOISE: f64 = 0.01;

/// True change.
const CHANGE: f64 = 0.03;

/// Disturbances: what they cause, the noise of their record, and the exposure of a slower target.
const DISTURBANCES: [(&str, [f64; 3]); 6] = [
    ("none that matters", [0.0, 0.0, 0.0]),
    ("as large as the other noise", [0.01, 0.0, 0.0]),
    ("three times as large", [0.03, 0.0, 0.0]),
    ("the same, recorded with noise", [0.03, 1.0, 0.0]),
    (
        "the same, a slower target meets 30 % more",
        [0.03, 0.0, 0.3],
    ),
    ("the same, it meets 100 % more", [0.03, 0.0, 1.0]),
];

/// Intervals that hold the truth, that exclude zero, and their mean width.
#[derive(Default)]
struct Quality {
    holds: u32,
    finds: u32,
    width: f64,
}

impl Quality {
    fn add(&mut self, interval: Estimate) {
        self.holds += u32::from(interval.lower <= CHANGE && CHANGE <= interval.upper);
        self.finds += u32::from(interval.lower > 0.0);
        self.width += interval.upper - interval.lower;
    }

    fn cells(&self, experiments: u32) -> String {
        let all = f64::from(experiments);
        format!(
            "{} | {} | {}",
            percent(f64::from(self.holds) / all),
            percent(f64::from(self.finds) / all),
            percent(self.width / all / 2.0)
        )
    }
}

pub(super) fn tables(experiments: u32, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "\n### Adjustment for a recorded disturbance\n")?;
    writeln!(
        text,
        "| disturbance | pairs | interval holds the truth | finds 3 % | half width | adjusted: holds | finds | half width |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |"
    )?;
    for (row, (name, [caused, recorded, exposure])) in (0..).zip(DISTURBANCES) {
        let machine = CovariateMachine {
            change: CHANGE,
            noise: NOISE,
            caused,
            recorded,
            exposure,
        };
        for pairs in PAIRS {
            let (mut plain, mut adjusted) = (Quality::default(), Quality::default());
            for number in 0..experiments {
                let seed = ((5100 + row) << 32) + u64::from(number);
                let measured = machine.pairs(seed, pairs);
                let changes: Vec<f64> = measured.iter().map(|pair| pair.0).collect();
                let test =
                    one_sample(&changes, 0.0, Level::NINETY_FIVE).context("take the mean")?;
                plain.add(test.mean);
                let interval = adjusted_change(&measured, Level::NINETY_FIVE);
                adjusted.add(interval.context("adjust")?);
            }
            writeln!(
                text,
                "| {name} | {pairs} | {} | {} |",
                plain.cells(experiments),
                adjusted.cells(experiments)
            )?;
        }
    }
    Ok(())
}
