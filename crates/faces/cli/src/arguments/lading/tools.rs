//! What `captool` and `payloadtool` take.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// `captool`: looks into captures.
#[derive(Debug, Parser)]
#[command(
    name = "captool",
    version,
    subcommand_negates_reqs = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct CaptoolArguments {
    #[command(subcommand)]
    pub(crate) command: Option<CaptoolCommand>,
    /// A capture of lading's (lines, lines under zstd, or Parquet), or a capture
    /// folder of Stillwell's
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) capture: Option<PathBuf>,
    /// List the metrics; the default without --metric
    #[arg(short, long)]
    pub(crate) list_metrics: bool,
    /// Show the series of this metric
    #[arg(short, long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// And all of their values
    #[arg(short, long, requires = "metric")]
    pub(crate) dump_values: bool,
}

/// What else it does.
#[derive(Debug, Subcommand)]
pub(crate) enum CaptoolCommand {
    /// Check that a capture is well-formed
    Validate {
        /// The capture
        #[arg(value_name = "CAPTURE")]
        capture: PathBuf,
        /// Different times that it must hold at least
        #[arg(long, value_name = "N")]
        min_seconds: Option<u64>,
    },
}

/// `payloadtool`: builds what generators would send.
#[derive(Debug, Parser)]
#[command(name = "payloadtool", version)]
pub(crate) struct PayloadtoolArguments {
    /// A configuration of lading's, or a rig or experiment of Stillwell's
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
    /// Only the generator with this id
    #[arg(short, long, value_name = "ID")]
    pub(crate) generator_id: Option<String>,
    /// Print the fingerprint of each generator's bytes
    #[arg(short, long)]
    pub(crate) fingerprint: bool,
    /// Compare fingerprints with those in FILE, as --fingerprint prints them
    #[arg(short, long, value_name = "FILE")]
    pub(crate) verify: Option<PathBuf>,
    /// Tell how much memory was used
    #[arg(short, long)]
    pub(crate) memory_stats: bool,
    /// Write the bytes here
    #[arg(long, value_name = "FILE")]
    pub(crate) dump: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_lines_are_consistent() {
        CaptoolArguments::command().debug_assert();
        PayloadtoolArguments::command().debug_assert();
        let parse = |words: &str| CaptoolArguments::try_parse_from(words.split_whitespace());
        assert!(parse("captool").is_err());
        assert!(parse("captool cap.jsonl -d").is_err());
        assert!(parse("captool validate cap.jsonl --min-seconds 3").is_ok());
        assert!(parse("captool cap.jsonl -m bytes_written -d").is_ok());
    }
}
