//! Programs that use the machine beside a trial.

use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::Context as _;

use super::BackgroundLoad;

const BUSY_LOOP: &str = "while :; do :; done";

/// Ends at the first build that fails.
const BUILDS: &str = "while cargo build --quiet -j2 --target-dir \"$0\"; do rm -rf \"$0\"; done";

/// Programs that use the machine until this is dropped.
#[derive(Debug)]
pub(super) struct Background {
    children: Vec<Child>,
    folder: Option<PathBuf>,
}

impl Background {
    /// Starts the programs of `load`; builds are of the workspace in `root`.
    pub(super) fn start(load: BackgroundLoad, root: &Path) -> anyhow::Result<Self> {
        let mut background = Self {
            children: Vec::new(),
            folder: None,
        };
        match load {
            BackgroundLoad::Nothing => {}
            BackgroundLoad::OneLoop => background.shell(BUSY_LOOP, root)?,
            BackgroundLoad::TwoLoops => {
                background.shell(BUSY_LOOP, root)?;
                background.shell(BUSY_LOOP, root)?;
            }
            BackgroundLoad::CargoBuild => {
                let name = format!("stillwell-evidence-build-{}", std::process::id());
                background.folder = Some(std::env::temp_dir().join(name));
                background.shell(BUILDS, root)?;
            }
        }
        Ok(background)
    }

    /// Starts a script in a process group of its own.
    fn shell(&mut self, script: &str, root: &Path) -> anyhow::Result<()> {
        let mut command = Command::new("sh");
        command.arg("-c").arg(script).args(&self.folder);
        let quiet = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = quiet.current_dir(root).process_group(0).spawn();
        self.children.push(child.context("run sh")?);
        Ok(())
    }

    /// Returns true if all programs still run.
    pub(super) fn is_running(&mut self) -> anyhow::Result<bool> {
        for child in &mut self.children {
            if child.try_wait()?.is_some() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        for child in &mut self.children {
            // The number of a script that has ended may belong to another program.
            if !matches!(child.try_wait(), Ok(None)) {
                continue;
            }
            // The group: a build has compilers below it.
            let group = format!("-{}", child.id());
            drop(Command::new("kill").args(["-KILL", "--", &group]).status());
            drop(child.wait());
        }
        if let Some(folder) = &self.folder {
            drop(std::fs::remove_dir_all(folder));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_run_until_they_are_dropped() {
        let root = std::env::temp_dir();
        let mut loops = Background::start(BackgroundLoad::TwoLoops, &root).unwrap();
        assert_eq!(loops.children.len(), 2);
        assert!(loops.is_running().unwrap());
        let ids: Vec<u32> = loops.children.iter().map(Child::id).collect();
        drop(loops);
        for id in ids {
            assert!(!Path::new(&format!("/proc/{id}")).exists());
        }
    }

    #[test]
    fn a_build_that_fails_is_no_load() {
        let root = std::env::temp_dir();
        let mut background = Background::start(BackgroundLoad::Nothing, &root).unwrap();
        background.shell("exit 1", &root).unwrap();
        background.children[0].wait().unwrap();
        assert!(!background.is_running().unwrap());
    }
}
