//! A folder that looks like `/proc`, for programs with a configurable path. It is created before the run and
//! does not change.

mod process;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use stillwell_metric::Outcome;
use stillwell_plan::generator::ProcFsPlan;
use stillwell_scope::Tasks;
use stillwell_units::Seed;
use stillwell_worker::{Opener, TransportError, Worker};

use crate::numbers::Numbers;
use process::Process;

/// The folder that was laid out.
#[derive(Clone, Debug)]
pub(crate) struct ProcFs {
    processes: u32,
}

/// A file that could not be laid out.
#[derive(Debug, thiserror::Error)]
#[error("create {}", path.display())]
pub struct LayOutError {
    /// The file or folder.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: io::Error,
}

impl From<LayOutError> for TransportError {
    fn from(source: LayOutError) -> Self {
        Self::new("create the simulated /proc", source)
    }
}

impl ProcFs {
    /// Creates all files. Existing files in the folder remain unless they have the same name.
    pub(crate) fn new(plan: &ProcFsPlan, seed: &Seed) -> Result<Self, LayOutError> {
        let mut numbers = Numbers::new(&seed.derive("proc_fs", 0));
        folder(&plan.root)?;
        for source in &plan.copies {
            copy(source, &plan.root)?;
        }
        for number in 1..=plan.processes {
            let process = Process::draw(number, &mut numbers);
            let process_folder = plan.root.join(number.to_string());
            folder(&process_folder)?;
            for (name, text) in process.files() {
                let path = process_folder.join(name);
                fs::write(&path, text).map_err(|source| LayOutError { path, source })?;
            }
        }
        Ok(Self {
            processes: plan.processes,
        })
    }
}

fn folder(path: &Path) -> Result<(), LayOutError> {
    fs::create_dir_all(path).map_err(|source| LayOutError {
        path: path.to_owned(),
        source,
    })
}

/// Copies the current content of a file; files of the kernel report no length.
fn copy(source: &Path, root: &Path) -> Result<(), LayOutError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| LayOutError { path, source }
    };
    let name = source.file_name().unwrap_or(source.as_os_str());
    let text = fs::read(source).map_err(failed(source))?;
    let target = root.join(name);
    fs::write(&target, text).map_err(failed(&target))
}

impl Opener for ProcFs {
    fn open(&self, worker: &Rc<Worker>, _connections: u16, tasks: &mut Tasks) {
        tasks.spawn(report_created(Rc::clone(worker), self.clone()));
    }
}

/// Counts what was laid out. Nothing is sent.
#[expect(
    clippy::unused_async,
    reason = "all generators are tasks; this one has nothing to do"
)]
async fn report_created(worker: Rc<Worker>, laid_out: ProcFs) {
    for _ in 0..laid_out.processes {
        worker.begin_paced();
        worker.end_paced();
        worker.shard.count(Outcome::Ok);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_laid_out_the_same_from_the_same_seed() {
        let folder = tempfile::tempdir().unwrap();
        let plan = |name: &str| ProcFsPlan {
            root: folder.path().join(name),
            processes: 3,
            copies: vec!["/proc/uptime".into(), "/proc/stat".into()],
        };
        let seed = Seed::from_number(5);
        for name in ["one", "two"] {
            ProcFs::new(&plan(name), &seed).unwrap();
        }
        let read = |path: &str| fs::read(folder.path().join(path)).unwrap();
        for file in ["cmdline", "comm", "io", "limits", "stat", "statm", "status"] {
            assert_eq!(
                read(&format!("one/3/{file}")),
                read(&format!("two/3/{file}"))
            );
            assert!(!read(&format!("one/1/{file}")).is_empty());
        }
        assert!(!folder.path().join("one/4").exists());
        assert!(
            String::from_utf8(read("one/stat"))
                .unwrap()
                .starts_with("cpu ")
        );
        assert!(!read("one/uptime").is_empty());
    }

    #[test]
    fn what_cannot_be_laid_out_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let plan = ProcFsPlan {
            root: file.path().join("below"),
            processes: 1,
            copies: Vec::new(),
        };
        let error = ProcFs::new(&plan, &Seed::from_number(1)).unwrap_err();
        assert_eq!(error.path, plan.root);
    }
}
