//! What can be typed after `stillwell compare`.

use clap::{Args, ValueEnum};
use stillwell_plan::Direction;
use stillwell_units::{Nanos, Tolerance};

use super::{Gate, OutputArguments};

const INPUTS: &str = "\
Each side is one of these, or several of one kind joined by commas:
  a results folder of `run`         every finished run of the search in it
  a capture of `rig`                one run
  a lading capture                  one run for each run_id: JSONL (also .zst) or Parquet
  a Nighthawk or fortio JSON result one run
  a folder of any of these          all of them, by name
  a file of numbers                 one number a run: one a line, or a table (CSV, TSV)
                                    whose first line names its columns
  7.88MiB,7.86MiB,7.85MiB           the numbers themselves
PATH@NAME takes one variant of saved runs, or one column of a table; the same
results folder on both sides means its first variant and its second.
A run is one number. Seconds of one run are never taken for runs.

Exit codes:
  0  the first metric did not regress, or nothing can be said about noise
  1  the first metric regressed
  2  usage, or a file that cannot be read
  4  no verdict, or an inconclusive one, under --gate strict";

/// `stillwell compare`.
#[derive(Args, Debug)]
#[command(after_help = INPUTS)]
pub(crate) struct CompareArguments {
    /// The baseline
    #[arg(value_name = "BASELINE", allow_negative_numbers = true)]
    pub(crate) baseline: String,
    /// What is compared with it
    #[arg(value_name = "COMPARISON", allow_negative_numbers = true)]
    pub(crate) comparison: String,
    /// What to compare: a goal such as cpu_per_event, a figure or column by its
    /// name, or a series as NAME, NAME['ID'], NAME:mean, :peak, :rate or
    /// :per_event; repeatable, the first decides [default: what there is]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Vec<String>,
    /// How large a change must be to matter, such as `2%` [default: the
    /// experiment's own, or by the metric]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) tolerance: Option<Tolerance>,
    /// Which way is better [default: by the metric, where it is known]
    #[arg(long, value_enum)]
    pub(crate) better: Option<Better>,
    /// Compare pair by pair: by pair numbers where the runs have them, else by
    /// their place in the list
    #[arg(long, conflicts_with = "unpaired")]
    pub(crate) paired: bool,
    /// Compare the means of both sides, also of runs that were made in pairs
    #[arg(long)]
    pub(crate) unpaired: bool,
    /// Also reproduce the figures of an ancestor's method, to compare with old
    /// reports
    #[arg(long, value_enum, value_name = "METHOD")]
    pub(crate) method: Option<Method>,
    /// Left out at the start of each lading capture [default: what comes before
    /// the measured phase where phases are marked, else 30s]
    #[arg(long, value_name = "TIME")]
    pub(crate) warmup: Option<Nanos>,
    /// CPUs of the subject, by which --method soak-2022 divides
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cpus: u16,
    /// Only experiments with this name; `*` stands for any text; repeatable
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Each row of a file of numbers is a whole run, though it looks like a second
    #[arg(long)]
    pub(crate) rows_are_runs: bool,
    /// Whether no verdict, or an inconclusive one, fails
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 whatever the verdict says
    #[arg(long)]
    pub(crate) exit_zero: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// Which way is better.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Better {
    /// Less is better, as for cost.
    Lower,
    /// More is better, as for throughput.
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

/// A method of an ancestor.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum Method {
    /// Vector's soak rig of 2022: Welch's test on the seconds of all runs.
    #[value(name = "soak-2022")]
    Soak2022,
    /// The Regression Detector of 2023, as far as its reports tell.
    #[value(name = "smp-2023")]
    Smp2023,
}
