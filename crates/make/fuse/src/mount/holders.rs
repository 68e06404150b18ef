//! Processes that still use a file system.

use std::fs;
use std::path::Path;

/// Processes that are named at most.
const NAMED_MAX: usize = 3;

/// Describes the processes that have a file open below `at` or their working folder there. Reads
/// only `/proc`, never the file system.
pub(super) fn describe(at: &Path) -> String {
    let mut holders = holders(at);
    if holders.is_empty() {
        return "something still uses it".to_owned();
    }
    let more = holders.len().saturating_sub(NAMED_MAX);
    holders.truncate(NAMED_MAX);
    let named = holders.join(", ");
    match more {
        0 => format!("in use by {named}"),
        more => format!("in use by {named} and {more} more"),
    }
}

fn holders(at: &Path) -> Vec<String> {
    let Ok(processes) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let processes = processes.flatten().filter_map(|entry| {
        let number: u32 = entry.file_name().to_str()?.parse().ok()?;
        let folder = entry.path();
        holds(&folder, at).then(|| {
            let name = fs::read_to_string(folder.join("comm")).unwrap_or_default();
            format!("{} ({number})", name.trim_end())
        })
    });
    processes.collect()
}

fn holds(process: &Path, at: &Path) -> bool {
    let is_below = |link: &Path| fs::read_link(link).is_ok_and(|to| to.starts_with(at));
    if is_below(&process.join("cwd")) || is_below(&process.join("root")) {
        return true;
    }
    let open = fs::read_dir(process.join("fd"));
    open.is_ok_and(|open| open.flatten().any(|entry| is_below(&entry.path())))
}
