//! The binary from end to end: what it prints, how it exits, what it leaves, and
//! that nothing goes on when it has ended. The subject is `stillwell relay`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says what it skips"
)]

#[path = "cli/bisect.rs"]
mod bisect;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/git.rs"]
mod git;
#[path = "cli/hinder.rs"]
mod hinder;
#[path = "cli/history.rs"]
mod history;
#[path = "cli/interrupt.rs"]
mod interrupt;
#[path = "cli/lab.rs"]
mod lab;
#[path = "cli/lading.rs"]
mod lading;
#[path = "cli/load.rs"]
mod load;
#[path = "cli/resume.rs"]
mod resume;
#[path = "cli/rig.rs"]
mod rig;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/start.rs"]
mod start;
#[path = "cli/storage.rs"]
mod storage;
#[path = "cli/subject.rs"]
mod subject;
#[path = "cli/transform.rs"]
mod transform;
#[path = "cli/validity.rs"]
mod validity;
#[path = "cli/verdict.rs"]
mod verdict;
