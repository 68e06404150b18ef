//! Arguments of `stillwell explain`.

use clap::Args;

/// `stillwell explain`.
#[derive(Args, Debug)]
pub(crate) struct ExplainArguments {
    /// Code or word: W101, sends_bunched, inconclusive, 4, connect_refused
    #[arg(required_unless_present = "list", conflicts_with = "list")]
    pub(crate) code: Option<String>,
    /// Print all codes
    #[arg(long)]
    pub(crate) list: bool,
}
