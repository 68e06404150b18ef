//! Arguments of `stillwell lint`.

use std::path::PathBuf;

use clap::Args;

/// `stillwell lint`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes:
  0  there are no outdated spellings, or all were rewritten
  1  outdated spellings remain
  2  a path cannot be read")]
pub(crate) struct LintArguments {
    /// lading configurations, SMP experiments, or folders that contain them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Rewrite outdated spellings and units in the files, and keep comments and order
    #[arg(long)]
    pub(crate) fix: bool,
}
