//! Arguments of `stillwell import`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::OutputArguments;

/// `stillwell import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Documents with tables of programs side by side (Markdown), or dstat's CSV of
    /// one run each (.csv); all are held against each other
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// What the test of the CSV files was called, such as disk_buffer
    #[arg(long, value_name = "NAME", default_value = "dstat")]
    pub(crate) test: String,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}
