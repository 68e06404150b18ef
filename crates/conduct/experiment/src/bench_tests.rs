//! Tests of a folder tree of benches: programs before a bench, the bench, and programs
//! after it.

mod check;
mod process_group;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use serde_json::Value;
use stillwell_config::{Await, BenchFolder, BenchStep};
use stillwell_plan::target::ReadyProbe;
use stillwell_scope::{Token, clock, explain};
use stillwell_target::{TargetProcess, wait_ready};
use stillwell_units::Nanos;
use tokio::process::Command;
use tokio::time::timeout;

use self::process_group::ProcessGroup;

pub use check::Assertion;

/// The longest time that conditions may take to come true, unless a step says something else.
const AWAIT_MAX: Nanos = Nanos::from_secs(10);
/// The longest time that a program behind a bench may take, unless it says something else.
const AFTER_MAX: Nanos = Nanos::from_secs(60);

/// One bench of a tree, and what its test needs.
#[derive(Debug)]
pub struct BenchTest<'s> {
    /// This program.
    pub stillwell: &'s Path,
    /// The bench.
    pub bench: &'s BenchFolder,
    /// Folder of its outputs.
    pub evidence: &'s Path,
    /// Maximum time of the bench.
    pub timeout: Nanos,
    /// Ends the test early.
    pub stop: &'s Token,
}

/// Result of the test of a bench.
#[derive(Debug)]
pub struct TestedBench {
    /// The bench.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its assertions, with their failures.
    pub assertions: Vec<Assertion>,
    /// The report of the bench, as JSON.
    pub figures: Option<Value>,
    /// Files of outputs, by name.
    pub evidence: Vec<(String, PathBuf)>,
    /// Time that the test took.
    pub elapsed: Nanos,
}

impl TestedBench {
    /// Returns true if all assertions hold.
    #[must_use]
    pub fn has_passed(&self) -> bool {
        self.assertions
            .iter()
            .all(|assertion| assertion.failure.is_none())
    }
}

/// Tests the bench. In every case, programs that were started before it are ended and
/// programs after it are run.
///
/// # Errors
/// There is no runtime for the test.
pub fn test_bench(stage: &BenchTest<'_>) -> io::Result<TestedBench> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(runtime.block_on(test(stage)))
}

async fn test(stage: &BenchTest<'_>) -> TestedBench {
    let begin = clock::now();
    let mut tested = TestedBench {
        name: stage.bench.name.clone(),
        tags: stage.bench.tags.clone(),
        assertions: Vec::new(),
        figures: None,
        evidence: Vec::new(),
        elapsed: Nanos::ZERO,
    };
    let mut running = Vec::new();
    let benched = match before(stage, &mut running, &mut tested).await {
        Ok(()) => bench(stage, &mut tested)
            .await
            .map_err(|error| ("bench", error)),
        Err(error) => Err(("before", error)),
    };
    if let Err((what, error)) = &benched {
        let failed = Assertion::failed(what, error.clone());
        tested.assertions.push(failed);
    }
    for group in &mut running {
        group.end().await;
    }
    for (number, step) in stage.bench.after.iter().enumerate() {
        if let Err(error) = after(stage, number, step, &mut tested).await {
            let failed = Assertion::failed("after", error);
            tested.assertions.push(failed);
        }
    }
    if benched.is_ok() {
        let checked = check::asserts(&stage.bench.asserts, stage, tested.figures.as_ref());
        tested.assertions.extend(checked);
    }
    tested.elapsed = clock::now().since(begin);
    tested
}

/// Starts the programs before it, each once the conditions of the one before it
/// hold.
async fn before(
    stage: &BenchTest<'_>,
    running: &mut Vec<ProcessGroup>,
    tested: &mut TestedBench,
) -> Result<(), String> {
    for (number, step) in stage.bench.before.iter().enumerate() {
        let names = [
            format!("before.out.{number}.log"),
            format!("before.err.{number}.log"),
        ];
        tested.keep(&format!("before {number}"), &names, stage);
        let group = ProcessGroup::start(&mut command(stage, step), stage.evidence, &names)
            .map_err(|error| format!("start `{}`: {error}", step.command.join(" ")))?;
        running.push(group);
        let Some(group) = running.last_mut() else {
            break;
        };
        let most = step.await_max.unwrap_or(AWAIT_MAX);
        let awaited = timeout(most.as_duration(), conditions(stage, step, most, group));
        awaited.await.map_err(|_| {
            let step = step.command.join(" ");
            format!("the conditions of `{step}` did not hold in time")
        })??;
    }
    Ok(())
}

/// Waits until all conditions of `step` hold.
async fn conditions(
    stage: &BenchTest<'_>,
    step: &BenchStep,
    most: Nanos,
    group: &mut ProcessGroup,
) -> Result<(), String> {
    let deadline = clock::now() + most;
    let no_target = TargetProcess::none();
    let first = ReadyProbe::Delay {
        length: step.await_min,
    };
    let ready = wait_ready(&first, &no_target, deadline, stage.stop).await;
    ready.map_err(|error| explain(&error))?;
    for condition in &step.awaits {
        let probe = match condition {
            Await::PortOpen(address) => ReadyProbe::Tcp {
                address: address.clone(),
            },
            Await::Passed(length) => ReadyProbe::Delay { length: *length },
            Await::HttpOk(url) => ReadyProbe::Http { url: url.clone() },
            Await::FileExists(path) => ReadyProbe::File {
                path: path.to_string_lossy().into_owned(),
            },
            Await::Status(expected) => {
                // Both are cancel-safe: they wait and do nothing else.
                let status = tokio::select! {
                    status = group.wait() => status.map_err(|error| error.to_string())?,
                    () = stage.stop.cancelled() => return Err("it was interrupted".to_owned()),
                };
                let code = code_of(status);
                if code != i32::from(*expected) {
                    return Err(format!("it ended with {code}, not {expected}"));
                }
                continue;
            }
        };
        let ready = wait_ready(&probe, &no_target, deadline, stage.stop).await;
        ready.map_err(|error| explain(&error))?;
    }
    Ok(())
}

/// Runs `stillwell bench`, which ends by itself, by the time limit or by a signal.
async fn bench(stage: &BenchTest<'_>, tested: &mut TestedBench) -> Result<(), String> {
    let names = ["fg.out.log".to_owned(), "fg.err.log".to_owned()];
    tested.keep("test", &names, stage);
    let report = stage.evidence.join("report.json");
    // A bench that does not run writes no report; one of an earlier test is not its result.
    if let Err(error) = std::fs::remove_file(&report)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(format!("remove {}: {error}", report.display()));
    }
    let mut command = Command::new(stage.stillwell);
    command
        .args(["bench", "--quiet"])
        .arg(&stage.bench.file)
        .arg("--output")
        .arg(&report)
        .arg("--results")
        .arg(stage.evidence.join("capture"))
        .current_dir(&stage.bench.folder)
        .envs(&stage.bench.environment);
    // A target does not inherit the environment of the bench. Every user can read a command line, so values are not in it.
    for name in stage.bench.environment.keys() {
        command.arg("--environment").arg(name);
    }
    if !stage.bench.before.is_empty() {
        // What was started before it is there.
        command.arg("--shared-network");
    }
    let mut group = ProcessGroup::start(&mut command, stage.evidence, &names)
        .map_err(|error| format!("start the bench: {error}"))?;
    let status = tokio::select! {
        status = group.wait() => Some(status),
        () = tokio::time::sleep(stage.timeout.as_duration()) => None,
        () = stage.stop.cancelled() => None,
    };
    group.end().await;
    let status = status.transpose();
    let status = status.map_err(|error| format!("wait for the bench: {error}"))?;
    let expected = i32::from(stage.bench.asserts.status);
    let assertion = match status {
        Some(status) => Assertion::equal("status", expected, code_of(status)),
        None => {
            let why = if stage.stop.is_cancelled() {
                "it was interrupted".to_owned()
            } else {
                format!("it took longer than {}", stage.timeout)
            };
            Assertion::failed("time limit", why)
        }
    };
    tested.assertions.push(assertion);
    let text = std::fs::read_to_string(report).ok();
    tested.figures = text.and_then(|text| serde_json::from_str(&text).ok());
    Ok(())
}

async fn after(
    stage: &BenchTest<'_>,
    number: usize,
    step: &BenchStep,
    tested: &mut TestedBench,
) -> Result<(), String> {
    let names = [
        format!("after.out.{number}.log"),
        format!("after.err.{number}.log"),
    ];
    tested.keep(&format!("after {number}"), &names, stage);
    let shown = step.command.join(" ");
    let mut group = ProcessGroup::start(&mut command(stage, step), stage.evidence, &names)
        .map_err(|error| format!("start `{shown}`: {error}"))?;
    let most = step.await_max.unwrap_or(AFTER_MAX);
    let Ok(status) = timeout(most.as_duration(), group.wait()).await else {
        group.end().await;
        return Err(format!("`{shown}` took longer than {most}"));
    };
    match code_of(status.map_err(|error| error.to_string())?) {
        0 => Ok(()),
        code => Err(format!("`{shown}` ended with {code}")),
    }
}

/// The program of a step, with variables filled into its words.
fn command(stage: &BenchTest<'_>, step: &BenchStep) -> Command {
    let mut environment = stage.bench.environment.clone();
    environment.extend(step.environment.clone());
    let words = step.command.iter();
    let words: Vec<String> = words
        .map(|word| expand(word, &environment, &step.folder))
        .collect();
    let (program, arguments) = words
        .split_first()
        .map_or(("", &[][..]), |(first, rest)| (first.as_str(), rest));
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(&step.folder)
        .envs(environment);
    command
}

/// `word` with each `$NAME` replaced by its value: of the bench, `$PWD`, or ours. Unknown names
/// stay.
fn expand(word: &str, environment: &BTreeMap<String, String>, folder: &Path) -> String {
    let mut expanded = String::new();
    let mut rest = word;
    while let Some((before, after)) = rest.split_once('$') {
        expanded.push_str(before);
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let length = after.find(|c| !is_name(c)).unwrap_or(after.len());
        let (name, behind) = after.split_at(length);
        let value = match name {
            "PWD" => Some(folder.to_string_lossy().into_owned()),
            "" => None,
            _ => environment
                .get(name)
                .cloned()
                .or_else(|| std::env::var(name).ok()),
        };
        match value {
            Some(value) => expanded.push_str(&value),
            None => expanded.extend(["$", name]),
        }
        rest = behind;
    }
    expanded.push_str(rest);
    expanded
}

/// As a shell has it: 128 and the number of the signal that ended it.
fn code_of(status: ExitStatus) -> i32 {
    let signal = || 128 + status.signal().unwrap_or(0);
    status.code().unwrap_or_else(signal)
}

impl TestedBench {
    /// Notes where outputs of `what` are.
    fn keep(&mut self, what: &str, names: &[String; 2], stage: &BenchTest<'_>) {
        for (stream, name) in ["stdout", "stderr"].into_iter().zip(names) {
            let path = stage.evidence.join(name);
            self.evidence.push((format!("{what}: {stream}"), path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let environment = BTreeMap::from([("PORT".to_owned(), "9".to_owned())]);
        let folder = Path::new("/bench");
        for (word, expected) in [
            ("plain", "plain"),
            ("$PWD/in.json", "/bench/in.json"),
            ("tcp:$PORT:$PORT", "tcp:9:9"),
            ("$NOBODY_HAS_THIS_1", "$NOBODY_HAS_THIS_1"),
            ("a$", "a$"),
            ("$$PORT", "$9"),
        ] {
            assert_eq!(expand(word, &environment, folder), expected, "{word}");
        }
    }
}
