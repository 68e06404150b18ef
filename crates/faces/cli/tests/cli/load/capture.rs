//! The capture of a load.

use stillwell_capture::LoadCapture;
use stillwell_report::load::{LoadReportInput, load_report, read_load_json, write_load_json};

use stillwell_testkit::Process;

use super::{load, serve, stop};
use crate::suite::{LONG, STILLWELL};

#[test]
fn the_report_is_made_from_the_capture_alone() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let capture = format!("--capture={}", kept.display());
    let (server, url) = serve(&[]);
    let ended = load(&[
        &url,
        "--rate=500/s",
        "--duration=4s",
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

#[test]
fn the_strictness_of_limits_is_in_the_result_and_judged_again() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept").display().to_string();
    let (server, url) = serve(&[]);
    let ended = load(&[
        &url,
        "--requests=20",
        "--validity=off",
        "--format=json",
        &format!("--capture={kept}"),
    ]);
    stop(server);
    let printed: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    // Without limits, what harmed the load is a note.
    assert_eq!(printed["validity"], "off");
    assert_eq!(printed["reliable"], true);
    let mut command = std::process::Command::new(STILLWELL);
    let report = Process::start(command.args(["report", &kept])).finish(LONG);
    assert!(report.stdout.contains("validity: off"), "{}", report.stdout);
}

#[test]
fn a_damaged_capture_is_reported_with_the_name_of_its_damaged_file() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    let name = kept.display().to_string();
    let (server, url) = serve(&[]);
    let ended = load(&[
        &url,
        "--requests=20",
        "--validity=off",
        &format!("--capture={name}"),
    ]);
    stop(server);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let series = kept.join("series.parquet");
    let file = std::fs::File::options().write(true).open(&series).unwrap();
    file.set_len(100).unwrap();
    for (words, code) in [
        (&["report", &name][..], 3),
        (&["history", &name], 2),
        (&["compare", &name, &name], 2),
    ] {
        let mut command = std::process::Command::new(STILLWELL);
        let ended = Process::start(command.args(words)).finish(LONG);
        assert_eq!(ended.code, code, "{words:?}: {}", ended.stderr);
        let message = format!("read {}", series.display());
        assert!(
            ended.stderr.contains(&message),
            "{words:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_folder_that_takes_no_capture_is_refused_before_the_load() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "kept").unwrap();
    let (server, url) = serve(&[]);
    let store = format!("--store={}", folder.path().join("store").display());
    let of_fleet = vec!["--on=local", &store];
    for further in [vec![], of_fleet] {
        for kept in [file.clone(), file.join("below")] {
            let capture = format!("--capture={}", kept.display());
            let mut words = vec![url.as_str(), "--requests=1", &capture];
            words.extend(&further);
            let ended = load(&words);
            assert_eq!(ended.code, 3, "{words:?}: {}", ended.stderr);
            let message = format!("write the capture to {}", kept.display());
            assert!(ended.stderr.contains(&message), "{}", ended.stderr);
        }
    }
    assert_eq!(stop(server)["requests"], 0);
}

#[test]
fn a_capture_that_cannot_be_written_does_not_take_the_result_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let kept = folder.path().join("kept");
    // A folder has the name of a file of the capture.
    std::fs::create_dir_all(kept.join("series.parquet")).unwrap();
    let file = folder.path().join("result.json");
    let (server, url) = serve(&[]);
    let ended = load(&[
        &url,
        "--requests=20",
        "--format=json",
        &format!("--output={}", file.display()),
        &format!("--capture={}", kept.display()),
    ]);
    assert_eq!(stop(server)["requests"], 20);
    assert_eq!(ended.code, 3, "{}", ended.stderr);
    let message = "write the capture to ";
    assert!(ended.stderr.contains(message), "{}", ended.stderr);
    for text in [ended.stdout, std::fs::read_to_string(file).unwrap()] {
        let result: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(result["reliable"].is_boolean(), "{text}");
    }
}

#[test]
fn a_manifest_of_something_else_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = folder.path().join("manifest.json");
    let capture = format!("--capture={}", folder.path().display());
    for text in ["{\"name\": \"a\"}", "{\"schema\": \"stillwell/run/v2\"}"] {
        std::fs::write(&manifest, text).unwrap();
        let ended = load(&["http://127.0.0.1:1/", "--requests=1", &capture]);
        assert_eq!(ended.code, 2, "{}", ended.stderr);
        let message = "is not the manifest of a load";
        assert!(ended.stderr.contains(message), "{}", ended.stderr);
        assert_eq!(std::fs::read_to_string(&manifest).unwrap(), text);
    }
}

#[test]
fn a_saved_result_is_reported_again_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (server, url) = serve(&[]);
    let second = format!("{url}second?x");
    let requests = format!("GET {url}first\nGET {second}\n");
    std::fs::write(path("requests"), requests).unwrap();
    let ended = load(&[
        &format!("--requests-file={}", path("requests")),
        "--requests=20",
        "--connections=2",
        "--format=stillwell",
        &format!("--output={}", path("brief.json")),
        &format!("--output={}", path("brief.csv")),
    ]);
    stop(server);
    std::fs::write(path("full.json"), &ended.stdout).unwrap();
    let run = |words: &[&str]| {
        let mut command = std::process::Command::new(STILLWELL);
        Process::start(command.args(words)).finish(LONG)
    };
    for name in ["brief.json", "full.json"] {
        let report = run(&["report", &path(name)]);
        for text in ["GET /first", "GET /second", "200: 20"] {
            assert!(
                report.stdout.contains(text),
                "{name}: {}{}",
                report.stdout,
                report.stderr
            );
        }
    }
    let compared = run(&["compare", &path("brief.csv"), &path("brief.json")]);
    let row = "latency_p99['GET /second']";
    assert!(
        compared.stdout.contains(row),
        "{}{}",
        compared.stdout,
        compared.stderr
    );
    let refused = run(&["report", &path("requests")]);
    assert!(refused.stderr.contains("requests"), "{}", refused.stderr);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
}
