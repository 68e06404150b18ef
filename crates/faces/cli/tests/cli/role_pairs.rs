//! Pairs of runs, of which each run is on several machines, with the engine `local`.

use std::fs;
use std::path::Path;

use serde_json::Value;
use stillwell_testkit::{Process, signal_process, wait_until};

use crate::secrets::files;
use crate::suite::{LONG, STOP_MAX, Suite, assert_code, assert_holds};

const WORDS: [&str; 3] = ["--on=local", "--store=store", "--job=s"];
const SHORT: &str = "{ready: 10s, warmup: 100ms, measure: 500ms, drain: 2s, quiet: 50ms}";
const SECRET: &str = "s3cr3t-78-Value";

/// Starts the suite with the target and `generators` on machines of their own.
fn start(suite: &Suite, generators: u16, words: &[&str]) -> Process {
    let generators = format!("--generators={generators}");
    let words: Vec<&str> = WORDS
        .into_iter()
        .chain([generators.as_str()])
        .chain(words.iter().copied())
        .collect();
    suite.run(&words)
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn manifest(suite: &Suite, pair: u32, variant: &str) -> Value {
    read(&suite.capture_of(pair, variant).join("manifest.json"))
}

/// Waits until a run of the first allocation sends, and returns the process of one of its tasks.
fn wait_for_start(suite: &Suite, run: u32, task: usize) -> u32 {
    let start = suite.path(&format!("store/s/runs/{run:04}/start.json"));
    assert!(wait_until(LONG, || start.exists()), "{start:?}");
    let engine = read(&suite.path("store/s/engine.json"));
    let process = engine["processes"][task]["process"].as_u64().unwrap();
    u32::try_from(process).unwrap()
}

#[test]
fn a_regression_is_found_with_two_generators() {
    let suite = Suite::alone()
        .with("goals", "[{metric: cpu, tolerance: 40%}]")
        .with("pairs", "6")
        .with("validity", "off")
        .with(
            "phases",
            "{ready: 10s, warmup: 200ms, measure: 1300ms, quiet: 50ms}",
        )
        .with(
            "variants",
            "{baseline: {arguments: [--work-per-event, 20000rounds]}, \
             comparison: {arguments: [--work-per-event, 80000rounds]}}",
        );
    let ended = start(&suite, 2, &[]).finish(LONG * 4);
    assert_code(&ended, 1);
    assert_holds(&ended.stdout, &["regressed", "CPU"]);
    let mut nodes = Vec::new();
    for variant in ["baseline", "comparison"] {
        let manifest = manifest(&suite, 1, variant);
        assert_eq!(manifest["identity"]["variant"], variant);
        let tasks = manifest["machines"]["tasks"].as_array().unwrap();
        assert_eq!(tasks.len(), 3, "{tasks:?}");
        // The same tasks have done both runs.
        let attempts = tasks
            .iter()
            .map(|task| task["result"]["Ok"]["attempt"].clone());
        nodes.push(attempts.collect::<Vec<_>>());
    }
    assert_eq!(nodes[0], nodes[1]);
    let status = suite.call(&["cluster", "status", "--store=store", "--job=s"]);
    assert_holds(
        &status.stdout,
        &["target: complete", "generator 1: complete"],
    );
    assert!(!status.stdout.contains("ended early"), "{}", status.stdout);
    assert!(!suite.path("store/s.2").exists());
    assert!(!suite.results().join(".tasks").exists());
    suite.assert_no_process(STOP_MAX);
    // What is kept says the same.
    assert_code(&suite.call(&["report", "results"]), 1);
}

#[test]
fn figures_of_each_run_are_shown_while_it_goes_on() {
    let suite = Suite::new()
        .with(
            "phases",
            "{ready: 10s, warmup: 500ms, measure: 6s, quiet: 50ms}",
        )
        .with("pairs", "1")
        .with("validity", "off");
    suite.write();
    let words = [&["run", "experiment", "--generators=2"], &WORDS[..]].concat();
    let mut command = suite.stillwell(&words);
    let ended = Process::start(command.env("STILLWELL_PROGRESS", "json")).finish(LONG * 2);
    let lines = ended.stderr.lines();
    let records = lines.filter_map(|line| line.strip_prefix("progress: "));
    let records: Vec<Value> = records
        .map(|record| serde_json::from_str(record).unwrap())
        .collect();
    let rates_of = |variant: &str| -> Vec<f64> {
        let of_variant = records.iter().filter(|record| record["series"] == variant);
        let rates = of_variant.filter_map(|record| record["rate"].as_f64());
        rates.collect()
    };
    let rates = ["one", "two"].map(rates_of);
    assert!(rates.iter().all(|of| !of.is_empty()), "{}", ended.stderr);
    // That of both generators. On a busy machine it is uneven, in a whole run of a variant as well.
    let is_near = |rate: &f64| (350.0..650.0).contains(rate);
    assert!(rates.iter().flatten().any(is_near), "{}", ended.stderr);
}

#[test]
fn jobs_of_runs_and_suites_are_printed() {
    let suite = Suite::new();
    suite.write();
    let roles = ["--generators=3", "--sinks=1"];
    let options = [
        "--store=store",
        "--job=s",
        "--engine-option=--image=stillwell:1",
        "--engine-option=--claim=disk",
    ];
    let file = "experiment/experiment.yaml";
    for (words, tasks) in [
        (&[&["observe", file], &roles[..]].concat(), 5),
        (&[&["run", file], &roles[..]].concat(), 5),
        (&vec!["run", file], 1),
    ] {
        let words = [&["cluster", "render"], &words[..], &options].concat();
        let on = [&words[..], &["--on=kubernetes"]].concat();
        let ended = suite.call(&on);
        assert_code(&ended, 0);
        let tasks = format!("completions: {tasks}");
        assert_holds(
            &ended.stdout,
            &["kind: Job", &tasks, "claimName: disk", "--job=s"],
        );
        assert_code(&suite.call(&words), 2);
    }
    let refused = ["cluster", "render", "run", file, "--on=local", "--sinks=2"];
    let ended = suite.call(&[&refused[..], &["--generators=1", "--store=store"]].concat());
    assert_code(&ended, 2);
    assert_holds(&ended.stderr, &["cannot be divided among 2"]);
    assert!(!suite.path("store").exists(), "it starts nothing");
}

#[test]
fn a_killed_generator_costs_its_pair_and_tasks_read_secrets_from_the_files() {
    let variants = format!(
        "{{one: {{environment: {{API_KEY: {SECRET}}}}}, two: {{environment: {{API_KEY: {SECRET}}}}}}}"
    );
    let script = format!(
        "test \"$API_KEY\" = {} && exec \"$@\"",
        SECRET.replace("78", "\"$((77 + 1))\"")
    );
    // The kill must come before the second run ends, also on a busy machine.
    let phases = "{ready: 10s, warmup: 100ms, measure: 3s, drain: 2s, quiet: 50ms}";
    let suite = Suite::new()
        .with("phases", phases)
        .with("pairs", "1")
        .with("validity", "off")
        .with("variants", &variants)
        .script(&script);
    let run = start(&suite, 2, &[]);
    // The second run of the first pair.
    signal_process(wait_for_start(&suite, 2, 1), "KILL");
    let ended = run.finish(LONG * 3);
    // Short runs beside other tests need not come to anything.
    assert!([0, 1, 4].contains(&ended.code), "{}", ended.stderr);
    assert_holds(
        &ended.stderr,
        &["generator 0 on ", "its process ended without a result"],
    );
    let outcomes =
        |pair| ["one", "two"].map(|variant| manifest(&suite, pair, variant)["outcome"].clone());
    let first = outcomes(1);
    assert!(first.contains(&"completed".into()), "{first:?}");
    let failed = first.iter().find_map(|outcome| outcome.get("part_failed"));
    let part = failed.unwrap()["part"].as_str().unwrap();
    assert!(part.starts_with("generator 0 on "), "{part}");
    assert_eq!(outcomes(2), ["completed", "completed"].map(Value::from));
    let verdict = suite.results().join("experiment/verdict.json");
    assert!(verdict.is_file(), "{}", ended.stderr);
    assert!(suite.path("store/s.2/job.json").is_file());
    for folder in ["store", "results"] {
        for file in files(&suite.path(folder)) {
            let bytes = fs::read(&file).unwrap();
            let mut parts = bytes.windows(SECRET.len());
            assert!(!parts.any(|part| part == SECRET.as_bytes()), "{file:?}");
        }
    }
    suite.assert_no_process(STOP_MAX);
}

#[test]
fn a_killed_controller_is_resumed_and_ends_the_tasks_that_are_left() {
    // A kill that comes late on a busy machine meets the second pair.
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("pairs", "2")
        .with("validity", "off");
    let run = start(&suite, 1, &[]);
    let left = wait_for_start(&suite, 2, 0);
    run.signal("KILL");
    assert_code(&run.finish(LONG), 137);
    for (folder, generators, why) in [
        ("results", "--generators=2", "it is of another command"),
        ("others", "--generators=1", "its results are in /"),
    ] {
        let words = ["run", "experiment", "--results", folder, generators];
        let again = suite.call(&[&words[..], &WORDS].concat());
        assert_code(&again, 2);
        assert_holds(&again.stderr, &["the store already has a job s", why]);
    }
    let ended = start(&suite, 1, &[]).finish(LONG * 2);
    assert!([0, 1, 4].contains(&ended.code), "{}", ended.stderr);
    assert!(!Path::new(&format!("/proc/{left}")).exists(), "task {left}");
    for variant in ["one", "two"] {
        assert_eq!(manifest(&suite, 1, variant)["outcome"], "completed");
    }
    // The first session had it.
    assert!(suite.path("store/s/abort.json").is_file());
    assert!(suite.path("store/s.2/runs/0002/start.json").is_file());
    assert!(!suite.results().join(".tasks").exists());
    // The job has the folder of the results, and --resume does the same.
    let words = ["run", "experiment", "--generators=1"];
    let last = suite.call(&[&words[..], &WORDS].concat());
    assert_code(&last, ended.code);
    assert_code(&start(&suite, 1, &["--resume"]).finish(LONG), ended.code);
    assert!(!suite.path("store/s.3").exists(), "nothing runs again");
    suite.assert_no_process(STOP_MAX);
}

#[test]
fn a_suite_whose_job_is_cancelled_ends_and_can_be_resumed() {
    let suite = Suite::new()
        .with("phases", SHORT)
        .with("pairs", "20")
        .with("validity", "off");
    let run = start(&suite, 1, &[]);
    wait_for_start(&suite, 1, 0);
    let cancelled = suite.call(&["cluster", "cancel", "--store=store", "--job=s"]);
    assert_code(&cancelled, 0);
    let ended = run.finish(LONG);
    assert_code(&ended, 143);
    assert_holds(&ended.stdout, &["--resume"]);
    suite.assert_no_process(STOP_MAX);
}

#[test]
fn a_target_that_does_not_start_is_reported_with_its_last_lines() {
    let suite = Suite::new()
        .with("phases", SHORT)
        .script("echo no licence >&2; exit 7");
    let ended = start(&suite, 1, &[]).finish(LONG);
    assert_code(&ended, 3);
    assert_holds(&ended.stderr, &["target: no licence"]);
    suite.assert_no_process(STOP_MAX);
}

#[test]
fn pairs_that_cannot_be_on_several_machines_are_refused() {
    let suite = Suite::new();
    for (words, why) in [
        (
            &["--design=sliced"][..],
            "experiment `experiment`: `design: sliced` runs both variants at once",
        ),
        (
            &["--sinks=2"],
            "experiment `experiment`: the file has 1 sink, which cannot be divided among 2",
        ),
        (
            &["--stats-listen=127.0.0.1:0"],
            "metrics are exported only by runs on this machine",
        ),
    ] {
        let ended = start(&suite, 2, words).finish(LONG);
        assert_code(&ended, 2);
        assert_holds(&ended.stderr, &[why]);
    }
    let ended = suite
        .run(&[&WORDS[..], &["--sinks=1"]].concat())
        .finish(LONG);
    assert_code(&ended, 2);
    assert_holds(&ended.stderr, &["--generators"]);
    let url = "target: {url: \"http://127.0.0.1:1/\"}\nvariants: {one: {}, two: {}}\n\
               workload: {generators: [{requests: {}, rate: 10/s}]}\ngoals: [service_time_p50]\n";
    suite.file("url/experiment.yaml", url);
    let words = [&["run", "url", "--generators=2"], &WORDS[..]].concat();
    let ended = suite.call(&words);
    assert_code(&ended, 2);
    assert_holds(
        &ended.stderr,
        &["a run on several machines must start its target"],
    );
    assert!(!suite.path("store").exists(), "it starts nothing");
}
