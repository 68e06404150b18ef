//! One bench of a tree: what stands before it, it itself, and what stands after.

mod group;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::Context;
use serde_json::Value;
use stillwell_config::{Await, BenchFolder, BenchStep};
use stillwell_plan::ReadyProbe;
use stillwell_scope::{Token, clock};
use stillwell_target::{Subject, wait_ready};
use stillwell_units::Nanos;
use tokio::process::Command;
use tokio::time::timeout;

use self::group::Group;
use super::check::{self, Assertion};

/// How long conditions may take to come true, unless a step says something else.
const AWAIT_MAX: Nanos = Nanos::from_secs(10);
/// How long a program behind a bench may take, unless it says something else.
const AFTER_MAX: Nanos = Nanos::from_secs(60);

/// What one bench is given.
pub(super) struct Stage<'s> {
    pub(super) stillwell: &'s Path,
    pub(super) bench: &'s BenchFolder,
    /// Where its outputs go.
    pub(super) evidence: &'s Path,
    pub(super) timeout: Nanos,
    pub(super) stop: &'s Token,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Tested {
    pub(super) name: String,
    pub(super) tags: Vec<String>,
    /// Everything that was to be true, and whether it was.
    pub(super) assertions: Vec<Assertion>,
    /// Its own report.
    pub(super) figures: Option<Value>,
    /// Outputs, by what they are called.
    pub(super) evidence: Vec<(String, PathBuf)>,
    pub(super) elapsed: Nanos,
}

impl Tested {
    pub(super) fn has_passed(&self) -> bool {
        self.assertions.iter().all(|one| one.failure.is_none())
    }
}

/// Runs it. Whatever happens, what was started before it is ended and what stands
/// after it is run.
pub(super) async fn test(stage: &Stage<'_>) -> Tested {
    let begin = clock::now();
    let mut tested = Tested {
        name: stage.bench.name.clone(),
        tags: stage.bench.tags.clone(),
        assertions: Vec::new(),
        figures: None,
        evidence: Vec::new(),
        elapsed: Nanos::ZERO,
    };
    let mut running = Vec::new();
    let benched = match before(stage, &mut running, &mut tested).await {
        Ok(()) => bench(stage, &mut tested).await.map_err(|e| ("bench", e)),
        Err(error) => Err(("before", error)),
    };
    if let Err((what, error)) = &benched {
        let failed = Assertion::failed(what, format!("{error:#}"));
        tested.assertions.push(failed);
    }
    for group in &mut running {
        group.end().await;
    }
    for (number, step) in stage.bench.after.iter().enumerate() {
        if let Err(error) = after(stage, number, step, &mut tested).await {
            let failed = Assertion::failed("after", format!("{error:#}"));
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
    stage: &Stage<'_>,
    running: &mut Vec<Group>,
    tested: &mut Tested,
) -> anyhow::Result<()> {
    for (number, step) in stage.bench.before.iter().enumerate() {
        let names = [
            format!("before.out.{number}.log"),
            format!("before.err.{number}.log"),
        ];
        tested.keep(&format!("before {number}"), &names, stage);
        let group = Group::start(&mut command(stage, step), stage.evidence, &names)
            .with_context(|| format!("start `{}`", step.command.join(" ")))?;
        running.push(group);
        let Some(group) = running.last_mut() else {
            break;
        };
        let most = step.await_max.unwrap_or(AWAIT_MAX);
        let awaited = timeout(most.as_duration(), conditions(stage, step, most, group));
        awaited.await.map_err(|_| {
            let step = step.command.join(" ");
            anyhow::anyhow!("what `{step}` is waited for did not come true in time")
        })??;
    }
    Ok(())
}

/// Waits until all conditions of `step` hold.
async fn conditions(
    stage: &Stage<'_>,
    step: &BenchStep,
    most: Nanos,
    group: &mut Group,
) -> anyhow::Result<()> {
    let deadline = clock::now() + most;
    let nobody = Subject::none();
    let first = ReadyProbe::Delay {
        length: step.await_min,
    };
    wait_ready(&first, &nobody, deadline, stage.stop).await?;
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
            Await::Status(wanted) => {
                // Both are cancel-safe: they wait and do nothing else.
                let status = tokio::select! {
                    status = group.wait() => status?,
                    () = stage.stop.cancelled() => anyhow::bail!("it was interrupted"),
                };
                let code = code_of(status);
                anyhow::ensure!(
                    code == i32::from(*wanted),
                    "it ended with {code}, not {wanted}"
                );
                continue;
            }
        };
        wait_ready(&probe, &nobody, deadline, stage.stop).await?;
    }
    Ok(())
}

/// Runs `stillwell bench`, which ends by itself, by the time limit or by a signal.
async fn bench(stage: &Stage<'_>, tested: &mut Tested) -> anyhow::Result<()> {
    let names = ["fg.out.log".to_owned(), "fg.err.log".to_owned()];
    tested.keep("test", &names, stage);
    let report = stage.evidence.join("report.json");
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
    if !stage.bench.before.is_empty() {
        // What was started before it is there.
        command.arg("--shared-network");
    }
    let mut group =
        Group::start(&mut command, stage.evidence, &names).context("start the bench")?;
    let status = tokio::select! {
        status = group.wait() => Some(status),
        () = tokio::time::sleep(stage.timeout.as_duration()) => None,
        () = stage.stop.cancelled() => None,
    };
    group.end().await;
    let status = status.transpose().context("wait for the bench")?;
    let wanted = i32::from(stage.bench.asserts.status);
    let assertion = match status {
        Some(status) => Assertion::equal("status", wanted, code_of(status)),
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
    stage: &Stage<'_>,
    number: usize,
    step: &BenchStep,
    tested: &mut Tested,
) -> anyhow::Result<()> {
    let names = [
        format!("after.out.{number}.log"),
        format!("after.err.{number}.log"),
    ];
    tested.keep(&format!("after {number}"), &names, stage);
    let shown = step.command.join(" ");
    let mut group = Group::start(&mut command(stage, step), stage.evidence, &names)
        .with_context(|| format!("start `{shown}`"))?;
    let most = step.await_max.unwrap_or(AFTER_MAX);
    let Ok(status) = timeout(most.as_duration(), group.wait()).await else {
        group.end().await;
        anyhow::bail!("`{shown}` took longer than {most}");
    };
    let code = code_of(status?);
    anyhow::ensure!(code == 0, "`{shown}` ended with {code}");
    Ok(())
}

/// The program of a step, with variables filled into its words.
fn command(stage: &Stage<'_>, step: &BenchStep) -> Command {
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

/// `word` with what stands for `$NAME` in place of it: of the bench, `$PWD`, or
/// ours. What nobody knows stays.
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

impl Tested {
    /// Notes where outputs of `what` are.
    fn keep(&mut self, what: &str, names: &[String; 2], stage: &Stage<'_>) {
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
        for (word, wanted) in [
            ("plain", "plain"),
            ("$PWD/in.json", "/bench/in.json"),
            ("tcp:$PORT:$PORT", "tcp:9:9"),
            ("$NOBODY_HAS_THIS_1", "$NOBODY_HAS_THIS_1"),
            ("a$", "a$"),
            ("$$PORT", "$9"),
        ] {
            assert_eq!(expand(word, &environment, folder), wanted, "{word}");
        }
    }
}
