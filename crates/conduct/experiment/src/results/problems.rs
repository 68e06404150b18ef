//! Problems of a suite that are not part of its verdicts: `problems.json`.

use std::fs;
use std::io;

use serde::{Deserialize, Serialize};
use stillwell_units::Secrets;

use super::{Results, as_json};
use crate::SuiteError;
use crate::files::{read_json, write_json};

/// Names the shape of [`ProblemsRecord`]; keys are added within a version and never removed.
pub const PROBLEMS_SCHEMA: &str = "stillwell/problems/v1";

pub(super) const FILE: &str = "problems.json";

/// Problems of the last command that wrote into a results folder. Without any there is no such file.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ProblemsRecord {
    /// [`PROBLEMS_SCHEMA`].
    pub schema: String,
    /// Version of Stillwell.
    pub version: String,
    /// The command line, as it was typed.
    pub command: Vec<String>,
    /// The problems, in the order in which they occurred.
    pub problems: Vec<SavedProblem>,
}

/// The reason why a suite, or one of its experiments, was not finished.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SavedProblem {
    /// The experiment, if it is the problem of one.
    pub experiment: Option<String>,
    /// Exit code that it causes, if nothing has regressed.
    pub exit_code: u8,
    /// Description for readers; lines after the first are details.
    pub reason: String,
}

impl Results {
    /// Returns true if there is a request: of a suite, or of several targets.
    #[must_use]
    pub fn has_request(&self) -> bool {
        self.suite().exists() || self.targets().exists()
    }

    /// Returns the problems; `None` if there were none.
    ///
    /// # Errors
    /// [`SuiteError::Read`] if the file is not readable.
    pub fn problems(&self) -> Result<Option<ProblemsRecord>, SuiteError> {
        let path = self.root.join(FILE);
        if !path.exists() {
            return Ok(None);
        }
        read_json(&path).map(Some)
    }

    /// Replaces the problems; an empty list removes the file.
    ///
    /// # Errors
    /// [`SuiteError::Write`] if the file cannot be written.
    pub fn write_problems(
        &self,
        command: Vec<String>,
        problems: Vec<SavedProblem>,
        secrets: Secrets,
    ) -> Result<(), SuiteError> {
        let path = self.root.join(FILE);
        if problems.is_empty() {
            return match fs::remove_file(&path) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    Err(SuiteError::Write { path, source })
                }
                _ => Ok(()),
            };
        }
        let record = ProblemsRecord {
            schema: PROBLEMS_SCHEMA.to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            command,
            problems,
        };
        write_json(&path, &secrets.json(as_json(&record, &path)?))
    }
}
