//! Arguments of `stillwell import`.

use std::path::PathBuf;

use clap::Args;

use crate::arguments::OutputArguments;

/// `stillwell import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArguments {
    /// Markdown files with tables that compare programs, or CSV files of dstat with one
    /// run each (.csv); all are checked against each other
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Name of the test in the CSV files, such as disk_buffer
    #[arg(long, value_name = "NAME", default_value = "dstat")]
    pub(crate) test: String,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}
