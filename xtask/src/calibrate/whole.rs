//! Tables of the whole procedure: search and confirmation.

use std::fmt::Write as _;

use anyhow::Context as _;
use stillwell_stats::simulate::{
    DisturbedMachine, Ending, PairNoise, SharedNoise, WholeEnding, WholeProcedure,
};

use super::{PAIRS_MAX, TOLERANCE, percent};

/// True change, noise of a pair and tolerance.
const POWER: [[f64; 3]; 7] = [
    [0.03, 0.015, 0.02],
    [0.03, 0.02, 0.02],
    [0.03, 0.03, 0.02],
    [0.05, 0.03, 0.02],
    [0.01, 0.009, 0.005],
    [0.01, 0.0117, 0.005],
    [0.01, 0.015, 0.02],
];

/// Largest losses that are compared: that of a limit, below and above it.
const LOSSES: [f64; 4] = [0.05, 0.1, 0.2, 0.4];

/// Pauses that are compared, in lengths of a run: none, and that of an experiment.
const PAUSES: [f64; 2] = [0.0, 0.2];

/// Experiments that end as stated, as shares.
#[derive(Default)]
struct Shares {
    experiments: u32,
    regressed: u32,
    searched: u32,
    equivalent: u32,
    alarms: u32,
    pairs: u64,
}

impl Shares {
    fn of(
        machine: &DisturbedMachine,
        rule: &WholeProcedure,
        (seed, experiments): (u64, u32),
    ) -> anyhow::Result<Self> {
        let mut shares = Self::default();
        for number in 0..experiments {
            let stages = machine.stages((seed << 32) + u64::from(number), PAIRS_MAX);
            let stages = stages.context("take log ratios")?;
            let ending = rule.follow(&stages, machine.truth());
            shares.add(&ending.context("follow the rule")?);
        }
        Ok(shares)
    }

    fn add(&mut self, whole: &WholeEnding) {
        self.experiments += 1;
        self.regressed += u32::from(whole.ending == Ending::Regressed);
        self.searched += u32::from(whole.searched == Ending::Regressed);
        self.equivalent += u32::from(whole.ending == Ending::Equivalent);
        self.alarms += u32::from(!whole.always_covered);
        self.pairs += u64::from(whole.pairs);
    }

    fn share(&self, count: u32) -> String {
        percent(f64::from(count) / f64::from(self.experiments))
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "fewer than 2^53 pairs are simulated"
    )]
    fn mean_pairs(&self) -> f64 {
        self.pairs as f64 / f64::from(self.experiments)
    }
}

pub(super) fn tables(experiments: u32, text: &mut String) -> anyhow::Result<()> {
    power(experiments, text)?;
    equal(experiments, text)?;
    losses(experiments, text)
}

/// Runs that lose a share of their CPU time to other programs or virtual machines, which lowers
/// throughput, or raises CPU time, by as much: what a limit of that share leaves.
fn losses(experiments: u32, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "\n### Runs that lose CPU time to others\n")?;
    writeln!(
        text,
        "| loss of a run, at most | correlation of runs | \
         equal: an interval misses the truth | equal: `regressed` | equal: `equivalent` | 3 % slower: `regressed` | pairs in all |\n\
         | --- | --- | --- | --- | --- | --- | --- |"
    )?;
    let rule = WholeProcedure::sequential(PAIRS_MAX, TOLERANCE).context("plan the looks")?;
    for (row, most) in (0..).zip(LOSSES) {
        for (column, correlation) in (0..).zip([0.0, 0.5, 0.9]) {
            let equal = DisturbedMachine {
                shared: SharedNoise::Loss { most, correlation },
                ..DisturbedMachine::of_noise(0.01)
            };
            let slower = DisturbedMachine {
                change: 0.03,
                ..equal
            };
            let seed = 3300 + 10 * row + column;
            let alarms = Shares::of(&equal, &rule, (seed, experiments))?;
            let power = Shares::of(&slower, &rule, (seed + 5, experiments))?;
            writeln!(
                text,
                "| {} % | {correlation} | {} | {} | {} | {} | {:.1} |",
                hundredths(most),
                alarms.share(alarms.alarms),
                alarms.share(alarms.regressed),
                alarms.share(alarms.equivalent),
                power.share(power.regressed),
                power.mean_pairs(),
            )?;
        }
    }
    Ok(())
}

fn power(experiments: u32, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "\n### Power of search and confirmation\n")?;
    writeln!(
        text,
        "| true change | noise of a pair | tolerance | `regressed` by the search | `regressed` | pairs in all |\n\
         | --- | --- | --- | --- | --- | --- |"
    )?;
    for (row, [change, noise, tolerance]) in (0..).zip(POWER) {
        let rule = WholeProcedure::sequential(PAIRS_MAX, tolerance).context("plan the looks")?;
        let machine = DisturbedMachine {
            change,
            ..DisturbedMachine::of_noise(noise)
        };
        let shares = Shares::of(&machine, &rule, (3100 + row, experiments))?;
        writeln!(
            text,
            "| {} % | {} % | {} % | {} | {} | {:.1} |",
            hundredths(change),
            hundredths(noise),
            hundredths(tolerance),
            shares.share(shares.searched),
            shares.share(shares.regressed),
            shares.mean_pairs(),
        )?;
    }
    Ok(())
}

fn equal(experiments: u32, text: &mut String) -> anyhow::Result<()> {
    writeln!(text, "\n### Equal sources, with noise of other kinds\n")?;
    writeln!(
        text,
        "| disturbance | longest pause | an interval misses the truth | `regressed` by the search | `regressed` | `equivalent` |\n\
         | --- | --- | --- | --- | --- | --- |"
    )?;
    let rule = WholeProcedure::sequential(PAIRS_MAX, TOLERANCE).context("plan the looks")?;
    for (row, (name, machine)) in (0..).zip(disturbed()) {
        let has_period = matches!(
            machine.shared,
            SharedNoise::Sine { .. } | SharedNoise::Square { .. }
        );
        for pause in PAUSES
            .into_iter()
            .filter(|pause| has_period || *pause > 0.0)
        {
            let machine = DisturbedMachine { pause, ..machine };
            let shares = Shares::of(&machine, &rule, (3200 + row, experiments))?;
            writeln!(
                text,
                "| {name} | {pause} runs | {} | {} | {} | {} |",
                shares.share(shares.alarms),
                shares.share(shares.searched),
                shares.share(shares.regressed),
                shares.share(shares.equivalent),
            )?;
        }
    }
    Ok(())
}

/// Machines without a change of the source, except for rare faults.
fn disturbed() -> Vec<(&'static str, DisturbedMachine)> {
    let shared = |noise, shared| DisturbedMachine {
        shared,
        ..DisturbedMachine::of_noise(noise)
    };
    let square = |height, period| shared(0.003, SharedNoise::Square { height, period });
    let sine = |noise, amplitude, period| shared(noise, SharedNoise::Sine { amplitude, period });
    let correlated = |correlation| {
        let noise = 0.03;
        shared(0.003, SharedNoise::Correlated { noise, correlation })
    };
    let layout = |layout, builds| DisturbedMachine {
        layout,
        builds,
        ..DisturbedMachine::of_noise(0.01)
    };
    let of_pairs = |noise| DisturbedMachine {
        noise,
        ..DisturbedMachine::of_noise(0.0)
    };
    let faults = |share, size| {
        of_pairs(PairNoise::Faults {
            noise: 0.005,
            share,
            size,
        })
    };
    vec![
        ("normal, 1.5 %", DisturbedMachine::of_noise(0.015)),
        ("normal, 3 %", DisturbedMachine::of_noise(0.03)),
        ("square wave 5 %, period 4 runs", square(0.05, 4.0)),
        ("square wave 5 %, period 3.7 runs", square(0.05, 3.7)),
        ("sine 3 %, period 4 runs", sine(0.003, 0.03, 4.0)),
        ("sine 3 %, period 5 runs", sine(0.003, 0.03, 5.0)),
        ("sine 1 %, period 4 runs, noise 1 %", sine(0.01, 0.01, 4.0)),
        ("correlation of runs 0.5, 3 %", correlated(0.5)),
        ("correlation of runs 0.9, 3 %", correlated(0.9)),
        (
            "second run of a pair +2 %",
            shared(0.003, SharedNoise::Position(0.02)),
        ),
        (
            "one-sided (exponential), 3 %",
            of_pairs(PairNoise::Exponential(0.03)),
        ),
        ("+30 % in 1 of 10 runs of the comparison", faults(0.1, 0.3)),
        ("+50 % in 1 of 20 runs of the comparison", faults(0.05, 0.5)),
        ("layout of builds 0.5 %, noise 1 %", layout(0.005, 1)),
        ("layout of builds 1 %, noise 1 %", layout(0.01, 1)),
        ("layout of builds 2 %, noise 1 %", layout(0.02, 1)),
        ("the same, 2 builds of each", layout(0.02, 2)),
        ("the same, 4 builds of each", layout(0.02, 4)),
        ("the same, 10 builds of each", layout(0.02, 10)),
        ("the same, 20 builds of each", layout(0.02, 20)),
        (
            "the same, a build for each pair",
            layout(0.02, 2 * PAIRS_MAX),
        ),
    ]
}

/// Percent without trailing zeros.
fn hundredths(share: f64) -> String {
    let text = format!("{:.2}", 100.0 * share);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
