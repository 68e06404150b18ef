//! Start of a target's process.

use std::ffi::CString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use rustix::process::{Pid, PidfdFlags, getpid, pidfd_open, set_child_subreaper};
use rustix::thread::CpuSet;
use stillwell_plan::target::ChildPlan;
use stillwell_plan::{TargetKind, TargetPlan};
use stillwell_scope::{NetworkNamespace, clock};

use crate::kernel::{self, Birth, BirthStep};
use crate::local_service::process_at;
use crate::mounts::{self, MountError};
use crate::open_files::limit_before;
use crate::program::{self, ProgramError};
use crate::target_process::{Log, Owned, Process};
use crate::{Cgroup, TargetLog, TargetProcess, leftover, tree};

/// Surroundings of a target's process, besides its plan.
#[derive(Clone, Debug)]
pub struct StartOptions {
    /// The run's own folder: the working directory if the plan has none, and
    /// where mounts are prepared.
    pub state: PathBuf,
    /// The file for stdout.
    pub stdout: TargetLog,
    /// The file for stderr.
    pub stderr: TargetLog,
    /// The CPUs that it may use; `None` for those of the calling thread.
    pub cpus: Option<Vec<u16>>,
    /// The groups that it is born into.
    pub cgroup: Option<Arc<Cgroup>>,
    /// Its network namespace; `None` for the calling thread's.
    pub network: Option<NetworkNamespace>,
}

/// An error while starting a target.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program does not exist.
    #[error(transparent)]
    Program(ProgramError),
    /// A folder cannot be mounted at its place.
    #[error("start the target with its mounts")]
    Mount(#[source] MountError),
    /// A file for its output could not be made.
    #[error("write a program's output to {}", path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Its working directory cannot be entered.
    #[error("enter the target's working directory {}", path.display())]
    Directory {
        /// The folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The kernel refused a step before the program ran.
    #[error("prepare the target's process ({step})")]
    Prepare {
        /// The step that failed.
        step: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// The kernel did not run the program.
    #[error("run {}", program.display())]
    Execute {
        /// The program.
        program: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// There is no process to watch.
    #[error("watch process {pid}")]
    Attach {
        /// Its number.
        pid: u32,
        /// The operating system's error.
        source: io::Error,
    },
}

/// Starts the target of `plan`, whose placeholders are filled in, or attaches to the process that it names.
///
/// A program gets no stdin, two files for its output, its own session, this process's resource limits, and the
/// plan's environment. The environment also holds `PATH` and a mark that identifies descendants. The kernel
/// kills the program when *the calling thread* ends, so thread must outlive it. The program is in the
/// calling thread's network namespace. From now on this process adopts orphans among its descendants.
///
/// # Errors
/// [`StartError`]; nothing remains running.
pub fn start(plan: &TargetPlan, options: &StartOptions) -> Result<TargetProcess, StartError> {
    match &plan.kind {
        TargetKind::Child(child) => start_child(child, options),
        _ => attach(plan),
    }
}

/// Attaches to the process of `plan`, if it names one or a URL at which a process of this host listens; there is nothing
/// to start.
///
/// # Errors
/// [`StartError::Attach`] if the process does not exist, or the plan is of a program to be started.
pub fn attach(plan: &TargetPlan) -> Result<TargetProcess, StartError> {
    match &plan.kind {
        TargetKind::Url(url) => {
            // A service that cannot be watched is tested all the same.
            let process = process_at(url).and_then(|pid| TargetProcess::attached(pid).ok());
            Ok(process.unwrap_or_else(TargetProcess::none))
        }
        TargetKind::None => Ok(TargetProcess::none()),
        TargetKind::Pid(pid) => {
            TargetProcess::attached(*pid).map_err(|source| StartError::Attach { pid: *pid, source })
        }
        // The engine starts it: see `Container`, which knows its process.
        TargetKind::Child(_) | TargetKind::Container(_) => Err(StartError::Attach {
            pid: 0,
            source: io::Error::from(io::ErrorKind::InvalidInput),
        }),
    }
}

fn start_child(plan: &ChildPlan, options: &StartOptions) -> Result<TargetProcess, StartError> {
    let is_mounted = plan
        .mounts
        .iter()
        .any(|mount| plan.program.starts_with(&mount.at));
    let program = match program::find(&plan.program) {
        // It may be in a folder that only the target will see.
        Err(_) if is_mounted => plan.program.clone(),
        program => program.map_err(StartError::Program)?,
    };
    let mark = leftover::fresh_mark(clock::now().as_u64());
    let lengths = (options.stdout.length(), options.stderr.length());
    let mut command = command(&program, plan, options, &mark)?;

    let prepare = |step| move |source| StartError::Prepare { step, source };
    let directory = plan.directory.as_ref().unwrap_or(&options.state);
    let (reader, writer) = kernel::report_pipe().map_err(prepare("a pipe"))?;
    let staging = options.state.join("mounts");
    let mounted = mounts::prepare(&plan.mounts, &staging).map_err(StartError::Mount)?;
    let (steps, places) = mounted;
    let groups = match &options.cgroup {
        Some(cgroup) => cgroup.process_files().map_err(prepare("its cgroup"))?,
        None => Vec::new(),
    };
    let birth = Birth {
        parent: getpid(),
        groups,
        network: options.network.clone(),
        cpus: options.cpus.as_deref().map(cpu_set),
        open_files: limit_before(),
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
            Some(BirthStep::Session) => prepare("a new session")(source),
            Some(BirthStep::Cgroup) => prepare("its cgroup")(source),
            Some(BirthStep::Network) => prepare("its network namespace")(source),
            Some(BirthStep::Cpus) => prepare("its CPUs")(source),
            Some(BirthStep::OpenFiles) => prepare("its limit of open files")(source),
            None => StartError::Execute { program, source },
        })?;
    let process = adopt(child.id(), mark, options).map_err(prepare("a process descriptor"))?;
    let (stdout, stderr) = (
        Log::of(options.stdout.path(), lengths.0),
        Log::of(options.stderr.path(), lengths.1),
    );
    Ok(TargetProcess::new(
        Some(process),
        Some(stdout),
        Some(stderr),
    ))
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
        .stdout(output(&options.stdout)?)
        .stderr(output(&options.stderr)?);
    if !plan.environment.inherit {
        command.env_clear();
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    }
    command.envs(&plan.environment.variables);
    command.env(tree::MARK, mark);
    Ok(command)
}

/// Returns the new process. From now on this crate waits for it, not the standard library.
fn adopt(number: u32, mark: String, options: &StartOptions) -> io::Result<Process> {
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

fn output(log: &TargetLog) -> Result<Stdio, StartError> {
    let file = log.handle().map_err(|source| StartError::Output {
        path: log.path().to_owned(),
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
