use proptest::prelude::*;

use super::*;

const FILES: &[(&str, &str)] = &[
    ("proc/sys/kernel/osrelease", "6.1.0\n"),
    (
        "proc/cpuinfo",
        "model name\t: Some CPU @ 3 GHz\nmicrocode\t: 0x1\nflags\t: fpu hypervisor\n",
    ),
    ("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 1\"\n"),
    ("proc/meminfo", "MemTotal:  1024 kB\nSwapTotal: 0 kB\n"),
    ("proc/loadavg", "0.1 0.2 0.3 1/2 3\n"),
    (
        "proc/pressure/io",
        "some avg10=1.00 total=5\nfull avg10=0.00 total=1\n",
    ),
    ("proc/self/cgroup", "3:memory:/a\n0::/\nnonsense\n"),
    ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "4096\n"),
    ("sys/fs/cgroup/unified/cpu.max", "max 100000\n"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never\n",
    ),
    ("sys/devices/system/cpu/online", "0-1\n"),
    ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
    (
        "sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
        "0-1\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
        "powersave\n",
    ),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/name", "POLL\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state0/latency", "0\n"),
    ("sys/devices/system/cpu/cpu0/cpuidle/state1/name", "C6\n"),
    (
        "sys/devices/system/cpu/cpu0/cpuidle/state1/latency",
        "170\n",
    ),
    (
        "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
        "3\n",
    ),
    ("sys/devices/system/cpu/cpu1/cpu_capacity", "512\n"),
    (
        "sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
        "0-1\n",
    ),
];

#[test]
fn a_host_is_described_from_its_files() {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in FILES {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let facts = describe(root.path());
    assert_eq!(facts.kernel.as_deref(), Some("6.1.0"));
    assert_eq!(facts.cpu_model.as_deref(), Some("Some CPU @ 3 GHz"));
    assert_eq!(facts.distribution.as_deref(), Some("Some Linux 1"));
    assert_eq!(
        (facts.memory_bytes, facts.swap_bytes),
        (Some(1 << 20), Some(0))
    );
    assert_eq!(facts.load.as_deref(), Some("0.1 0.2 0.3"));
    assert_eq!(facts.transparent_huge_pages.as_deref(), Some("madvise"));
    assert_eq!(facts.boost, Some(false));
    assert_eq!(facts.virtualisation, ["virtual machine"]);
    let limit = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let limits = [
        limit("memory.limit_in_bytes", "4096"),
        limit("cpu.max", "max 100000"),
    ];
    assert_eq!(facts.cgroup_limits, limits);
    assert_eq!(facts.cpus.len(), 2);
    assert_eq!(facts.cpus[0].siblings, [0, 1]);
    assert_eq!(facts.pressure, [limit("io", "avg10=1.00 total=5")]);

    let sentences = warnings(&facts, Some(&[0]), Some(&[1]));
    let words = [
        "powersave",
        "C6",
        "shares its core",
        "3 times",
        "differ in speed",
    ];
    assert_eq!(sentences.len(), words.len(), "{sentences:#?}");
    for (sentence, word) in sentences.iter().zip(words) {
        assert!(sentence.contains(word), "{sentence}");
    }
    assert_eq!(warnings(&HostFacts::default(), None, None), [""; 0]);
}

#[test]
fn this_host_is_described() {
    let facts = describe_host();
    assert!(facts.kernel.is_some() && facts.memory_bytes.is_some());
    assert!(!facts.allowed_cpus.is_empty());
}

#[test]
fn lists_are_read() {
    assert_eq!(read::list("0-2,5\n"), [0, 1, 2, 5]);
    assert_eq!(read::list(""), [0; 0]);
    assert_eq!(read::list("x-3,2-1,7"), [7]);
}

proptest! {
    #[test]
    fn for_all_texts_nothing_panics(text in "[0-9,\\-\\[\\]:= a\n]{0,60}") {
        prop_assert!(read::list(&text).len() <= 65_536 * text.len());
        read::chosen(&text);
        read::field(&text, "a");
    }
}

#[test]
fn a_load_is_warned_of_a_slow_governor_deep_idle_states_and_workers_on_one_core() {
    let cpu = |number, siblings: &[u16]| CpuFacts {
        number,
        governor: Some("powersave".to_owned()),
        siblings: siblings.to_vec(),
        ..CpuFacts::default()
    };
    let facts = HostFacts {
        cpus: vec![cpu(0, &[0, 1]), cpu(1, &[0, 1]), cpu(2, &[2])],
        allowed_cpus: vec![0, 1],
        idle_states: vec![IdleState {
            name: "C6".to_owned(),
            exit_latency_micros: 170,
        }],
        ..HostFacts::default()
    };
    let text = load_host_warnings(&facts, 2).join("; ");
    for part in ["`powersave`", "C6", "2 workers share 1 cores by SMT"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let text = load_host_warnings(&facts, 1).join("; ");
    assert!(!text.contains("SMT"), "{text}");
    assert!(load_host_warnings(&HostFacts::default(), 9).is_empty());
}
