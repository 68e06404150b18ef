//! The calls that the compiler cannot check; nowhere else is there `unsafe`.
#![expect(unsafe_code, reason = "system calls that have no safe wrapper")]

use std::ffi::{CStr, CString};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use rustix::fs::{Mode, OFlags};
use rustix::io::retry_on_intr;
use rustix::mount::{
    MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive,
    mount_change, unmount,
};
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, chdir, chroot, getppid, pivot_root,
    set_parent_process_death_signal, setrlimit, setsid, waitpid,
};
use rustix::thread::{CpuSet, UnshareFlags, sched_setaffinity, unshare_unsafe};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use stillwell_scope::NetworkNamespace;

use crate::Exit;

/// Moves the calling thread to a new namespace.
pub(crate) fn unshare(flags: UnshareFlags) -> io::Result<()> {
    debug_assert!(!flags.contains(UnshareFlags::FILES));
    // SAFETY: the call is unsafe only because `FILES` gives a thread its own table
    // of descriptors; no caller passes it.
    unsafe { unshare_unsafe(flags) }.map_err(Into::into)
}

/// Moves this process, which must have one thread, to a new user namespace. `maps` are the files of the kernel to write
/// then, in this order, with their contents.
///
/// An error after the first step leaves the process in the namespace: see [`try_user_namespace`].
pub(crate) fn enter_user_namespace(maps: &[(&CStr, String)]) -> rustix::io::Result<()> {
    // SAFETY: see [`unshare`]; this call returns its error as a number.
    unsafe { unshare_unsafe(UnshareFlags::NEWUSER) }?;
    for (path, content) in maps {
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = rustix::fs::open(*path, flags, Mode::empty())?;
        rustix::io::write(&file, content.as_bytes())?;
    }
    Ok(())
}

/// Tries [`enter_user_namespace`] in a child process; this process stays in its namespace.
pub(crate) fn try_user_namespace(maps: &[(&CStr, String)]) -> io::Result<()> {
    // SAFETY: this process may have threads, so the child may only do what is safe in a signal handler. It makes
    // plain system calls on memory that was made before the fork, takes no lock, allocates nothing (paths are
    // `CStr`s), cannot panic, and ends before this function returns in it.
    let child = unsafe { libc::fork() };
    if child < 0 {
        return Err(io::Error::last_os_error());
    }
    if child == 0 {
        let entered = enter_user_namespace(maps);
        let code = entered.map_or_else(rustix::io::Errno::raw_os_error, |()| 0);
        // SAFETY: the call has no condition. It ends the child and runs nothing of the parent's.
        unsafe { libc::_exit(code) }
    }
    let waited = retry_on_intr(|| waitpid(Pid::from_raw(child), WaitOptions::empty()))?;
    match waited.and_then(|(_, status)| status.exit_status()) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(code)),
        None => Err(io::Error::other(
            "the attempt in a child process was killed",
        )),
    }
}

/// The kernel's `struct sched_attr`, in its first version.
#[repr(C)]
#[derive(Default)]
struct SchedulingAttributes {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime: u64,
    deadline: u64,
    period: u64,
}

/// Gives the calling thread, and what it starts from then on, a nice value and a time slice in nanoseconds. Kernels
/// before 6.12 ignore the slice.
pub(crate) fn set_scheduling(nice: i32, slice: u64) -> io::Result<()> {
    let attributes = SchedulingAttributes {
        size: u32::try_from(size_of::<SchedulingAttributes>()).unwrap_or(48),
        nice,
        runtime: slice,
        ..SchedulingAttributes::default()
    };
    // SAFETY: the structure lives across the call, which only reads it, and its length is given.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

// The type of a request's number depends on the C library; that of its constants does not.
/// `SIOCGIFFLAGS`
const GET_FLAGS: libc::Ioctl = 0x8913;
/// `SIOCSIFFLAGS`
const SET_FLAGS: libc::Ioctl = 0x8914;

/// Brings up the loopback interface of the calling thread's network namespace.
pub(crate) fn raise_loopback() -> io::Result<()> {
    let socket = any_socket()?;
    // SAFETY: an all-zero `ifreq` is valid: it holds integers and arrays of them.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    // SAFETY: `socket` is open and `request` is a live `ifreq`, which is what both
    // requests read and write.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), GET_FLAGS, &raw mut request) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the request above succeeded, so the flags are what the union holds.
    let flags = unsafe { request.ifr_ifru.ifru_flags };
    let up = libc::c_short::try_from(libc::IFF_UP).unwrap_or(1);
    request.ifr_ifru.ifru_flags = flags | up;
    // SAFETY: as above.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), SET_FLAGS, &raw const request) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// `TUNSETIFF`
const MAKE_TUN: libc::Ioctl = 0x4004_54ca;

/// Creates a device called `name` in the calling thread's network namespace. Its packets are read and written
/// through the descriptor, without blocking. The device exists until the descriptor is closed.
pub(crate) fn open_tun(name: &CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let device = rustix::fs::open(c"/dev/net/tun", flags, Mode::empty())?;
    // SAFETY: an all-zero `ifreq` is valid: it holds integers and arrays of them.
    let mut request: libc::ifreq = unsafe { MaybeUninit::zeroed().assume_init() };
    // The last byte stays zero.
    let name_bytes_max = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..name_bytes_max]
        .iter_mut()
        .zip(name.to_bytes())
    {
        *to = libc::c_char::from_ne_bytes([*from]);
    }
    let kind = libc::IFF_TUN | libc::IFF_NO_PI;
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(kind).unwrap_or(0x1001);
    // SAFETY: `device` is open and `request` is a live `ifreq`, which the request reads.
    let status = unsafe { libc::ioctl(device.as_raw_fd(), MAKE_TUN, &raw mut request) };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(device)
}

fn any_socket() -> io::Result<OwnedFd> {
    // Any socket of the namespace works; the standard library opens one with the close-on-exec flag.
    Ok(std::net::UdpSocket::bind(("0.0.0.0", 0))?.into())
}

/// `descriptor`, watched by the calling worker's runtime.
pub(crate) fn watched(descriptor: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` is open and stays the same one until it is dropped;
    // nothing takes it out of the `AsyncFd` before that.
    let watched = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) }?;
    Ok(watched)
}

/// Returns the exit status of the child `pid` and removes it from the process table; `Ok(None)` while it runs.
pub(crate) fn reap(pid: Pid) -> io::Result<Option<Exit>> {
    let mut status = 0;
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: both pointers are to live values of the types that the call fills.
    let waited = unsafe {
        libc::wait4(
            pid.as_raw_pid(),
            &raw mut status,
            libc::WNOHANG,
            usage.as_mut_ptr(),
        )
    };
    match waited {
        0 => return Ok(None),
        -1 => return Err(io::Error::last_os_error()),
        _ => {}
    }
    // SAFETY: zeroed is a valid `rusage` (integers only) and the call has filled it.
    let usage = unsafe { usage.assume_init() };
    Ok(Some(Exit {
        code: libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)),
        signal: libc::WIFSIGNALED(status).then(|| libc::WTERMSIG(status)),
        core: libc::WIFSIGNALED(status) && libc::WCOREDUMP(status),
        cpu_user_micros: micros(usage.ru_utime),
        cpu_system_micros: micros(usage.ru_stime),
        // The largest memory includes that of this process: the kernel counts from the fork.
    }))
}

fn micros(time: libc::timeval) -> u64 {
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let micros = u64::try_from(time.tv_usec).unwrap_or(0);
    seconds * 1_000_000 + micros
}

/// Steps of a child between `fork` and its program. All memory is allocated before.
#[derive(Debug)]
pub(crate) struct Birth {
    /// Parent process id; the child ends at once if the parent has ended.
    pub(crate) parent: Pid,
    /// `cgroup.procs` of each of its groups, open for writing.
    pub(crate) groups: Vec<OwnedFd>,
    /// Its network namespace, if it differs from the parent's.
    pub(crate) network: Option<NetworkNamespace>,
    /// The CPUs that it may use.
    pub(crate) cpus: Option<CpuSet>,
    /// Its limit of open files, if it differs from the parent's.
    pub(crate) open_files: Option<Rlimit>,
    /// Its mounts, if they differ from the parent's.
    pub(crate) mounts: Vec<MountStep>,
    /// Its working directory.
    pub(crate) directory: CString,
    /// Pipe for the number of a failed step: one byte, see [`BirthStep`].
    pub(crate) report: OwnedFd,
}

/// One call of `mount`.
#[derive(Debug)]
pub(crate) enum MountStep {
    /// Show `source`, with all that is mounted in it, at `at`, which exists.
    Bind {
        source: CString,
        at: CString,
        is_read_only: bool,
    },
    /// Lay a read-only overlay over `at`; `data` names its layers.
    Overlay { at: CString, data: CString },
    /// Make a mount of the folder `at`, which is not shown again within what is shown
    /// in it.
    Base { at: CString },
    /// Make the mount `at` the root of all paths.
    Root { at: CString },
}

/// The steps of a birth, in their order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum BirthStep {
    Session,
    Cgroup,
    Network,
    Cpus,
    OpenFiles,
    /// A mount namespace.
    MountNamespace,
    /// The mount with this index.
    Mount(u8),
    Directory,
}

impl BirthStep {
    const MOUNT_FIRST: u8 = 16;

    const fn byte(self) -> u8 {
        match self {
            Self::Session => 0,
            Self::Cgroup => 1,
            Self::Cpus => 2,
            Self::MountNamespace => 3,
            Self::Directory => 4,
            Self::Network => 5,
            Self::OpenFiles => 6,
            Self::Mount(index) => Self::MOUNT_FIRST.saturating_add(index),
        }
    }

    pub(crate) const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Session),
            1 => Some(Self::Cgroup),
            2 => Some(Self::Cpus),
            3 => Some(Self::MountNamespace),
            4 => Some(Self::Directory),
            5 => Some(Self::Network),
            6 => Some(Self::OpenFiles),
            Self::MOUNT_FIRST.. => Some(Self::Mount(byte - Self::MOUNT_FIRST)),
            _ => None,
        }
    }
}

/// Has every child that `command` starts carry out `birth`.
pub(crate) fn at_birth(command: &mut Command, birth: Birth) {
    let steps = move || {
        carry_out(&birth).map_err(|(step, error)| {
            // A failed write is ignored: the parent then has only the error.
            rustix::io::write(&birth.report, &[step.byte()]).ok();
            io::Error::from(error)
        })
    };
    // SAFETY: the closure runs in a child that `fork` made of a process with
    // threads, so it may only do what is safe in a signal handler. It makes plain
    // system calls on memory and descriptors that were made before the fork, takes
    // no lock, allocates nothing (paths and data are `CStr`s, which `rustix` passes
    // on as they are), drops nothing and cannot panic.
    unsafe {
        command.pre_exec(steps);
    }
}

fn carry_out(birth: &Birth) -> Result<(), (BirthStep, rustix::io::Errno)> {
    let at = |step: BirthStep| move |error| (step, error);
    setsid().map_err(at(BirthStep::Session))?;
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(at(BirthStep::Session))?;
    if getppid() != Some(birth.parent) {
        // The parent died before the death signal was set.
        return Err((BirthStep::Session, rustix::io::Errno::SRCH));
    }
    for group in &birth.groups {
        // 0 means the writing process.
        rustix::io::write(group.as_fd(), b"0").map_err(at(BirthStep::Cgroup))?;
    }
    if let Some(network) = &birth.network {
        network.enter_raw().map_err(at(BirthStep::Network))?;
    }
    if let Some(cpus) = &birth.cpus {
        sched_setaffinity(None, cpus).map_err(at(BirthStep::Cpus))?;
    }
    if let Some(limit) = &birth.open_files {
        setrlimit(Resource::Nofile, *limit).map_err(at(BirthStep::OpenFiles))?;
    }
    if !birth.mounts.is_empty() {
        enter_mount_namespace().map_err(at(BirthStep::MountNamespace))?;
    }
    let mut index = 0_u8;
    for step in &birth.mounts {
        carry_out_mount(step).map_err(at(BirthStep::Mount(index)))?;
        index = index.saturating_add(1);
    }
    chdir(birth.directory.as_c_str()).map_err(at(BirthStep::Directory))
}

fn enter_mount_namespace() -> rustix::io::Result<()> {
    // SAFETY: see [`unshare`]; this call returns its error as a number.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
    mount_change(
        c"/",
        MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
    )
}

fn carry_out_mount(step: &MountStep) -> rustix::io::Result<()> {
    match step {
        MountStep::Bind {
            source,
            at,
            is_read_only,
        } => {
            mount_bind_recursive(source.as_c_str(), at.as_c_str())?;
            if *is_read_only {
                make_read_only(at)?;
            }
            Ok(())
        }
        MountStep::Base { at } => {
            mount_bind(at.as_c_str(), at.as_c_str())?;
            mount_change(at.as_c_str(), MountPropagationFlags::UNBINDABLE)
        }
        MountStep::Root { at } => {
            chdir(at.as_c_str())?;
            match pivot_root(c".", c".") {
                // The old root is now mounted on top of the new one.
                Ok(()) => unmount(c".", UnmountFlags::DETACH)?,
                // The kernel's initial root file system cannot be moved.
                Err(_) => chroot(c".")?,
            }
            chdir(c"/")
        }
        MountStep::Overlay { at, data } => mount(
            c"overlay",
            at.as_c_str(),
            c"overlay",
            MountFlags::RDONLY,
            data.as_c_str(),
        ),
    }
}

/// The kernel's `struct mount_attr`.
#[repr(C)]
struct MountAttributes {
    set: u64,
    clear: u64,
    propagation: u64,
    user_namespace: u64,
}

/// `MOUNT_ATTR_RDONLY`.
const READ_ONLY: u64 = 1;

/// Makes the mount at `at` and everything below it read-only. Unlike a remount, this keeps flags that a user
/// namespace may not clear.
fn make_read_only(at: &CStr) -> rustix::io::Result<()> {
    let attributes = MountAttributes {
        set: READ_ONLY,
        clear: 0,
        propagation: 0,
        user_namespace: 0,
    };
    // SAFETY: the path ends with a zero byte, the structure lives across the call
    // and its length is given.
    let status = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            libc::AT_FDCWD,
            at.as_ptr(),
            libc::AT_RECURSIVE,
            &raw const attributes,
            size_of::<MountAttributes>(),
        )
    };
    if status < 0 {
        // SAFETY: the location of this thread's error number is always valid.
        let number = unsafe { *libc::__errno_location() };
        return Err(rustix::io::Errno::from_raw_os_error(number));
    }
    Ok(())
}

/// A pipe whose ends close when a program starts; its reading end never waits.
pub(crate) fn report_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    rustix::fs::fcntl_setfl(&reader, OFlags::NONBLOCK)?;
    Ok((reader, writer))
}
