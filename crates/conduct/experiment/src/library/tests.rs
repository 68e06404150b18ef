//! Folders with results and with files of other programs.

use std::time::Duration;

use super::*;

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The file that describes a run.
const RUN: &str = r#"{"schema": "stillwell/run/v2"}"#;

/// Writes a folder with results of each kind and other files.
fn fill(at: &Path) {
    write(
        at,
        ".stillwell/results/a/suite.json",
        r#"{"schema": "stillwell/suite/v1", "command": ["/x/stillwell", "run", "suite"]}"#,
    );
    write(
        at,
        ".stillwell/results/a/report.md",
        "<!-- x -->\n### ❌ 1 regression · `a` vs `b`\n",
    );
    write(at, ".stillwell/results/a/case/pair-001/manifest.json", RUN);
    // Keys are sorted, so a large plan precedes the schema.
    let plan = "x".repeat(5_000);
    write(
        at,
        ".stillwell/results/b/suite.json",
        &format!(
            r#"{{"command": ["stillwell", "ab", "http://a/"], "plan": "{plan}", "schema": "stillwell/suite/v1"}}"#
        ),
    );
    write(
        at,
        ".stillwell/loads/c/manifest.json",
        r#"{"schema": "stillwell/load-capture/v1", "command": ["stillwell", "load"]}"#,
    );
    write(at, ".stillwell/runs/d/manifest.json", RUN);
    write(at, ".stillwell/benches/e/manifest.json", RUN);
    write(
        at,
        ".stillwell/capacity/f/capacity.json",
        r#"{"command": "stillwell find-capacity http://a/", "schema": "stillwell/capacity/v1"}"#,
    );
    write(at, ".stillwell/calibrations/g/case/manifest.json", RUN);
    write(at, ".git/manifest.json", RUN);
    // Files of a web application, and a result below it.
    write(at, "app/manifest.json", r#"{"name": "app"}"#);
    write(at, "app/runs/h/manifest.json", RUN);
    write(
        at,
        "page.html",
        r#"<meta name="generator" content="stillwell">"#,
    );
    write(at, "other.html", "<p>");
    write(at, "suite/experiment.yaml", "");
    std::os::unix::fs::symlink(at, at.join("again")).unwrap();
}

#[test]
fn of_too_many_results_the_newest_are_listed() {
    let root = tempfile::tempdir().unwrap();
    for age in 0..8_u64 {
        let name = format!("{age}/manifest.json");
        write(root.path(), &name, RUN);
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 - age);
        let file = File::options().write(true).open(root.path().join(name));
        file.unwrap().set_modified(changed).unwrap();
    }
    let roots = ResultRoots::new(vec![root.path().to_path_buf()]);
    for (max, expected, is_cut) in [(3, "0 1 2", true), (8, "0 1 2 3 4 5 6 7", false)] {
        let listing = Library::default().survey_at_most(&roots, max);
        let names = listing.results.iter().map(|entry| entry.place.shown());
        assert_eq!(names.collect::<Vec<_>>().join(" "), expected);
        assert_eq!(listing.is_cut, is_cut);
    }
}

#[test]
fn a_file_is_a_result_by_its_ending_and_its_content() {
    const LOAD: &str = r#"{"schema": "stillwell/load-summary/v1", "command": "stillwell load"}"#;
    const PAGE: &str = r#"<meta name="generator" content="stillwell">"#;
    for (name, content, is_result) in [
        ("load.json", LOAD, true),
        ("load.json", r#"{"schema": "stillwell/load/v2"}"#, true),
        ("page.html", PAGE, true),
        ("load.txt", LOAD, false),
        ("load.html", LOAD, false),
        ("page.json", PAGE, false),
        ("other.json", "{}", false),
        // A part of a result in a folder, a JSON Schema, and a list of names.
        (
            "manifest.json",
            r#"{"schema": "stillwell/load-capture/v1"}"#,
            false,
        ),
        (
            "schema.json",
            r#"{"properties": {"schema": {"const": "stillwell/load-summary/v1"}}}"#,
            false,
        ),
        ("list.json", r#"["stillwell/load/v2"]"#, false),
    ] {
        let root = tempfile::tempdir().unwrap();
        write(root.path(), name, content);
        let described = describe_result(&root.path().join(name)).is_some();
        assert_eq!(described, is_result, "{name}: {content}");
        let is_stored = is_result_file(name.as_ref(), content.as_bytes());
        assert_eq!(is_stored, is_result, "{name}: {content}");
    }
}

#[test]
fn a_folder_is_a_result_only_if_a_file_in_it_has_a_schema_of_stillwell() {
    for name in HEADS {
        for (content, is_result) in [
            (r#"{"schema": "stillwell/x/v1"}"#, true),
            (r#"{"name": "app"}"#, false),
            (r#"{"schema": "app/v1", "by": "stillwell/x/v1"}"#, false),
            (r#"{"schema": 1}"#, false),
            ("stillwell/x/v1", false),
            ("", false),
        ] {
            let root = tempfile::tempdir().unwrap();
            write(root.path(), name, content);
            let described = describe_result(root.path()).is_some();
            assert_eq!(described, is_result, "{name}: {content}");
            assert_eq!(is_result_head(content.as_bytes()), is_result, "{content}");
        }
    }
}

#[test]
fn a_known_result_that_another_program_replaced_is_no_result() {
    let root = tempfile::tempdir().unwrap();
    let roots = ResultRoots::new(vec![root.path().to_path_buf()]);
    let library = Library::default();
    // It is newer than the file that describes the result.
    write(root.path(), "a/report.md", "### no regression\n");
    for (age, content, results) in [(2, RUN, 1), (1, "{}", 0)] {
        write(root.path(), "a/manifest.json", content);
        let changed = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 - age);
        let path = root.path().join("a/manifest.json");
        let file = File::options().write(true).open(path).unwrap();
        file.set_modified(changed).unwrap();
        assert_eq!(library.survey(&roots).results.len(), results);
    }
}

#[test]
fn results_are_found_by_their_files_and_configurations_beside_them() {
    let root = tempfile::tempdir().unwrap();
    let at = root.path();
    fill(at);
    let roots = ResultRoots::new(vec![at.to_path_buf()]);
    let library = Library::default();
    let listing = library.survey(&roots);
    let mut results: Vec<(String, ResultKind)> = listing
        .results
        .iter()
        .map(|entry| (entry.place.shown(), entry.kind))
        .collect();
    results.sort();
    let expected = [
        (".stillwell/benches/e", ResultKind::Bench),
        (".stillwell/capacity/f", ResultKind::Capacity),
        (".stillwell/loads/c", ResultKind::Load),
        (".stillwell/results/a", ResultKind::Suite),
        (".stillwell/results/b", ResultKind::Ab),
        (".stillwell/runs/d", ResultKind::Run),
        ("app/runs/h", ResultKind::Run),
        ("page.html", ResultKind::Page),
    ];
    assert_eq!(
        results,
        expected.map(|(path, kind)| (path.to_owned(), kind))
    );
    let suite = listing
        .results
        .iter()
        .find(|entry| entry.kind == ResultKind::Suite)
        .unwrap();
    assert_eq!(
        suite
            .headline
            .as_ref()
            .map(|line| (line.sign, line.text.as_str())),
        Some(("▲", "1 regression"))
    );
    assert_eq!(suite.command, "stillwell run suite");
    assert_eq!(
        listing.files,
        [PlaceBelow::parse("0/suite/experiment.yaml").unwrap()]
    );
    assert!(!listing.is_cut && !listing.are_files_cut);
    assert_eq!(library.survey(&roots), listing);
}
