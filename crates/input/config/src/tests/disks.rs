//! Disks, and logs in a file system of their own.

use stillwell_plan::disk::DiskKind;
use stillwell_plan::generator::FileLayout;
use stillwell_plan::{RunPlan, TransportPlan};
use stillwell_units::{ByteSize, Nanos};

use super::run_plan;

fn plan_of(text: &str) -> RunPlan {
    run_plan(text)
        .unwrap_or_else(|diagnostics| panic!("{diagnostics}"))
        .plan
}

#[test]
fn disks_are_read_and_what_is_left_out_holds_nothing_back() {
    let plan = plan_of(
        "disks:
  - {path: '{state}/buffer', backing: kept, fsync_delay: 20ms, fsync_delay_per_mib: 1ms,
     write_rate: 10 MiB/s, limit: 100 MB}
  - {path: /srv/disk}
  - {path: small, tmpfs: 1 MiB}
",
    );
    let [first, second, third] = &plan.disks[..] else {
        panic!("{:?}", plan.disks);
    };
    let DiskKind::Folder(slow) = &first.kind else {
        panic!("{first:?}");
    };
    assert_eq!(first.path.to_str(), Some("{state}/buffer"));
    assert!(slow.backing.as_ref().unwrap().is_absolute());
    assert_eq!(slow.fsync_delay, Nanos::from_millis(20));
    assert_eq!(slow.fsync_delay_per_mib, Nanos::from_millis(1));
    assert_eq!(slow.write_rate.unwrap().bytes_per_second(), 10 << 20);
    assert_eq!(slow.limit, Some(ByteSize::new(100_000_000)));
    assert_eq!(
        second.kind,
        DiskKind::Folder(stillwell_plan::disk::FolderDiskPlan::default())
    );
    assert_eq!(third.kind, DiskKind::Memory(ByteSize::mib(1)));
    assert!(third.path.is_absolute());
}

#[test]
fn mistakes_in_disks_are_shown_all_at_once() {
    snapshot!(
        "target: {command: [./x]}
variants: {baseline: {}, comparison: {arguments: [a]}}
disks:
  - {path: /, fsync_delay: 20}
  - {path: '{state}'}
  - {tmpfs: 0 B}
  - {path: /a, tmpfs: 1 MiB, limit: 1 MiB, fsync_delay: 1ms}
  - {path: /b, write_rate: 10 MiB, fsync: 1ms}
  - {path: /c}
  - {path: /c}
workload:
  generators:
    - file_gen: {mount: /logs, file_max: 1 MiB}
      payload: ascii
      rate: max
    - file_gen: {mount: /logs, file_max: 1 MiB}
      payload: ascii
      rate: 1 MiB/s
      stamps: all
"
    );
}

#[test]
fn logs_are_mounted_where_the_plan_requires_it() {
    let plan = plan_of(
        "isolation: {network: no}
workload:
  generators:
    - file_gen: {mount: /logs, file_max: 1 MiB, depth: 2}
      payload: ascii
      rate: 1 MiB/s
      connections: 3
",
    );
    let TransportPlan::Files { layout, bytes_max } = &plan.generators[0].transport else {
        panic!("{:?}", plan.generators);
    };
    let expected = FileLayout::Mounted {
        at: "/logs".into(),
        depth_max: 2,
        rotations: 5,
    };
    assert_eq!((layout, *bytes_max), (&expected, ByteSize::mib(1)));
}
