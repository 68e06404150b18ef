//! Trees of processes that start, run programs and end, one tree after the other.
//!
//! Each process of a tree is this program again, under the word that
//! [`PROCESS_TREE_WORD`] is, so that each is the child of the one that the tree says.
//! It is told by an argument who its parent is, and on its input what is below it.
//! Processes with children live a while and wait for them; those without become the
//! program that was drawn for them. The kernel kills every one of them whose parent has gone, so that nothing outlives
//! the generator.

mod grow;
mod live;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;

use stillwell_metric::Outcome;
use stillwell_plan::ProcessTreePlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::Seed;
use stillwell_worker::{Opener, TransportError, Wait, Worker};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use grow::Growth;
pub use live::{PROCESS_TREE_WORD, ProcessError, be_process};

/// What all trees of a generator have in common.
#[derive(Clone, Debug)]
pub(crate) struct ProcessTree {
    plan: ProcessTreePlan,
    seed: Seed,
    /// This program.
    own: PathBuf,
}

/// A program of a tree that is not there.
#[derive(Debug, thiserror::Error)]
#[error("there is no program {}", path.display())]
pub struct ProgramMissing {
    /// As it was given.
    pub path: PathBuf,
}

impl From<ProgramMissing> for TransportError {
    fn from(source: ProgramMissing) -> Self {
        Self::new("prepare the processes", source)
    }
}

impl ProcessTree {
    /// Looks for all programs.
    pub(crate) fn new(plan: &ProcessTreePlan, seed: &Seed) -> Result<Self, ProgramMissing> {
        let mut plan = plan.clone();
        let paths = std::env::var_os("PATH").unwrap_or_default();
        for executable in &mut plan.executables {
            let found = find(&executable.program, &paths);
            executable.program = found.ok_or_else(|| ProgramMissing {
                path: executable.program.clone(),
            })?;
        }
        Ok(Self {
            plan,
            seed: *seed,
            // The link itself: it names us even where our file was replaced.
            own: PathBuf::from("/proc/self/exe"),
        })
    }
}

/// The file that `program` means: itself, or for a bare name the one in `paths`.
fn find(program: &Path, paths: &std::ffi::OsStr) -> Option<PathBuf> {
    let is_there = |path: &PathBuf| path.is_file();
    if program.components().count() > 1 || program.is_absolute() {
        return Some(program.to_owned()).filter(is_there);
    }
    let mut candidates = std::env::split_paths(paths).map(|folder| folder.join(program));
    candidates.find(is_there)
}

impl Opener for ProcessTree {
    fn open(&self, worker: &Rc<Worker>, _connections: u16, tasks: &mut Tasks) {
        tasks.spawn(work(Rc::clone(worker), self.clone()));
    }
}

/// Grows tree after tree until the worker ends.
async fn work(worker: Rc<Worker>, trees: ProcessTree) {
    for number in 0.. {
        let Some(slice) = worker.ask(&worker.next, 0).await else {
            return;
        };
        let growth = Growth::draw(&trees.plan, &trees.seed.derive("process_tree", number));
        worker.begin_paced();
        let sent = clock::now();
        // At the end of the worker the tree under way has a moment; then it is cut.
        let grown = worker.wait(Wait::Other, grow(&trees.own, &growth)).await;
        let outcome = match grown {
            Ok(true) => Outcome::Ok,
            Ok(false) | Err(_) => Outcome::SendFailed,
        };
        worker.end_paced();
        worker.shard.count(outcome);
        let now = clock::now();
        let mut state = worker.state.borrow_mut();
        state.record_answer(slice.intended, sent, now);
    }
}

/// Whether all of a tree ran. One that is given up is killed.
async fn grow(own: &Path, growth: &Growth) -> io::Result<bool> {
    let mut child = root(own)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&growth.bytes()?).await?;
    }
    Ok(child.wait().await?.success())
}

fn root(own: &Path) -> io::Result<Child> {
    let mut command = Command::new(own);
    command
        .arg0("stillwell")
        .arg(PROCESS_TREE_WORD)
        .arg(std::process::id().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command.spawn()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_as_a_shell_finds_them() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::write(&own, "").unwrap();
        let paths = std::env::join_paths(["/nowhere".as_ref(), folder.path()]).unwrap();
        assert_eq!(find(Path::new("own"), &paths), Some(own.clone()));
        assert_eq!(find(&own, &paths), Some(own));
        for wrong in ["other", "./own", "/nowhere/own", ""] {
            assert_eq!(find(Path::new(wrong), &paths), None, "{wrong}");
        }
    }
}
