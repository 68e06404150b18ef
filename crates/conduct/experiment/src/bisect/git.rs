//! The commits among which one is looked for.

use std::path::Path;

use serde::{Deserialize, Serialize};
use stillwell_run::Interrupt;

use crate::SuiteError;
use crate::build::command::Commands;

/// A commit.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Commit {
    /// Its name, in full.
    pub revision: String,
    /// The first line of its message.
    pub title: String,
    /// True if it has more than one parent.
    pub merge: bool,
}

/// GOOD, then every commit after it up to BAD, along first parents: what each of
/// them brought in by a merge is that merge's. At least two; `None` if
/// interrupted.
///
/// # Errors
/// [`SuiteError::Revision`] where one of them is not there, or BAD does not descend
/// from GOOD.
pub fn commits_between(
    repository: &Path,
    good: &str,
    bad: &str,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Commit>>, SuiteError> {
    let git = Git {
        commands: Commands::new(interrupt)?,
        repository,
    };
    let good_typed = good;
    let (Some(first), Some(last)) = (git.resolve(good)?, git.resolve(bad)?) else {
        return Ok(None);
    };
    let Some(base) = git.common_ancestor(bad, &first, &last)? else {
        return Ok(None);
    };
    if base != first || first == last {
        let reason = if first == last {
            format!("it is the same commit as `{good}`")
        } else {
            format!("it does not descend from `{good}`; both descend from {base}")
        };
        return Err(git.refuse(bad, reason));
    }
    let Some(good) = git.output_of(good, &list(&["--max-count=1", &first]))? else {
        return Ok(None);
    };
    let range = format!("{first}..{last}");
    let words = list(&["--first-parent", "--reverse", &range]);
    let Some(after) = git.output_of(bad, &words)? else {
        return Ok(None);
    };
    // Each commit is compared with the one before it in the list.
    let mut lines = after.lines().filter_map(|line| line.split_once('\t'));
    let parent = lines
        .next()
        .and_then(|(_, rest)| rest.split_whitespace().next());
    if let Some(parent) = parent.filter(|parent| *parent != first) {
        let reason = format!(
            "it is not on the line of first parents of `{bad}`, which is searched: give {parent}, after which that \
             line continues"
        );
        return Err(git.refuse(good_typed, reason));
    }
    Ok(Some(
        good.lines()
            .chain(after.lines())
            .filter_map(parse)
            .collect(),
    ))
}

struct Git<'a> {
    commands: Commands<'a>,
    repository: &'a Path,
}

impl Git<'_> {
    /// The output of git with these arguments about `revision`; `None` if interrupted.
    fn output_of(&self, revision: &str, words: &[&str]) -> Result<Option<String>, SuiteError> {
        let output = self.commands.git(self.repository, words.iter().copied())?;
        let refuse = |reason: String| self.refuse(revision, reason);
        output.transpose().map_err(refuse)
    }

    /// The newest common ancestor of two commits; `bad` names the second. `None` if interrupted.
    fn common_ancestor(
        &self,
        bad: &str,
        first: &str,
        last: &str,
    ) -> Result<Option<String>, SuiteError> {
        let words = ["merge-base", first, last];
        let output = self.commands.git(self.repository, words)?;
        let refuse = |message: String| {
            // Git prints nothing if there is no such commit.
            let reason = if message.is_empty() {
                format!(
                    "the repository has no history that connects it with {first}; if it is a shallow clone, fetch \
                     the history: git fetch --unshallow"
                )
            } else {
                message
            };
            self.refuse(bad, reason)
        };
        output.transpose().map_err(refuse)
    }

    fn resolve(&self, revision: &str) -> Result<Option<String>, SuiteError> {
        if revision.starts_with('-') {
            let reason = "a revision does not begin with a dash".to_owned();
            return Err(self.refuse(revision, reason));
        }
        let commit = format!("{revision}^{{commit}}");
        self.output_of(revision, &["rev-parse", "--verify", &commit])
    }

    fn refuse(&self, revision: &str, reason: String) -> SuiteError {
        SuiteError::Revision {
            repository: self.repository.to_path_buf(),
            revision: revision.to_owned(),
            reason,
        }
    }
}

/// Lists commits: the name, a tab, the parents, a tab, the first line of the message.
fn list<'a>(which: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["rev-list", "--format=%H%x09%P%x09%s"];
    words.extend(which);
    words
}

/// One line of [`list`]; `None` for the headings between.
fn parse(line: &str) -> Option<Commit> {
    let (revision, rest) = line.split_once('\t')?;
    let (parents, title) = rest.split_once('\t').unwrap_or((rest, ""));
    Some(Commit {
        revision: revision.to_owned(),
        title: title.to_owned(),
        merge: parents.split_whitespace().count() > 1,
    })
}
