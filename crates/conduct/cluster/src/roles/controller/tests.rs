//! Tests of the controller of a run on several machines.

use stillwell_plan::placement::{CpuChoice, IsolationPlan};
use stillwell_plan::step::TargetSignal;
use stillwell_plan::target::{ReadyProbe, StopPlan};
use stillwell_plan::{ObserverPlan, PhasesPlan, PlacementPlan, TargetKind, TargetPlan};
use stillwell_units::{RunId, Seed};

use super::*;
use crate::engine::LocalEngine;
use crate::store::{RetryBounds, Store};

fn plan() -> RunPlan {
    RunPlan {
        seed: Seed::from_number(0),
        generators: Vec::new(),
        sinks: Vec::new(),
        target: TargetPlan {
            name: "none".to_owned(),
            kind: TargetKind::None,
            ready: ReadyProbe::Immediately,
            cpus: CpuChoice::Auto,
            memory: None,
            stop: StopPlan {
                signal: TargetSignal::Term,
                grace: Nanos::SECOND,
            },
        },
        disks: Vec::new(),
        observer: ObserverPlan::default(),
        phases: PhasesPlan::default(),
        timeline: Vec::new(),
        isolation: IsolationPlan::default(),
        placement: PlacementPlan::default(),
        checks: Vec::new(),
    }
}

/// The part whose clock had no offset was named as one that did not answer.
#[test]
fn a_run_that_is_interrupted_while_clocks_are_compared_blames_no_part() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path(), true).unwrap();
    let store = JobStore::new(store, "a", RetryBounds::default()).unwrap();
    let (plan, interrupt) = (plan(), Interrupt::new());
    interrupt.raise(2);
    let run = FleetRun {
        plan: &plan,
        store: &store,
        engine: &LocalEngine,
        program: PathBuf::from("none"),
        arguments: &[],
        logs: PathBuf::new(),
        interrupt: &interrupt,
        print_message: &|_| {},
        show: &|_| {},
    };
    let roles = RunRoles {
        generators: 1,
        sinks: 0,
    };
    let line = (PathBuf::from("/"), Vec::new());
    let id = RunId::from_bytes([1; 16]);
    let job = RunJob::new("1", line, "s".to_owned(), id, roles);
    let hosts = RunHosts::default();
    let member = Member {
        attempt: "a".to_owned(),
        node: "n".to_owned(),
        boot: "b".to_owned(),
        address: hosts.target,
        began: Nanos::ZERO,
    };
    let members = Members {
        tasks: vec![member; roles.tasks().into()],
        hosts,
    };
    let agreed = run.agree(&job, &members).unwrap();
    assert_eq!(agreed, Err("interrupted by signal 2".to_owned()));
    assert_eq!(store.get(&Interrupt::new(), START).unwrap(), None);
}
