//! Host settings that make measurements worse.

use super::{CpuFacts, HostFacts};

/// Longest harmless exit latency of an idle state; a longer one lengthens short waits.
const DEEP_IDLE_MICROS: u64 = 50;

/// Returns a warning with a remedy for each host setting that makes measurements worse. `worker_cpus` and
/// `target_cpus` limit the check; `None` means all CPUs.
#[must_use]
pub fn warnings(
    facts: &HostFacts,
    worker_cpus: Option<&[u16]>,
    target_cpus: Option<&[u16]>,
) -> Vec<String> {
    let used = |cpu: &&CpuFacts| {
        let is_in = |list: Option<&[u16]>| list.is_none_or(|list| list.contains(&cpu.number));
        is_in(worker_cpus) || is_in(target_cpus)
    };
    let used: Vec<&CpuFacts> = facts.cpus.iter().filter(used).collect();
    let warnings = [
        governor(&used),
        deep_idle(facts),
        shared_cores(facts, worker_cpus, target_cpus),
        throttled(&used),
        unlike(&used),
    ];
    warnings.into_iter().flatten().collect()
}

/// Returns a warning for each host setting that makes a load of this many workers less accurate.
#[must_use]
pub fn load_host_warnings(facts: &HostFacts, workers: usize) -> Vec<String> {
    let is_allowed = |cpu: &&CpuFacts| facts.allowed_cpus.contains(&cpu.number);
    let used: Vec<&CpuFacts> = facts.cpus.iter().filter(is_allowed).collect();
    let warnings = [
        governor(&used),
        deep_idle(facts),
        shared_by_workers(&used, workers),
        throttled(&used),
        unlike(&used),
    ];
    warnings.into_iter().flatten().collect()
}

fn shared_by_workers(used: &[&CpuFacts], workers: usize) -> Option<String> {
    let first_of_core = |cpu: &&&CpuFacts| {
        let mut siblings = cpu.siblings.iter();
        siblings.all(|sibling| *sibling >= cpu.number)
    };
    let cores = used.iter().filter(first_of_core).count();
    let is_shared = cores > 0 && workers > cores && cores < used.len();
    is_shared.then(|| {
        format!(
            "{workers} workers share {cores} cores by SMT, so they slow each other: use {cores} workers, or switch \
             SMT off"
        )
    })
}

fn governor(used: &[&CpuFacts]) -> Option<String> {
    let slow = |cpu: &&&CpuFacts| {
        cpu.governor
            .as_deref()
            .is_some_and(|name| name != "performance")
    };
    let cpu = used.iter().find(slow)?;
    let name = cpu.governor.as_deref().unwrap_or_default();
    Some(format!(
        "CPU {} runs under the frequency governor `{name}`, so speed follows load: set it with \
         `cpupower frequency-set -g performance`",
        cpu.number
    ))
}

fn deep_idle(facts: &HostFacts) -> Option<String> {
    let deepest = facts.idle_states.last()?;
    (deepest.exit_latency_micros > DEEP_IDLE_MICROS).then(|| {
        format!(
            "CPUs may idle in {}, which takes {} µs to leave and shows in latencies at low load: \
             switch it off with `cpupower idle-set -D {DEEP_IDLE_MICROS}`",
            deepest.name, deepest.exit_latency_micros
        )
    })
}

fn shared_cores(
    facts: &HostFacts,
    worker_cpus: Option<&[u16]>,
    target_cpus: Option<&[u16]>,
) -> Option<String> {
    let (worker_cpus, target_cpus) = (worker_cpus?, target_cpus?);
    let (cpu, sibling) = target_cpus.iter().find_map(|number| {
        let cpu = facts.cpus.iter().find(|cpu| cpu.number == *number)?;
        let is_shared = |sibling: &&u16| **sibling != *number && worker_cpus.contains(sibling);
        Some((*number, *cpu.siblings.iter().find(is_shared)?))
    })?;
    Some(format!(
        "the target's CPU {cpu} shares its core with Stillwell's CPU {sibling}, so each slows the other: \
         choose CPUs of different cores, or switch SMT off"
    ))
}

fn throttled(used: &[&CpuFacts]) -> Option<String> {
    let cpu = used
        .iter()
        .find(|cpu| cpu.throttles.is_some_and(|count| count > 0))?;
    Some(format!(
        "CPU {} was throttled for heat {} times since boot: improve its cooling, or lower its \
         highest frequency until that stops",
        cpu.number,
        cpu.throttles.unwrap_or(0)
    ))
}

fn unlike(used: &[&CpuFacts]) -> Option<String> {
    let first = used.first()?;
    let speed = |cpu: &CpuFacts| (cpu.frequency_max_khz, cpu.capacity);
    let different = used.iter().find(|cpu| speed(cpu) != speed(first))?;
    Some(format!(
        "CPUs {} and {} differ in speed, so results depend on the CPU that a thread runs on: choose CPUs \
         of one kind for the target and for Stillwell",
        first.number, different.number
    ))
}
