//! Arguments of `stillwell bisect`.

use std::path::PathBuf;

use clap::Args;

use super::{ChangeArguments, OutputArguments};

const NOTES: &str = "\
First compares GOOD with BAD. If BAD is worse, compares GOOD with commits between
them, along first parents, each near the middle of the remaining range. A commit is
bad if it is worse by at least half as much as BAD. A commit that is inconclusive or
does not build is skipped. At the end, confirms the commit against its parent.

Each comparison is a suite that stops when its verdict is certain.

Example:
  stillwell bisect v1.4 HEAD my-experiment --build 'cargo build --release'

Exit codes:
  0        a single commit was found and confirmed, or BAD is not worse
  2        usage or configuration
  3        could not run: no such revision, or GOOD or BAD does not build
  4        inconclusive: BAD is not clearly worse, several commits remain, or the
           commit was not confirmed
  130 143  interrupted by SIGINT or SIGTERM (129, 131: SIGHUP, SIGQUIT); continue
           with --resume";

/// `stillwell bisect`.
#[derive(Args, Debug)]
#[command(after_help = NOTES)]
pub(crate) struct BisectArguments {
    /// Revision without the regression
    #[arg(value_name = "GOOD")]
    pub(crate) good: String,
    /// Later revision with the regression
    #[arg(value_name = "BAD")]
    pub(crate) bad: String,
    /// Experiment, as for `run`; its primary goal decides
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Variant whose command and settings both revisions use [default: comparison, or
    /// the second]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    #[command(flatten)]
    pub(crate) changes: ChangeArguments,
    /// Results folder [default: .stillwell/bisects/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Continue an interrupted search: the one in --results DIR, or the newest in
    /// .stillwell/bisects
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Cache folder for builds
    /// [default: $XDG_CACHE_HOME/stillwell or ~/.cache/stillwell]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}
