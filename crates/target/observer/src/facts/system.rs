//! Everything but the CPUs.

use std::path::Path;

use super::{HostFacts, read};

pub(super) fn describe(root: &Path, facts: &mut HostFacts) {
    let proc = |name: &str| root.join("proc").join(name);
    let sys = |name: &str| root.join("sys").join(name);
    facts.kernel = read::text(&proc("sys/kernel/osrelease"));
    facts.kernel_command_line = read::text(&proc("cmdline"));
    let release = read::text(&root.join("etc/os-release")).unwrap_or_default();
    facts.distribution = read::field(&release, "PRETTY_NAME").map(str::to_owned);
    let memory = read::text(&proc("meminfo")).unwrap_or_default();
    let bytes = |key| {
        let kilobytes = read::field(&memory, key)?.split_whitespace().next()?;
        kilobytes.parse::<u64>().ok()?.checked_mul(1024)
    };
    facts.memory_bytes = bytes("MemTotal");
    facts.memory_available_bytes = bytes("MemAvailable");
    facts.swap_bytes = bytes("SwapTotal");
    facts.swappiness = read::number(&proc("sys/vm/swappiness"));
    let pages = read::text(&sys("kernel/mm/transparent_hugepage/enabled"));
    facts.transparent_huge_pages = pages.and_then(|text| read::chosen(&text).map(str::to_owned));
    facts.load = read::text(&proc("loadavg")).map(|text| {
        text.split_whitespace()
            .take(3)
            .collect::<Vec<_>>()
            .join(" ")
    });
    facts.pressure = ["cpu", "memory", "io"]
        .into_iter()
        .filter_map(|kind| {
            let text = read::text(&proc("pressure").join(kind))?;
            let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
            Some((kind.to_owned(), line.to_owned()))
        })
        .collect();
    facts.port_range = read::text(&proc("sys/net/ipv4/ip_local_port_range"))
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    facts.somaxconn = read::number(&proc("sys/net/core/somaxconn"));
    facts.congestion_control = read::text(&proc("sys/net/ipv4/tcp_congestion_control"));
    facts.loopback_mtu = read::number(&sys("class/net/lo/mtu"));
    let clock = "devices/system/clocksource/clocksource0/current_clocksource";
    facts.clock_source = read::text(&sys(clock));
    facts.address_randomisation = read::number(&proc("sys/kernel/randomize_va_space"));
    let paranoid = read::text(&proc("sys/kernel/perf_event_paranoid"));
    facts.perf_event_paranoid = paranoid.and_then(|level| level.parse().ok());
    facts.machine = read::text(&sys("class/dmi/id/product_name"));
    facts.virtualisation = virtualisation(root);
    facts.cgroup_limits = cgroup_limits(root);
}

/// Signs of a hypervisor or a container.
fn virtualisation(root: &Path) -> Vec<String> {
    let mut signs = Vec::new();
    let info = read::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let flags = read::field(&info, "flags").unwrap_or_default();
    if flags.split_whitespace().any(|flag| flag == "hypervisor") {
        signs.push("virtual machine".to_owned());
    }
    signs.extend(read::text(&root.join("sys/hypervisor/type")));
    signs.extend(read::text(&root.join("sys/class/dmi/id/sys_vendor")));
    for (file, sign) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if root.join(file).exists() {
            signs.push(sign.to_owned());
        }
    }
    signs
}

/// Returns the limits of this process's cgroup, in either version.
fn cgroup_limits(root: &Path) -> Vec<(String, String)> {
    let membership = read::text(&root.join("proc/self/cgroup")).unwrap_or_default();
    let mut limits = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
            continue;
        };
        let files: &[&str] = match controllers {
            "" => &[
                "cpu.max",
                "cpuset.cpus.effective",
                "memory.max",
                "memory.high",
                "pids.max",
            ],
            "memory" => &["memory.limit_in_bytes"],
            "cpuset" => &["cpuset.effective_cpus"],
            "pids" => &["pids.max"],
            names if names.split(',').any(|name| name == "cpu") => {
                &["cpu.cfs_quota_us", "cpu.cfs_period_us"]
            }
            _ => continue,
        };
        let mount = root.join("sys/fs/cgroup");
        let mounts = match controllers {
            "" => [mount.clone(), mount.join("unified")],
            names => [mount.join(names), mount],
        };
        for file in files {
            let below = path.trim_start_matches('/');
            let values = mounts
                .iter()
                .find_map(|mount| read::text(&mount.join(below).join(file)));
            limits.extend(values.map(|value| ((*file).to_owned(), value)));
        }
    }
    limits
}
