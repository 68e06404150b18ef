//! Tables of histories, with a pinned baseline and without one.

use std::fmt::Write as _;

use anyhow::Context as _;
use stillwell_stats::change::{ChangeOptions, detect};
use stillwell_stats::simulate::SimulatedHistory;

use super::percent;

/// Numbers of results.
const RESULTS: [usize; 3] = [10, 20, 50];

/// Correlations of neighbours.
const CORRELATIONS: [f64; 4] = [0.0, 0.3, 0.6, 0.8];

/// Steps in standard deviations.
const STEPS: [f64; 4] = [0.0, 2.0, 3.0, 5.0];

/// Share of false changes, as `history` has it by default.
const ALARM_RATE: f64 = 0.01;

/// Histories without a step are tested faster, and their rates are smaller, so they are more: a fifth
/// of the experiments. Those with a step are a hundredth.
pub(super) fn tables(experiments: u32, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "\n### Histories\n")?;
    writeln!(
        text,
        "| results | correlation of neighbours | changes without a step | \
         a step of 2 deviations is found | of 3 | of 5 |\n\
         | --- | --- | --- | --- | --- | --- |"
    )?;
    for (row, results) in (0..).zip(RESULTS) {
        for (column, correlation) in (0..).zip(CORRELATIONS) {
            let mut shares = Vec::new();
            for (place, step) in (0..).zip(STEPS) {
                let history = SimulatedHistory {
                    results,
                    correlation,
                    step,
                };
                let seed = 4100 + 100 * row + 10 * column + place;
                let histories = if step > 0.0 {
                    experiments / 100
                } else {
                    experiments / 5
                };
                shares.push(percent(with_changes(&history, seed, histories)?));
            }
            let shares = shares.join(" | ");
            writeln!(text, "| {results} | {correlation} | {shares} |")?;
        }
    }
    Ok(())
}

/// Share of the histories in which a change is found.
fn with_changes(history: &SimulatedHistory, seed: u64, histories: u32) -> anyhow::Result<f64> {
    let mut changed = 0_u32;
    for number in 0..histories {
        let values = history.values((seed << 32) + u64::from(number));
        let options = ChangeOptions {
            alarm_rate: ALARM_RATE,
            seed: u64::from(number),
            ..ChangeOptions::default()
        };
        let detection = detect(&values, &options).context("test a history")?;
        changed += u32::from(!detection.points.is_empty());
    }
    Ok(f64::from(changed) / f64::from(histories))
}
