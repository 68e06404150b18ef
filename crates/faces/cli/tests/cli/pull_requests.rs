//! Comments on pull requests, at simulated hosts of repositories.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;
use stillwell_testkit::{Finished, Forge, Process, free_port, wait_until};

use crate::suite::{LONG, STILLWELL, Suite, assert_code, assert_holds};

/// Folder with results of `ab`, with a regression. They are made once for all tests.
fn saved_regression(suite: &Suite) -> PathBuf {
    static SAVED: OnceLock<PathBuf> = OnceLock::new();
    let saved = SAVED.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("saved-regression");
        if folder.exists() {
            fs::remove_dir_all(&folder).unwrap();
        }
        save_regression(suite, &folder);
        folder
    });
    saved.clone()
}

fn save_regression(suite: &Suite, folder: &Path) {
    let serve = |options: &[&str]| {
        let address = format!("127.0.0.1:{}", free_port());
        let mut words = vec!["serve", "--address", &address];
        words.extend(options);
        let process = Process::start(&mut suite.stillwell(&words));
        let is_up = || std::net::TcpStream::connect(&address).is_ok();
        assert!(wait_until(LONG, is_up), "{}", process.stderr());
        (process, format!("http://{address}/"))
    };
    let (_good, good) = serve(&[]);
    // No pause of a busy machine changes the share of errors.
    let (_bad, bad) = serve(&["--error-rate=1"]);
    let mut words = vec!["ab", &good, &bad, "--goal", "error_share", "-r", "200/s"];
    words.extend(["-c", "8", "-d", "300ms", "--no-confirm"]);
    let folder = folder.to_str().unwrap();
    words.extend(["--validity", "off", "--quiet", "--results", folder]);
    // It waits for a quiet moment of the machine before each pair.
    let ended = Process::start(&mut suite.stillwell(&words)).finish(5 * LONG);
    assert_code(&ended, 1);
}

/// A job of a CI host, whose API is simulated.
struct Job<'s> {
    suite: &'s Suite,
    saved: PathBuf,
    forge: Forge,
    url: String,
    is_gitlab: bool,
}

impl<'s> Job<'s> {
    #[expect(
        clippy::disallowed_methods,
        reason = "a peer of the test, which ends with its process"
    )]
    fn of(suite: &'s Suite, is_gitlab: bool, saved: PathBuf) -> Self {
        let forge = Forge::default();
        let (url, serve) = forge.listen();
        std::thread::spawn(serve);
        Self {
            suite,
            saved,
            forge,
            url,
            is_gitlab,
        }
    }

    fn new(suite: &'s Suite, is_gitlab: bool) -> Self {
        Self::of(suite, is_gitlab, saved_regression(suite))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.suite.program(STILLWELL);
        command.arg("comment").arg(&self.saved).args(words);
        for (name, _) in std::env::vars() {
            if ["GITHUB_", "GITLAB_", "CI_"]
                .iter()
                .any(|begin| name.starts_with(begin))
            {
                command.env_remove(name);
            }
        }
        if self.is_gitlab {
            command
                .env("GITLAB_CI", "true")
                .env("CI_API_V4_URL", format!("{}/api/v4", self.url))
                .env("CI_PROJECT_ID", "42")
                .env("CI_MERGE_REQUEST_IID", "7")
                .env("STILLWELL_GITLAB_TOKEN", "token-of-the-test");
        } else {
            command
                .env("GITHUB_ACTIONS", "true")
                .env("GITHUB_API_URL", &self.url)
                .env("GITHUB_REPOSITORY", "owner/name")
                .env("GITHUB_REF", "refs/pull/7/merge")
                .env("GITHUB_STEP_SUMMARY", self.suite.path("summary.md"))
                .env("GITHUB_TOKEN", "token-of-the-test");
        }
        command
    }

    fn comment(&self, words: &[&str]) -> Finished {
        Process::start(&mut self.command(words)).finish(LONG)
    }
}

#[test]
fn a_comment_is_created_and_then_replaced_at_both_hosts() {
    let suite = Suite::new();
    for is_gitlab in [false, true] {
        let job = Job::new(&suite, is_gitlab);
        // The comment of this tool is on the second page.
        for number in 0..100 {
            job.forge.put(&format!("comment {number}"));
        }
        let created = job.comment(&[]);
        assert_code(&created, 1);
        assert_holds(&created.stderr, &["commented on"]);
        let first = job.forge.comments().pop().unwrap();
        assert!(
            first.starts_with("<!-- stillwell:report:v1 -->\n"),
            "{first}"
        );
        assert_holds(&first, &["1 regression in 1 experiment", "<details>"]);
        assert!(first.len() < 60_000);

        let again = job.comment(&[]);
        assert_holds(&again.stderr, &["is up to date"]);
        let updated = job.comment(&["--link", "report=https://example.com/r"]);
        assert_holds(&updated.stderr, &["updated the comment on"]);
        assert_code(&updated, 1);
        let comments = job.forge.comments();
        assert_eq!(comments.len(), 101);
        assert_holds(&comments[100], &["[report](<https://example.com/r>)"]);

        let second = job.comment(&["--suite", "nightly", "--exit-zero"]);
        assert_code(&second, 0);
        assert_eq!(job.forge.comments().len(), 102);

        let requests = job.forge.take_requests();
        let method = if is_gitlab { "PUT" } else { "PATCH" };
        let is_update = |path: &str| path.starts_with(method) && path.ends_with("/101");
        assert!(
            requests
                .iter()
                .any(|request| is_update(&request.method_and_path))
        );
        for ended in [created, again, updated, second] {
            assert!(!ended.stdout.contains("token-of-the-test"));
            assert!(!ended.stderr.contains("token-of-the-test"));
        }
    }
}

#[test]
fn a_fork_without_permission_gets_the_summary_and_the_exit_code_of_the_verdict() {
    let suite = Suite::new();
    let job = Job::new(&suite, false);
    job.forge.script("POST", 403, 9);
    let ended = job.comment(&["--junit", "cases.xml", "--decision", "decision.json"]);
    assert_code(&ended, 1);
    assert_holds(&ended.stderr, &["no permission to comment (status 403)"]);
    assert_holds(&ended.stdout, &["::error title=stillwell%3A"]);
    let summary = fs::read_to_string(suite.path("summary.md")).unwrap();
    assert_holds(&summary, &["1 regression in 1 experiment"]);
    let cases = fs::read_to_string(suite.path("cases.xml")).unwrap();
    assert_holds(&cases, &["failures=\"1\""]);
    let decision = fs::read_to_string(suite.path("decision.json")).unwrap();
    let decision: Value = serde_json::from_str(&decision).unwrap();
    assert_eq!(decision["decision"], "fail");
    assert_eq!(job.forge.take_requests().len(), 2, "it is not repeated");

    let mut without_token = job.command(&[]);
    let without_token = Process::start(without_token.env_remove("GITHUB_TOKEN")).finish(LONG);
    assert_code(&without_token, 1);
    assert_holds(&without_token.stderr, &["GITHUB_TOKEN is not set"]);
    assert!(job.forge.take_requests().is_empty());
}

#[test]
fn a_host_that_fails_is_tried_three_times() {
    let suite = Suite::new();
    let job = Job::new(&suite, true);
    job.forge.script("POST", 500, 2);
    let ended = job.comment(&[]);
    assert_code(&ended, 1);
    assert_eq!(job.forge.comments().len(), 1, "{}", ended.stderr);
    drop(job.forge.take_requests());

    job.forge.script("GET", 502, 99);
    let ended = job.comment(&[]);
    assert_code(&ended, 1);
    assert_holds(&ended.stderr, &["answered with status 502"]);
    assert_eq!(job.forge.take_requests().len(), 3);
}

#[test]
fn a_comment_outside_of_ci_is_printed() {
    let suite = Suite::new();
    let job = Job::new(&suite, false);
    let ended = job.comment(&["--to", "stdout"]);
    assert_code(&ended, 1);
    assert!(ended.stdout.starts_with("<!-- stillwell:report:v1 -->\n"));
    let missing = suite.call(&["comment", "no-such-folder"]);
    assert_code(&missing, 2);
}

#[test]
fn a_run_that_could_not_start_is_commented_and_the_next_comment_replaces_it() {
    let suite = Suite::new();
    for is_gitlab in [false, true] {
        let folder = suite.path(if is_gitlab { "gitlab" } else { "github" });
        let unused = format!("http://127.0.0.1:{}/", free_port());
        let name = folder.to_str().unwrap();
        let ended = suite.call(&["ab", &unused, &unused, "--results", name]);
        assert_code(&ended, 3);
        assert_code(&suite.call(&["report", name, "--exit-zero"]), 3);

        let mut job = Job::of(&suite, is_gitlab, folder);
        let ended = job.comment(&["--decision", "decision.json", "--junit", "cases.xml"]);
        assert_code(&ended, 3);
        assert_holds(&ended.stderr, &["commented on"]);
        let text = job.forge.comments().pop().unwrap();
        let expected = ["could not run the experiments", "no request was answered"];
        assert_holds(&text, &expected);
        assert_holds(&text, &[&format!("`stillwell ab {unused}")]);
        let decision = fs::read_to_string(suite.path("decision.json")).unwrap();
        assert_holds(&decision, &["\"could_not_run\"", "\"exit_code\": 3"]);
        let cases = fs::read_to_string(suite.path("cases.xml")).unwrap();
        assert_holds(&cases, &["errors=\"1\""]);
        assert_code(&job.comment(&["--exit-zero"]), 3);

        job.saved = saved_regression(&suite);
        let ended = job.comment(&[]);
        assert_code(&ended, 1);
        assert_holds(&ended.stderr, &["updated the comment on"]);
        assert_eq!(job.forge.comments().len(), 1);

        // A job that was killed leaves nothing; an earlier comment must not stay.
        job.saved = suite.path("no-such-folder");
        let ended = job.comment(&["--layout", "regression-detector"]);
        assert_code(&ended, 3);
        let comments = job.forge.comments();
        assert_eq!(comments.len(), 1);
        assert_holds(&comments[0], &["there are no results in", "log of the job"]);
    }
}

/// Returns the script of the step of `action.yml` that runs the experiments.
fn action_script() -> String {
    let action = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../action.yml");
    let action = fs::read_to_string(action).unwrap();
    let step = action.split_once("- name: Run the experiments\n");
    let (_, step) = step.unwrap();
    let (_, script) = step.split_once("      run: |\n").unwrap();
    let indent = "        ";
    let lines = script.lines().map_while(|line| line.strip_prefix(indent));
    lines.collect::<Vec<_>>().join("\n")
}

/// Runs the script of the action, with shell functions in place of programs. Results and `output` go to `folder`.
fn run_action(programs: &str, arguments: &str, folder: &Path) -> Finished {
    let inputs =
        "SUITE=. GATE=normal COMMENT=false BASELINE= COMPARISON= BUILD= BUILD_OUTPUT= NAME= TOKEN=";
    let script = format!("{programs}\n{inputs}\n{}", action_script());
    let mut command = Command::new("bash");
    command
        .args(["-e", "-c", &script])
        .env("RUNNER_TEMP", folder)
        .env("GITHUB_OUTPUT", folder.join("output"))
        .env("ARGUMENTS", arguments);
    Process::start(&mut command).finish(LONG)
}

/// Returns the script of the job that `init` writes for GitLab.
fn gitlab_script(suite: &Suite) -> String {
    // The root of a repository.
    fs::create_dir(suite.path(".git")).unwrap();
    let words = ["init", "--ci", "gitlab", "--build", "make"];
    let words: Vec<&str> = words.into_iter().chain(["--build-output", "x"]).collect();
    assert_code(&suite.call(&words), 0);
    let job = fs::read_to_string(suite.path(".gitlab/stillwell.yml")).unwrap();
    let (_, script) = job.split_once("  script:\n").unwrap();
    let (script, _) = script.split_once("  artifacts:\n").unwrap();
    let mark = "    - ";
    let lines = script.lines().filter_map(|line| line.strip_prefix(mark));
    let lines = lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| line.to_owned()));
    lines.collect::<Vec<String>>().join("\n")
}

#[test]
fn exit_zero_in_the_arguments_of_the_action_applies_to_its_exit_code() {
    // Both commands report a regression.
    let program = r#"stillwell() { case " $* " in *" --exit-zero "*) ;; *) return 1 ;; esac; }"#;
    for (arguments, code) in [
        ("", 1),
        ("--quick", 1),
        ("--quick --exit-zero", 0),
        ("--quick\n--exit-zero\n", 0),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert_code(&run_action(program, arguments, folder.path()), code);
        let output = fs::read_to_string(folder.path().join("output")).unwrap();
        assert_holds(&output, &[&format!("exit-code={code}\n")]);
    }
}

/// The comment, exit code and JUnit of a refused run were those of the results in its way.
#[test]
fn a_job_does_not_comment_on_results_of_another_suite() {
    let program = r#"stillwell() { echo "called $1"; }"#;
    // Another plan is to be resumed.
    let changed = r#"stillwell() { echo "called $1"; test "$1" != run || return 2; }"#;
    let folder = tempfile::tempdir().unwrap();
    let first = run_action(program, "", folder.path());
    assert_code(&first, 0);
    assert_eq!(first.stdout, "called run\ncalled comment\n");
    // A run that could not start has its own reason.
    let unstarted = run_action(changed, "", folder.path());
    assert_code(&unstarted, 2);
    assert_eq!(unstarted.stdout, "called run\ncalled comment\n");
    fs::create_dir(folder.path().join("stillwell-results")).unwrap();
    let second = run_action(program, "--quick", folder.path());
    assert_code(&second, 2);
    assert!(!second.stdout.contains("called"), "{}", second.stdout);
    assert_holds(&second.stdout, &["exists", "a name"]);
    let resumed = run_action(program, "--resume", folder.path());
    assert_eq!(resumed.stdout, "called run\ncalled comment\n");
    let refused = run_action(changed, "--resume", folder.path());
    assert_code(&refused, 2);
    assert_eq!(refused.stdout, "called run\n");

    let suite = Suite::new();
    let rest = "curl() { :; }; grep() { :; }; sha256sum() { :; }; install() { :; }";
    let job = gitlab_script(&suite);
    let script = format!("set -o pipefail\n{program}; {rest}\n{job}");
    let run = || {
        let mut command = suite.program("bash");
        Process::start(command.args(["-e", "-c", &script])).finish(LONG)
    };
    let first = run();
    assert_code(&first, 0);
    assert_eq!(first.stdout, "called run\ncalled comment\n");
    fs::create_dir(suite.path("stillwell-results")).unwrap();
    let second = run();
    assert_code(&second, 2);
    assert!(!second.stdout.contains("called"), "{}", second.stdout);
    assert_holds(&second.stdout, &["exists", "name each suite"]);
}

#[test]
fn a_comment_on_a_configuration_error_has_its_place() {
    let suite = Suite::new();
    fs::write(suite.path("experiment.yaml"), "tolerance: 5 furlongs\n").unwrap();
    let ended = suite.call(&["run", "experiment.yaml", "--results", "results"]);
    assert_code(&ended, 2);
    let ended = suite.call(&["comment", "results", "--to", "stdout"]);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stdout,
        &["in the configuration", "experiment.yaml:1"],
    );
}

/// All was masked once more in its form for the host: quotes lost their escapes, and texts behind names like
/// `auth-service` were `***`.
#[test]
fn secrets_are_masked_in_texts_and_not_in_their_forms() {
    let suite = Suite::new();
    let baseline = "cmd:app -H \"Authorization: Bearer abc\"";
    let problem = serde_json::json!({
        "experiment": "auth-service",
        "exit_code": 3,
        "reason": "port 9000 is taken by app --api-key=abc",
    });
    let record = serde_json::json!({
        "schema": "stillwell/problems/v1",
        "version": "0.1.0",
        "command": ["stillwell", "run", "--baseline", baseline],
        "problems": [problem],
    });
    suite.file("results/problems.json", &record.to_string());
    let job = Job::of(&suite, false, suite.path("results"));
    let ended = job.comment(&["--junit", "cases.xml", "--decision", "decision.json"]);
    assert_code(&ended, 3);
    let reason = "port 9000 is taken by app --api-key=***";
    let annotation = format!("::error title=stillwell%3A auth-service::{reason}\n");
    assert_holds(&ended.stdout, &[&annotation]);
    let decision = fs::read_to_string(suite.path("decision.json")).unwrap();
    let decision: Value = serde_json::from_str(&decision).unwrap();
    let line = format!("auth-service: {reason}");
    assert_eq!(decision["problems"][0], line);
    let command = "stillwell run --baseline 'cmd:app -H \"Authorization: ***\"'";
    assert_eq!(decision["command"], command);
    let cases = fs::read_to_string(suite.path("cases.xml")).unwrap();
    assert_holds(&cases, &[&format!("<error message=\"{line}\"/>")]);
}
