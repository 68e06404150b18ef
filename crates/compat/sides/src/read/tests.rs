use std::fs;

use super::*;
use crate::fixture::options;

const FORTIO: &str = r#"{"ActualQPS": 99.5, "DurationHistogram": {"Avg": 0.002}}"#;

/// Writes these files to a new folder.
fn folder_of(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// A result that had been cut was missing in the comparison, and nothing said so.
#[test]
fn a_result_in_a_folder_that_cannot_be_read_is_left_out_with_a_remark() {
    let cut = &FORTIO.as_bytes()[..40];
    let unreadable: [(&str, &[u8]); 4] = [
        ("bytes.json", b"{\"ActualQPS\": \"\xff\"}"),
        ("cut.json", cut),
        ("killed.parquet", b"PAR1 rows without a footer"),
        ("part.json", b"{\"DurationHistogram\": 3}"),
    ];
    let files: [(&str, &[u8]); 4] = [
        ("whole.json", FORTIO.as_bytes()),
        ("events.jsonl", b"{\"event\": 1}\n{\"event\": 2}\n"),
        ("list.json", b"[\n  {\"event\": 1},\n  {\"event\": 2}\n]\n"),
        ("suite.json", b"{\"schema\": \"stillwell/suite/v1\"}"),
    ];
    let folder = folder_of(&[&files[..], &unreadable].concat());
    let options = options(&[]);
    let mut reader = SideReader::new(&options);
    // Both sides may be the same folder.
    for _ in 0..2 {
        let runs = reader.read(folder.path().to_str().unwrap()).unwrap();
        assert_eq!(runs.len(), 1, "{runs:?}");
    }
    let remarks = reader.into_remarks();
    assert_eq!(remarks.len(), unreadable.len(), "{remarks:?}");
    for (remark, (name, _)) in remarks.iter().zip(unreadable) {
        assert!(remark.contains(name), "{remark}");
        assert!(remark.ends_with(": the file is left out"), "{remark}");
    }
}

#[test]
fn a_folder_with_unreadable_results_alone_is_refused_with_the_reason() {
    let folder = folder_of(&[
        ("cut.json", &FORTIO.as_bytes()[..40]),
        ("killed.parquet", &b"PAR1"[..]),
    ]);
    let options = options(&[]);
    let mut reader = SideReader::new(&options);
    let error = reader.read(folder.path().to_str().unwrap()).unwrap_err();
    let error = error.to_string();
    for part in [
        "no capture or result",
        "cut.json",
        "not complete JSON",
        "killed.parquet has no footer",
    ] {
        assert!(error.contains(part), "{error}");
    }
}
