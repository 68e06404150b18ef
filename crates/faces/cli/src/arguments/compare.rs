//! Arguments of `stillwell compare`.

use clap::{Args, ValueEnum};
use stillwell_plan::goal::Direction;
use stillwell_units::{Nanos, Tolerance};

use super::count::within;
use super::{Gate, OutputArguments};

const INPUTS: &str = "\
Each side is one of these, or several of one kind separated by commas:
  a results folder of `run`         all its finished runs, without confirmation runs
  a capture of `observe`            one run
  a capture of `load`               one load, shown beside another one without a verdict
  a lading capture                  one run for each run_id: JSONL (also .zst) or Parquet
  a report as .html or .json        all its finished runs, or its one run
  a Nighthawk or fortio JSON result one run
  a folder of any of these          all of them, in the order of names
  a file of numbers                 one number for each run: one per line, or a table
                                    (CSV, TSV) with column names in the first line
  7.88MiB,7.86MiB,7.85MiB           the numbers themselves
PATH@NAME selects one variant of saved runs, or one column of a table. If both sides
are the same results folder or report, its first two variants are compared. COMPARISON
can be left out only if BASELINE has at least two variants. If two results or reports
hold several variants each, the second one of each is compared.
Each run counts as one number. The seconds of one run do not count as runs.

Example:
  stillwell compare .stillwell/results/OLD .stillwell/results/NEW

Exit codes:
  0  the first metric did not regress, or the noise is unknown
  1  the first metric of an experiment regressed; with several experiments after
     Holm's correction for their number
  2  usage, or a file that cannot be read
  4  no verdict, or inconclusive, with --gate strict";

/// `stillwell compare`.
#[derive(Args, Debug)]
#[command(after_help = INPUTS)]
pub(crate) struct CompareArguments {
    /// The baseline
    #[arg(value_name = "BASELINE", allow_negative_numbers = true)]
    pub(crate) baseline: String,
    /// The comparison; without it, the first two variants of BASELINE are compared
    #[arg(value_name = "COMPARISON", allow_negative_numbers = true)]
    pub(crate) comparison: Option<String>,
    /// Metric to compare: a goal such as cpu_per_event, the name of a figure or column,
    /// or a series as NAME, NAME['ID'], NAME:mean, :peak, :rate or :per_event;
    /// repeatable, the first decides [default: all that both sides have]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// Smallest change that matters, such as `2%` [default: the experiment's, or by
    /// metric]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) tolerance: Option<Tolerance>,
    /// Direction that is better [default: by metric, if known]
    #[arg(long, value_enum)]
    pub(crate) better: Option<Better>,
    /// Compare runs in pairs: by pair number, or by position if they have none
    #[arg(long, conflicts_with = "unpaired")]
    pub(crate) paired: bool,
    /// Compare the means of both sides, even if the runs were made in pairs
    #[arg(long)]
    pub(crate) unpaired: bool,
    /// Also compute the figures of an older tool, to compare with its reports
    #[arg(long, value_enum, value_name = "METHOD")]
    pub(crate) method: Option<Method>,
    /// Time to skip at the start of each lading capture [default: until the measured
    /// phase if phases are marked, else 30s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// CPUs of the target, for --method; soak-2022 divides by them
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = within::<u16>(1..))]
    pub(crate) cpus: u16,
    /// Name of the target in the heads of --method
    #[arg(long, value_name = "NAME")]
    pub(crate) target_name: Option<String>,
    /// ID of the job in the head of --method smp-2023
    #[arg(long, value_name = "ID")]
    pub(crate) run_id: Option<String>,
    /// Compare only experiments with this name; `*` matches any text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Treat each row of a file of numbers as a run, even if rows look like seconds
    #[arg(long)]
    pub(crate) rows_are_runs: bool,
    /// Verdicts that give exit code 1 or 4
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 for every verdict
    #[arg(long)]
    pub(crate) exit_zero: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Direction that is better.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Better {
    /// Lower is better, as for cost.
    Lower,
    /// Higher is better, as for throughput.
    Higher,
}

impl From<Better> for Direction {
    fn from(better: Better) -> Self {
        match better {
            Better::Lower => Self::LowerIsBetter,
            Better::Higher => Self::HigherIsBetter,
        }
    }
}

/// Methods of older tools.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Method {
    /// Vector's soak rig of 2022: Welch's test on the seconds of all runs.
    #[value(name = "soak-2022")]
    Soak2022,
    /// The Regression Detector of 2023, as far as its reports describe it.
    #[value(name = "smp-2023")]
    Smp2023,
}

impl_from!(Method => stillwell_sides::Method { Soak2022, Smp2023 });
