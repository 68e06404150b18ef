//! The capture of a load.

use stillwell_capture::LoadCapture;
use stillwell_report::load::{LoadReportInput, load_report, read_load_json, write_load_json};

use super::{load, serve, stop};

#[test]
fn the_report_is_made_from_the_capture_alone() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let capture = format!("--capture={}", kept.display());
    let (server, url) = serve(&[]);
    let ended = load(&[
        &url,
        "--rate=500/s",
        "--duration=1500ms",
        "--warmup=200ms",
        "--connections=4",
        "--threads=2",
        "--label=a-word",
        "--output-format=stillwell",
        &capture,
    ]);
    stop(server);
    let printed = read_load_json(&ended.stdout).unwrap();
    let read = LoadCapture::open(&kept).unwrap();
    assert_eq!(read.manifest.workers.len(), 2);
    assert!(read.seconds.len() > 1, "{}", read.seconds.len());
    // Warnings are judged, and not recorded.
    let made = load_report(&LoadReportInput {
        capture: &read,
        original: None,
        warnings: &printed.health.warnings,
    });
    assert!(write_load_json(&made) == ended.stdout, "another report");
}
