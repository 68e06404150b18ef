//! Arguments of `stillwell comment`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Gate;

const EXAMPLES: &str = "\
Examples:
  stillwell comment RESULTS                        prints the comment, or posts it in CI
  stillwell comment RESULTS --to github --junit stillwell.xml";

const NOTES: &str = "\
In a job of GitHub Actions the report is also in the job summary, and findings are
annotations. The token is the environment variable GITHUB_TOKEN, or
STILLWELL_GITLAB_TOKEN (a project access token with the scope api). Without a token,
or with one that has no permission to comment (pull requests from forks), only the
comment is left out.

Exit codes are those of the verdict, even if the comment could not be posted: 0 no
  regression, 1 a regression or a failed check, 4 invalid. If nothing could run, the
  comment has the reason, and the code is that of the command that failed:
  2 configuration, 3 any other failure";

/// `stillwell comment`.
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_help = NOTES)]
pub(crate) struct CommentArguments {
    /// Results folder of `stillwell run` or `stillwell ab`
    #[arg(value_name = "RESULTS")]
    pub(crate) results: PathBuf,
    /// Destination of the comment
    #[arg(long, value_enum, default_value_t = CommentHost::Auto)]
    pub(crate) to: CommentHost,
    /// Layout of the comment
    #[arg(long, value_enum, default_value_t = CommentLayout::Stillwell)]
    pub(crate) layout: CommentLayout,
    /// Name of the suite: each has its own comment on a pull request
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) suite: String,
    /// Number of the pull or merge request [default: that of the CI job]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) pull_request: Option<u64>,
    /// Link below the table, such as 'report=https://…'; repeatable
    #[arg(long = "link", value_name = "TEXT=URL", value_parser = link)]
    pub(crate) links: Vec<(String, String)>,
    /// Write the test cases as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the decision as JSON: see `stillwell schema decision`
    #[arg(long, value_name = "FILE")]
    pub(crate) decision: Option<PathBuf>,
    /// Verdicts that give exit code 1 or 4
    #[arg(long, value_enum, default_value_t = Gate::Normal)]
    pub(crate) gate: Gate,
    /// Exit with 0 for every verdict
    #[arg(long)]
    pub(crate) exit_zero: bool,
}

/// Destination of a comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CommentHost {
    /// The host of the CI job, else standard output
    Auto,
    /// A pull request of GitHub
    Github,
    /// A merge request of GitLab
    Gitlab,
    /// Standard output
    Stdout,
}

/// Layout of a comment.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum CommentLayout {
    /// Findings first, everything else folded
    Stillwell,
    /// Headings and columns of the Regression Detector's comments
    RegressionDetector,
}

fn link(text: &str) -> Result<(String, String), String> {
    let (title, url) = text.split_once('=').ok_or("write TEXT=URL")?;
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err("the URL begins with https:// or http://".to_owned());
    }
    Ok((title.to_owned(), url.to_owned()))
}
