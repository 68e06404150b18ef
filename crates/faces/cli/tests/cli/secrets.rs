//! Secrets are in no output and in no file of results, unless that is requested, and results without them can be
//! read and reported.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::ab::server;
use crate::suite::{Suite, assert_code};

/// No other text of a result has this in it.
const SECRET: &str = "s3cr3t-77-Value";

const FORMATS: [&str; 15] = [
    "human",
    "json",
    "csv",
    "nighthawk-human",
    "nighthawk-human-2020",
    "nighthawk-json",
    "nighthawk-yaml",
    "nighthawk-dotted",
    "nighthawk-csv",
    "nighthawk-prometheus",
    "fortio",
    "fortio-2020",
    "hgrm",
    "hlog",
    "stillwell",
];

/// All files below `folder`.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files.extend(self::files(&entry.path())),
            false => files.push(entry.path()),
        }
    }
    files
}

fn has_secret(path: &Path) -> bool {
    let bytes = fs::read(path).unwrap();
    bytes
        .windows(SECRET.len())
        .any(|part| part == SECRET.as_bytes())
}

/// Fails if a file below `folder` has the secret, or can be read by others.
fn assert_private(folder: &Path) {
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    for file in files(folder) {
        let name = file.display();
        assert!(!has_secret(&file), "{name} has the secret");
        assert_eq!(mode(&file), 0o600, "{name}");
    }
}

#[test]
fn no_format_of_a_load_and_no_file_has_a_secret_unless_requested() {
    let suite = Suite::new();
    let url = format!("http://127.0.0.1:1/?page=1&api_key={SECRET}");
    let authorization = format!("Authorization: Bearer {SECRET}");
    let token = format!("X-Auth-Token: {SECRET}");
    let words = [
        "load",
        &url,
        "-H",
        &authorization,
        "-H",
        &token,
        "--keep-going",
        "--requests=2",
        "--capture=capture",
        "-o",
        "r.json",
        "-o",
        "r.html",
        "-o",
        "r.md",
        "-o",
        "r.csv",
        "-o",
        "r.txt",
    ];
    for format in FORMATS {
        let of_format = [&words[..], &["--output-format", format]].concat();
        let ended = suite.call(&of_format);
        let output = format!("{}{}", ended.stdout, ended.stderr);
        assert!(matches!(ended.code, 3 | 4), "{format}: {output}");
        assert!(!output.contains(SECRET), "{format}: {output}");
    }
    for file in ["r.json", "r.html", "r.md", "r.csv", "r.txt"] {
        assert!(!has_secret(&suite.path(file)), "{file}");
    }
    assert_private(&suite.path("capture"));
    for format in ["terminal", "markdown", "json"] {
        let ended = suite.call(&["report", "capture", "--format", format]);
        assert!(!ended.stdout.is_empty(), "{}", ended.stderr);
        assert!(!ended.stdout.contains(SECRET), "{format}: {}", ended.stdout);
    }
    let kept = [
        &words[..],
        &["--output-format", "stillwell", "--keep-secrets"],
    ]
    .concat();
    assert!(suite.call(&kept).stdout.contains(SECRET));
    assert!(has_secret(&suite.path("capture/manifest.json")));
}

#[test]
fn no_report_and_no_file_of_ab_has_a_secret_of_its_urls() {
    let suite = Suite::new();
    let (_server, url) = server(&suite, &[]);
    let url = format!("{url}?api_key={SECRET}");
    let mut words = vec!["ab", &url, &url, "--results", "results", "-o", "r.html"];
    words.extend(["-r", "100/s", "-d", "200ms", "--max-pairs", "4"]);
    words.extend(["--no-confirm", "--validity", "off"]);
    let ended = suite.call(&words);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!output.contains(SECRET), "{output}");
    let mut files = files(&suite.results());
    files.push(suite.path("r.html"));
    for file in files {
        assert!(!has_secret(&file), "{} has the secret", file.display());
    }
    let report = fs::read_to_string(suite.results().join("report.json")).expect(&output);
    assert!(report.contains("api_key=***"), "{report}");
}

#[test]
fn the_results_of_a_run_are_private_and_without_secrets_of_its_environment() {
    let suite = Suite::new();
    let text = format!(
        "target:\n  command: [sh, -c, \"echo ready; exec tail -f /dev/null\", sh, --password, {SECRET}]\n  \
         environment: {{DB_PASSWORD: {SECRET}, PORT: \"1\"}}\n  ready: {{log_line: ready}}\n  \
         stop: {{grace: 1s}}\nphases: {{ready: 10s, warmup: 100ms, measure: 300ms, drain: 100ms}}\n\
         workload:\n  sinks:\n    - tcp: \"{}\"\n",
        suite.sink
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&["observe", "run.yaml", "--results", "results"]);
    assert!([0, 4].contains(&ended.code), "{}", ended.stderr);
    let output = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!output.contains(SECRET), "{output}");
    assert_private(&suite.results());
    let manifest = fs::read_to_string(suite.results().join("manifest.json")).unwrap();
    assert!(manifest.contains("\"DB_PASSWORD\": \"***\""), "{manifest}");
    assert!(manifest.contains("\"PORT\": \"1\""), "{manifest}");
    let report = suite.call(&["report", "results"]);
    assert!(!report.stdout.is_empty(), "{}", report.stderr);
}

#[test]
fn errors_do_not_repeat_secrets() {
    let suite = Suite::new();
    let variable = format!("target: {{command: [true], environment: {{API_KEY: [{SECRET}]}}}}\n");
    suite.file("run.yaml", &variable);
    let user = format!("http://user:{SECRET}@127.0.0.1:1/");
    let unclosed = format!("http://127.0.0.1:x/?token={SECRET}");
    let header = format!("Authorization: {SECRET}\u{1}");
    let bare = format!("Authorization Bearer {SECRET}");
    for words in [
        vec!["load", &user],
        vec!["load", &unclosed],
        vec!["load", "http://127.0.0.1:1/", "-H", &header],
        vec!["load", "http://127.0.0.1:1/", "-H", &bare],
        vec!["load", "http://127.0.0.1:1/", "--rate", &unclosed],
        vec!["check", "run.yaml"],
    ] {
        let ended = suite.call(&words);
        assert_code(&ended, 2);
        assert!(
            !ended.stderr.contains(SECRET),
            "{words:?}: {}",
            ended.stderr
        );
    }
}

#[test]
fn a_command_is_not_resumed_with_the_mask_of_a_secret() {
    let suite = Suite::new();
    let baseline = "cmd:app -H \"Authorization: ***\"";
    let words = ["run", "experiment", "--baseline", baseline, "--resume"];
    let ended = suite.call(&words);
    assert_code(&ended, 2);
    let expected = "replace each *** by the secret that was typed";
    assert!(ended.stderr.contains(expected), "{}", ended.stderr);
}
