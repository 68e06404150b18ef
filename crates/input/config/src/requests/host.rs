//! Surroundings in which a load is read.

use std::fmt;

use super::reflection::Reflection;
use crate::files::Files;

/// Facts about the host and services of the caller that planning a load needs.
#[derive(Clone, Copy)]
pub struct LoadHost<'a> {
    /// Threads that this process can run at once.
    pub cpus: usize,
    /// Numbers of the CPUs that this process may use; empty where that is unknown.
    pub permitted_cpus: &'a [u16],
    /// Source of method descriptions.
    pub reflection: &'a dyn Reflection,
    /// Receives remarks that are no errors, a sentence each.
    pub notice: &'a dyn Fn(&str),
}

impl fmt::Debug for LoadHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("LoadHost");
        shown
            .field("cpus", &self.cpus)
            .field("permitted_cpus", &self.permitted_cpus)
            .finish_non_exhaustive()
    }
}

/// Files and host of a load that is read.
pub(super) struct ReadLoad<'a> {
    pub(super) files: &'a dyn Files,
    pub(super) host: LoadHost<'a>,
}
