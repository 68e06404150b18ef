//! How a program is started.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};
use rustix::thread::CpuSet;
use stillwell_plan::{ChildPlan, SubjectKind, SubjectPlan};
use stillwell_scope::{NetworkNamespace, clock};

use crate::kernel::{self, Birth, BirthStep};
use crate::mounts::{self, MountError};
use crate::program::{self, ProgramError};
use crate::subject::{Log, Owned, Process};
use crate::{Cgroup, Subject, leftover, tree};

/// Where a subject is started, besides what its plan says.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The run's own folder: the working directory if the plan has none, and
    /// where mounts are prepared.
    pub state: PathBuf,
    /// The file that takes its stdout.
    pub stdout: PathBuf,
    /// The file that takes its stderr.
    pub stderr: PathBuf,
    /// The CPUs that it may use; `None` for those of the calling thread.
    pub cpus: Option<Vec<u16>>,
    /// The groups that it is born into.
    pub cgroup: Option<Arc<Cgroup>>,
    /// Its network namespace; `None` for the calling thread's.
    pub network: Option<NetworkNamespace>,
    /// Whether it was there before: its output goes behind what it wrote then.
    pub is_again: bool,
}

/// Why a subject could not be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error(transparent)]
    Program(ProgramError),
    /// A folder cannot be shown where the plan wants it.
    #[error("start the target with its mounts")]
    Mount(#[source] MountError),
    /// A file for its output could not be made.
    #[error("write a program's output to {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Its working directory cannot be entered.
    #[error("enter the target's working directory {}", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel refused a step before the program ran.
    #[error("prepare the target's process ({step})")]
    Prepare {
        /// What was refused.
        step: &'static str,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel did not run the program.
    #[error("run {}", program.display())]
    Execute {
        /// The program.
        program: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// There is no process to watch.
    #[error("watch process {pid}")]
    Attach {
        /// Its number.
        pid: u32,
        /// The kernel's answer.
        source: io::Error,
    },
}

/// Starts the subject of `plan`, whose places are filled in, or looks at the
/// process that it names.
///
/// A program gets no stdin, the two files for its output, a session of its own,
/// our resource limits, and its plan's environment with `PATH` and a mark by
/// which its descendants are found. The kernel kills it when *the calling
/// thread* ends, so that thread must be one that outlives it. It stands in the
/// calling thread's network namespace. From here on this process adopts the
/// orphans among its descendants.
///
/// # Errors
/// [`StartError`]; nothing is left running then.
pub fn start(plan: &SubjectPlan, options: &StartOptions) -> Result<Subject, StartError> {
    match &plan.kind {
        SubjectKind::None => Ok(Subject::none()),
        SubjectKind::Pid(pid) => {
            Subject::attached(*pid).map_err(|source| StartError::Attach { pid: *pid, source })
        }
        SubjectKind::Child(child) => start_child(child, options),
        // Its engine starts it: see `Container`, which knows its process.
        SubjectKind::Container(_) => Err(StartError::Attach {
            pid: 0,
            source: io::Error::from(io::ErrorKind::InvalidInput),
        }),
    }
}

fn start_child(plan: &ChildPlan, options: &StartOptions) -> Result<Subject, StartError> {
    let is_mounted = plan
        .mounts
        .iter()
        .any(|mount| plan.program.starts_with(&mount.at));
    let program = match program::find(&plan.program) {
        // It may lie in what only the subject will see.
        Err(_) if is_mounted => plan.program.clone(),
        found => found.map_err(StartError::Program)?,
    };
    let mark = leftover::fresh_mark(clock::now().as_u64());
    let lengths = (
        options.written(&options.stdout),
        options.written(&options.stderr),
    );
    let mut command = command(&program, plan, options, &mark)?;

    let prepare = |step| move |source| StartError::Prepare { step, source };
    let directory = plan.directory.as_ref().unwrap_or(&options.state);
    let (reader, writer) = kernel::report_pipe().map_err(prepare("a pipe"))?;
    let staging = options.state.join("mounts");
    let mounted = mounts::prepare(&plan.mounts, &staging).map_err(StartError::Mount)?;
    let (steps, places) = mounted;
    let groups = match &options.cgroup {
        Some(cgroup) => cgroup.doors().map_err(prepare("its cgroup"))?,
        None => Vec::new(),
    };
    let birth = Birth {
        parent: getpid(),
        groups,
        network: options.network.clone(),
        cpus: options.cpus.as_deref().map(cpu_set),
        mounts: steps,
        directory: CString::new(directory.as_os_str().as_bytes())
            .map_err(|error| prepare("its working directory")(error.into()))?,
        report: writer,
    };
    kernel::at_birth(&mut command, birth);
    set_child_subreaper(Some(getpid()))
        .map_err(|errno| prepare("adopting its orphans")(errno.into()))?;
    let child = command
        .spawn()
        .map_err(|source| match failed_step(&reader) {
            Some(BirthStep::Mount(index)) => StartError::Mount(MountError::Refused {
                at: places.get(usize::from(index)).cloned().unwrap_or_default(),
                source,
            }),
            Some(BirthStep::MountNamespace) => StartError::Mount(MountError::Refused {
                at: places.first().cloned().unwrap_or_default(),
                source,
            }),
            Some(BirthStep::Directory) => StartError::Directory {
                path: directory.clone(),
                source,
            },
            Some(BirthStep::Session) => prepare("a session of its own")(source),
            Some(BirthStep::Cgroup) => prepare("its cgroup")(source),
            Some(BirthStep::Network) => prepare("its network namespace")(source),
            Some(BirthStep::Cpus) => prepare("its CPUs")(source),
            None => StartError::Execute { program, source },
        })?;
    let process = own(child.id(), mark, options).map_err(prepare("a descriptor of it"))?;
    let (stdout, stderr) = (
        Log::of(&options.stdout, lengths.0),
        Log::of(&options.stderr, lengths.1),
    );
    Ok(Subject::new(Some(process), Some(stdout), Some(stderr)))
}

/// The program with its arguments, output and environment.
fn command(
    program: &Path,
    plan: &ChildPlan,
    options: &StartOptions,
    mark: &str,
) -> Result<Command, StartError> {
    let mut command = Command::new(program);
    command
        .args(&plan.arguments)
        .stdin(Stdio::null())
        .stdout(output(&options.stdout, options.is_again)?)
        .stderr(output(&options.stderr, options.is_again)?);
    if !plan.environment.inherit {
        command.env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    }
    command.envs(&plan.environment.variables);
    command.env(tree::MARK, mark);
    Ok(command)
}

impl StartOptions {
    /// How much of its output is that of earlier starts.
    fn written(&self, path: &Path) -> u64 {
        match std::fs::metadata(path) {
            Ok(metadata) if self.is_again => metadata.len(),
            _ => 0,
        }
    }
}

/// The process that was just born. From here on we wait for it, not the standard
/// library.
fn own(number: u32, mark: String, options: &StartOptions) -> io::Result<Process> {
    let pid = i32::try_from(number).ok().and_then(Pid::from_raw);
    let pid = pid.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))?;
    let descriptor = pidfd_open(pid, PidfdFlags::empty()).inspect_err(|_| {
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).ok();
    })?;
    Ok(Process {
        pid,
        descriptor,
        exit: Mutex::new(None),
        owned: Some(Owned {
            mark,
            cgroup: options.cgroup.clone(),
        }),
    })
}

fn output(path: &PathBuf, is_again: bool) -> Result<Stdio, StartError> {
    let opened = if is_again {
        OpenOptions::new().append(true).create(true).open(path)
    } else {
        File::create(path)
    };
    let file = opened.map_err(|source| StartError::Output {
        path: path.clone(),
        source,
    })?;
    Ok(file.into())
}

fn cpu_set(cpus: &[u16]) -> CpuSet {
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| usize::from(*cpu)) {
        if cpu < CpuSet::MAX_CPU {
            set.set(cpu);
        }
    }
    set
}

fn failed_step(reader: &OwnedFd) -> Option<BirthStep> {
    let mut byte = [0];
    match rustix::io::read(reader, &mut byte) {
        Ok(1) => BirthStep::from_byte(byte[0]),
        _ => None,
    }
}
