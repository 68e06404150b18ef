//! `cargo xtask calibrate`: how often verdicts are right where the truth is known,
//! by simulation, as the tables of docs/internals/calibration.md.

mod covariate;
mod history;
mod whole;

use std::fmt::Write as _;

use anyhow::Context as _;
use stillwell_stats::simulate::{
    DRIFTS, Drift, Ending, Machine, SCENARIOS, Scenario, SimulatedRule, Tally,
};
use stillwell_stats::{Level, LogRatios, welch};

/// The change that matters.
const TOLERANCE: f64 = 0.02;

/// The most pairs of an experiment.
const PAIRS_MAX: u32 = 20;

/// Measured seconds of a run.
const SECONDS: u32 = 20;

/// The ancestors' run: runs of each variant, and their seconds.
const BLOCK_RUNS: u32 = 3;
const BLOCK_SECONDS: u32 = 120;

/// The noise from pair to pair in the table of power.
const PAIR_NOISES: [f64; 5] = [0.005, 0.01, 0.015, 0.02, 0.03];

/// The true changes in the tables of power and coverage.
const CHANGES: [f64; 5] = [0.0, 0.01, 0.02, 0.03, 0.05];

/// Thoroughness of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Effort {
    /// Half a minute or less.
    Quick,
    /// As published.
    Full,
}

impl Effort {
    const fn experiments(self) -> u32 {
        match self {
            Self::Quick => 1000,
            Self::Full => 20_000,
        }
    }
}

/// TablesPart of the tables.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum TablesPart {
    /// False alarms, coverage and verdicts of the search.
    Search,
    /// Search and confirmation.
    Procedure,
    /// Histories.
    Histories,
    /// Adjustment for a recorded disturbance.
    Covariates,
}

impl TablesPart {
    /// All parts, in their order.
    pub(crate) const ALL: [Self; 4] = [
        Self::Search,
        Self::Procedure,
        Self::Histories,
        Self::Covariates,
    ];

    /// Returns the part with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "search" => Some(Self::Search),
            "procedure" => Some(Self::Procedure),
            "histories" => Some(Self::Histories),
            "covariates" => Some(Self::Covariates),
            _ => None,
        }
    }
}

/// The tables as Markdown; seeded, so always the same.
pub(crate) fn tables(effort: Effort, parts: &[TablesPart]) -> anyhow::Result<String> {
    let tables = Tables {
        experiments: effort.experiments(),
        fixed: SimulatedRule::fixed(10, TOLERANCE),
        sequential: SimulatedRule::sequential(PAIRS_MAX, TOLERANCE).context("plan the looks")?,
        open: SimulatedRule::open(PAIRS_MAX, TOLERANCE),
    };
    let mut text = String::new();
    for part in parts {
        match part {
            TablesPart::Search => {
                tables.false_alarms(&mut text)?;
                tables.coverage(&mut text)?;
                tables.power(&mut text)?;
            }
            TablesPart::Procedure => whole::tables(effort.experiments(), &mut text)?,
            TablesPart::Covariates => covariate::tables(effort.experiments(), &mut text)?,
            TablesPart::Histories => history::tables(effort.experiments(), &mut text)?,
        }
    }
    Ok(text)
}

struct Tables {
    experiments: u32,
    fixed: SimulatedRule,
    sequential: SimulatedRule,
    open: SimulatedRule,
}

impl Tables {
    fn false_alarms(&self, text: &mut String) -> anyhow::Result<()> {
        writeln!(text, "### Equal versions\n")?;
        writeln!(
            text,
            "| machine | drift | fixed, 10 pairs | looks at 4 to 20 | its `equivalent` | its pairs | open, to 20 | pooled seconds |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |"
        )?;
        let mut sums = [Tally::default(); 3];
        for (row, scenario) in (0..).zip(SCENARIOS) {
            for (column, drift) in (0..).zip(DRIFTS) {
                let machine = machine(scenario, drift, 0.0);
                let seed = 100 + 10 * row + column;
                let cell =
                    self.tallies(&machine, [&self.fixed, &self.sequential, &self.open], seed)?;
                let pooled = self.pooled_alarms(&machine, 500 + seed)?;
                let alarms = cell.map(|tally| percent(tally.missed_at_some_look()));
                let [fixed, sequential, open] = alarms;
                writeln!(
                    text,
                    "| {} | {} | {fixed} | {sequential} | {} | {:.1} | {open} | {} |",
                    scenario.name,
                    drift.name,
                    percent(cell[1].ended(Ending::Equivalent)),
                    cell[1].mean_pairs(),
                    percent(pooled),
                )?;
                for (sum, tally) in sums.iter_mut().zip(&cell) {
                    sum.merge(tally);
                }
            }
        }
        let all = sums.map(|tally| percent(tally.missed_at_some_look()));
        let [fixed, sequential, open] = all;
        writeln!(
            text,
            "| all | all | {fixed} | {sequential} | | | {open} | |\n"
        )?;
        Ok(())
    }

    /// Share of alarms at 5 % of the pooled seconds of runs in blocks, by a tenth of the
    /// experiments: this effect needs no more.
    fn pooled_alarms(&self, machine: &Machine, seed: u64) -> anyhow::Result<f64> {
        let machine = Machine {
            seconds: BLOCK_SECONDS,
            ..*machine
        };
        let experiments = self.experiments / 10;
        let mut alarms = 0_u32;
        for number in 0..experiments {
            let [baseline, comparison] =
                machine.blocks((seed << 32) + u64::from(number), BLOCK_RUNS);
            let test = welch(&baseline, &comparison, Level::NINETY_FIVE);
            let test = test.context("compare pooled seconds")?;
            alarms += u32::from(test.p_value < 0.05);
        }
        Ok(f64::from(alarms) / f64::from(experiments))
    }

    fn coverage(&self, text: &mut String) -> anyhow::Result<()> {
        writeln!(
            text,
            "### Coverage of the interval at the end of the experiment\n"
        )?;
        writeln!(
            text,
            "| machine | true change | looks at 4 to 20 | open, to 20 |\n| --- | --- | --- | --- |"
        )?;
        for (row, scenario) in (0..).zip([SCENARIOS[3], SCENARIOS[4], SCENARIOS[5]]) {
            for (column, change) in (0..).zip(CHANGES) {
                let machine = machine(scenario, DRIFTS[0], change);
                let seed = 1100 + 10 * row + column;
                let cell = self.tallies(&machine, [&self.sequential, &self.open], seed)?;
                let [sequential, open] = cell.map(|tally| percent(tally.covered()));
                let change = whole_percent(change);
                writeln!(
                    text,
                    "| {} | {change} | {sequential} | {open} |",
                    scenario.name
                )?;
            }
        }
        writeln!(text)?;
        Ok(())
    }

    fn power(&self, text: &mut String) -> anyhow::Result<()> {
        writeln!(text, "### Verdicts of the search, and number of pairs\n")?;
        writeln!(
            text,
            "| noise from pair to pair | true change | `regressed` | `improved` | `equivalent` | `different` | `inconclusive` | pairs |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |"
        )?;
        for (row, noise) in (0..).zip(PAIR_NOISES) {
            for (column, change) in (0..).zip(CHANGES) {
                let machine = machine(Scenario::of_pair_noise(noise), Drift::NONE, change);
                let seed = 2100 + 10 * row + column;
                let [tally] = self.tallies(&machine, [&self.sequential], seed)?;
                let endings = [
                    Ending::Regressed,
                    Ending::Improved,
                    Ending::Equivalent,
                    Ending::Different,
                    Ending::Inconclusive,
                ];
                let shares = endings.map(|ending| percent(tally.ended(ending)));
                writeln!(
                    text,
                    "| {:.1} % | {} | {} | {:.1} |",
                    100.0 * noise,
                    whole_percent(change),
                    shares.join(" | "),
                    tally.mean_pairs(),
                )?;
            }
        }
        Ok(())
    }

    /// One tally for each rule, over the same experiments.
    fn tallies<const N: usize>(
        &self,
        machine: &Machine,
        rules: [&SimulatedRule; N],
        seed: u64,
    ) -> anyhow::Result<[Tally; N]> {
        let mut tallies = [Tally::default(); N];
        for number in 0..self.experiments {
            let pairs = machine.pairs((seed << 32) + u64::from(number), PAIRS_MAX);
            let ratios = LogRatios::from_pairs(&pairs).context("take log ratios")?;
            for (tally, rule) in tallies.iter_mut().zip(rules) {
                let followed = rule.follow(&ratios, machine.change);
                tally.add(&followed.context("follow a rule")?);
            }
        }
        Ok(tallies)
    }
}

const fn machine(scenario: Scenario, drift: Drift, change: f64) -> Machine {
    Machine {
        scenario,
        drift,
        seconds: SECONDS,
        change,
    }
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn whole_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_a_row_for_each_cell() {
        let tables = Tables {
            experiments: 10,
            fixed: SimulatedRule::fixed(10, TOLERANCE),
            sequential: SimulatedRule::sequential(PAIRS_MAX, TOLERANCE).unwrap(),
            open: SimulatedRule::open(PAIRS_MAX, TOLERANCE),
        };
        let mut text = String::new();
        tables.false_alarms(&mut text).unwrap();
        tables.coverage(&mut text).unwrap();
        tables.power(&mut text).unwrap();
        whole::tables(10, &mut text).unwrap();
        history::tables(100, &mut text).unwrap();
        covariate::tables(10, &mut text).unwrap();
        let rows = text.lines().filter(|line| line.starts_with("| "));
        // Eight heads with their rulers; then 18 cells and their sum, 15, 25, 7, 21 of which
        // five have two pauses, 12, 12 and 12.
        assert_eq!(rows.count(), 16 + 19 + 15 + 25 + 7 + 26 + 12 + 12 + 12);
        assert!(!text.contains("NaN"), "{text}");
    }
}
