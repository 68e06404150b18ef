//! The page of compatibility against the tools under their names.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

const STILLWELL: &str = env!("CARGO_BIN_EXE_stillwell");
const PAGE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../docs/compatibility.md"
);

/// Flags of Stillwell's own, which these tools have besides.
const ADDED: [&str; 7] = [
    "--token-file",
    "--insecure",
    "--allow-target",
    "--allow-files",
    "--max-rate",
    "--max-duration",
    "--max-connections",
];

/// Long flags in the help of the binary under this name.
fn flags(name: &str) -> BTreeSet<String> {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join(name);
    symlink(STILLWELL, &link).unwrap();
    let help = Command::new(link).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let lines = help.lines().map(str::trim_start);
    let lines = lines.filter(|line| line.starts_with('-'));
    let words = lines.flat_map(|line| line.split([' ', ',']).take(3));
    let is_flag = |word: &&str| word.starts_with("--") && word.len() > 2;
    words.filter(is_flag).map(str::to_owned).collect()
}

/// The rows below the heading of a table.
fn rows<'p>(page: &'p str, table: &str) -> BTreeSet<&'p str> {
    let (_, rest) = page.split_once(&format!("\n### {table}\n")).unwrap();
    let rows = rest.split("\n###").next().unwrap_or_default().lines();
    let parts = rows.filter_map(|row| row.strip_prefix("| `")?.split('`').next());
    parts.collect()
}

#[test]
fn every_flag_of_these_tools_is_in_the_tables() {
    let page = std::fs::read_to_string(Path::new(PAGE)).unwrap();
    for (name, table) in [
        ("nighthawk_client", "nighthawk_client"),
        ("nighthawk_test_server", "nighthawk_test_server"),
        ("nighthawk_service", "nighthawk_service"),
        ("nighthawk_output_transform", "nighthawk_output_transform"),
        (
            "nighthawk_adaptive_load_client",
            "nighthawk_adaptive_load_client",
        ),
        ("lading", "lading, command line"),
    ] {
        let (flags, rows) = (flags(name), rows(&page, table));
        assert!(!flags.is_empty(), "{name}");
        let is_missing = |flag: &&String| {
            let usual = ["--help", "--version"].contains(&flag.as_str());
            !usual && !ADDED.contains(&flag.as_str()) && !rows.contains(flag.as_str())
        };
        let missing: Vec<&String> = flags.iter().filter(is_missing).collect();
        assert!(missing.is_empty(), "{name}: {missing:?}");
    }
}
