//! Namespaces, and the right to have them.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::sync::mpsc::sync_channel;

use rustix::process::{getegid, geteuid};
use rustix::thread::UnshareFlags;
use stillwell_scope::{NetworkNamespace, Place, Scope, Token};
use stillwell_units::Nanos;

use crate::{Note, kernel, leftover};

/// Time limit for the end of the helper thread; it has no work then.
const HELPER_END_MAX: Nanos = Nanos::from_secs(5);

/// Permissions of this process.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Privileges {
    /// It runs as root.
    Root,
    /// It has its own user namespace, in which it may create other namespaces. Some hosts permit nothing in
    /// such a namespace; the next request shows that.
    UserNamespace,
    /// Neither; no namespace can be created.
    None(Note),
}

/// Acquires the permission to create namespaces, if possible. Must be called while the process has one thread: the kernel
/// creates user namespaces only for such processes. Users and groups look the same in it. The process then cannot
/// read the sockets and counters of processes outside.
///
/// Before that, this process kills the targets and builds that a killed Stillwell has left running.
#[must_use]
pub fn prepare_privileges() -> Privileges {
    // In a user namespace the environment of processes outside cannot be read.
    leftover::end_all();
    if geteuid().is_root() {
        return Privileges::Root;
    }
    match enter_user_namespace(&identity_maps()) {
        Ok(()) => Privileges::UserNamespace,
        Err(error) => Privileges::None(Note::new(
            "namespaces",
            format!("this process is not root and cannot create a user namespace: {error}"),
        )),
    }
}

/// Enters a user namespace with `maps`. Some hosts permit the namespace and not its maps, and no process can leave it: its
/// programs would run as an unmapped user. So a child process tries it first.
fn enter_user_namespace(maps: &[(&CStr, String)]) -> io::Result<()> {
    kernel::try_user_namespace(maps)?;
    Ok(kernel::enter_user_namespace(maps)?)
}

/// Returns the kernel's files that map user and group of this process to themselves, and their contents.
fn identity_maps() -> [(&'static CStr, String); 3] {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    [
        // The kernel requires this before it permits the group mapping.
        (c"/proc/self/setgroups", "deny".to_owned()),
        (c"/proc/self/uid_map", format!("{user} {user} 1")),
        (c"/proc/self/gid_map", format!("{group} {group} 1")),
    ]
}

/// An error while creating a network namespace.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// The kernel refuses to create one.
    #[error("make a network namespace")]
    Refused {
        /// The operating system's error.
        source: io::Error,
    },
    /// It is there, but its loopback interface stays down.
    #[error("bring up the loopback interface of a network namespace")]
    Loopback {
        /// The operating system's error.
        source: io::Error,
    },
    /// No thread could be started to make it.
    #[error("start a thread that makes a network namespace")]
    Thread {
        /// The operating system's error.
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
        Note::new("a separate network namespace", why)
    }
}

/// Creates a network namespace that contains only a loopback interface, which is up. Threads enter it by
/// [`Place`] or [`NetworkNamespace::enter`]; threads and children that they start are in it too.
///
/// # Errors
/// [`NetworkError`] with the operating system's error, usually that it is not permitted.
pub fn new_network() -> Result<NetworkNamespace, NetworkError> {
    // A helper thread, because the thread that creates a namespace enters it.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_maps_are_refused_stays_in_its_user_namespace() {
        let test = "a_process_whose_maps_are_refused_stays_in_its_user_namespace";
        let namespace = || std::fs::read_link("/proc/self/ns/user").unwrap();
        let before = namespace();
        if let Err(error) = kernel::try_user_namespace(&identity_maps()) {
            println!("SKIPPED: {test}: no user namespaces: {error}");
            return;
        }
        let mut maps = identity_maps();
        maps[2].0 = c"/proc/self/no-such-map";
        let error = enter_user_namespace(&maps).unwrap_err();
        // An attempt in this process, which has several threads, fails earlier with another error.
        assert_eq!(error.kind(), io::ErrorKind::NotFound, "{error}");
        assert_eq!(namespace(), before);
    }
}
