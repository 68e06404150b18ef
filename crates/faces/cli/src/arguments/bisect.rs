//! What can be typed after `stillwell bisect`.

use std::path::PathBuf;

use clap::Args;

use super::{ChangeArguments, OutputArguments};

const ASKING: &str = "\
GOOD and BAD are compared first. Where BAD is worse, the commits between, along
first parents, are compared with GOOD, always near the middle of what is left; one
is bad where it is worse by at least half of what BAD is. A commit of which nobody
can tell, or that does not build, is passed over, never guessed at. In the end the
commit that was found is compared with the one before it.

Every comparison is a lab of its own, which stops as soon as it is certain.

Exit codes:
  0        there is an answer: one commit, confirmed, or that BAD is not worse
  2        usage or configuration
  3        could not run: no such revision, or GOOD or BAD does not build
  4        nobody can tell: not whether BAD is worse, or only that the commit is one
           of several, or what was found was not confirmed
  130 143  interrupted by SIGINT or SIGTERM: --resume goes on";

/// `stillwell bisect`.
#[derive(Args, Debug)]
#[command(after_help = ASKING)]
pub(crate) struct BisectArguments {
    /// A revision that was well
    #[arg(value_name = "GOOD")]
    pub(crate) good: String,
    /// A revision after it that is worse
    #[arg(value_name = "BAD")]
    pub(crate) bad: String,
    /// The experiment, as `run` takes it: its primary goal decides
    #[arg(value_name = "PATH", default_value = ".")]
    pub(crate) paths: Vec<PathBuf>,
    /// Start both revisions as this variant is started [default: comparison, or
    /// the second]
    #[arg(long, value_name = "NAME")]
    pub(crate) variant: Option<String>,
    #[command(flatten)]
    pub(crate) changes: ChangeArguments,
    /// Where the record and the results of all comparisons go [default:
    /// .stillwell/bisects/TIME-NAME]
    #[arg(long, value_name = "DIR")]
    pub(crate) results: Option<PathBuf>,
    /// Go on where an interrupted search stopped: with --results DIR there, else
    /// in the newest folder of .stillwell/bisects
    #[arg(long)]
    pub(crate) resume: bool,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Where builds are kept
    /// [default: $XDG_CACHE_HOME/stillwell or ~/.cache/stillwell]
    #[arg(long, value_name = "DIR")]
    pub(crate) cache: Option<PathBuf>,
}
