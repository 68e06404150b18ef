//! Profiles of a target.

use std::num::NonZeroU32;

use stillwell_profile::{Profile, ProfileCollector, ProfileFile, RunWork, read_perf_script};
use stillwell_units::Moment;

const WORK: RunWork = RunWork {
    events_per_second: 1.0,
    measured_ns: (0, i64::MAX),
};

/// A profile is read or refused; one that was read can be written, read again, and compared with itself.
pub fn profile(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let measured = (Moment::new(0), Moment::new(u64::MAX));
        if let Ok(read) = read_perf_script(text, NonZeroU32::MIN, measured) {
            check(read.profile);
        }
    }
    if let Ok(profile) = Profile::read(bytes) {
        check(profile);
    }
}

fn check(profile: Profile) {
    let written = profile.write().expect("a profile can be written");
    let again = Profile::read(&written).expect("a written profile can be read");
    assert_eq!(again, profile);
    let files = [ProfileFile {
        page: "mutex".to_owned(),
        profile,
    }];
    let mut collector = ProfileCollector::default();
    for variant in ["a", "b"] {
        collector.add_run(variant, &files, &WORK);
    }
    for comparison in collector.compare("a", "b") {
        assert_eq!(comparison.clearest_changes(1).count(), 0);
    }
}
