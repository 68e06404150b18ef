//! The tables that the checks hold the tree against. A change of direction in
//! the house is a change here, and wants a decision record.

/// Permitted dependencies of one crate.
pub(super) struct Entry {
    /// The package's name without the prefix `stillwell-`; `cli` is package `stillwell`.
    pub(super) name: &'static str,
    /// The workspace crates that it may depend on.
    pub(super) permitted: Permitted,
    /// Pure: no clock, socket, file, thread or runtime outside its tests.
    pub(super) pure: bool,
}

/// The permitted workspace crates.
pub(super) enum Permitted {
    /// All of them: a face or a benchmark.
    Any,
    /// Only these.
    Only(&'static [&'static str]),
}

const fn pure(name: &'static str, permitted: &'static [&'static str]) -> Entry {
    Entry {
        name,
        permitted: Permitted::Only(permitted),
        pure: true,
    }
}

const fn edge(name: &'static str, permitted: &'static [&'static str]) -> Entry {
    Entry {
        name,
        permitted: Permitted::Only(permitted),
        pure: false,
    }
}

const fn face(name: &'static str) -> Entry {
    Entry {
        name,
        permitted: Permitted::Any,
        pure: false,
    }
}

/// Every member of the workspace, in the order in which data travels.
#[rustfmt::skip]
pub(super) const CRATES: &[Entry] = &[
    pure("units", &[]),
    pure("metric", &["units"]),
    pure("text", &["units"]),
    pure("plan", &["units", "metric"]),
    pure("config", &["units", "metric", "plan", "text"]),
    pure("stamp", &["units"]),
    pure("payload", &["units", "metric", "plan"]),
    pure("pacer", &["units", "metric", "plan"]),
    pure("http", &["units"]),
    pure("broker", &["units"]),
    edge("scope", &["units", "metric"]),
    edge("wire", &["units", "metric", "plan", "http", "scope"]),
    edge("fuse", &["units", "metric", "plan", "scope"]),
    edge("worker", &[
        "units", "metric", "plan", "stamp", "payload", "pacer", "http", "scope", "wire", "fuse",
    ]),
    edge("load", &[
        "units", "metric", "plan", "stamp", "payload", "pacer", "http", "scope", "wire", "worker",
    ]),
    edge("generator", &[
        "units", "metric", "plan", "stamp", "payload", "pacer", "http", "broker", "scope", "wire", "worker", "load",
    ]),
    edge("environment", &[
        "units", "metric", "plan", "text", "payload", "pacer", "http", "scope", "wire", "fuse", "worker",
    ]),
    edge("target", &["units", "metric", "plan", "http", "scope", "wire"]),
    edge("observer", &["units", "metric", "plan", "scope", "wire", "http"]),
    edge("sink", &["units", "metric", "plan", "stamp", "http", "scope", "wire"]),
    edge("serve", &["units", "metric", "plan", "http", "scope", "wire"]),
    edge("capture", &["units", "metric", "plan"]),
    pure("profile", &["units"]),
    pure("stats", &[]),
    pure("verdict", &["units", "metric", "plan", "capture", "stats"]),
    edge("telemetry", &["units", "metric", "plan", "http", "scope", "wire", "load", "capture"]),
    edge("run", &[
        "units", "metric", "plan", "stamp", "payload", "pacer", "http", "scope", "wire", "fuse", "worker",
        "load", "generator", "environment", "target", "observer", "sink", "capture", "profile", "telemetry",
    ]),
    edge("experiment", &[
        "units", "metric", "plan", "config", "http", "scope", "wire", "target", "run", "capture", "stats", "verdict",
    ]),
    edge("cluster", &["units", "metric", "plan", "scope", "run", "capture", "experiment"]),
    pure("report", &["units", "metric", "plan", "capture", "profile", "verdict", "stats"]),
    edge("relay", &["units", "metric", "plan", "http", "scope", "wire"]),
    edge("bench", &["units", "metric", "scope"]),
    edge("nighthawk", &[
        "units", "metric", "plan", "text", "config", "http", "scope", "wire", "run", "report",
    ]),
    edge("lading", &["units", "metric", "plan", "text", "config", "capture"]),
    pure("others", &["units", "metric", "plan", "text", "config", "verdict"]),
    edge("sides", &[
        "units", "metric", "plan", "config", "capture", "stats", "verdict", "experiment", "report", "nighthawk", "lading", "others",
    ]),
    edge("web", &["units", "config", "scope", "experiment", "report"]),
    face("cli"),
    edge("testkit", &[]),
    face("benches"),
    edge("xtask", &["stats"]),
];

/// Workspace crates that any crate's tests may use, besides what the crate may use itself.
pub(super) const PERMITTED_IN_TESTS: &[&str] = &["testkit", "payload", "pacer", "serve", "units"];

/// External crates that a pure crate must not link: each one opens a door to the outside.
pub(super) const FORBIDDEN_IN_PURE: &[&str] = &[
    "tokio",
    "tokio-util",
    "rustix",
    "libc",
    "socket2",
    "procfs",
    "perf-event2",
];

/// External crates that only the named crates may link.
pub(super) const OWNED: &[(&str, &[&str])] = &[
    // `sides` reads what a user names; its errors are texts for that user.
    ("anyhow", &["cli", "sides", "benches", "xtask"]),
    ("clap", &["cli"]),
    ("parquet", &["capture", "lading"]),
    ("granit-parser", &["text"]),
    // For memory that lies in large pages. No file is ever mapped.
    ("memmap2", &["payload"]),
    ("perf-event2", &["observer"]),
    // It reads the environment.
    ("rustls-native-certs", &["wire"]),
];

/// The only files that may contain `unsafe`, each with the reason why safe code cannot do it.
pub(super) const UNSAFE_FILES: &[(&str, &str)] = &[
    (
        "crates/target/observer/src/cpu_clock.rs",
        "the CPU clock of another process has no safe wrapper",
    ),
    (
        "crates/make/stamp/src/lanes/wide.rs",
        "registers of 32 bytes are loaded through a pointer, where the processor has them",
    ),
    (
        "crates/receive/sink/src/json_classes.rs",
        "functions of registers need a feature, which every processor of this kind has",
    ),
    (
        "crates/target/target/src/kernel.rs",
        "what happens between fork and exec, and wait4",
    ),
    (
        "crates/make/wire/src/timer.rs",
        "the runtime has no safe way to watch a descriptor of ours",
    ),
];

/// The only files of pure crates that may read files or the environment, each with the reason.
pub(super) const FILE_READERS: &[(&str, &str)] = &[
    (
        "crates/input/config/src/files.rs",
        "the one place that reads configuration; everything else gets its text",
    ),
    (
        "crates/input/config/src/files/input.rs",
        "opens every file that a user names, with a largest size and a longest wait",
    ),
    (
        "crates/faces/cli/src/command/random.rs",
        "reads random numbers of the kernel",
    ),
];

/// Files in circles of more than five files that import each other, by crate. The numbers
/// are exact and only go down.
pub(super) const FILE_CIRCLES: &[(&str, usize)] = &[];

/// The entry of a crate, by its name without prefix.
pub(super) fn entry(name: &str) -> Option<&'static Entry> {
    CRATES.iter().find(|entry| entry.name == name)
}

/// The name in the table for a package: `stillwell-wire` is `wire`, `stillwell` is `cli`.
pub(super) fn table_name(package: &str) -> &str {
    if package == "stillwell" {
        return "cli";
    }
    package.strip_prefix("stillwell-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::{CRATES, Permitted, entry, table_name};

    #[test]
    fn every_direction_points_to_an_earlier_crate() {
        for (index, entry) in CRATES.iter().enumerate() {
            let Permitted::Only(permitted) = &entry.permitted else {
                continue;
            };
            for name in *permitted {
                let position = CRATES.iter().position(|entry| entry.name == *name);
                assert!(
                    position.is_some_and(|position| position < index),
                    "{} may use {name}, which does not stand before it",
                    entry.name
                );
            }
        }
    }

    #[test]
    fn a_pure_crate_uses_pure_crates_and_the_capture_only() {
        for user in CRATES.iter().filter(|user| user.pure) {
            let Permitted::Only(permitted) = &user.permitted else {
                panic!("{} is pure and may use anything", user.name);
            };
            for name in *permitted {
                let pure = entry(name).is_some_and(|user| user.pure);
                assert!(pure || *name == "capture", "{} uses {name}", user.name);
            }
        }
    }

    #[test]
    fn packages_are_known_by_their_folder() {
        assert_eq!(table_name("stillwell"), "cli");
        assert_eq!(table_name("stillwell-wire"), "wire");
        assert_eq!(table_name("xtask"), "xtask");
    }
}
