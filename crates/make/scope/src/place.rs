//! The place of a thread: its CPUs and its network namespace.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use rustix::thread::{
    CpuSet, LinkNameSpaceType, move_into_link_name_space, sched_getaffinity, sched_setaffinity,
};

/// A network namespace; it lives as long as something holds it.
#[derive(Clone, Debug)]
pub struct NetworkNamespace(Arc<OwnedFd>);

impl NetworkNamespace {
    /// Wraps the namespace of `file`, such as `/proc/self/ns/net`.
    #[must_use]
    pub fn new(file: OwnedFd) -> Self {
        Self(Arc::new(file))
    }

    /// A path by which other programs can open the namespace, as long as this one
    /// holds it.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// As [`Self::enter`], and allocates nothing: for a child before its program.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn enter_raw(&self) -> rustix::io::Result<()> {
        move_into_link_name_space(self.0.as_fd(), Some(LinkNameSpaceType::Network))
    }

    /// Moves the calling thread into the namespace.
    ///
    /// # Errors
    /// [`PlaceError::Namespace`] where the kernel refuses.
    pub fn enter(&self) -> Result<(), PlaceError> {
        self.enter_raw().map_err(|errno| PlaceError::Namespace {
            source: errno.into(),
        })
    }
}

/// The place of a thread.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The CPUs it may use; `None` for any.
    pub cpus: Option<Vec<u16>>,
    /// Its network namespace; `None` for that of the starting thread.
    pub network: Option<NetworkNamespace>,
}

/// A thread that could not be placed.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The kernel refused the CPUs.
    #[error("pin a thread to CPUs {cpus:?}")]
    Cpus {
        /// The requested CPUs.
        cpus: Vec<u16>,
        /// The kernel's answer.
        source: std::io::Error,
    },
    /// The kernel refused the namespace.
    #[error("enter the run's network namespace")]
    Namespace {
        /// The kernel's answer.
        source: std::io::Error,
    },
}

/// The CPUs that the calling thread may run on, in their order; none where the
/// kernel does not say.
#[must_use]
pub fn permitted_cpus() -> Vec<u16> {
    let Ok(set) = sched_getaffinity(None) else {
        // The kernel refuses a set that is smaller than its own: a host may have more possible CPUs.
        let status = std::fs::read_to_string("/proc/thread-self/status");
        return listed_cpus(&status.unwrap_or_default());
    };
    let numbers = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    numbers.filter_map(|cpu| u16::try_from(cpu).ok()).collect()
}

/// Returns the CPUs that `status`, the kernel's file about a thread, permits, in their order. CPUs beyond the
/// largest set are left out: no thread can be pinned to them. For example, `Cpus_allowed_list: 0-2,8` has four CPUs.
fn listed_cpus(status: &str) -> Vec<u16> {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let ranges = list.unwrap_or_default().split(',');
    let ranges = ranges.filter_map(|range| {
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let first: u16 = first.trim().parse().ok()?;
        Some(first..=last.trim().parse().ok()?)
    });
    let cpus = ranges.flatten();
    cpus.filter(|cpu| usize::from(*cpu) < CpuSet::MAX_CPU)
        .collect()
}

impl Place {
    /// Moves the calling thread there.
    ///
    /// # Errors
    /// [`PlaceError`] with the kernel's answer.
    pub fn occupy(&self) -> Result<(), PlaceError> {
        if let Some(network) = &self.network {
            network.enter()?;
        }
        if let Some(cpus) = &self.cpus {
            let mut set = CpuSet::new();
            for cpu in cpus {
                set.set(usize::from(*cpu));
            }
            sched_setaffinity(None, &set).map_err(|errno| PlaceError::Cpus {
                cpus: cpus.clone(),
                source: errno.into(),
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpus_are_read_from_the_list_of_the_kernel() {
        for (list, expected) in [
            ("0-2,8\n", vec![0_u16, 1, 2, 8]),
            ("5", vec![5]),
            ("1022-1030,2000-2010\n", vec![1022, 1023]),
            ("x-3,4-,7\n", vec![7]),
            ("\n", vec![]),
        ] {
            let status = format!("Cpus_allowed:\tff\nCpus_allowed_list:\t{list}");
            assert_eq!(listed_cpus(&status), expected, "{list}");
        }
        assert_eq!(listed_cpus(""), [0; 0]);
    }

    #[test]
    fn the_list_of_the_kernel_has_the_permitted_cpus() {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        assert_eq!(listed_cpus(&status), permitted_cpus());
    }
}
