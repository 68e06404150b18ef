//! Arguments of `stillwell explain`.

use clap::Args;

/// `stillwell explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// Code, series or word: W101, sends_bunched, inconclusive, 4, target_run_delay, tolerance
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    pub(crate) code: Option<String>,
    /// Print all codes, series and words
    #[arg(long)]
    pub(crate) list: bool,
}
