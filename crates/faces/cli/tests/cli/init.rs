//! `stillwell init`: programs that are started once, and the files that it writes.

use std::fs;

use stillwell_testkit::{Finished, Process, free_port};

use crate::suite::{LONG, STILLWELL, Suite, assert_code, assert_holds};

/// Writes an experiment, and requires that it passes `check`.
fn init(suite: &Suite, folder: &str, words: &[&str]) -> String {
    let mut all = vec!["init", folder];
    all.extend(words);
    let ended = suite.call(&all);
    assert_code(&ended, 0);
    assert_holds(&ended.stdout, &["stillwell run", "--quick"]);
    assert_code(&suite.call(&["check", folder]), 0);
    fs::read_to_string(suite.path(folder).join("experiment.yaml")).unwrap()
}

fn address() -> String {
    format!("127.0.0.1:{}", free_port())
}

#[test]
fn the_port_and_the_kind_of_a_program_are_found() {
    let suite = Suite::new();
    let (listen, sink) = (address(), address());
    let serve = format!("{STILLWELL} serve --address {listen}");
    let text = init(&suite, "web", &["--command", &serve]);
    let url = format!("http://{listen}/");
    assert_holds(
        &text,
        &[&format!("ready: {{http: \"{url}\"}}"), "- requests:"],
    );

    let relay =
        |scheme: &str| format!("{STILLWELL} relay --in {scheme}://{listen} --out tcp://{sink}");
    let to = format!("tcp:{sink}");
    let text = init(
        &suite,
        "logs",
        &["--command", &relay("tcp"), "--output", &to],
    );
    assert_holds(
        &text,
        &[&format!("- tcp: {{address: \"{listen}\"}}"), "sinks:"],
    );
    let words = ["--command", &relay("udp"), "--output", &to, "--kind", "udp"];
    let text = init(&suite, "datagrams", &words);
    assert_holds(&text, &[&format!("- udp: {{address: \"{listen}\"}}")]);
    suite.assert_nothing_left();
}

#[test]
fn programs_without_a_port_and_services_that_run_get_files_too() {
    let suite = Suite::new();
    // `--wait` is the longest wait for a port, which this program does not have.
    let words = [
        "--kind",
        "files",
        "--wait",
        "300ms",
        "--command",
        "tail -F {state}/in.log",
    ];
    let text = init(&suite, "reader", &words);
    assert_holds(&text, &["file_gen: {log: \"{state}/in.log\""]);
    let reader = "sh -c 'echo started to follow the file; exec tail -F in.log'";
    let words = [
        "--kind",
        "files",
        "--file",
        "in.log",
        "--output",
        "file:out.log",
        "--command",
        reader,
    ];
    let text = init(&suite, "a/b", &words);
    let parts = [
        "directory: ../..",
        "file_gen: {log: ../../in.log",
        "{file: ../../out.log}",
    ];
    assert_holds(&text, &parts);
    let script = "sh -c 'echo started to consume the topic; exec sleep 60'";
    let words = [
        "--kind",
        "kafka",
        "--command",
        script,
        "--broker",
        "127.0.0.1:9092",
    ];
    let words: Vec<&str> = words.into_iter().chain(["--topic", "logs"]).collect();
    let text = init(&suite, "consumer", &words);
    assert_holds(
        &text,
        &["log_line: \"started to consume the topic\"", "network: no"],
    );
    let urls = [
        "--url",
        "http://127.0.0.1:1/",
        "--url",
        "http://127.0.0.1:2/",
    ];
    let text = init(&suite, "urls", &urls);
    assert_holds(&text, &["comparison: {url: \"http://127.0.0.1:2/\"}"]);
    suite.assert_nothing_left();
}

#[test]
fn a_relative_program_and_its_files_are_seen_from_the_experiment() {
    let suite = Suite::new();
    let listen = address();
    let script =
        format!("#!/bin/sh\nread line <input.txt\nexec {STILLWELL} serve --address {listen}\n");
    suite.file("program.sh", &script);
    suite.file("input.txt", "one\n");
    let words = [
        "--command",
        "/bin/sh program.sh",
        "--comparison",
        "bin:./new",
    ];
    let text = init(&suite, "a/b", &words);
    assert_holds(&text, &["directory: ../..", "{binary: ../../new}"]);
}

#[test]
fn a_program_that_does_not_work_is_an_error_with_its_output() {
    let suite = Suite::new();
    let failed = |words: &[&str], code: i32, part: &str| {
        let mut all = vec!["init", "new"];
        all.extend(words);
        let ended: Finished = suite.call(&all);
        assert_code(&ended, code);
        assert_holds(&ended.stderr, &[part]);
        assert!(!suite.path("new").exists(), "{part}");
    };
    failed(
        &["--command", "no-such-program-here"],
        3,
        "no-such-program-here",
    );
    failed(
        &["--command", "sh -c 'echo bad option >&2; exit 7'"],
        3,
        "bad option",
    );
    failed(&["--command", "true"], 3, "foreground");
    failed(
        &["--command", "sleep 60", "--wait", "300ms"],
        3,
        "no TCP or UDP port",
    );
    failed(&[], 2, "--command");
    failed(&["--url", "http://127.0.0.1:1/"], 2, "exactly twice");
    failed(&["--kind", "kafka", "--command", "sleep 60"], 2, "--broker");
    failed(
        &["--command", "sleep 60", "--baseline", "git:main"],
        2,
        "--build",
    );
    let urls = [
        "--url",
        "http://127.0.0.1:1/",
        "--url",
        "http://127.0.0.1:2/",
    ];
    let words: Vec<&str> = urls.into_iter().chain(["--rate", "fast"]).collect();
    failed(&words, 2, "fast");
    suite.assert_nothing_left();
}

#[test]
fn a_file_that_exists_stays() {
    let suite = Suite::new();
    let urls = [
        "--url",
        "http://127.0.0.1:1/",
        "--url",
        "http://127.0.0.1:2/",
    ];
    let call = |more: &[&str]| {
        let words = ["init", "urls"].iter().chain(&urls).chain(more);
        suite.call(&words.copied().collect::<Vec<_>>())
    };
    let file = suite.file("urls/experiment.yaml", "mine\n");
    let ended = call(&[]);
    assert_code(&ended, 2);
    assert_holds(&ended.stderr, &["exists", "--force"]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine\n");
    assert_code(&call(&["--force"]), 0);
    assert_ne!(fs::read_to_string(&file).unwrap(), "mine\n");
}

/// Hosts, and the files of their workflows.
const WORKFLOWS: [(&str, &str); 2] = [
    ("github", ".github/workflows/stillwell.yml"),
    ("gitlab", ".gitlab/stillwell.yml"),
];

/// Words that write the workflow of a host.
fn workflow_words<'a>(host: &'a str, suite: &'a [&'a str]) -> Vec<&'a str> {
    let words = ["init", "--ci", host, "--build", "make"];
    let words = words.into_iter().chain(["--build-output", "x"]);
    words.chain(suite.iter().copied()).collect()
}

#[test]
fn a_workflow_is_written_for_each_host() {
    let suite = Suite::new();
    fs::create_dir(suite.path(".git")).unwrap();
    for (host, file) in WORKFLOWS {
        let words = workflow_words(host, &[]);
        let ended = suite.call(&words);
        assert_code(&ended, 0);
        assert_holds(&ended.stdout, &[&format!("wrote {file}\n")]);
        let text = fs::read_to_string(suite.path(file)).unwrap();
        assert_holds(&text, &["git:HEAD", "make"]);
        assert_code(&suite.call(&words), 2);
        assert_code(&suite.call(&words[..3]), 2);
    }
}

/// HEAD is merged into the present base; changes since an older one are not those of the pull request.
#[test]
fn the_base_of_a_workflow_is_the_parent_of_the_merge() {
    let suite = Suite::new();
    fs::create_dir(suite.path(".git")).unwrap();
    let [github, gitlab] = WORKFLOWS.map(|(host, file)| {
        assert_code(&suite.call(&workflow_words(host, &[])), 0);
        fs::read_to_string(suite.path(file)).unwrap()
    });
    assert_holds(&github, &["baseline: git:HEAD^1 ", "fetch-depth: 0"]);
    assert!(!github.contains("base.sha"), "{github}");
    // The first is empty unless HEAD is a merge.
    let base = "git:${CI_MERGE_REQUEST_TARGET_BRANCH_SHA:-$CI_MERGE_REQUEST_DIFF_BASE_SHA}";
    assert_holds(&gitlab, &[base, "GIT_DEPTH: \"0\""]);
}

/// A host reads no workflow in another folder, and starts its jobs in the root.
#[test]
fn a_workflow_is_in_the_root_of_the_repository_and_names_the_suite_from_there() {
    let suite = Suite::new();
    let root = suite.path("repository");
    let here = root.join("services/shop");
    let experiments = here.join("experiments");
    fs::create_dir_all(&experiments).unwrap();
    fs::create_dir_all(root.join("shared")).unwrap();
    // Submodules and worktrees have a file of this name.
    fs::write(root.join(".git"), "gitdir: elsewhere\n").unwrap();
    let init = |host: &str, typed: &str| {
        let mut command = suite.stillwell(&workflow_words(host, &[typed, "--force"]));
        Process::start(command.current_dir(&here)).finish(LONG)
    };
    let absolute = experiments.to_str().unwrap();
    for (host, file) in WORKFLOWS {
        for (typed, seen) in [
            (".", "services/shop"),
            ("experiments", "services/shop/experiments"),
            ("./experiments/", "services/shop/experiments"),
            (absolute, "services/shop/experiments"),
            ("../../shared", "shared"),
            ("../..", "."),
        ] {
            assert_code(&init(host, typed), 0);
            let text = fs::read_to_string(root.join(file)).unwrap();
            let expected = match host {
                "github" => format!("suite: \"{seen}\"\n"),
                _ => format!("stillwell run {seen} "),
            };
            assert_holds(&text, &[&expected]);
            assert!(!here.join(file).exists());
        }
        let outside = init(host, "../../..");
        assert_code(&outside, 2);
        assert_holds(&outside.stderr, &["outside of the repository"]);
    }
}
