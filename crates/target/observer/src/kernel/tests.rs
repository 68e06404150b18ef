use super::*;

/// A tree as it was recorded: two processes of which one maps a library.
fn tree() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    for pid in ["7", "9"] {
        write(&format!("proc/{pid}/comm"), "vector\n");
        write(&format!("proc/{pid}/cmdline"), "/usr/bin/vector\0--quiet\0");
        write(
            &format!("proc/{pid}/status"),
            "Name:\tvector\nVmPeak:\t    2048 kB\nVmRSS:\t    1024 kB\nThreads:\t3\n",
        );
        write(
            &format!("proc/{pid}/smaps_rollup"),
            "55d0-7ffd ---p 0 0:0 0 [rollup]\nRss: 1024 kB\nPss: 512 kB\nReferenced: 256 kB\n",
        );
        write(&format!("proc/{pid}/clear_refs"), "");
    }
    write(
        "proc/7/smaps",
        "55d0-55d4 r--p 00000000 fe:00 1234 /lib/libc.so\nSize: 16 kB\nRss: 8 kB\n",
    );
    write("proc/vmstat", "nr_free_pages 12\npgfault 99\n");
    write("group/memory.current", "4096\n");
    write("group/memory.peak", "8192\n");
    write("group/cgroup.procs", "7\n9\n");
    write("group/cpu.stat", "usage_usec 30\nnr_throttled 2\n");
    write("group/cpu.max", "max 100000\n");
    write(
        "group/io.pressure",
        "some avg10=1.50 avg60=0.00 avg300=0.00 total=70\n\
         full avg10=0.25 avg60=0.00 avg300=0.00 total=7\n",
    );
    write("group/io.stat", "254:0 rbytes=512 wbytes=0 rios=1 wios=0\n");
    write("group/memory.stat", "anon 8192\nfile 4096\n");
    write("proc/stat", "cpu 1 2 3\ncpu0 1 2 3\ncpu1 1 2 3\nintr 7\n");
    folder
}

const PROCESSES: [ProcessTicks; 2] = [
    ProcessTicks {
        pid: 7,
        user_ticks: 10,
        system_ticks: 5,
    },
    ProcessTicks {
        pid: 9,
        user_ticks: 0,
        system_ticks: 0,
    },
];

const USED: CpuTimes = CpuTimes {
    total: 10,
    user: 10,
    system: 0,
};

const ALL: KernelSeries = KernelSeries {
    working_set: true,
    ..KernelSeries::USUAL
};

fn sample(reader: &mut KernelReader, folder: &Path, is_detailed: bool) -> Vec<Sample> {
    let mut samples = Vec::new();
    let group = folder.join("group");
    reader.sample(
        &PROCESSES,
        (Some(&group), USED),
        (is_detailed, 10_000_000),
        &mut Vec::new(),
        &mut samples,
    );
    samples
}

fn value(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let mut fitting = samples.iter().filter(|sample| {
        let has = |(key, value): &(&str, &str)| sample.labels.value(key) == Some(*value);
        sample.name.as_str() == name && labels.iter().all(has)
    });
    fitting.next().and_then(|sample| sample.value.number())
}

#[test]
fn a_recorded_tree_gives_ladings_series() {
    let folder = tree();
    let mut reader = KernelReader::new(&folder.path().join("proc"), ALL);
    let samples = sample(&mut reader, folder.path(), true);
    let seven = [
        ("pid", "7"),
        ("comm", "vector"),
        ("cmdline", "/usr/bin/vector --quiet"),
    ];
    let library = [("pid", "7"), ("pathname", "/lib/libc.so")];
    for (name, labels, expected) in [
        ("status.vmpeak_bytes", &seven[..], 2048.0 * 1024.0),
        ("status.vmrss_bytes", &seven[..], 1024.0 * 1024.0),
        ("smaps_rollup.pss", &seven[..], 512.0 * 1024.0),
        ("smaps.size.by_pathname", &library[..], 16.0 * 1024.0),
        ("smaps.rss.by_pathname", &library[..], 8.0 * 1024.0),
        ("cgroup.v2.memory.current", &[], 4096.0),
        ("cgroup.v2.cpu.stat.nr_throttled", &[], 2.0),
        ("cgroup.v2.io.pressure.some.avg10", &[], 1.5),
        ("cgroup.v2.io.pressure.full.avg10", &[], 0.25),
        ("cgroup.v2.io.stat.rbytes", &[("device", "254:0")], 512.0),
        ("cgroup.v2.memory.stat.anon", &[], 8192.0),
        ("vmstat.pgfault", &[], 99.0),
    ] {
        let result = value(&samples, name, labels);
        assert_eq!(result, Some(expected), "{name}");
    }
    assert_eq!(value(&samples, "status.threads_bytes", &[]), None);
    assert!(
        !samples
            .iter()
            .any(|single| single.name.as_str().contains("procs"))
    );
}

#[test]
fn the_working_set_is_reported_after_its_marks_were_cleared() {
    let folder = tree();
    let mut reader = KernelReader::new(&folder.path().join("proc"), ALL);
    let first = sample(&mut reader, folder.path(), true);
    assert_eq!(value(&first, "total_wss_bytes", &[]), None);
    let cleared = fs::read_to_string(folder.path().join("proc/9/clear_refs")).unwrap();
    assert_eq!(cleared, "1");
    assert_eq!(
        value(
            &sample(&mut reader, folder.path(), false),
            "total_wss_bytes",
            &[]
        ),
        None
    );
    let later = sample(&mut reader, folder.path(), true);
    let both = 2.0 * 256.0 * 1024.0;
    assert_eq!(
        value(&later, "total_wss_bytes", &[("focus", "target")]),
        Some(both)
    );
}

/// The working set must not be everything that was ever touched.
#[test]
fn no_working_set_is_reported_if_marks_cannot_be_cleared() {
    let folder = tree();
    let marks = folder.path().join("proc/9/clear_refs");
    fs::remove_file(&marks).unwrap();
    fs::create_dir(&marks).unwrap();
    let mut reader = KernelReader::new(&folder.path().join("proc"), ALL);
    for _ in 0..3 {
        let samples = sample(&mut reader, folder.path(), true);
        assert_eq!(value(&samples, "total_wss_bytes", &[]), None);
    }
}

/// Sums over the beginning of the file would look complete.
#[test]
fn mappings_that_are_too_long_to_read_are_counted_and_not_summed() {
    let folder = tree();
    let single = "55d0-55d4 r--p 00000000 fe:00 1234 /lib/libc.so\nSize: 16 kB\nRss: 8 kB\n";
    fs::write(
        folder.path().join("proc/7/smaps"),
        single.repeat((4 << 20) / single.len() + 1),
    )
    .unwrap();
    let mut reader = KernelReader::new(&folder.path().join("proc"), ALL);
    let samples = sample(&mut reader, folder.path(), true);
    assert_eq!(
        value(&samples, "smaps.too_long", &[("pid", "7")]),
        Some(1.0)
    );
    assert_eq!(value(&samples, "smaps.too_long", &[("pid", "9")]), None);
    assert_eq!(value(&samples, "smaps.size.by_pathname", &[]), None);
    assert!(value(&samples, "smaps_rollup.pss", &[("pid", "7")]).is_some());
}

#[test]
fn only_requested_series_are_reported() {
    let folder = tree();
    let mut reader = KernelReader::new(&folder.path().join("proc"), KernelSeries::default());
    assert_eq!(sample(&mut reader, folder.path(), true), []);
    let requested = KernelSeries {
        vmstat: true,
        ..KernelSeries::default()
    };
    let mut reader = KernelReader::new(&folder.path().join("proc"), requested);
    assert_eq!(sample(&mut reader, folder.path(), true).len(), 2);
}

#[test]
fn cpu_is_that_since_the_beat_before() {
    let folder = tree();
    let mut reader = KernelReader::new(&folder.path().join("proc"), ALL);
    let first = sample(&mut reader, folder.path(), false);
    assert_eq!(value(&first, "stat.total_cpu_percentage", &[]), None);
    let second = sample(&mut reader, folder.path(), false);
    // The same ticks: nothing was used.
    assert_eq!(
        value(&second, "stat.total_cpu_percentage", &[("pid", "7")]),
        Some(0.0)
    );
}

/// The kernel's process files, where it keeps them.
#[test]
fn the_process_of_the_test_is_reported() {
    let process = ProcessTicks {
        pid: std::process::id(),
        user_ticks: 0,
        system_ticks: 0,
    };
    let mut reader = KernelReader::new(Path::new("/proc"), KernelSeries::USUAL);
    let mut samples = Vec::new();
    reader.sample(
        &[process],
        (None, USED),
        (true, 10_000_000),
        &mut Vec::new(),
        &mut samples,
    );
    assert!(value(&samples, "status.vmrss_bytes", &[]) > Some(0.0));
    assert!(
        value(
            &samples,
            "smaps.size.by_pathname",
            &[("pathname", "[stack]")]
        ) > Some(0.0)
    );
    assert!(value(&samples, "vmstat.pgfault", &[]) > Some(0.0));
}

/// They were hundredths of one core, where lading's are of all that are granted.
#[test]
fn shares_of_cpu_are_of_what_the_group_or_the_machine_grants() {
    let folder = tree();
    let granted = |text: &str| {
        fs::write(folder.path().join("group/cpu.max"), text).unwrap();
        let mut reader = KernelReader::new(&folder.path().join("proc"), ALL);
        sample(&mut reader, folder.path(), false);
        let samples = sample(&mut reader, folder.path(), false);
        assert_eq!(
            value(&samples, "cpu_percentage", &[("focus", "target")]),
            Some(0.0)
        );
        assert_eq!(
            value(&samples, "total_cpu_usage_millicores", &[]),
            Some(0.0)
        );
        let limit = value(&samples, "cpu_limit_millicores", &[]);
        assert_eq!(
            value(&samples, "stat.cpu_limit_millicores", &[("pid", "7")]),
            limit
        );
        limit
    };
    assert_eq!(granted("150000 100000\n"), Some(1500.0));
    assert_eq!(granted("max 100000\n"), Some(2000.0));
}

#[test]
fn the_working_set_comes_from_idle_pages_if_the_kernel_marks_them() {
    let folder = tree();
    let page = u64::try_from(rustix::param::page_size()).unwrap();
    let marks = folder.path().join("bitmap");
    fs::write(&marks, [0; 64]).unwrap();
    let proc = folder.path().join("proc");
    let smaps = format!("{:x}-{:x} r--p 0 0:0 0 \nRss: 8 kB\n", page, 3 * page);
    let entry = |frame: u64| (1_u64 << 63 | frame).to_ne_bytes();
    for pid in ["7", "9"] {
        fs::write(proc.join(pid).join("smaps"), &smaps).unwrap();
        let pagemap = [[0; 8], entry(100), entry(101)].concat();
        fs::write(proc.join(pid).join("pagemap"), pagemap).unwrap();
    }
    let mut reader = KernelReader::with_marks(&proc, KernelSeries::USUAL, &marks);
    let mut message = |is_touched: bool| {
        if is_touched {
            fs::write(&marks, [0; 64]).unwrap();
        }
        let samples = sample(&mut reader, folder.path(), true);
        value(&samples, "total_wss_bytes", &[("focus", "target")])
    };
    let both = stillwell_units::float_from_u64(2 * page);
    assert_eq!(
        [message(false), message(false), message(true)],
        [None, Some(0.0), Some(both)]
    );
    // Its process marks are left alone then.
    let cleared = fs::read_to_string(proc.join("9/clear_refs")).unwrap();
    assert_eq!(cleared, "");
}
