//! What `stillwell lint` takes.

use std::path::PathBuf;

use clap::Args;

/// `stillwell lint`.
#[derive(Args, Debug)]
#[command(after_help = "\
Exit codes:
  0  nothing is spelled in an old way, or everything was rewritten
  1  old spellings are left
  2  a path cannot be read")]
pub(crate) struct LintArguments {
    /// Files of lading's, experiments of SMP's, or folders that hold them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Rewrite the files: spellings and units only, so that they mean the same;
    /// comments and order stay
    #[arg(long)]
    pub(crate) fix: bool,
}
