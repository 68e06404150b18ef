use std::path::{Path, PathBuf};

use stillwell_payload::{BlockSet, SlotUse};
use stillwell_plan::{PayloadFormat, PayloadPlan};
use stillwell_units::Seed;

use crate::{SEEDED, build, plan, up_to};

/// The same plan and seed give these bytes, on every machine and in every
/// version, until someone decides otherwise.
#[test]
fn fingerprints_are_those_in_the_tree() {
    for format in SEEDED {
        let plan = plan(format, up_to(64 << 10), 1 << 20);
        let set = build(&plan, 42, SlotUse::None);
        compare(plan.format.name(), &set);
        let stamped = build(&plan, 42, SlotUse::Every);
        compare(&format!("{}-slots", plan.format.name()), &stamped);
    }
    let plan = lines_plan();
    let set = BlockSet::build(&plan, plan.cache, Seed::from_number(42), Some(FABLE)).unwrap();
    compare(plan.format.name(), &set);
}

const FABLE: &[u8] = b"a line\n\nanother, after an empty one\nand one without an end";

fn lines_plan() -> PayloadPlan {
    let path = PathBuf::from("/logs/example.log");
    plan(PayloadFormat::Lines { path }, up_to(512), 64 << 10)
}

pub(crate) fn compare(name: &str, set: &BlockSet) {
    let total = set.total();
    let fingerprint = set.fingerprint().to_string();
    let (sha256, entropy) = fingerprint.split_once(" entropy=").unwrap();
    let actual = format!(
        "sha256 {sha256}\nentropy {entropy}\nbytes {}\nevents {}\nblocks {}\n",
        total.bytes,
        total.events,
        set.len()
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fingerprints")
        .join(format!("{name}.txt"));
    if std::env::var_os("STILLWELL_BLESS").is_some() {
        std::fs::write(&path, &actual).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(
        actual, expected,
        "the bytes of {name} have changed. If that is meant, and the entropy has not fallen, run \
         STILLWELL_BLESS=1 cargo test -p stillwell-payload and say why in the change log"
    );
}
