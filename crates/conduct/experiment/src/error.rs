//! Why a lab could not be begun.

use std::io;
use std::path::PathBuf;

/// Why a lab could not be begun. What goes wrong once it has begun stands in its
/// outcome.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The folder holds results that nobody asked to go on with.
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
        /// What was wrong.
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
    /// Its variants cannot share the machine as asked.
    #[error(
        "`design: {design}` needs two variants, and `{experiment}` has {variants}: \
         use `design: paired`"
    )]
    Design {
        /// The experiment.
        experiment: String,
        /// What was asked for.
        design: &'static str,
        /// How many it has.
        variants: usize,
    },
    /// A variant's executable is not there.
    #[error("run {} as variant `{variant}` of `{experiment}`: {reason}", path.display())]
    Binary {
        /// The experiment.
        experiment: String,
        /// The variant.
        variant: String,
        /// The executable.
        path: PathBuf,
        /// Why it cannot be used.
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
    /// Git could not do what a build needs.
    #[error("take revision `{revision}` of {}: {reason}", repository.display())]
    Revision {
        /// The repository.
        repository: PathBuf,
        /// What was asked for.
        revision: String,
        /// What git said.
        reason: String,
    },
    /// A revision was not built.
    #[error("build revision `{revision}`: {reason}; the log is {}\n{log_tail}", log.display())]
    Build {
        /// What was asked for.
        revision: String,
        /// How the build failed.
        reason: String,
        /// The last lines of its log.
        log_tail: String,
        /// The whole log.
        log: PathBuf,
    },
}
