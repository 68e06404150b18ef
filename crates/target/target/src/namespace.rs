//! Namespaces, and the right to have them.

use std::fs::{self, File};
use std::io;
use std::sync::mpsc::sync_channel;

use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use stillwell_scope::{NetworkNamespace, Place, Scope, Token};
use stillwell_units::Nanos;

use crate::{Note, kernel, leftover};

/// How long the helper thread may take to end; it has nothing left to do then.
const HELPER_END_MAX: Nanos = Nanos::from_secs(5);

/// What this process may do.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Privileges {
    /// It runs as root.
    Root,
    /// It has a user namespace of its own, in which it may make other
    /// namespaces. Some hosts give such a namespace and then permit nothing in
    /// it; that shows when the next one is asked for.
    UserNamespace,
    /// Neither, so that no namespace can be had.
    None(Note),
}

/// Gets the right to make namespaces where there is a way to. Must come first in
/// a process: the kernel gives a user namespace only to a process with one
/// thread. Users and groups look the same in it.
///
/// Before that, while it still may, this process kills what subjects of a
/// Stillwell that was itself killed have left running.
#[must_use]
pub fn prepare_privileges() -> Privileges {
    // In a user namespace the environment of processes outside cannot be read.
    leftover::end_all();
    if geteuid().is_root() {
        return Privileges::Root;
    }
    match enter_user_namespace() {
        Ok(()) => Privileges::UserNamespace,
        Err(error) => Privileges::None(Note::new(
            "namespaces",
            format!("this process is not root and gets no user namespace: {error}"),
        )),
    }
}

fn enter_user_namespace() -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    kernel::unshare(UnshareFlags::NEWUSER)?;
    // The kernel wants to hear this before it lets us map our group.
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}

/// Why there is no network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The kernel gives none.
    #[error("make a network namespace")]
    Refused {
        /// The kernel's answer.
        source: io::Error,
    },
    /// It is there, but its loopback interface stays down.
    #[error("bring up the loopback interface of a network namespace")]
    Loopback {
        /// The kernel's answer.
        source: io::Error,
    },
    /// No thread could be started to make it.
    #[error("start a thread that makes a network namespace")]
    Thread {
        /// The kernel's answer.
        source: io::Error,
    },
}

impl NetworkError {
    /// As a note for the result.
    #[must_use]
    pub fn note(&self) -> Note {
        let why = match std::error::Error::source(self) {
            Some(source) => format!("failed to {self}: {source}"),
            None => format!("failed to {self}"),
        };
        Note::new("a network namespace of its own", why)
    }
}

/// A new network namespace with nothing but a loopback interface, which is up.
/// Threads enter it by [`Place`] or [`NetworkNamespace::enter`]; threads and
/// children that these start are in it too.
///
/// # Errors
/// [`NetworkError`] with the kernel's answer: usually that it is not permitted.
pub fn new_network() -> Result<NetworkNamespace, NetworkError> {
    // A thread of its own, because whoever makes a namespace is in it.
    let mut scope = Scope::new(&Token::new());
    let (sender, receiver) = sync_channel(1);
    let started = scope.thread(Place::default(), "new-network", move |_| {
        sender.send(make_network())?;
        Ok(())
    });
    started.map_err(|source| NetworkError::Thread { source })?;
    let made = receiver.recv().map_err(|_| NetworkError::Thread {
        source: io::Error::other("the thread ended before it answered"),
    });
    drop(scope.close(HELPER_END_MAX));
    made?
}

fn make_network() -> Result<NetworkNamespace, NetworkError> {
    kernel::unshare(UnshareFlags::NEWNET).map_err(|source| NetworkError::Refused { source })?;
    kernel::raise_loopback().map_err(|source| NetworkError::Loopback { source })?;
    let file = File::open("/proc/thread-self/ns/net");
    let file = file.map_err(|source| NetworkError::Refused { source })?;
    Ok(NetworkNamespace::new(file.into()))
}
