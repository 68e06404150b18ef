//! Arguments of `stillwell calibrate`, and of the wrapper that it starts targets with.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;
use stillwell_units::Tolerance;

use super::count::within;
use super::{OutputArguments, SelectArguments};

const NOTES: &str = "\
Compares the baseline of each experiment with itself, and with a version that is
slower by a known share. For CPU goals, a wrapper uses CPU time in proportion to the
target's. For throughput and latency, it stops the target for a share of the time.
The comparison in the files is not run, and --comparison is refused.

Example:
  stillwell calibrate my-experiment --minutes 20

Exit codes:
  0        the calibration ended
  2        usage or configuration
  3        could not run
  4        no experiment ended with a verdict
  130 143  interrupted; finished comparisons are reported";

/// `stillwell calibrate`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct CalibrateArguments {
    /// Experiment folders, experiment.yaml files, or folders with any number of
    /// experiments below them
    #[arg(required_unless_present = "ledger", value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) select: SelectArguments,
    /// Maximum total time in minutes; each experiment has at least one comparison of each kind
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = within::<u32>(1..))]
    pub(crate) minutes: u32,
    /// Maximum number of comparisons of each experiment; every fourth has a slowdown
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = within::<u32>(1..))]
    pub(crate) experiments: u32,
    /// Size of the slowdown [default: twice the tolerance of the primary goal]
    #[arg(long, value_name = "PERCENT")]
    pub(crate) slowdown: Option<Tolerance>,
    /// Run experiments with a known change of the embedded relay in place of PATH, and
    /// append their results to this JSON Lines file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "slowdown", "experiments"])]
    pub(crate) ledger: Option<PathBuf>,
    /// Continue the file of --ledger
    #[arg(long, requires = "ledger")]
    pub(crate) resume: bool,
    /// Print the file of --ledger as Markdown tables
    #[arg(long, requires = "ledger", conflicts_with = "resume")]
    pub(crate) table: bool,
    /// Results folder [default: .stillwell/calibrations/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Cache folder for builds of git:REV variants
    /// [default: $XDG_CACHE_HOME/stillwell or ~/.cache/stillwell]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// `stillwell disturb`: runs a command and slows it down by a known share.
#[derive(Args, Debug)]
pub(crate) struct DisturbArguments {
    #[command(flatten)]
    pub(crate) how: DisturbKind,
    /// Start of the cycles of --use-cpu
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Command to run
    #[arg(
        last = true,
        required_unless_present = "use_cpu",
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// Kinds of slowdown.
#[derive(Args, Clone, Copy, Debug)]
#[group(required = true, multiple = false)]
pub(crate) struct DisturbKind {
    /// Use extra CPU time: this share of what the command and its descendants use
    #[arg(long, value_name = "PERCENT")]
    pub(crate) burn: Option<Tolerance>,
    /// Stop the command and its descendants for this share of the time
    #[arg(long, value_name = "PERCENT")]
    pub(crate) pause: Option<Tolerance>,
    /// Only run the command, and have the kernel kill it when this parent ends
    #[arg(long, value_name = "PID")]
    pub(crate) tied_to: Option<u32>,
    /// Use this share of one CPU until standard input ends, without a command
    #[arg(long, value_name = "PERCENT", value_parser = within::<u32>(1..100))]
    pub(crate) use_cpu: Option<u32>,
}
