//! The CPUs.

use std::path::Path;

use super::{CpuFacts, HostFacts, IdleState, read};

pub(super) fn describe(root: &Path, facts: &mut HostFacts) {
    let cpus = root.join("sys/devices/system/cpu");
    let info = read::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let field = |key| read::field(&info, key).map(str::to_owned);
    facts.cpu_model = field("model name")
        .or_else(|| field("Hardware"))
        .or_else(|| field("CPU part"));
    facts.microcode = field("microcode");
    let online = read::text(&cpus.join("online")).unwrap_or_default();
    facts.cpus = read::list(&online)
        .into_iter()
        .map(|number| describe_cpu(&cpus.join(format!("cpu{number}")), number))
        .collect();
    facts.smt = read::text(&cpus.join("smt/control"));
    facts.boost = boost(&cpus);
    facts.idle_states = idle_states(&cpus.join("cpu0/cpuidle"));
    facts.mitigations = read::names(&cpus.join("vulnerabilities"))
        .into_iter()
        .filter_map(|flaw| {
            let state = read::text(&cpus.join("vulnerabilities").join(&flaw))?;
            Some((flaw, state))
        })
        .collect();
    let nodes = root.join("sys/devices/system/node");
    facts.numa_nodes = read::names(&nodes)
        .into_iter()
        .filter_map(|node| {
            let cpus = read::text(&nodes.join(&node).join("cpulist"))?;
            Some((node, cpus))
        })
        .collect();
}

fn describe_cpu(folder: &Path, number: u16) -> CpuFacts {
    let topology = folder.join("topology");
    let frequency = folder.join("cpufreq");
    let siblings = read::text(&topology.join("thread_siblings_list"));
    CpuFacts {
        number,
        socket: read::number(&topology.join("physical_package_id")),
        core: read::number(&topology.join("core_id")),
        siblings: siblings.map_or_else(|| vec![number], |text| read::list(&text)),
        governor: read::text(&frequency.join("scaling_governor")),
        frequency_khz: read::number(&frequency.join("scaling_cur_freq")),
        frequency_max_khz: read::number(&frequency.join("cpuinfo_max_freq")),
        capacity: read::number(&folder.join("cpu_capacity")),
        throttles: read::number(&folder.join("thermal_throttle/core_throttle_count")),
    }
}

fn boost(cpus: &Path) -> Option<bool> {
    let general = read::number(&cpus.join("cpufreq/boost")).map(|on| on == 1);
    // Intel's driver has the opposite setting.
    let intel = || read::number(&cpus.join("intel_pstate/no_turbo")).map(|off| off == 0);
    general.or_else(intel)
}

fn idle_states(folder: &Path) -> Vec<IdleState> {
    let states = read::names(folder)
        .into_iter()
        .filter(|name| name.starts_with("state"));
    let mut states: Vec<IdleState> = states
        .filter_map(|state| {
            let state = folder.join(state);
            let is_off = read::number(&state.join("disable")) == Some(1);
            let latency = read::number(&state.join("latency"))?;
            (!is_off).then_some(IdleState {
                name: read::text(&state.join("name"))?,
                exit_latency_micros: latency,
            })
        })
        .collect();
    states.sort_by_key(|state| state.exit_latency_micros);
    states
}
