//! The command line of this program, and of tasks that get it from a job.

use std::ffi::OsString;

use clap::FromArgMatches as _;

use crate::arguments::Arguments;
use crate::help;

/// Reads the words of a command line.
pub(crate) fn read_words(words: Vec<OsString>) -> Result<Arguments, clap::Error> {
    let matches = help::command().try_get_matches_from(words)?;
    Arguments::from_arg_matches(&matches)
}
