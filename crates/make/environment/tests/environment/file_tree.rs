use std::fs;
use std::path::Path;

use stillwell_metric::Outcome;
use stillwell_plan::{FileTreePlan, PayloadPlan, RatePlan, RateShape, RateUnit, TransportPlan};

use crate::{Rig, plan, wait_until};

/// Number of files below `folder`.
fn files_below(folder: &Path) -> usize {
    let entries = fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let counts = paths.map(|path| match path.is_dir() {
        true => files_below(&path),
        false => 1,
    });
    counts.sum()
}

#[test]
fn a_tree_is_worked_on_at_its_rate() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    let mut plan = plan(TransportPlan::FileTree(FileTreePlan {
        root: root.clone(),
        depth_max: 3,
        folders_max: 2,
        files_max: 2,
        nodes_max: 20,
        name_length: 6,
        operations: 10,
        renames: 1,
    }));
    plan.payload = PayloadPlan::PACE;
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 1000.0 },
    };
    let rig = Rig::start(&plan);
    wait_until(|| rig.outcomes(Outcome::Ok) >= 60);
    let shards = rig.finish();
    assert!(root.is_dir() && files_below(&root) >= 8);
    assert_eq!(shards[0].events.total(), shards[0].requests.total());
    assert_eq!(shards[0].outcomes[Outcome::SendFailed.index()].total(), 0);
}
