use std::fs;

use stillwell_metric::Value;

use super::*;

/// Process ids that no kernel gives, so their CPU time comes from `stat`.
const FIRST: u32 = 4_194_305;
const SECOND: u32 = 4_194_306;

/// Writes the `stat` of a process with these ticks: user, system, and the same of children.
fn write_stat(proc: &Path, pid: u32, [user, system, children_user, children_system]: [u64; 4]) {
    let folder = proc.join(pid.to_string());
    fs::create_dir_all(&folder).unwrap();
    let line = format!(
        "{pid} (a) S 1 1 1 0 -1 0 100 0 0 0 {user} {system} {children_user} {children_system} \
         20 0 1 0 {pid} 0 1\n"
    );
    fs::write(folder.join("stat"), line).unwrap();
}

fn value(samples: &[Sample], metric: Metric) -> u64 {
    let sample = samples.iter().find(|sample| sample.name == metric.into());
    match sample.map(|sample| &sample.value) {
        Some(Value::Int(value)) => *value,
        value => panic!("{value:?}"),
    }
}

/// Ticks of CPU time after one beat: in all, user, system. Beside them the page faults.
fn beat(reader: &mut TargetReader) -> ([u64; 3], u64) {
    let mut samples = Vec::new();
    reader.sample(false, &mut samples);
    let cpu = [
        metric::TARGET_CPU,
        metric::TARGET_CPU_USER,
        metric::TARGET_CPU_SYSTEM,
    ];
    let ticks = cpu.map(|metric| value(&samples, metric) / reader.tick_nanos);
    (ticks, value(&samples, metric::TARGET_FAULTS_MINOR))
}

#[test]
fn a_restart_keeps_the_usage_of_children_that_the_target_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path();
    let mut reader = reader_of_first(proc);
    write_stat(proc, FIRST, [10, 5, 200, 100]);
    assert_eq!(beat(&mut reader), ([315, 210, 105], 100));
    // The kernel has no more about a process that has ended.
    fs::write(proc.join(FIRST.to_string()).join("stat"), "").unwrap();
    assert_eq!(beat(&mut reader), ([315, 210, 105], 100));
    reader.follow(SECOND);
    write_stat(proc, SECOND, [1, 2, 0, 0]);
    assert_eq!(beat(&mut reader), ([318, 211, 107], 200));
    write_stat(proc, SECOND, [1, 2, 30, 40]);
    assert_eq!(beat(&mut reader), ([388, 241, 147], 200));
}

#[test]
fn user_and_system_time_come_from_the_same_sum_as_the_total() {
    let living = [10, 7, 3, 0, 0, 0, 0];
    let ended = [6, 5, 1, 0, 0, 0, 0];
    let times = |total, user, system| CpuTimes {
        total,
        user,
        system,
    };
    for (children, expected) in [
        ([0, 0], times(16, 12, 4)),
        ([2, 1], times(16, 12, 4)),
        ([3, 4], times(17, 10, 7)),
    ] {
        assert_eq!(process_times((living, ended), children, 1), expected);
    }
}

fn reader_of_first(proc: &Path) -> TargetReader {
    let probe = TargetProbe {
        pid: FIRST,
        ..TargetProbe::default()
    };
    TargetReader::new(proc, probe)
}

/// Returns true for each series of the target's descriptors and storage that one beat has.
fn has_series(reader: &mut TargetReader) -> [bool; 3] {
    let mut samples = Vec::new();
    reader.sample(false, &mut samples);
    let series = [
        metric::TARGET_FDS,
        metric::TARGET_READ_BYTES,
        metric::TARGET_WRITE_BYTES,
    ];
    series.map(|metric| samples.iter().any(|sample| sample.name == metric.into()))
}

#[test]
fn storage_and_descriptors_have_no_sample_while_those_of_a_living_process_are_hidden() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path();
    let mut reader = reader_of_first(proc);
    let of_process = proc.join(FIRST.to_string());
    write_stat(proc, FIRST, [1, 1, 0, 0]);
    assert_eq!(has_series(&mut reader), [false; 3]);
    fs::create_dir(of_process.join("fd")).unwrap();
    assert_eq!(has_series(&mut reader), [true, false, false]);
    fs::write(of_process.join("io"), "read_bytes: 5\nwrite_bytes: 7\n").unwrap();
    assert_eq!(has_series(&mut reader), [true; 3]);
    let mut samples = Vec::new();
    reader.sample(false, &mut samples);
    assert_eq!(value(&samples, metric::TARGET_READ_BYTES), 5);
    assert_eq!(value(&samples, metric::TARGET_WRITE_BYTES), 7);
    fs::remove_file(of_process.join("io")).unwrap();
    fs::write(of_process.join("stat"), "").unwrap();
    // It has ended.
    assert_eq!(has_series(&mut reader), [true; 3]);
}

#[test]
fn the_bytes_of_a_process_that_ends_during_a_beat_stay_in_the_totals() {
    let folder = tempfile::tempdir().unwrap();
    let proc = folder.path();
    let mut reader = reader_of_first(proc);
    let of_process = proc.join(FIRST.to_string());
    write_stat(proc, FIRST, [1, 1, 0, 0]);
    fs::write(of_process.join("io"), "read_bytes: 5\nwrite_bytes: 7\n").unwrap();
    reader.sample(false, &mut Vec::new());
    // It ends after its `stat` was read.
    fs::write(of_process.join("io"), "").unwrap();
    reader.sample(false, &mut Vec::new());
    fs::write(of_process.join("stat"), "").unwrap();
    let mut samples = Vec::new();
    reader.sample(false, &mut samples);
    assert_eq!(value(&samples, metric::TARGET_READ_BYTES), 5);
    assert_eq!(value(&samples, metric::TARGET_WRITE_BYTES), 7);
}
