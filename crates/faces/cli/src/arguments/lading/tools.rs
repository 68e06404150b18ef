//! Arguments of `captool` and `payloadtool`.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// `captool`: shows and checks captures.
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
    /// A lading capture (JSONL, JSONL with zstd, or Parquet), or a capture folder of
    /// Stillwell
    #[arg(value_name = "CAPTURE", required = true)]
    pub(crate) capture: Option<PathBuf>,
    /// List the metrics; this is the default without --metric
    #[arg(short, long)]
    pub(crate) list_metrics: bool,
    /// Show the series of this metric
    #[arg(short, long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// Also print all their values
    #[arg(short, long, requires = "metric")]
    pub(crate) dump_values: bool,
}

/// Commands of `captool`.
#[derive(Debug, Subcommand)]
pub(crate) enum CaptoolCommand {
    /// Check that a capture is well-formed
    Validate {
        /// Capture to check
        #[arg(value_name = "CAPTURE")]
        capture: PathBuf,
        /// Minimum number of different timestamps
        #[arg(long, value_name = "N")]
        min_seconds: Option<u64>,
    },
}

/// `payloadtool`: builds the payloads of generators.
#[derive(Debug, Parser)]
#[command(name = "payloadtool", version)]
pub(crate) struct PayloadtoolArguments {
    /// A lading configuration, or a single-run or experiment file
    #[arg(value_name = "CONFIG")]
    pub(crate) config: PathBuf,
    /// Build only the generator with this id
    #[arg(short, long, value_name = "ID")]
    pub(crate) generator_id: Option<String>,
    /// Print the fingerprint of each generator's payload
    #[arg(short, long)]
    pub(crate) fingerprint: bool,
    /// Compare fingerprints with those in FILE, as --fingerprint prints them
    #[arg(short, long, value_name = "FILE")]
    pub(crate) verify: Option<PathBuf>,
    /// Print the memory usage
    #[arg(short, long)]
    pub(crate) memory_stats: bool,
    /// File for the payload bytes
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
