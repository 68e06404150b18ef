//! Generators that work on the system itself, as a user runs them.

use std::fs;

use crate::suite::{Suite, assert_code};

const HEAD: &str = "isolation: {network: no, cgroup: no}
phases: {warmup: 100ms, measure: 700ms, drain: 1s, quiet: 50ms}
workload:
  generators:
";

#[test]
fn trees_of_processes_run_their_programs_and_leave_nothing_behind() {
    let suite = Suite::new();
    let marks = suite.path("marks");
    // A tree takes longer than 700 ms on a busy machine.
    let head = HEAD.replace("measure: 700ms", "measure: 4s");
    let text = format!(
        "{head}    - process_tree:
        depth: 3
        children: 2
        processes: 6
        sleep: 1ms
        executables: [{{program: sh, arguments: [-c, 'echo $MARK >> {}'], environment: [MARK=here]}}]
      rate: 20/s
",
        marks.display()
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&["observe", "run.yaml", "--results", "results"]);
    let text = fs::read_to_string(&marks).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert!(text.lines().all(|line| line == "here"), "{text}");
    let trees = fs::read_to_string(suite.results().join("summary.json")).unwrap();
    assert!(trees.contains("\"ok\""), "{trees}");
    assert!(!trees.contains("send_failed"), "{trees}");
    suite.assert_nothing_left();
}

/// A process whose parent ended before the process was tied to it lived on.
#[test]
fn a_process_of_a_tree_whose_parent_has_gone_does_nothing() {
    let suite = Suite::new();
    let growth = r#"{"children":[],"sleep_nanos":0,"becomes":{"path":"/bin/echo","arguments":["grown"],"environment":[]}}"#;
    suite.file("growth", growth);
    let entry = std::process::id().to_string();
    for (parent, code, expected) in [
        (&[entry.as_str()][..], 0, "grown\n"),
        (&["1"], 1, ""),
        (&["x"], 1, ""),
        (&[], 1, ""),
    ] {
        let mut command = suite.stillwell(&[&["process-tree"], parent].concat());
        command.stdin(fs::File::open(suite.path("growth")).unwrap());
        let output = command.output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(
            (output.status.code(), printed.as_str()),
            (Some(code), expected),
            "{parent:?}"
        );
    }
}

#[test]
fn a_program_that_is_not_there_is_named_before_the_run() {
    let suite = Suite::new();
    let text = format!(
        "{HEAD}    - {{process_tree: {{executables: [{{program: /no/such}}]}}, rate: 5/s}}\n"
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&["observe", "run.yaml", "--results", "results"]);
    assert_code(&ended, 3);
    assert!(
        ended.stdout.contains("there is no program /no/such"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_folder_like_proc_is_there_before_the_target() {
    let suite = Suite::new();
    let root = suite.path("fake");
    let text = format!(
        "{HEAD}    - {{proc_fs: {{root: {}, processes: 4, copies: [/proc/stat]}}, rate: max}}
target: {{command: [sh, -c, 'cat {0}/4/comm {0}/stat > {1}; echo seen; exec tail -f /dev/null'], ready: {{log_line: seen}}}}
",
        root.display(),
        suite.path("seen").display()
    );
    suite.file("run.yaml", &text);
    let ended = suite.call(&["observe", "run.yaml", "--results", "results"]);
    let seen =
        fs::read_to_string(suite.path("seen")).unwrap_or_else(|_| panic!("{}", ended.stderr));
    assert!(seen.contains("cpu "), "{seen}");
}
