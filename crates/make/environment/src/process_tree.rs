//! Trees of processes that start, run programs and end, one tree after the other.
//!
//! Each process of a tree is this program, started with the argument [`PROCESS_TREE_WORD`]. So parents and
//! children are as in the tree. An argument holds the parent's process id; standard input describes the
//! processes below. Processes with children wait for them; the others become the program that was drawn for
//! them. The kernel kills each process whose parent has ended, so none outlives the generator.

mod grow;
mod live;

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::rc::Rc;

use stillwell_metric::Outcome;
use stillwell_plan::generator::ProcessTreePlan;
use stillwell_scope::{Tasks, clock};
use stillwell_units::Seed;
use stillwell_worker::{Opener, TransportError, Wait, Worker};
use tokio::io::AsyncWriteExt;
use tokio::process::{Child, Command};

use grow::Growth;
pub use live::{PROCESS_TREE_WORD, ProcessError, be_process};

/// State that all trees of a generator share.
#[derive(Clone, Debug)]
pub(crate) struct ProcessTree {
    plan: ProcessTreePlan,
    seed: Seed,
    /// This program.
    executable: PathBuf,
}

/// A program of a tree that is not there.
#[derive(Debug, thiserror::Error)]
#[error("there is no program {}", path.display())]
pub struct ProgramMissing {
    /// The path from the plan.
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
            let file = find(&executable.program, &paths);
            executable.program = file.ok_or_else(|| ProgramMissing {
                path: executable.program.clone(),
            })?;
        }
        Ok(Self {
            plan,
            seed: *seed,
            // The link itself: it is valid even if the file was replaced.
            executable: PathBuf::from("/proc/self/exe"),
        })
    }
}

/// Returns the file of `program`: the path itself, or a bare name in `paths`.
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
        let Some(slice) = worker.next_slice(&worker.next, 0).await else {
            return;
        };
        let growth = Growth::draw(&trees.plan, &trees.seed.derive("process_tree", number));
        worker.begin_paced();
        let sent = clock::now();
        // At the end of the worker the tree under way has a moment; then it is cut.
        let grown = worker
            .wait(Wait::Other, grow(&trees.executable, &growth))
            .await;
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

/// Runs one tree. Returns true if all of it ran. Dropping the future kills the tree.
async fn grow(executable: &Path, growth: &Growth) -> io::Result<bool> {
    let mut child = root(executable)?;
    if let Some(mut input) = child.stdin.take() {
        input.write_all(&growth.bytes()?).await?;
    }
    Ok(live::is_complete(growth, child.wait().await?))
}

fn root(executable: &Path) -> io::Result<Child> {
    let mut command = Command::new(executable);
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
        let executable = folder.path().join("executable");
        std::fs::write(&executable, "").unwrap();
        let paths = std::env::join_paths(["/nowhere".as_ref(), folder.path()]).unwrap();
        assert_eq!(
            find(Path::new("executable"), &paths),
            Some(executable.clone())
        );
        assert_eq!(find(&executable, &paths), Some(executable));
        for wrong in ["other", "./executable", "/nowhere/executable", ""] {
            assert_eq!(find(Path::new(wrong), &paths), None, "{wrong}");
        }
    }
}
