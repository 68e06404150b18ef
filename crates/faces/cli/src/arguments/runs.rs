//! Arguments of `stillwell runs` and `stillwell sql`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const STORES: &str = "\
s3://BUCKET/PREFIX is a folder in an object store. AWS_ENDPOINT_URL, AWS_REGION,
AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN are environment variables.";

/// `stillwell runs`.
#[derive(Args, Debug)]
#[command(after_help = STORES)]
pub(crate) struct RunsArguments {
    /// Action
    #[command(subcommand)]
    pub(crate) command: RunsCommand,
}

/// Actions on saved results.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the results in a folder, or in an object store
    List {
        /// A folder, or s3://BUCKET/PREFIX [default: the current folder]
        #[arg(value_name = "PLACE")]
        place: Option<PathBuf>,
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Show the files and sizes of results
    Show {
        /// A result, or s3://BUCKET/PREFIX/NAME
        #[arg(value_name = "RESULT")]
        result: PathBuf,
    },
    /// Remove results
    Rm {
        /// Results, or s3://BUCKET/PREFIX/NAME
        #[arg(required = true, value_name = "RESULT")]
        results: Vec<PathBuf>,
        /// Remove without confirmation
        #[arg(short, long)]
        yes: bool,
    },
    /// Copy results to an object store
    Push {
        /// Results
        #[arg(required = true, value_name = "RESULT")]
        results: Vec<PathBuf>,
        /// s3://BUCKET/PREFIX; each result goes below it, under its name
        #[arg(long, value_name = "PLACE")]
        to: PathBuf,
    },
    /// Copy results from an object store into a new folder
    Pull {
        /// s3://BUCKET/PREFIX/NAME
        #[arg(value_name = "PLACE")]
        place: PathBuf,
        /// Folder in which a new folder NAME is made [default: .stillwell/results]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    },
}

const VIEW: &str = "\
The view `series` has a row for each value of each series at each sample:
  run                        folder of the capture
  run_id, time, fetch_index  name of the run, wall clock, number of the sample
  metric_name, metric_kind   such as bytes_written; counter, gauge or histogram
  value_int, value_float     the value
  value_histogram            HdrHistogram V2, in nanoseconds
  labels                     map, such as labels['id']
  phase, moment_ns           phase of the run; monotonic clock";

/// `stillwell sql`.
#[derive(Args, Debug)]
#[command(after_help = VIEW)]
pub(crate) struct SqlArguments {
    /// Folder with captures, or s3://BUCKET/PREFIX [default: .stillwell]
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Query [default: series, rows and time of each run]
    #[arg(short, long, value_name = "SQL")]
    pub(crate) query: Option<String>,
    /// Run duckdb in place of printing its command
    #[arg(long)]
    pub(crate) execute: bool,
}
