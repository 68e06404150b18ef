use std::fs;
use std::path::Path;

use stillwell_metric::Outcome;
use stillwell_plan::generator::FileTreePlan;
use stillwell_plan::{PayloadPlan, RatePlan, RateShape, RateUnit, TransportPlan};

use crate::{Fixture, plan, wait_until};

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

// compat: lading, generators | file_tree | works
#[test]
fn a_tree_is_worked_on_at_its_rate() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("tree");
    let mut plan = plan(TransportPlan::FileTree(FileTreePlan {
        root: root.clone(),
        depth_max: 3.try_into().unwrap(),
        folders_max: 2.try_into().unwrap(),
        files_max: 2.try_into().unwrap(),
        nodes_max: 20.try_into().unwrap(),
        name_length: 6.try_into().unwrap(),
        renames: stillwell_plan::generator::RenameShare::try_new(1, 10.try_into().unwrap())
            .unwrap(),
    }));
    plan.payload = PayloadPlan::PACE;
    plan.rate = RatePlan {
        unit: RateUnit::Blocks,
        shape: RateShape::Constant { per_second: 1000.0 },
    };
    let fixture = Fixture::start(&plan);
    wait_until(|| fixture.outcomes(Outcome::Ok) >= 60);
    let shards = fixture.finish();
    assert!(root.is_dir() && files_below(&root) >= 8);
    assert_eq!(shards[0].events.total(), shards[0].requests.total());
    assert_eq!(shards[0].outcomes[Outcome::SendFailed.index()].total(), 0);
}
