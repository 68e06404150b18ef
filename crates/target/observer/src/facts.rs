//! The host's properties that a reader of results needs: the reproducibility block.
//!
//! Each property is as the kernel reports it, and absent if it does not: containers and virtual machines hide
//! many.

mod cpu;
mod read;
mod system;
mod warnings;

use std::path::Path;

use serde::{Deserialize, Serialize};
use stillwell_scope::permitted_cpus;

pub use warnings::{load_host_warnings, warnings};

/// The host on which a run took place, as far as it can be seen.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct HostFacts {
    /// The kernel's release.
    pub kernel: Option<String>,
    /// The kernel's command line, with options such as `isolcpus` and `nohz_full`.
    pub kernel_command_line: Option<String>,
    /// The distribution's name and version.
    pub distribution: Option<String>,
    /// The machine's architecture, such as `x86_64`.
    pub architecture: String,
    /// The CPU's model.
    pub cpu_model: Option<String>,
    /// The CPU's microcode.
    pub microcode: Option<String>,
    /// Every CPU that is online.
    pub cpus: Vec<CpuFacts>,
    /// CPUs that this process may use.
    pub allowed_cpus: Vec<u16>,
    /// Simultaneous multithreading: `on`, `off`, `notsupported`.
    pub smt: Option<String>,
    /// CPUs may exceed their nominal frequency.
    pub boost: Option<bool>,
    /// Idle states that are not switched off, from the lightest.
    pub idle_states: Vec<IdleState>,
    /// Mitigations of CPU flaws, by flaw.
    pub mitigations: Vec<(String, String)>,
    /// NUMA nodes and their CPUs.
    pub numa_nodes: Vec<(String, String)>,
    /// Memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Available memory, in bytes.
    pub memory_available_bytes: Option<u64>,
    /// Swap space in bytes.
    pub swap_bytes: Option<u64>,
    /// The kernel's tendency to swap out memory.
    pub swappiness: Option<u64>,
    /// Transparent huge pages: `always`, `madvise`, `never`.
    pub transparent_huge_pages: Option<String>,
    /// Limits of this process's cgroup, by file.
    pub cgroup_limits: Vec<(String, String)>,
    /// Load averages over 1, 5 and 15 minutes, as text.
    pub load: Option<String>,
    /// Pressure on CPU, memory and storage, as the kernel's `some` lines.
    pub pressure: Vec<(String, String)>,
    /// Limit on open files.
    pub open_files_max: Option<u64>,
    /// First and last ephemeral port.
    pub port_range: Option<String>,
    /// Connections that may wait to be accepted.
    pub somaxconn: Option<u64>,
    /// Congestion control algorithm of TCP.
    pub congestion_control: Option<String>,
    /// Largest packet over the loopback interface, in bytes.
    pub loopback_mtu: Option<u64>,
    /// Hypervisor or container, if it can be detected.
    pub virtualisation: Vec<String>,
    /// The maker's name of the machine.
    pub machine: Option<String>,
    /// The kernel's clock source.
    pub clock_source: Option<String>,
    /// Address space randomisation: 0, 1 or 2.
    pub address_randomisation: Option<u64>,
    /// Limit on performance counters: 2 permits user mode alone, more permits none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub perf_event_paranoid: Option<i64>,
    /// CPU priority of the run, in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
}

/// One CPU.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct CpuFacts {
    /// The kernel's number of it.
    pub number: u16,
    /// Its socket.
    pub socket: Option<u64>,
    /// Its core within the socket.
    pub core: Option<u64>,
    /// CPUs that share its core, itself included.
    pub siblings: Vec<u16>,
    /// Frequency governor.
    pub governor: Option<String>,
    /// Its frequency now, in kHz.
    pub frequency_khz: Option<u64>,
    /// Its highest frequency, in kHz.
    pub frequency_max_khz: Option<u64>,
    /// Capacity relative to the host's fastest CPU, which has 1024.
    pub capacity: Option<u64>,
    /// Number of thermal throttlings since boot.
    pub throttles: Option<u64>,
}

/// One way in which CPUs idle.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(default)]
pub struct IdleState {
    /// Its name, such as `C6`.
    pub name: String,
    /// Exit latency, in microseconds.
    pub exit_latency_micros: u64,
}

/// Takes down what can be seen of this host. Reads some hundred small files.
#[must_use]
pub fn describe_host() -> HostFacts {
    describe(Path::new("/"))
}

/// The host whose `/proc`, `/sys` and `/etc` lie below `root`.
fn describe(root: &Path) -> HostFacts {
    let mut facts = HostFacts {
        architecture: std::env::consts::ARCH.to_owned(),
        allowed_cpus: permitted_cpus(),
        open_files_max: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
        ..HostFacts::default()
    };
    cpu::describe(root, &mut facts);
    system::describe(root, &mut facts);
    facts
}

#[cfg(test)]
mod tests;
