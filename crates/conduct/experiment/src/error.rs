//! The reason why a suite could not be begun.

use std::io;
use std::path::PathBuf;

/// The reason why a suite could not begin. Later failures are part of its outcome.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The folder holds results, and the command did not request to resume them.
    #[error("{} already contains results: resume them or choose another folder", results.display())]
    AlreadyThere {
        /// The folder.
        results: PathBuf,
    },
    /// The folder to go on with holds no results.
    #[error("{} holds no results to resume", results.display())]
    NothingToResume {
        /// The folder.
        results: PathBuf,
    },
    /// Another process writes into the folder.
    #[error("another process uses {}", results.display())]
    InUse {
        /// The folder.
        results: PathBuf,
    },
    /// The folder to go on with holds results of something else.
    #[error("the plan differs from that of {}: `{pointer}`", results.display())]
    PlanChanged {
        /// The folder.
        results: PathBuf,
        /// The first field that differs, as a JSON pointer into `suite.json`.
        pointer: String,
    },
    /// A file could not be read.
    #[error("read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// A file or folder could not be written.
    #[error("write {}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The variants of an experiment cannot share the machine as requested.
    #[error("{reason}")]
    Design {
        /// The reason, with the experiment.
        reason: String,
    },
    /// A variant's executable is not there.
    #[error("cannot run {} as variant `{variant}` of `{experiment}`: {reason}", path.display())]
    Binary {
        /// The experiment.
        experiment: String,
        /// The variant.
        variant: String,
        /// The executable.
        path: PathBuf,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// Several builds of a variant are not possible, or are no different.
    #[error("make {builds} builds of each variant of `{experiment}`: {reason}")]
    Builds {
        /// The experiment.
        experiment: String,
        /// The requested number of builds.
        builds: u32,
        /// The reason why not.
        reason: String,
    },
    /// A program that builds need could not be started.
    #[error("start `{program}`")]
    Program {
        /// The program.
        program: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// A revision is not in the repository, or cannot be an end of a search.
    #[error("use revision `{revision}` of {}: {reason}", repository.display())]
    Revision {
        /// The repository.
        repository: PathBuf,
        /// The requested revision.
        revision: String,
        /// The message of git, or the reason why not.
        reason: String,
    },
    /// The files of a revision could not be written.
    #[error("check out revision `{revision}` of {}: {reason}", repository.display())]
    Checkout {
        /// The repository.
        repository: PathBuf,
        /// The requested revision.
        revision: String,
        /// The message of git.
        reason: String,
    },
    /// A revision was not built.
    #[error("build revision `{revision}`: {reason}; the log is {}\n{log_tail}", log.display())]
    Build {
        /// The requested revision.
        revision: String,
        /// Description of the failed build.
        reason: String,
        /// The last lines of its log.
        log_tail: String,
        /// The whole log.
        log: PathBuf,
    },
}
