//! The binary from end to end: what it prints, how it exits, what it leaves, and that
//! nothing goes on when it has ended. The target is `stillwell relay`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test that cannot go on has failed, and says what it skips"
)]

#[path = "cli/ab.rs"]
mod ab;
#[path = "cli/bench.rs"]
mod bench;
#[path = "cli/bisect.rs"]
mod bisect;
#[path = "cli/both_ends.rs"]
mod both_ends;
#[path = "cli/capacity.rs"]
mod capacity;
#[path = "cli/captool.rs"]
mod captool;
#[path = "cli/cluster.rs"]
mod cluster;
#[path = "cli/compare.rs"]
mod compare;
#[path = "cli/compatibility.rs"]
mod compatibility;
#[path = "cli/config.rs"]
mod config;
#[path = "cli/container.rs"]
mod container;
#[path = "cli/disks.rs"]
mod disks;
#[path = "cli/faults.rs"]
mod faults;
#[path = "cli/faulty_peer.rs"]
mod faulty_peer;
#[path = "cli/figures.rs"]
mod figures;
#[path = "cli/git.rs"]
mod git;
#[path = "cli/history.rs"]
mod history;
#[path = "cli/hostile.rs"]
mod hostile;
#[path = "cli/init.rs"]
mod init;
#[path = "cli/inspector.rs"]
mod inspector;
#[path = "cli/interrupt.rs"]
mod interrupt;
#[path = "cli/kubernetes.rs"]
mod kubernetes;
#[path = "cli/lading.rs"]
mod lading;
#[path = "cli/lading_name.rs"]
mod lading_name;
#[path = "cli/layouts.rs"]
mod layouts;
#[path = "cli/lint.rs"]
mod lint;
#[path = "cli/live.rs"]
mod live;
#[path = "cli/load.rs"]
mod load;
#[path = "cli/nighthawk.rs"]
mod nighthawk;
#[path = "cli/observe.rs"]
mod observe;
#[path = "cli/omission.rs"]
mod omission;
#[path = "cli/payloadtool.rs"]
mod payloadtool;
#[path = "cli/pull_requests.rs"]
mod pull_requests;
#[path = "cli/relay_disk.rs"]
mod relay_disk;
#[path = "cli/resume.rs"]
mod resume;
#[path = "cli/role_pairs.rs"]
mod role_pairs;
#[path = "cli/roles.rs"]
mod roles;
#[path = "cli/runs.rs"]
mod runs;
#[path = "cli/secrets.rs"]
mod secrets;
#[path = "cli/serve.rs"]
mod serve;
#[path = "cli/service.rs"]
mod service;
#[path = "cli/slowdown.rs"]
mod slowdown;
#[path = "cli/stamps.rs"]
mod stamps;
#[path = "cli/start.rs"]
mod start;
#[path = "cli/storage.rs"]
mod storage;
#[path = "cli/suite.rs"]
mod suite;
#[path = "cli/system.rs"]
mod system;
#[path = "cli/target.rs"]
mod target;
#[path = "cli/targets.rs"]
mod targets;
#[path = "cli/telemetry.rs"]
mod telemetry;
#[path = "cli/transform.rs"]
mod transform;
#[path = "cli/tunnel.rs"]
mod tunnel;
#[path = "cli/ui.rs"]
mod ui;
#[path = "cli/validity.rs"]
mod validity;
#[path = "cli/verdict.rs"]
mod verdict;
#[path = "cli/web.rs"]
mod web;
